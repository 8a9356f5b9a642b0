"""The kernels as an operator of torch's, for what looks at a program before it runs.

torch.compile, torch.export and fake tensors need to know of an operator what comes out without
calling it. A bundle's operator is torch.ops.warploom_NAME_HASH.run(inputs, constants), both lists
of tensors (an empty list: the constants of the bundle's file), with a list of its outputs. It is
used where a program is compiled; other calls go to the launcher itself, which costs less.
"""
import hashlib
import itertools
import weakref

import torch

from .comparing import flat, like
from .refusing import AdoptionError, InputError, refuse_gradients

LIBRARIES = []  # torch forgets what nobody holds
NUMBERS = itertools.count(1)
ADOPTED = weakref.WeakValueDictionary()  # modules that were adopted, by number


# torch 1.13 compiles nothing.
IS_COMPILING = getattr(getattr(torch, "compiler", None), "is_compiling", None)


def is_compiling():
    """Whether torch.compile or torch.export looks at the program that calls this."""
    return IS_COMPILING is not None and IS_COMPILING()


def space_of(bundle):
    """The operator's namespace: the bundle's name, and a hash of its plan. torch 1.13 lets nobody
    add to a namespace, so each bundle has its own."""
    text = (bundle.folder / "plan.json").read_bytes()
    return f"warploom_{bundle.name}_{hashlib.sha256(text).hexdigest()[:12]}"


def kernels_of(bundle):
    """What the operator does by tensors, by their shapes alone, and under autograd."""

    def compute(inputs, constants):
        names = [tensor.name for tensor in bundle.held]
        found = bundle.calls_with(dict(zip(names, constants)))(tuple(inputs))
        return [found] if isinstance(found, torch.Tensor) else list(found)

    def shapes(inputs, constants):
        device = inputs[0].device if inputs else "cpu"
        return [
            torch.empty(tensor.shape, dtype=tensor.type, device=device)
            for tensor in bundle.outputs
        ]

    return compute, shapes


def adopted_of(bundle):
    """The same of an adopted module."""

    def compute(inputs, weights, number):
        found = ADOPTED[number](*inputs)
        return list(flat(found))

    def shapes(inputs, weights, number):
        return kernels_of(bundle)[1](inputs, weights)

    return compute, shapes


def below_autograd(bundle, space, name):
    """The operator under autograd: it has no gradients, and says so."""

    def refusing(inputs, *rest):
        refuse_gradients(bundle.name, [*inputs, *rest[0]])
        guard = torch._C._AutoDispatchBelowAutograd()
        try:
            return getattr(getattr(torch.ops, space), name)(inputs, *rest)
        finally:
            del guard

    return refusing


def operator_of(bundle):
    """The operators of a bundle, of which torch is told at the first call."""
    name = space_of(bundle)
    space = getattr(torch.ops, name)
    if not hasattr(space, "run"):
        define(bundle, name)
    return space


def define(bundle, space):
    """Tells torch of the operator."""
    library = torch.library.Library(space, "DEF")
    LIBRARIES.append(library)
    kinds = {
        "run(Tensor[] inputs, Tensor[] constants) -> Tensor[]": kernels_of(bundle),
        "adopted(Tensor[] inputs, Tensor[] weights, int number) -> Tensor[]": adopted_of(bundle),
    }
    for schema, (compute, shapes) in kinds.items():
        name = schema.split("(", 1)[0]
        library.define(schema)
        library.impl(name, compute, "CUDA" if bundle.arch else "CPU")
        library.impl(name, below_autograd(bundle, space, name), "Autograd")
        register_fake = getattr(torch.library, "register_fake", None)  # torch 2.4 and later
        if register_fake:
            register_fake(f"{space}::{name}", shapes, lib=library)
        else:
            library.impl(name, shapes, "Meta")


def through_operator(bundle, inputs):
    """run() as a call of the operator."""
    found = bundle.operator.run(list(inputs), [])
    return found[0] if len(found) == 1 else tuple(found)


def numbered(module):
    """The number by which the operator finds an adopted module."""
    number = next(NUMBERS)
    ADOPTED[number] = module
    return number


def in_compiled_program(bundle, module, inputs, out=None):
    """forward() of an adopted module as a call of the operator.

    A compiler reads this function, so it asks nothing but attributes.
    """
    if out is not None:
        raise InputError(
            f"{bundle.name} writes no out= in a compiled program: take what it returns",
            "output-unfit",
        )
    number = getattr(module, "_adopted_as", None)
    if number is None:
        raise AdoptionError(
            f"{bundle.name} finds its weights at the first call: call the module once before it is "
            "compiled",
            "traced",
        )
    weights = [*module.parameters(), *module.buffers()]
    found = module._adopted_by(list(inputs), weights, number)
    form = module._adoption.form
    if form is not None:
        return like(form, iter(found))
    return found[0] if len(found) == 1 else tuple(found)
