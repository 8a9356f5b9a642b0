"""What an adopted module refuses before it computes: training and gradients."""
import torch

# Layers that compute something else in training.
NORMS = torch.nn.modules.batchnorm._NormBase
DROPOUTS = torch.nn.modules.dropout._DropoutNd
REMEDY_TRAINING = "call .eval() first"
REMEDY_GRADIENTS = "call it under torch.no_grad() or torch.inference_mode()"


class AdoptionError(RuntimeError):
    """The kernels cannot compute what the module does, or not now; the text says why."""


def refuse_gradients(name, values):
    """An error where autograd would want the gradient of a result that has none."""
    if not torch.is_grad_enabled():
        return
    if any(isinstance(value, torch.Tensor) and value.requires_grad for value in values):
        raise AdoptionError(f"{name} computes no gradients: {REMEDY_GRADIENTS}")


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
                f"{REMEDY_TRAINING}"
            )
