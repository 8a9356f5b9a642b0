"""Tells whether a module's tensors are as they were, at every call and so in microseconds.

A tensor that was written in place counts a version; one that is another tensor, or has another
memory (`.data = …`, `.to()`), is told by identity and address. The memory of before is held until
then, so that nothing new can come to lie there. Tensors made in inference mode count no versions:
their elements are compared. What is written through `.data` or NumPy leaves no trace at all.
"""
import itertools
import operator

import torch

VERSION = operator.attrgetter("_version")
TRAINING = operator.attrgetter("training")
ADDRESS = torch.Tensor.data_ptr
STRIDE = torch.Tensor.stride
SIZE = torch.Tensor.size


class State:
    """What some tensors were."""

    def __init__(self, tensors):
        self.tensors = list(tensors)
        self.versioned = [value for value in self.tensors if not value.is_inference()]
        self.inferred = [value for value in self.tensors if value.is_inference()]
        self.versions = list(map(VERSION, self.versioned))
        self.addresses = list(map(ADDRESS, self.tensors))
        self.sizes = list(map(SIZE, self.tensors))
        self.strides = list(map(STRIDE, self.tensors))
        self.memory = [value.detach() for value in self.tensors]
        self.copies = [value.clone() for value in self.inferred]

    def holds(self):
        """Whether the tensors still are as they were."""
        return (
            list(map(VERSION, self.versioned)) == self.versions
            and list(map(ADDRESS, self.tensors)) == self.addresses
            and list(map(STRIDE, self.tensors)) == self.strides
            and list(map(SIZE, self.tensors)) == self.sizes
            and all(map(torch.equal, self.inferred, self.copies))
        )


def state_of(tensors):
    """The state of tensors by their names."""
    return State(tensors.values()), tuple(tensors)


def same_tensors(state, tensors):
    """Whether these are the tensors of a state, by the same names, and are as they were."""
    if state is None or state[1] != tuple(tensors):
        return False
    return all(map(operator.is_, state[0].tensors, tensors.values())) and state[0].holds()


class Watch:
    """What a module was when something was made of its weights: its parts, tensors and modes."""

    def __init__(self, module):
        self.parts = list(module.modules())
        dicts = [(part._parameters, part._buffers, part._modules) for part in self.parts]
        self.dicts = list(itertools.chain.from_iterable(dicts))
        self.sizes = list(map(len, self.dicts))
        self.full = [one for one in self.dicts if one]
        self.values = list(itertools.chain.from_iterable(map(dict.values, self.full)))
        self.modes = list(map(TRAINING, self.parts))
        tensors = [value for value in self.values if isinstance(value, torch.Tensor)]
        self.state = State({id(value): value for value in tensors}.values())

    def tensors(self):
        """The module's parameters and buffers."""
        return self.state.tensors

    def holds(self):
        """Whether the module still is as it was."""
        values = itertools.chain.from_iterable(map(dict.values, self.full))
        return (
            list(map(len, self.dicts)) == self.sizes
            and all(map(operator.is_, values, self.values))
            and list(map(TRAINING, self.parts)) == self.modes
            and self.state.holds()
        )
