"""{{bundle}} for PyTorch: run() computes on tensors, adopt() puts the kernels into a module.

With this folder on PYTHONPATH:

    from {{bundle}} import run, adopt

    {{result}} = run({{given}})

    faster = adopt(module.eval())    # a torch.nn.Module: its parameters, and these kernels
    with torch.no_grad():
        y = faster(x)

adopt() takes an instance or a class, with any weights. It needs torch, 1.13 or later; the first
call compiles the sources beside this file with {{compiler}}, and keeps what it built.
Shapes and types stand in README.md. The tensors are on {{device}}. For inference: no gradients.
"""
import importlib.util
import pathlib
import sys

import torch

FOLDER = pathlib.Path(__file__).resolve().parent


def _parts():
    """The folder {{bundle}}_torch as a package, wherever Python looks for modules."""
    place = FOLDER / "{{bundle}}_torch"
    spec = importlib.util.spec_from_file_location(
        "{{bundle}}_torch", place / "__init__.py", submodule_search_locations=[str(place)]
    )
    parts = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = parts
    spec.loader.exec_module(parts)
    return parts


_torch = _parts()
AdoptionError = _torch.AdoptionError
BundleError = _torch.BundleError  # of all that is refused; its .code says what
bundle = _torch.Bundle(
    FOLDER,
    launcher="{{bundle}}_{{#gpu}}launch{{/gpu}}{{^gpu}}run{{/gpu}}_array",
    workspace="{{bundle}}_workspace_bytes",
    prepare="{{#prepares}}{{bundle}}_prepare_array{{/prepares}}",
    sources=["{{kernel_file}}", "{{bundle}}_host.cpp"],
    includes=["device/{{engine}}", "device/common"],
    flags="{{module_flags}}".split(),
)
run = bundle.run
adopt = bundle.adopt
ModelNew = adopt(torch.nn.Module)  # forward() takes all inputs
