"""Finds where a module's Python reads elements that depend on its inputs.

    if x.sum() > 0: …        float(x.max())        x[int(n)]

An exporter follows one run of the module and keeps what that run did: the branch that was taken,
the number that was read. With other inputs the result would be wrong, and nothing would show it. So
the module runs once under a mode that sees every operator: what is made of an input is an input's,
and the first element of such a tensor that goes to Python is reported with its line.
"""
from __future__ import annotations

import pathlib
import traceback
import weakref
from typing import Any, Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode

OWN = pathlib.Path(__file__).resolve().parent
TORCH = pathlib.Path(torch.__file__).resolve().parent


def line_of_module() -> str:
    """The line of the user's code that runs now: the innermost that is not torch's or ours."""
    for frame in reversed(traceback.extract_stack()):
        file = pathlib.Path(frame.filename)
        if TORCH not in file.parents and OWN not in file.parents:
            return f"{frame.filename}:{frame.lineno}, in {frame.name}: {frame.line}"
    return ""


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors_in(part)]
    if isinstance(value, dict):
        return tensors_in(list(value.values()))
    return []


class Following(TorchDispatchMode):
    """Follows what is made of some tensors."""

    def __init__(self, inputs: Sequence[Any]):
        super().__init__()
        self.made: dict[int, weakref.ref] = {}  # tensors that are made of them
        self.add(tensors_in(list(inputs)))
        self.read = ""  # the first line that reads an element

    def add(self, tensors: Sequence[torch.Tensor]) -> None:
        """Follows these as well."""
        self.made.update({id(tensor): weakref.ref(tensor) for tensor in tensors})

    def follows(self, tensor: torch.Tensor) -> bool:
        """Whether it is made of an input. (Sets compare tensors element by element.)"""
        found = self.made.get(id(tensor))
        return found is not None and found() is tensor

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        given = tensors_in([args, kwargs or {}])
        if any(map(self.follows, given)):
            if "_local_scalar_dense" in str(function) and not self.read:
                self.read = line_of_module()
            self.add(tensors_in(result))
        return result


def first_read(module: torch.nn.Module, inputs: Sequence[Any]) -> str:
    """The first line that reads an element made of the inputs; "" where there is none."""
    given = [value.detach() if isinstance(value, torch.Tensor) else value for value in inputs]
    with torch.no_grad():
        following = Following(given)
        with following:
            module(*given)
    return following.read
