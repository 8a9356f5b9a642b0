"""Calls of a bundle's launcher with constants that stay: what a call needs is kept between calls.

A call of a kernel takes microseconds, and so must what is around it. For each device and stream
these are kept: the workspace, in which everything is prepared that is made of constants alone, and
the array of addresses that the launcher reads. A call puts the addresses of its inputs and outputs
into a copy of that array, and that is all.

Threads that call on one stream take turns: the kernels of a call run one behind another, and those
of two calls must not meet in one workspace.

A CUDA graph that records a call takes the workspace with it, since it may be replayed at any time;
the next call outside has another. What was recorded stays as long as the bundle, constants and all,
whatever becomes of the weights. Constants that change later are not seen by a graph: record anew.
"""
import ctypes
import threading

import torch

from .refusing import CountError, LaunchError

WORKSPACE_ALIGNMENT = 256


def raw_stream(index):
    """The current stream of a GPU, as its driver calls it."""
    found = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return found(index) if found else torch.cuda.current_stream(index).cuda_stream


def allocated(shape, dtype, device, name):
    """An empty tensor, or an error that says for what there was no room."""
    try:
        return torch.empty(shape, dtype=dtype, device=device)
    except RuntimeError as error:  # torch.cuda.OutOfMemoryError is one
        size = torch.Size(shape).numel() * torch.tensor([], dtype=dtype).element_size()
        raise LaunchError(
            f"{name}: no room on {device} for {size} bytes: free some, or optimize the module for "
            "smaller inputs",
            "out-of-memory",
        ) from error


def is_recorded(bundle):
    """Whether a CUDA graph records the current stream."""
    return bool(bundle.arch) and torch.cuda.is_current_stream_capturing()


def versions_of(tensors):
    """What changes when a tensor does; never the same of tensors that count no versions."""
    return [
        (value.data_ptr(), object() if value.is_inference() else value._version)
        for value in tensors
    ]


INCREMENT = getattr(torch.autograd.graph, "increment_version", None)  # torch 2


def count_version(tensors):
    """Lets autograd and Watch know that these were written."""
    for value in tensors:
        if value.is_inference():
            continue  # it counts none
        if INCREMENT:
            INCREMENT(value)
            continue
        with torch.no_grad():
            value.view(-1)[:0].zero_()  # counts, and writes nothing


class Kept:
    """What is kept of one device and stream."""

    def __init__(self, bundle, constants, device):
        space = getattr(bundle.library, bundle.workspace)() + WORKSPACE_ALIGNMENT
        self.workspace = allocated((space,), torch.uint8, device, bundle.name)
        start = self.workspace.data_ptr()
        self.work = start + -start % WORKSPACE_ALIGNMENT
        kind = ctypes.c_void_p * (len(bundle.inputs) + len(bundle.outputs))
        self.copied = kind.from_buffer_copy
        self.addresses = kind()
        self.constants = constants  # so that no other tensor can come to lie where they do
        for place, value in zip(bundle.places_of_held, constants):
            self.addresses[place] = value.data_ptr()
        self.lock = threading.Lock()  # of the workspace: one thread at a time
        self.prepared = None  # the versions of the inputs for which it is
        self.seen = []


