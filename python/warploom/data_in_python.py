"""Finds where a module reads elements that depend on its inputs, and where it writes what it has.

    if x.sum() > 0: …        float(x.max())        x[int(n)]        x[x > 0]        x.tolist()

An exporter follows one run of the module and keeps what that run did: the branch that was taken,
the number that was read. With other inputs the result would be wrong, and nothing would show it. So
a copy of the module runs once under a mode that sees every operator: what is made of an input is an
input's, and the first element of such a tensor that goes to Python, or decides how long a result
is, is reported with its line.

    self.n.add_(1)           x.relu_()               F.batch_norm(x, mean, var, training=True)

change what the module or its caller has; kernels give new tensors and nothing else. The mode sees
which arguments an operator writes, and the first that is an input's, a weight's or a buffer's is
reported, too.
"""
from __future__ import annotations

import dataclasses
import pathlib
import traceback
import weakref
from typing import Any, Iterator, Mapping, Sequence

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .exporting import copied

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


# The running statistics that a norm in training writes: no schema says so, no version counts it.
STATISTICS = ("running_mean", "running_var")
# Operators that give Python an element, or a truth or a length that depends on elements.
READS = {"_local_scalar_dense", "equal", "allclose", "is_nonzero", "nonzero", "nonzero_numpy"}
READS |= {"_unique", "_unique2", "unique_dim", "unique_consecutive"}
HANDING = {"tolist", "numpy", "__array__"}  # functions that no operator stands for
MASKS = (torch.bool, torch.uint8)
ATTRIBUTE = "the attribute"  # a tensor that is no parameter or buffer
TRAINS = ("training", "train", "use_input_stats")


def storage_of(tensor: torch.Tensor) -> int:
    """The address of a tensor's memory; views have that of what they are views of."""
    if tensor.layout is not torch.strided:
        return 0
    made = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return made.data_ptr()


def written_by(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """The tensors that a call of an operator writes."""
    rows = getattr(getattr(function, "_schema", None), "arguments", [])
    given = {row.name: value for row, value in zip(rows, args)}
    given.update(kwargs)
    trains = any(given.get(name) is True for name in TRAINS)
    written = []
    for row in rows:
        is_written = row.alias_info is not None and row.alias_info.is_write
        if is_written or (trains and row.name in STATISTICS):
            written += tensors_in(given.get(row.name))
    return written


def decisive(function: Any, args: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors whose elements go to Python, or decide how long the operator's result is."""
    name = str(getattr(getattr(function, "_schema", None), "name", "")).rsplit("::", 1)[-1]
    if name in READS:
        return tensors_in(args)
    if name == "masked_select":
        return tensors_in(args[1:])
    if name == "index":
        return [value for value in tensors_in(args[1:]) if value.dtype in MASKS]
    return []


def named_state(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a module has, with what they are called."""
    for path, part in module.named_modules():
        before = f"{path}." if path else ""
        for kind, held in (
            ("the parameter", part._parameters),
            ("the buffer", part._buffers),
            (ATTRIBUTE, vars(part)),
        ):
            for name, value in held.items():
                if isinstance(value, torch.Tensor):
                    yield f"{kind} {before}{name}", value


@dataclasses.dataclass
class Found:
    """What one run shows. `read`: the first line that reads an element made of the inputs.
    `written`: what is written first, in words, and `line` where. "" where there is none."""

    read: str = ""
    written: str = ""
    line: str = ""


class Following(TorchDispatchMode):
    """Follows what is made of some tensors, and what is written."""

    def __init__(self, inputs: Sequence[Any], module: torch.nn.Module):
        super().__init__()
        self.made: dict[int, weakref.ref] = {}  # tensors that are made of them
        self.add(tensors_in(list(inputs)))
        self.found = Found()
        self.own = {storage_of(value): name for name, value in named_state(module)}
        for place, value in enumerate(inputs):
            self.own.update({storage_of(one): f"input {place}" for one in tensors_in(value)})
        self.own.pop(0, None)  # of tensors without elements

    def add(self, tensors: Sequence[torch.Tensor]) -> None:
        """Follows these as well."""
        self.made.update({id(tensor): weakref.ref(tensor) for tensor in tensors})

    def follows(self, tensor: torch.Tensor) -> bool:
        """Whether it is made of an input. (Sets compare tensors element by element.)"""
        found = self.made.get(id(tensor))
        return found is not None and found() is tensor

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for tensor in written_by(function, args, kwargs):
            name = self.own.get(storage_of(tensor), "")
            if name and tensor.numel() and not self.found.written:
                self.found.written, self.found.line = name, line_of_module()
        result = function(*args, **kwargs)
        given = tensors_in([args, kwargs])
        self.look_for_read(decisive(function, args))
        if any(map(self.follows, given)):
            self.add(tensors_in(result))
        return result

    def look_for_read(self, tensors: Sequence[torch.Tensor]) -> None:
        """Notes the line where one of these is made of an input."""
        if not self.found.read and any(map(self.follows, tensors)):
            self.found.read = line_of_module()

    def look_at(self, before: Mapping[str, torch.Tensor], module: torch.nn.Module) -> None:
        """Sees what has another tensor after the run: one made of inputs, or with other elements.

        (A table that is made anew for a longer input has another shape, and is no state; an
        attribute may be a result that is kept to be looked at.)
        """
        for name, now in named_state(module):
            was = before.get(name)
            if was is None or was is now or self.found.written or name.startswith(ATTRIBUTE):
                continue
            is_alike = was.shape == now.shape and was.dtype == now.dtype
            if self.follows(now) or (is_alike and not torch.equal(was, now)):
                self.found.written = name


class Handing(TorchFunctionMode):
    """Sees tensors that are handed to Python whole."""

    def __init__(self, following: Following):
        super().__init__()
        self.following = following

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in HANDING:
            self.following.look_for_read(tensors_in(args[:1]))
        return function(*args, **(kwargs or {}))


def first_read(module: torch.nn.Module, inputs: Sequence[Any]) -> Found:
    """What one run of a copy of the module in evaluation, on copies of the inputs, shows."""
    twin = copied(module).eval()
    given = [
        value.detach().clone() if isinstance(value, torch.Tensor) else value for value in inputs
    ]
    before = dict(named_state(twin))
    with torch.no_grad():
        following = Following(given, twin)
        with Handing(following), following:
            twin(*given)
        following.look_at(before, twin)
    return following.found
