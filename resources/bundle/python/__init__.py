"""What a bundle's PyTorch module is made of. It needs torch and a compiler, and nothing else.

build.py    compiles the sources of the bundle, once, and loads them
launch.py   run(): tensors in, tensors out
elements.py element types
outline.py  reads ONNX files, and tells whether two differ in their weights alone
folding.py  makes the constants that the kernels read out of a module's weights
exporting.py torch.onnx.export
comparing.py compares kernels with a module's own forward()
refusing.py training and gradients
adoption.py adopt(): a torch.nn.Module whose forward() runs the kernels with its own weights
"""
from .launch import Bundle
from .refusing import AdoptionError

__all__ = ["AdoptionError", "Bundle"]