class Calls:
    """A bundle's function with these `constants`, {name: tensor}; others are the model file's."""

    def __init__(self, bundle, constants):
        self.bundle = bundle
        self.constants = constants
        self.kept = {}  # by GPU and stream

    def __call__(self, inputs, out=None):
        """The outputs, one tensor or a tuple, written into `out` where that is given."""
        bundle = self.bundle
        if len(inputs) != len(bundle.given):
            raise CountError(
                f"{bundle.name} takes {len(bundle.given)} tensors, {bundle.names_of_given()}; "
                f"{len(inputs)} were given",
                "input-count",
            )
        device = bundle.device_of(inputs)
        index = device.index if bundle.arch else -1
        stream = raw_stream(index) if bundle.arch else 0
        kept = self.kept.get((index, stream))
        if kept is None or is_recorded(bundle):
            kept = self.taken(device, index, stream)
        array = kept.copied(kept.addresses)  # threads do not meet in it
        held = []  # copies, as long as the call
        for place, tensor, value in zip(bundle.places_of_given, bundle.given, inputs):
            address = tensor.address(value, index)
            if not address:
                value = tensor.packed(value, device, bundle.name)
                held.append(value)
                address = value.data_ptr()
            array[place] = address
        outputs = self.outputs(device, inputs, out)
        for place, value in zip(bundle.places_of_outputs, outputs):
            array[place] = value.data_ptr()
        if bundle.prepare:
            kept = self.prepared(kept, array, inputs, device, stream)
        with kept.lock:
            self.start(bundle.launcher, array, kept.work, index, stream)
        if out is not None:
            count_version(outputs)
            return out
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def outputs(self, device, inputs, out):
        """The tensors to write."""
        bundle = self.bundle
        if out is None:
            return [
                allocated(tensor.shape, tensor.type, device, bundle.name)
                for tensor in bundle.outputs
            ]
        given = [out] if isinstance(out, torch.Tensor) else list(out)
        if len(given) != len(bundle.outputs):
            raise CountError(
                f"{bundle.name} gives {len(bundle.outputs)} tensors; out names {len(given)}",
                "output-unfit",
            )
        for i, (tensor, value) in enumerate(zip(bundle.outputs, given)):
            apart = [*inputs, *given[:i]]
            tensor.refuse_output(value, device, apart, bundle.name)
        return given

    def taken(self, device, index, stream):
        """What is kept of this device and stream; a graph that is recorded has it to itself."""
        bundle = self.bundle
        if is_recorded(bundle):
            there = [key for key in self.kept if key[0] == index]
            there.sort(key=lambda key: key[1] != stream)
            if there:
                bundle.recorded.append(self.kept.pop(there[0]))
                return bundle.recorded[-1]
        constants = [self.constant(tensor, device) for tensor in bundle.held]
        made = Kept(bundle, constants, device)
        self.keep(made, index, stream)
        return made

    def keep(self, made, index, stream):
        """Keeps it for the next call, or for good where a graph is recorded, which has it alone."""
        if is_recorded(self.bundle):
            self.bundle.recorded.append(made)
        else:
            self.kept[(index, stream)] = made

    def constant(self, tensor, device):
        """A constant as the kernels read it."""
        value = self.constants.get(tensor.name)
        if value is None:
            return self.bundle.constant(tensor, device)
        return tensor.packed(value, device, self.bundle.name)

    def prepared(self, kept, array, inputs, device, stream):
        """The same, or new, with everything prepared that is made of constants alone.

        Inputs may be constants, too: those that were named so when the bundle was made. Where one
        is another tensor than before, or was changed in place, everything is prepared again.
        """
        bundle = self.bundle
        watched = [inputs[place] for place in bundle.constant_among_given]
        versions = versions_of(watched)
        index = device.index if bundle.arch else -1
        with kept.lock:
            if kept.prepared == versions:
                return kept
            if kept.prepared is None:
                self.start(bundle.prepare, array, kept.work, index, stream)
                kept.prepared, kept.seen = versions, watched
                return kept
        made = Kept(bundle, kept.constants, device)  # another thread may be reading the old one
        self.start(bundle.prepare, array, made.work, index, stream)
        made.prepared, made.seen = versions, watched
        self.keep(made, index, stream)
        return made

    def start(self, function, array, work, index, stream):
        """Calls a function of NAME.h that takes an array of addresses, on the current stream."""
        bundle = self.bundle
        call = bundle.function(function)
        if not bundle.arch:
            status = call(array, work)
        elif torch.cuda.current_device() == index:
            status = call(array, work, stream)
        else:
            with torch.cuda.device(index):
                status = call(array, work, stream)
        if status != 0:
            what = f"CUDA error {status}" if bundle.arch else f"status {status}"
            raise LaunchError(
                f"{bundle.name} could not be launched: {what}: free memory, and see whether the "
                "GPU is that of README.md",
                "launch-failed",
            )
