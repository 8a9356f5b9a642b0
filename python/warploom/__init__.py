"""Modules in, modules out: a torch.nn.Module with the fastest kernels that are proven right.

    import torch, warploom

    faster = warploom.optimize(module.eval(), x, budget="60s")
    with torch.no_grad():
        y = faster(x)

optimize() exports the module to ONNX, has the program `warploom` search, loads the bundle that it
writes, and puts the bundle's kernels into the module. Where a program is compiled,

    faster = torch.compile(module, backend="warploom", options={"budget": "60s"})

does the same for the graphs that torch finds in it, and leaves with torch what is not read.

A bundle stays, and needs nothing of this:

    from warploom import load

    # Later, or on another machine; with any weights. Its code runs in this process.
    faster = load("out/net", trust=True).adopt(module)

It needs torch, 1.13 or later, the program (`./run build`, on PATH or named by WARPLOOM_PROGRAM),
and what the bundle needs: a C++ compiler, on a GPU nvcc. A file an idea:

    optimizing.py      optimize(): export, search, adopt, check, table
    buckets.py         one module for several shapes
    backend.py         the backend of torch.compile; graph_parts.py: which nodes are read
    module_export.py   to ONNX, or where in the module it fails
    data_in_python.py  finds control flow that depends on data
    checking.py        errors and times beside the module's own
    program.py         the executable and what it answers; the module warploom_command finds it
    loading.py         a bundle's module; errors.py: what is refused, by codes
"""
from .backend import backend, register
from .errors import CODES, WarploomError
from .loading import load
from .module_export import export
from .optimizing import Outcome, optimize, outcome
from .program import program
from .version import VERSION as __version__

__all__ = [
    "CODES",
    "Outcome",
    "WarploomError",
    "backend",
    "export",
    "load",
    "optimize",
    "outcome",
    "program",
    "register",
]
register()
