"""What a bundle wants of a tensor: its type, shape and place, packed, at an address for wide loads.

A tensor that is not packed, not aligned, or overlaps itself (expand(), strides of zero) is copied
first. One of another shape, type or device is refused.
"""
import functools

import torch

from .elements import torch_type
from .refusing import InputError

ALIGNMENT = 64  # bytes; wide loads want it
PLAIN = (torch.Tensor, torch.nn.Parameter)  # others have ways of their own


class Tensor:
    """What the plan says of an input or output. `file`: where the bytes of a constant lie."""

    def __init__(self, spec, file=None):
        self.name = spec["name"]
        self.dtype = spec["dtype"]
        self.shape = tuple(spec["shape"])
        self.file = file

    def __str__(self):
        return f"{self.name} ({self.dtype} {list(self.shape)})"

    @functools.cached_property
    def type(self):
        """torch's element type."""
        return torch_type(self.dtype)

    def address(self, value, index):
        """The address of a tensor as the kernels want it, or 0. `index`: its GPU, -1 for the CPU.

        It is asked at every call, and so in the order of what it costs.
        """
        is_fit = (
            type(value) in PLAIN
            and value.dtype is self.type
            and value.shape == self.shape
            and value.get_device() == index
            and value.layout is torch.strided
            and value.is_contiguous()
            and not value.is_neg()
        )
        if not is_fit:
            return 0
        address = value.data_ptr()
        return 0 if address % ALIGNMENT else address

    def packed(self, value, device, bundle):
        """The tensor, or a copy of it, as the kernels want it; an error where it cannot be."""
        self.refuse(value, device, bundle)
        value = value.detach().resolve_neg().contiguous()
        return value if value.data_ptr() % ALIGNMENT == 0 else value.clone()

    def refuse(self, value, device, bundle):
        """An error where it is no dense tensor of this type, shape and device."""
        code = "input-type"
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            if value.dtype == self.type:
                code = "input-device" if tuple(value.shape) == self.shape else "input-shape"
            if value.dtype == self.type and code == "input-device" and value.device == device:
                return
        raise InputError(
            f"{bundle}: {self.name} must be {self.dtype} {list(self.shape)} on {device}, not "
            f"{described(value)}: {REMEDIES[code]}",
            code,
        )

    def refuse_output(self, value, device, inputs, bundle):
        """An error where a tensor cannot be written as this output, beside these inputs."""
        reason = ""
        try:
            self.refuse(value, device, bundle)
        except InputError:
            reason = f"it is {described(value)}"
        if not reason and (value.requires_grad and torch.is_grad_enabled()):
            reason = "it wants a gradient"
        if not reason and not (value.is_contiguous() and value.data_ptr() % ALIGNMENT == 0):
            reason = f"it is not packed, or its address is no multiple of {ALIGNMENT}"
        if not reason and any(overlap(value, other) for other in inputs):
            reason = "it shares memory with an input or another output"
        if reason:
            raise InputError(
                f"{bundle}: out for {self.name} must be {self.dtype} {list(self.shape)} on "
                f"{device}, packed and apart from the inputs; {reason}: give another tensor, or "
                "none",
                "output-unfit",
            )


REMEDIES = {
    "input-type": "convert it with .to(), or .to_dense()",
    "input-shape": "optimize the module for this shape, too (a dictionary of examples)",
    "input-device": "move all tensors to one device, for which the kernels are",
}


def described(value):
    """A value in a few words."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    layout = "" if value.layout is torch.strided else f", {value.layout}"
    return f"{value.dtype} {list(value.shape)} on {value.device}{layout}"


def overlap(a, b):
    """Whether two tensors lie on common addresses."""
    if not isinstance(b, torch.Tensor) or a.device != b.device or not a.numel() or not b.numel():
        return False
    (first, end), (other, others_end) = span(a), span(b)
    return first < others_end and other < end


def span(tensor):
    """The addresses between which a tensor lies."""
    sizes = zip(tensor.shape, tensor.stride())
    last = sum((size - 1) * stride for size, stride in sizes)
    start = tensor.data_ptr()
    return start, start + (last + 1) * tensor.element_size()
