"""What stops the way from module to module: one exception, and the codes by which to tell why.

    try:
        faster = warploom.optimize(module, x)
    except warploom.WarploomError as error:
        if error.code == "onnx-unknown-operator":
            print("not read:", error.place)

A code is one of CODES, one of the program's own (`warploom errors` lists them), or, from a module
that was optimized, one of a bundle's (refusing.py). Codes are stable; words may change.
"""
from __future__ import annotations

CODES = {
    "program-missing": "the program `warploom` is not there",
    "program-failed": "the program ended without a word of its own",
    "not-exported": "torch.onnx.export cannot export the module",
    "control-flow": "Python reads elements that depend on the inputs, as `if x.sum() > 0` does",
    "module-writes": "forward() writes an input, a parameter or a buffer",
    "no-example": "the example inputs are no tensors, or a dictionary of none",
    "bundle-untrusted": "a bundle is loaded without trust=True",
    "no-bundle": "a folder is no bundle",
    "module-differs": "kernels and module differ by more than is allowed",
    "gradients": "an input or a weight wants a gradient, and kernels have none",
    "out-of-memory": "the inputs do not fit on their device",
}


class WarploomError(RuntimeError):
    """Why there is no faster module.

    `code`: one of those above. `place`: the file, node or line of the module. `remedy`: what helps.
    """

    def __init__(self, code: str, message: str, place: str = "", remedy: str = ""):
        parts = [f"{code}: {message}"]
        parts += [f"  at: {place}"] if place else []
        parts += [f"  remedy: {remedy}"] if remedy else []
        super().__init__("\n".join(parts))
        self.code = code
        self.message = message
        self.place = place
        self.remedy = remedy
