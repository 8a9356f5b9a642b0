"""torch.onnx.export, by either of torch's exporters and whatever packages are installed.

torch 1.13 has one exporter, which follows a run of the module and needs no other package. torch 2
has it, too (dynamo=False), and a newer one (dynamo=True), which needs the packages onnx and
onnxscript.
"""
import contextlib
import copy
import importlib.util
import inspect
import sys
import types
import warnings

import torch


def has_dynamo():
    """Whether this torch has the newer of its two exporters."""
    return "dynamo" in inspect.signature(torch.onnx.export).parameters


def attempts():
    """Keywords with which users call torch.onnx.export, the commonest first."""
    older = {"dynamo": False} if has_dynamo() else {}
    yield {**older}
    yield {**older, "do_constant_folding": False}
    yield untouched_weights()
    yield {**older, "training": torch.onnx.TrainingMode.PRESERVE}
    if has_dynamo():
        yield {"dynamo": True}
        yield {"dynamo": True, "optimize": False}


def untouched_weights():
    """Keywords by which the older exporter neither folds nor transposes nor renames weights."""
    older = {"dynamo": False} if has_dynamo() else {}
    modes = torch.onnx.TrainingMode
    return {**older, "do_constant_folding": False, "training": modes.PRESERVE}


@contextlib.contextmanager
def package_onnx(keywords):
    """Lets torch 2's older exporter do without the package onnx.

    It asks the package only whether the model holds functions that a user wrote in onnxscript; a
    module of torch's own operators holds none.
    """
    needed = keywords.get("dynamo") is False and importlib.util.find_spec("onnx") is None
    if needed:
        no_functions = types.SimpleNamespace(graph=types.SimpleNamespace(node=[]))
        package = types.ModuleType("onnx")
        package.load_model_from_string = package.load_from_string = lambda data: no_functions
        sys.modules["onnx"] = package
    try:
        yield
    finally:
        if needed:
            del sys.modules["onnx"]


def copied(module):
    """A copy of the module. Tensors that autograd made, as of weight_norm, come as values."""
    parts = [vars(part).values() for part in module.modules()]
    made = [value for values in parts for value in values if isinstance(value, torch.Tensor)]
    memo = {id(value): value.detach().clone() for value in made if not value.is_leaf}
    return copy.deepcopy(module, memo)


def export(module, inputs, file, **keywords):
    """Writes the module to `file` as ONNX; what the exporter raises is passed on."""
    # Without gradients torch takes shortcuts, of its attention for one, that no exporter knows.
    with torch.inference_mode(False), torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = copied(module)
        for parameter in module.parameters():
            parameter.requires_grad_(parameter.is_floating_point())
        given = tuple(
            value.clone() if isinstance(value, torch.Tensor) else value for value in inputs
        )
        with package_onnx(keywords):
            torch.onnx.export(module, given, str(file), **keywords)
