"""What a bundle's PyTorch module is made of. It needs torch and a compiler, and nothing else.

build.py     compiles the sources of the bundle, once, and loads them
launch.py    run(): tensors in, tensors out
calling.py   what a call needs, kept between calls: workspaces, addresses
tensors.py   what kernels want of a tensor
elements.py  element types
torch_operator.py the kernels as an operator of torch's, for torch.compile
outline.py   reads ONNX files, and tells whether two differ in their weights alone
folding.py   makes the constants that the kernels read out of a module's weights
exporting.py torch.onnx.export
comparing.py compares kernels with a module's own forward()
watching.py  tells at every call whether a module's weights are as they were
refusing.py  errors and their codes; training and gradients
adoption.py  adopt(): a torch.nn.Module whose forward() runs the kernels with its own weights
"""
from .launch import Bundle
from .refusing import CODES, AdoptionError, BundleError

__all__ = ["CODES", "AdoptionError", "Bundle", "BundleError"]
