"""A faster module beside the module that it was made of: how much it differs, and both times.

The error is the relative Frobenius norm of the difference to the module computed in FP64,

    ‖ours − FP64‖ / ‖FP64‖,

one number an output; of whole numbers it is the share that differs. Beside it stands the same of
the module in its own precision, so that one sees what of the error is the precision's.
"""
from __future__ import annotations

import dataclasses
import statistics
import time
from typing import Any, Callable, Iterable, Sequence

import torch

from .comparing import (
    LEAST_ALLOWED,
    LEAST_ALLOWED_16_BITS,
    MOST_ALLOWED,
    TOLERANCES,
    computed_by,
    computed_in_own_precision,
    error_of,
    flat,
)
from .errors import WarploomError

SEED = 2  # the kernels' own comparison draws by 1
SECONDS = 0.2  # of timing
LEAST_CALLS = 5


@dataclasses.dataclass
class Output:
    """One output on fresh inputs: errors as above, and the largest difference of an element.

    `checked`: false where the module gives nothing finite, so that nothing was compared.
    """

    name: str
    error: float
    eager_error: float | None
    largest: float
    allowed: float
    checked: bool = True


def drawn_like(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Random numbers with the mean and spread of its finite elements; the others stay where they
    are, as those of a mask do."""
    wide = value.double()
    finite = torch.isfinite(wide)
    some = wide[finite]
    drawn = torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value.device)
    if some.numel() < 2:
        return value.clone()
    drawn = drawn * some.std() + some.mean()
    return torch.where(finite, drawn, wide).to(value)


def fresh(inputs: Sequence[Any], seed: int = SEED) -> tuple:
    """Other inputs of the same kind: real numbers with the mean and spread of the example's, whole
    numbers and truth values in another order, which may be indices."""
    generator = torch.Generator().manual_seed(seed)

    def like(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.is_floating_point() and value.numel() > 1:
            return drawn_like(value.detach(), generator)
        order = torch.randperm(value.numel(), generator=generator).to(value.device)
        return value.detach().reshape(-1)[order].reshape(value.shape)

    return tuple(like(value) for value in inputs)


def compared(
    faster: Callable[..., Any],
    module: torch.nn.Module,
    inputs: Sequence[Any],
    names: Iterable[str],
    tolerance: float,
) -> list[Output]:
    """A row an output; a WarploomError where one differs by more than is allowed.

    Allowed are 8 times the bundle's `tolerance`, and at least 1e-4 (of a module that cannot compute
    in FP64 1e-3, or 3e-2 in 16 bits); or 8 times what the module itself loses, up to 1e-2.
    """
    wanted, precision = computed_by(module, inputs)
    own = computed_in_own_precision(module, inputs) if precision == torch.float64 else None
    with torch.no_grad():
        found = flat(faster(*inputs))
    least = LEAST_ALLOWED.get(precision, LEAST_ALLOWED_16_BITS)
    rows = []
    owns = flat(own) if own is not None else [None] * len(found)
    for name, ours, theirs, rounded in zip(names, found, flat(wanted), owns):
        theirs = theirs.to(ours.device)
        lost = None if rounded is None else error_of(rounded, theirs)
        allowed = max(TOLERANCES * tolerance, least, min(TOLERANCES * (lost or 0), MOST_ALLOWED))
        error = error_of(ours, theirs)
        finite = torch.isfinite(theirs)
        difference = (ours.double() - theirs.double())[finite].abs()
        largest = difference.max().item() if difference.numel() else 0.0
        checked = not theirs.numel() or bool(finite.any())
        rows.append(Output(name, error, lost, largest, allowed, checked))
        if not error <= allowed:
            raise WarploomError(
                "module-differs",
                f"{name} differs by {error:.2g} from what the module computes in FP64 on fresh "
                f"inputs (relative Frobenius error; allowed are {allowed:.1g})",
                remedy="see whether the module computes the same twice, and reads no random "
                "numbers or global state; else please report it",
            )
    return rows


def times(calls: dict[str, Callable[[], Any]], device: torch.device) -> dict[str, float]:
    """The median of each call in microseconds, taken by turns."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    with torch.no_grad():
        for call in calls.values():
            call()
        begin = time.perf_counter()
        while len(samples[next(iter(samples))]) < LEAST_CALLS or (
            time.perf_counter() - begin < SECONDS
        ):
            for name, call in calls.items():
                wait()
                start = time.perf_counter()
                call()
                wait()
                samples[name].append((time.perf_counter() - start) * 1e6)
    return {name: statistics.median(values) for name, values in samples.items()}
