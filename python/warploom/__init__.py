"""Modules in, modules out: a torch.nn.Module with the fastest kernels that are proven right.

    import torch, warploom

    faster = warploom.optimize(module.eval(), (x,), budget="60s")
    with torch.no_grad():
        y = faster(x)

optimize() exports the module to ONNX, has the program `warploom` search, loads the bundle that it
writes, and puts the bundle's kernels into the module. The bundle stays, and needs nothing of this:

    from warploom import load

    # Later, or on another machine; with any weights. Its code runs in this process.
    faster = load("out/net", trust=True).adopt(module)

It needs torch, 1.13 or later, the program (`./run build`, on PATH or named by WARPLOOM_PROGRAM),
and what the bundle needs: a C++ compiler, on a GPU nvcc.
"""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from . import exporting

__all__ = ["WarploomError", "export", "load", "optimize", "program"]
HERE = pathlib.Path(__file__).resolve().parent


class WarploomError(RuntimeError):
    """What stopped the way from module to module, in the program's words where it was that."""


def program():
    """The path of the executable: WARPLOOM_PROGRAM, on PATH, or built in this source tree."""
    built = HERE.parents[1] / "build" / "release" / "warploom"
    for place in (os.environ.get("WARPLOOM_PROGRAM"), shutil.which("warploom"), built):
        if place and os.access(place, os.X_OK):
            return str(place)
    raise WarploomError(
        "the program warploom was not found: build it with `./run build`, and put it on PATH or "
        "set WARPLOOM_PROGRAM to its path"
    )


def export(module, example_inputs, file):
    """Writes `module` to `file` as ONNX, its weights as they are and by their own names.

    It is exported for evaluation, with the shapes of `example_inputs`, a tensor or a tuple.
    """
    inputs = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    ways = [{**exporting.untouched_weights(), "opset_version": 17}]
    if exporting.has_dynamo():
        ways.append({"dynamo": True})
    training = [part for part in module.modules() if part.training]
    reasons = []
    try:
        module.eval()
        for keywords in ways:
            try:
                return exporting.export(module, inputs, file, **keywords)
            except Exception as error:  # exporters raise what they like
                said = str(error).strip().splitlines() or [""]
                reasons.append(f"{type(error).__name__}: {said[0]}")
    finally:
        for part in training:
            part.training = True
    raise WarploomError(
        "torch.onnx.export cannot export the module: " + "; ".join(reasons) + " (docs/pytorch.md "
        "says what stops it and what helps)"
    )


def load(folder, trust=False):
    """The module of the bundle in `folder`: run(), adopt().

    It is Python that this process imports, and builds and loads a library of the bundle's sources:
    all of it runs with your rights. `trust=True` says that you answer for whoever wrote it; nothing
    of a bundle is imported without.
    """
    folder = pathlib.Path(folder).resolve()
    try:
        name = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["name"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WarploomError(f"{folder} is no bundle: {error}") from None
    if not isinstance(name, str) or not name.isidentifier():
        raise WarploomError(f"{folder} is no bundle: its name is {name!r}")
    if not trust:
        raise WarploomError(
            f"bundle-untrusted: {folder} holds code that would run with your rights; judge its "
            "kernels with `warploom verify`, read the rest, and say load(folder, trust=True)"
        )
    file = folder / f"{name}.py"
    if not file.is_file():
        raise WarploomError(f"{folder} holds no PyTorch module: optimize the model again")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def optimize(module, example_inputs, budget="60s", out=None, **flags):
    """`module` with the fastest kernels found for inputs of these shapes, and its own parameters.

    The bundle is written to `out`, by default out/NAME with the name of the module's class. Other
    keywords are flags of `warploom optimize`: target="cpu", track="tf32", seed=2.
    """
    name = re.sub(r"\W", "_", type(module).__name__).lower()
    folder = pathlib.Path(out) if out else pathlib.Path("out") / name
    with tempfile.TemporaryDirectory(prefix="warploom-") as scratch:
        file = pathlib.Path(scratch) / f"{folder.name}.onnx"
        export(module, example_inputs, file)
        command = [program(), "optimize", str(file), "--out", str(folder), "--budget", budget]
        for flag, value in flags.items():
            command += [f"--{flag.replace('_', '-')}", str(value)]
        run(command)
    return load(folder, trust=True).adopt(module)


def run(command):
    """Runs the program; what it says, its progress first, goes to standard error as it comes."""
    said = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        for line in running.stdout:
            print(line, end="", file=sys.stderr, flush=True)
            said.append(line)
    if running.returncode != 0:
        last = "".join(said[-8:]).strip()
        raise WarploomError(f"`warploom optimize` ended with {running.returncode}:\n{last}")
