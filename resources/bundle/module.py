"""{{summary_python}}

Call it on tensors of the shapes below, on the current device and stream:

    from {{bundle}} import run
    {{result}} = run({{given}})

The first call builds the sources beside this file by torch.utils.cpp_extension, which takes a compiler and ninja, and keeps what it built.
In place of a torch.nn.Module whose parameters have the names of the tensors below:

    ModelNew = adopt(Model)          # the same parameters, this forward()
"""
import ctypes
import functools
import pathlib

import torch
from torch.utils import cpp_extension

ARCH = "{{gpu_arch}}"  # of the GPU that it is made for; "" for the CPU
# Name, type, shape and, of what the model itself holds, the file.
INPUTS = [
{{#inputs}}    ({{name_python}}, "{{dtype}}", ({{#shape}}{{.}},{{/shape}}), {{#held}}"check/{{stored}}"{{/held}}{{^held}}None{{/held}}),
{{/inputs}}]
OUTPUTS = [
{{#outputs}}    ({{name_python}}, "{{dtype}}", ({{#shape}}{{.}},{{/shape}})),
{{/outputs}}]
DTYPES = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "i64": torch.int64, "i32": torch.int32,
          "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool, "boolean": torch.bool}
FOLDER = pathlib.Path(__file__).resolve().parent


@functools.cache
def library():
    """The launcher, built at the first call."""
    built = cpp_extension.load(
        name="{{bundle}}_{{hash}}", sources=[str(FOLDER / file) for file in ("{{kernel_file}}", "{{bundle}}_host.cpp")], is_python_module=False,
        extra_include_paths=[str(FOLDER / "device" / part) for part in ("{{engine}}", "common")],
        extra_cflags="{{cflags}}".split(), extra_cuda_cflags={{#gpu}}["-O3", "-gencode", "arch=compute_{{arch_number}},code=sm_{{arch_number}}"]{{/gpu}}{{^gpu}}None{{/gpu}})
    functions = ctypes.CDLL(built)
    functions.{{bundle}}_workspace_bytes.restype = ctypes.c_size_t
    return functions


@functools.cache
def constant(file, dtype, shape, device):
    values = torch.frombuffer(bytearray((FOLDER / file).read_bytes()), dtype=DTYPES[dtype])
    return values.reshape(shape).to(device)


@functools.cache
def check_device(device):
    if device.type != ("cuda" if ARCH else "cpu"):
        raise ValueError(f"{{bundle}} runs on {ARCH or 'the CPU'}; its inputs are on {device}")
    if ARCH:
        needed, found = ARCH[3:].rstrip("a"), "{}{}".format(*torch.cuda.get_device_capability(device))
        # Code for 8.0 runs on every 8.x; code for 9.0a on 9.0 alone.
        if found != needed if ARCH.endswith("a") else found[0] != needed[0] or found < needed:
            raise RuntimeError(f"{{bundle}} is made for {ARCH}; {device} is sm_{found}")


def checked(tensor, name, dtype, shape, device):
    """The tensor as the kernels want it: packed, and at an address that wide loads can use."""
    if tuple(tensor.shape) != shape or tensor.dtype != DTYPES[dtype] or tensor.device != device:
        raise ValueError(f"{{bundle}}: {name} must be {dtype} {list(shape)} on {device}, "
                         f"not {tensor.dtype} {list(tensor.shape)} on {tensor.device}")
    tensor = tensor.detach().contiguous()
    return tensor if tensor.data_ptr() % 64 == 0 else tensor.clone()


def run(*inputs, constants=None):
    """The outputs, one tensor or a tuple. `constants`: tensors by name instead of those that the model holds."""
    constants = constants or {}
    given = [name for name, _, _, file in INPUTS if file is None]
    if len(inputs) != len(given):
        raise TypeError(f"{{bundle}} takes {len(given)} tensors, {', '.join(given)}; {len(inputs)} were given")
    device = next((tensor.device for tensor in inputs), torch.device("cuda" if ARCH else "cpu"))
    check_device(device)
    rest = iter(inputs)
    tensors = []
    for name, dtype, shape, file in INPUTS:
        tensor = next(rest) if file is None else constants.get(name)
        tensors.append(constant(file, dtype, shape, device) if tensor is None else checked(tensor, name, dtype, shape, device))
    outputs = [torch.empty(shape, dtype=DTYPES[dtype], device=device) for _, dtype, shape in OUTPUTS]
    functions = library()
    workspace = torch.empty(functions.{{bundle}}_workspace_bytes(), dtype=torch.uint8, device=device)
    arguments = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*tensors, *outputs, workspace)]
    if ARCH:
        with torch.cuda.device(device):
            status = functions.{{bundle}}_launch(*arguments, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    else:
        status = functions.{{bundle}}_run(*arguments)
    if status != 0:
        raise RuntimeError(f"{{bundle}} could not be launched: " + (f"CUDA error {status}" if ARCH else f"status {status}"))
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def adopt(model):
    """A class like `model` whose forward() runs the kernels. Parameters and buffers named as inputs above are passed by name,
    forward()'s arguments as the other inputs, in order. For inference: no gradients."""

    class ModelNew(model):
        def forward(self, *inputs):
            own = dict(self.named_parameters()) | dict(self.named_buffers())
            rest = iter(inputs)
            tensors = [own[name] if name in own else next(rest) for name, _, _, file in INPUTS if file is None]
            return run(*tensors, *rest, constants=own)

    return ModelNew


ModelNew = adopt(torch.nn.Module)  # forward() takes all inputs
