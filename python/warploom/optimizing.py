"""optimize(): from a module and examples of its inputs to a module with proven kernels.

Export, search, build, adopt, check against the original on fresh inputs, and a table of it all.
"""
from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import tempfile
from typing import Any, Iterator, Mapping

import torch

from . import checking
from .buckets import Buckets, signature_of
from .errors import WarploomError
from .exporting import copied
from .loading import load
from .module_export import as_tuple, export, told_where
from .program import answer
from .refusing import REMEDY_GRADIENTS


@dataclasses.dataclass
class Outcome:
    """What optimize() found for inputs of one shape.

    `outputs`: the check on fresh inputs. `us`, `eager_us`: a call of the faster module and of the
    module, in Python, by turns. `search`: the answer of `warploom optimize --json` (README.md).
    """

    bundle: pathlib.Path
    outputs: list[checking.Output]
    us: float
    eager_us: float
    search: dict[str, Any]

    def __str__(self) -> str:
        return "\n".join(told(self))


def optimize(
    module: torch.nn.Module,
    example_inputs: Any,
    budget: str = "60s",
    track: str | None = None,
    out: str | os.PathLike | None = None,
    quiet: bool = False,
    **flags: Any,
) -> torch.nn.Module:
    """`module` with the fastest kernels found for inputs of these shapes, and its own parameters.

    >>> faster = warploom.optimize(module, x, budget="60s")          # doctest: +SKIP
    >>> faster = warploom.optimize(module, {1: x1, 8: x8})           # doctest: +SKIP

    `example_inputs`: a tensor, or a tuple of a call's arguments. A dictionary of such, by any keys
    (batch sizes, say), gives a module that has kernels for each of these shapes: inputs of other
    shapes are computed by the module itself, with one warning for each shape. `budget`: of the
    search, for each shape. `track`: the precision, "fp32" or "tf32" for one; by default the
    model's own. `out`: the bundle's folder, by default out/NAME with the name of the module's
    class, and a folder in it for each key of a dictionary. `quiet`: nothing is printed. Other
    keywords are flags of `warploom optimize`: target="cpu", seed=2.

    The result has the module's class and its very parameters; weights that change later are
    noticed at the next call, and what was prepared of them is prepared again. It computes no
    gradients: with an input or weight that wants one it raises an error with the code "gradients".

    It is checked on fresh inputs (of the mean and spread of the examples) before it is returned:
    the relative Frobenius error ‖ours − FP64‖ / ‖FP64‖ of each output against the module computed
    in FP64 must be at most 8 times the tolerance of the track, or 1e-4 where that is more. The
    table that is printed shows it beside the module's own error; `warploom.outcome(faster)` is it.
    """
    if isinstance(example_inputs, Mapping):
        return optimize_buckets(
            module, example_inputs, budget=budget, track=track, out=out, quiet=quiet, **flags
        )
    inputs = as_tuple(example_inputs)
    if torch.is_grad_enabled() and any(wants_gradient(value) for value in inputs):
        raise WarploomError(
            "gradients",
            "an example input wants a gradient, and kernels compute none",
            remedy=f"give x.detach(), and where the faster module is called: {REMEDY_GRADIENTS}",
        )
    folder = pathlib.Path(out) if out else pathlib.Path("out") / name_of(module)
    search = searched(module, inputs, folder, budget, track, quiet, flags)
    bundle = load(folder, trust=True)
    faster = bundle.adopt(module)
    with torch.no_grad(), evaluating(faster):
        given = checking.fresh(inputs)
        names = [tensor.name for tensor in bundle.bundle.outputs]
        plain = copied(module).eval()
        tolerance = bundle.bundle.plan["tolerance"]
        outputs = checking.compared(faster, plain, given, names, tolerance)
        device = next(value.device for value in inputs if isinstance(value, torch.Tensor))
        with precision(track):
            times = checking.times(
                {"ours": lambda: faster(*given), "eager": lambda: plain(*given)}, device
            )
    found = Outcome(folder, outputs, times["ours"], times["eager"], search)
    faster.__dict__["_outcome"] = found
    if not quiet:
        print(found)
    return faster


def outcome(faster: torch.nn.Module) -> Outcome | dict[Any, Outcome]:
    """What optimize() found of a module that it returned; by keys, where it was given examples by
    keys."""
    return faster.__dict__["_outcome"]


