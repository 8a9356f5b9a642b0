"""From a module to an ONNX file, or an error that says what stops it and where.

exporting.py calls torch's exporters; here is what goes wrong before and after.
"""
from __future__ import annotations

import contextlib
import os
import pathlib
import re
import tempfile
from typing import Any, Iterator, Sequence

import torch

from . import exporting, outline
from .data_in_python import OWN, TORCH, first_read
from .errors import WarploomError

OPSET = 17
ROOM = re.compile(r"out of memory|can't allocate|cannot allocate|not enough memory", re.I)
FRAME = re.compile(r'^(?:\s*File ")?(?P<file>[^\n"(]+\.py)(?:", line |\()(?P<line>\d+)', re.M)


def as_tuple(example_inputs: Any) -> tuple:
    """Example inputs as the arguments of a call: a tensor, or a tuple or list of them."""
    is_several = isinstance(example_inputs, (tuple, list))
    inputs = tuple(example_inputs) if is_several else (example_inputs,)
    if not any(isinstance(value, torch.Tensor) for value in inputs):
        raise WarploomError(
            "no-example",
            f"example inputs are a tensor or a tuple with tensors, not {type(example_inputs)!r}",
            remedy="give tensors of the shapes and types that the module will be called with",
        )
    devices = {value.device for value in inputs if isinstance(value, torch.Tensor)}
    if len(devices) > 1:
        named = ", ".join(sorted(map(str, devices)))
        raise WarploomError(
            "input-device",
            f"the example inputs are on several devices: {named}",
            remedy="move them, and the module, to one",
        )
    return inputs


def export(module: torch.nn.Module, example_inputs: Any, file: str | os.PathLike) -> None:
    """Writes `module` to `file` as ONNX, its weights as they are and by their own names.

    It is exported for evaluation, with the shapes of `example_inputs`, a tensor or a tuple. A
    module that reads elements in Python, and so computes otherwise with other inputs, is refused,
    and so is one that writes its inputs, parameters or buffers. The module stays as it is.
    """
    inputs = as_tuple(example_inputs)
    try:
        found = first_read(module, inputs)
    except RuntimeError as error:
        refuse_room(error, inputs)
        raise WarploomError(
            "not-exported",
            f"the module itself fails on the example inputs: {first_line(error)}",
            remedy="call module.eval()(*example_inputs) and mend what it says",
        ) from error
    if found.read:
        raise WarploomError(
            "control-flow",
            "Python reads an element that depends on the inputs, so that an exported model "
            "would keep what this one example did",
            found.read,
            "write it with torch.where or leave that part out of the module; under "
            'torch.compile(module, backend="warploom") what lies around it is optimized',
        )
    if found.written:
        raise WarploomError(
            "module-writes",
            f"forward() writes {found.written}, and kernels give new tensors and change nothing "
            "else, so that it would stay as it is",
            found.line,
            "compute a new tensor (x.relu() for x.relu_()) and return a new state as an output; "
            'under torch.compile(module, backend="warploom") what lies around it is optimized',
        )
    export_by_any(exporting.copied(module).eval(), inputs, file)


def export_by_any(module: torch.nn.Module, inputs: tuple, file: str | os.PathLike) -> None:
    """By the first of torch's exporters that can."""
    ways: list[dict[str, Any]] = [{**exporting.untouched_weights(), "opset_version": OPSET}]
    if exporting.has_dynamo():
        ways.append({"dynamo": True})
    reasons = []
    for keywords in ways:
        try:
            exporting.export(module, inputs, file, **keywords)
            return
        except Exception as error:  # exporters raise what they like
            refuse_room(error, inputs)
            reasons.append(first_line(error))
    raise WarploomError(
        "not-exported",
        "torch.onnx.export cannot export the module: " + "; ".join(reasons),
        remedy="docs/pytorch.md says what stops it and what helps; under torch.compile(module, "
        'backend="warploom") the parts that can be are optimized',
    )


def first_line(error: BaseException) -> str:
    """An exception in a line."""
    said = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {said[0]}"


def refuse_room(error: BaseException, inputs: Sequence[Any]) -> None:
    """An error of its own where there was no memory."""
    if not ROOM.search(str(error)):
        return
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    size = sum(value.numel() * value.element_size() for value in tensors)
    raise WarploomError(
        "out-of-memory",
        f"the module and its {size} bytes of inputs do not fit on {tensors[0].device}: "
        f"{first_line(error)}",
        remedy="take smaller example inputs, or a device with more memory",
    ) from error


def line_of_node(module: torch.nn.Module, inputs: tuple, name: str) -> str:
    """Where in the user's source an ONNX node's operator is called, "" where that is not known.

    Exporters keep the call's stack only where they are asked to tell everything, so the module is
    exported once more.
    """
    with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
        file = pathlib.Path(folder) / "told.onnx"
        try:
            with silence():
                exporting.export(
                    exporting.copied(module).eval(),
                    inputs,
                    file,
                    **{**exporting.untouched_weights(), "opset_version": OPSET, "verbose": True},
                )
            nodes = [node for node in outline.Model(file).nodes if node.name == name]
        except Exception:  # this only adds to an error that is told anyway
            return ""
    for frame in FRAME.finditer(nodes[0].text if nodes else ""):
        path = pathlib.Path(frame["file"].strip())
        if TORCH not in path.parents and OWN not in path.parents:
            return f"{path}:{frame['line']}"
    return ""


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Nothing that C++ prints comes out."""
    with open(os.devnull, "wb") as nowhere:
        kept = [os.dup(number) for number in (1, 2)]
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
        try:
            yield
        finally:
            for number, was in zip((1, 2), kept):
                os.dup2(was, number)
                os.close(was)


def told_where(error: WarploomError, module: torch.nn.Module, inputs: tuple) -> WarploomError:
    """The same error of the program's, with the line of the module where its node comes from."""
    node = re.search(r"node '([^']+)'", error.place)
    line = line_of_node(module, inputs, node.group(1)) if node else ""
    if not line:
        return error
    return WarploomError(error.code, error.message, f"{error.place}, of {line}", error.remedy)
