"""The module of a bundle, from its folder."""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import types

from .errors import WarploomError


def load(folder: str | os.PathLike, trust: bool = False) -> types.ModuleType:
    """The module of the bundle in `folder`: run(), adopt().

    It is Python that this process imports, and builds and loads a library of the bundle's sources:
    all of it runs with your rights. `trust=True` says that you answer for whoever wrote it; nothing
    of a bundle is imported without.
    """
    folder = pathlib.Path(folder).resolve()
    again = "optimize the model again"
    try:
        name = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["name"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WarploomError("no-bundle", f"{folder} is no bundle: {error}", remedy=again) from None
    if not isinstance(name, str) or not name.isidentifier():
        said = f"{folder} is no bundle: its name is {name!r}"
        raise WarploomError("no-bundle", said, remedy=again)
    if not trust:
        raise WarploomError(
            "bundle-untrusted",
            f"{folder} holds code that would run with your rights",
            remedy="judge its kernels with `warploom verify`, read the rest, and say "
            "load(folder, trust=True)",
        )
    file = folder / f"{name}.py"
    if not file.is_file():
        said = f"{folder} holds no PyTorch module"
        raise WarploomError("no-bundle", said, remedy=again)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
