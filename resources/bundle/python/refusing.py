"""What a bundle's PyTorch module refuses, by code: before it computes, never by a wrong result.

Every error has the attributes `code`, one of CODES, and a text that ends with what to do about it.
Programs match on the code; the words may change.
"""
import torch
from torch.autograd import forward_ad

# The codes, and what each means. docs/pytorch.md of Warploom lists them.
CODES = {
    "gradients": "an input or a weight wants a gradient, and kernels have none",
    "training-mode": "a layer is in training mode that then computes something else",
    "input-count": "more or fewer tensors than the bundle takes",
    "input-shape": "an input has another shape than the kernels were made for",
    "input-type": "an input is no dense tensor, or of another element type",
    "input-device": "inputs are on several devices, or not where the kernels run",
    "output-unfit": "a tensor given as out= cannot hold the output",
    "wrong-card": "the kernels are made for another GPU",
    "out-of-memory": "there is no room for the outputs or the workspace",
    "launch-failed": "the kernels could not be started",
    "bundle-not-built": "the bundle's sources cannot be compiled here",
    "weights-unfit": "the module's weights are not those that the kernels read, by name or shape",
    "weight-compiled-in": "a weight has another value than the one that the kernels hold",
    "module-differs": "the kernels give something else than the module's own forward()",
    "traced": "an adopted module is traced or exported",
    "not-a-module": "what is to be adopted is no torch.nn.Module with a forward() of its class",
}

# Layers that compute something else in training.
NORMS = torch.nn.modules.batchnorm._NormBase
DROPOUTS = torch.nn.modules.dropout._DropoutNd
REMEDY_TRAINING = "call .eval() first"
REMEDY_TANGENTS = "call it with what torch.autograd.forward_ad.unpack_dual gives as primal"
REMEDY_GRADIENTS = "call it under torch.no_grad() or torch.inference_mode()"


class BundleError(Exception):
    """What a bundle refuses; `code` says which of CODES."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


class AdoptionError(BundleError, RuntimeError):
    """The kernels cannot compute what the module does, or not now; the text says why."""

    def __init__(self, text, code="weights-unfit"):
        super().__init__(text, code)


class InputError(BundleError, ValueError):
    """A tensor is not as the kernels want it."""


class CountError(BundleError, TypeError):
    """More or fewer tensors than the kernels take; what is adopted is no module."""


class LaunchError(BundleError, RuntimeError):
    """The kernels could not be run here."""


def are_gradients_on():
    """Whether a result might have to have a gradient, backward or forward."""
    return torch.is_grad_enabled() or forward_ad._current_level >= 0


def refuse_gradients(name, values):
    """An error where autograd would want the gradient of a result that has none."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any(value.requires_grad for value in tensors):
        raise AdoptionError(f"{name} computes no gradients: {REMEDY_GRADIENTS}", "gradients")
    if forward_ad._current_level < 0:
        return
    if any(forward_ad.unpack_dual(value).tangent is not None for value in tensors):
        raise AdoptionError(
            f"{name} computes no gradients, and a tensor has a tangent: {REMEDY_TANGENTS}",
            "gradients",
        )


def differs_in_training(module):
    """Whether the layer itself computes something else in training."""
    if isinstance(module, DROPOUTS):
        return module.p > 0
    if isinstance(module, (torch.nn.MultiheadAttention, torch.nn.RNNBase)):
        return module.dropout > 0
    return isinstance(module, (NORMS, torch.nn.RReLU))


def refuse_training(name, module):
    """An error where a layer is in training mode that then computes something else."""
    for path, layer in module.named_modules():
        if layer.training and differs_in_training(layer):
            what = f"{path or 'the module'} ({type(layer).__name__})"
            raise AdoptionError(
                f"{name} computes as in evaluation, and {what} is in training mode: "
                f"{REMEDY_TRAINING}",
                "training-mode",
            )
