"""One module with kernels for several shapes of its inputs.

    faster = warploom.optimize(module, {1: x1, 8: x8})
    faster(x8)      # the kernels for 8
    faster(x5)      # the module itself, and a warning, once

Kernels are made for fixed shapes, and a service sees a few batch sizes. Inputs of a shape that has
no kernels are computed by the module's own forward(), so the result is right whatever comes; they
are not padded, since not every module computes rows apart (a batch norm in training, a softmax over
the batch).
"""
from __future__ import annotations

import copy
import warnings
from typing import Any, Mapping, Sequence

import torch


def signature_of(inputs: Sequence[Any]) -> tuple:
    """What tells the kernels for some inputs: shapes and types of tensors, and other values."""
    return tuple(
        (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else repr(value)
        for value in inputs
    )


def described(signature: tuple) -> str:
    """A signature in words."""
    parts = [str(list(part[0])) if isinstance(part, tuple) else part for part in signature]
    return ", ".join(parts)


class Buckets:
    """Makes classes whose forward() takes the kernels for the shapes that it is called with."""

    @staticmethod
    def of(module: torch.nn.Module, faster: Mapping[tuple, torch.nn.Module]) -> torch.nn.Module:
        """The module with `faster`, adopted modules by the signatures of their inputs."""
        own = type(module)

        class Bucketed(own):
            """The module with kernels for several shapes. For inference."""

            def forward(self, *inputs, **named):
                chosen = self.__dict__["_buckets"].get(signature_of(inputs))
                if chosen is None or named:
                    self.tell(inputs)
                    return super().forward(*inputs, **named)
                chosen.__dict__["training"] = self.training
                return chosen.forward(*inputs)  # the module's hooks come with this call already

            def tell(self, inputs):
                """Warns once of each shape that has no kernels."""
                signature = signature_of(inputs)
                if signature in self.__dict__["_told"]:
                    return
                self.__dict__["_told"].add(signature)
                known = "; ".join(map(described, self.__dict__["_buckets"]))
                warnings.warn(
                    f"no kernels for inputs of {described(signature)}: the module itself computes "
                    f"them (there are kernels for {known})",
                    stacklevel=4,
                )

            def refresh(self):
                """Forgets what was made of the weights: after they were written through .data."""
                for one in self.__dict__["_buckets"].values():
                    one.refresh()

            def __deepcopy__(self, memo):
                plain = own.__new__(own)
                kept = ("_buckets", "_told", "_outcome")
                plain.__dict__ = {k: v for k, v in self.__dict__.items() if k not in kept}
                plain = copy.deepcopy(plain, memo)
                made = Buckets.of(
                    plain,
                    {
                        signature: type(one).__new__(type(one))
                        for signature, one in self.__dict__["_buckets"].items()
                    },
                )
                memo[id(self)] = made
                return made

        Bucketed.__name__ = Bucketed.__qualname__ = own.__name__
        made = Bucketed.__new__(Bucketed)
        made.__dict__ = {**module.__dict__, "_buckets": dict(faster), "_told": set()}
        for one in made.__dict__["_buckets"].values():
            shared(one, module)
        return made


def shared(one: torch.nn.Module, module: torch.nn.Module) -> None:
    """Lets an adopted module have the parameters, buffers and parts of another."""
    own = ("_adoption", "_adopted_as", "_adopted_by")
    kept = {key: one.__dict__[key] for key in own if key in one.__dict__}
    one.__dict__ = {**module.__dict__, **kept}
