"""Compares what the kernels give with what a module's own forward() gives."""
import copy
import itertools
import warnings

import torch

from .exporting import copied
from .refusing import AdoptionError

# Most relative Frobenius error between kernels and module: so many times the bundle's tolerance,
# and at least this, by the precision in which the module itself computed.
TOLERANCES = 8
LEAST_ALLOWED = {torch.float64: 1e-4, torch.float32: 1e-3}
LEAST_ALLOWED_16_BITS = 3e-2
MOST_ALLOWED = 1e-2  # of what the module itself loses: two draws of a dropout differ by more
# Of whole numbers, as places of the largest, which rounding may move.
MOST_DIFFERING = 0.01


def flat(value):
    """The tensors in what a forward() returns, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, (tuple, list, dict)):
        return [tensor for part in parts for tensor in flat(part)]
    return []


def like(value, tensors):
    """`tensors`, an iterator, in the form of what a forward() returned."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, dict):
        made = copy.copy(value)
        made.update({key: like(part, tensors) for key, part in value.items()})
        return made
    if isinstance(value, (tuple, list)):
        parts = [like(part, tensors) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


class Exact:
    """Products in full precision while the module's own forward() runs."""

    def __enter__(self):
        self.before = (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    def __exit__(self, *_):
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = self.before


def clones(inputs):
    """Copies, which a forward() may write."""
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]


def computed_by(twin, inputs):
    """What the module itself returns, and in which precision: FP64, or its own where it must."""
    in_fp64 = [value.double() if is_real(value) else value for value in clones(inputs)]
    with torch.no_grad(), Exact(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return copied(twin).double()(*in_fp64), torch.float64
        except Exception:  # whatever a module has against FP64, its own precision will do
            weights = [*twin.parameters(), *twin.buffers()]
            types = [value.dtype for value in (*weights, *inputs) if is_real(value)]
            least = min(types, key=lambda dtype: torch.finfo(dtype).bits, default=torch.float32)
            return computed_in_own_precision(twin, inputs), least


def computed_in_own_precision(twin, inputs):
    """What the module returns as it is."""
    with torch.no_grad(), Exact(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return copied(twin)(*clones(inputs))
        except Exception as error:  # modules raise what they like
            raise AdoptionError(
                f"the module's own forward() fails on such inputs: {error}", "module-differs"
            ) from error


def is_real(value):
    """Whether the tensor holds floating-point numbers."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def error_of(found, wanted):
    """Relative Frobenius error; of whole numbers none, if nearly all are the same."""
    if not is_real(found):
        differing = (found != wanted).double().mean().item() if found.numel() else 0.0
        return differing if differing > MOST_DIFFERING else 0.0
    found, wanted = found.double(), wanted.double()
    finite = torch.isfinite(wanted)
    if not torch.equal(finite, torch.isfinite(found)):
        return float("inf")
    found, wanted = found[finite], wanted[finite]
    size = wanted.norm().item()
    error = (found - wanted).norm().item()
    return error / size if size > 0 else error


def compared(kernels, twin, inputs, names, tolerance):
    """The form of what the module returns; an AdoptionError where the kernels give something else.

    Both compute on random numbers of the shapes of `inputs`, and on these themselves where the
    module makes infinities of random ones; whole numbers stay, since they may be indices. `kernels`
    is a function of the inputs, `names` are those of its outputs.
    """
    generator = torch.Generator().manual_seed(1)  # torch's own draws stay as they were
    taken = [torch.randn(x.shape, generator=generator).to(x) if is_real(x) else x for x in inputs]
    wanted, precision = computed_by(twin, taken)
    if not all(torch.isfinite(value).all() for value in flat(wanted) if is_real(value)):
        taken = list(inputs)
        wanted, precision = computed_by(twin, taken)
    found = kernels(taken)
    if len(flat(wanted)) != len(found):
        raise AdoptionError(
            f"the module returns {len(flat(wanted))} tensors, the bundle {len(found)}",
            "module-differs",
        )
    least = LEAST_ALLOWED.get(precision, LEAST_ALLOWED_16_BITS)
    allowed = max(TOLERANCES * tolerance, least)
    own = itertools.repeat(None)
    if precision == torch.float64:
        own = iter(flat(computed_in_own_precision(twin, taken)))
    for name, ours, theirs, rounded in zip(names, found, flat(wanted), own):
        if ours.shape != theirs.shape:
            raise AdoptionError(
                f"{name} is {list(ours.shape)}, and the module's {list(theirs.shape)}",
                "module-differs",
            )
        error = error_of(ours, theirs.to(ours.device))
        # Where the module itself loses digits, to cancellation for one, so may the kernels.
        lost = 0 if rounded is None else TOLERANCES * error_of(rounded, theirs)
        if not error <= max(allowed, min(lost, MOST_ALLOWED)):
            raise AdoptionError(
                f"{name} differs from what the module's own forward() gives, by {error:.2g} "
                f"(relative Frobenius error; allowed are {allowed:.1g})",
                "module-differs",
            )
    return like(wanted, itertools.repeat(torch.empty(0)))
