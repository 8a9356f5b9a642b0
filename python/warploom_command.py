"""The command `warploom` of the wheel: where the executable is, without torch.

A wheel that `./run build wheel` made holds it. Otherwise it is built with `./run build` and named:
WARPLOOM_PROGRAM holds its path, or its folder is on PATH. This is no part of the package warploom,
whose import takes torch along: a command must answer at once, and where there is no torch.
"""
from __future__ import annotations

import os
import pathlib
import shutil
import sys
from typing import Iterator

HERE = pathlib.Path(__file__).resolve().parent
MISSING = "the program warploom was not found"
REMEDY = (
    "build it with `./run build`, and put it on PATH or set WARPLOOM_PROGRAM to its path; a wheel "
    "that `./run build wheel` made holds it"
)


def candidates() -> Iterator[str | os.PathLike | None]:
    """Where the executable may be, the surest place first."""
    yield os.environ.get("WARPLOOM_PROGRAM")
    yield HERE / "warploom" / "bin" / "warploom"  # of the wheel
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("warploom", path=folder) if folder else None
        if found and not is_script(found):
            yield found
    yield HERE.parent / "build" / "release" / "warploom"  # of a source tree


def is_script(path: str) -> bool:
    """Whether it is a text that an interpreter runs, as the wheel's own command."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def found() -> str | None:
    """The path of the executable, where there is one."""
    for place in candidates():
        if place and os.access(place, os.X_OK) and os.path.isfile(place):
            return str(place)
    return None


def main() -> None:
    """The executable, with the same arguments, in the place of this process."""
    path = found()
    if path is None:
        sys.exit(f"program-missing: {MISSING}\n  remedy: {REMEDY}")
    os.execv(path, [path, *sys.argv[1:]])