def optimize_buckets(
    module: torch.nn.Module, examples: Mapping[Any, Any], out: Any = None, **how: Any
) -> torch.nn.Module:
    """optimize() for each of several shapes, as one module."""
    if not examples:
        raise WarploomError("no-example", "the dictionary of example inputs is empty")
    folder = pathlib.Path(out) if out else pathlib.Path("out") / name_of(module)
    faster = {}
    outcomes = {}
    for key, example in examples.items():
        one = optimize(module, example, out=folder / f"{folder.name}_{word(key)}", **how)
        faster[signature_of(as_tuple(example))] = one
        outcomes[key] = outcome(one)
    found = Buckets.of(module, faster)
    found.__dict__["_outcome"] = outcomes
    return found


def searched(
    module: torch.nn.Module,
    inputs: tuple,
    folder: pathlib.Path,
    budget: str,
    track: str | None,
    quiet: bool,
    flags: Mapping[str, Any],
) -> dict[str, Any]:
    """Exports the module and has the program search; the bundle is in `folder` afterwards."""
    named = {**flags, "out": folder, "budget": budget}
    if track:
        named["track"] = track
    with tempfile.TemporaryDirectory(prefix="warploom-") as scratch:
        file = pathlib.Path(scratch) / f"{folder.name}.onnx"
        export(module, inputs, file)
        arguments = ["optimize", str(file)]
        for flag, value in named.items():
            arguments += [f"--{flag.replace('_', '-')}", str(value)]
        try:
            return answer(arguments, quiet)
        except WarploomError as error:
            if "node '" not in error.place:
                raise
            raise told_where(error, module, inputs) from None


def wants_gradient(value: Any) -> bool:
    """Whether autograd would want its gradient."""
    return isinstance(value, torch.Tensor) and value.requires_grad


def word(key: Any) -> str:
    """A key of a dictionary as a part of a folder's name."""
    return re.sub(r"\W+", "_", str(key)).strip("_").lower() or "x"


def name_of(module: torch.nn.Module) -> str:
    """The name of the module's class as a folder's."""
    return word(type(module).__name__)


@contextlib.contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """The module in evaluation mode, all parts of it, for a while."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


@contextlib.contextmanager
def precision(track: str | None) -> Iterator[None]:
    """Eager in the precision of the track, so that times compare."""
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (matmul.allow_tf32, convolution.allow_tf32)
    matmul.allow_tf32 = convolution.allow_tf32 = track == "tf32"
    try:
        yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32 = before


def told(found: Outcome) -> list[str]:
    """The table of an outcome."""
    rows = [["output", "error", "eager's", "largest", "allowed"]]
    for one in found.outputs:
        own = "–" if one.eager_error is None else f"{one.eager_error:.1e}"
        if not one.checked:
            rows.append([one.name, "not checked: nothing finite", "–", "–", "–"])
            continue
        rows.append(
            [one.name, f"{one.error:.1e}", own, f"{one.largest:.1e}", f"{one.allowed:.1e}"]
        )
    lines = aligned(rows)
    rows = [["region", "ours, us", "its reference, us", "reference"]]
    for one in found.search.get("regions") or []:
        label = str(one.get("label") or "")
        times = one.get("times") or 1
        label = f"{label} ×{times}" if times != 1 else label
        reference = str(one.get("reference") or "–")
        rows.append([label, number(one.get("best_us")), number(one.get("reference_us")), reference])
    if len(rows) > 1:
        lines += ["", *aligned(rows)]
    ratio = found.eager_us / found.us if found.us else 0.0
    lines += [
        "",
        f"a call: {found.us:.1f} us, eager's {found.eager_us:.1f} us ({ratio:.2f}×)",
        f"bundle: {found.bundle}",
    ]
    return lines


def number(value: Any) -> str:
    """A time, or that it is not known."""
    return "–" if value is None else f"{value:.2f}"


def aligned(rows: list[list[str]]) -> list[str]:
    """Rows of a table: words to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    last = len(widths) - 1
    lines = []
    for row in rows:
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths)):
            is_word = column == 0 or (column == last and not cell[:1].isdigit())
            cells.append(cell.ljust(width) if is_word else cell.rjust(width))
        lines.append("  ".join(cells).rstrip())
    return lines
