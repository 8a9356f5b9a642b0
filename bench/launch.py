"""Launch lists on the GPU through the CUDA driver, on PyTorch's memory and stream.

A launch list is what `plan.json` of a bundle holds (src/codegen/launch_list.h). Kernels are
compiled with nvcc against the repository's device headers, or taken as cubins when the list carries
them."""
import ctypes
import hashlib
import os
import pathlib
import subprocess
import tempfile

import torch

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
CUDA = ctypes.CDLL("libcuda.so.1")

# CUtensorMapDataType, by our element types; torch types beside them.
MAP_TYPES = {
    "f32": 7,
    "tf32": 11,
    "bf16": 9,
    "f16": 6,
    "e4m3": 0,
    "e5m2": 0,
    "i8": 0,
    "u8": 0,
    "i32": 3,
}
TORCH_TYPES = {
    "f32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f64": torch.float64,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i32": torch.int32,
    "i64": torch.int64,
}
MAX_DYNAMIC_SHARED, NON_PORTABLE_CLUSTER = 8, 14
PROGRAMMATIC_SERIALIZATION = 6  # CUlaunchAttributeID


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16)]


class Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("attribute_count", ctypes.c_uint),
    ]


def check(status, call):
    if status != 0:
        text = ctypes.c_char_p()
        CUDA.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"{call}: {text.value.decode() if text.value else status}")


def compile_kernel(source, arch="90a"):
    """The cubin of a kernel's text and ptxas's figures, cached by content."""
    headers = b"".join(
        p.read_bytes()
        for d in ("ptx", "common")
        for p in sorted((REPOSITORY / "device" / d).glob("*.h"))
    )
    key = hashlib.sha256(source.encode() + headers + arch.encode()).hexdigest()[:24]
    folder = (
        pathlib.Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "warploom-bench"
    )
    folder.mkdir(parents=True, exist_ok=True)
    cubin, log = folder / f"{key}.cubin", folder / f"{key}.log"
    if not cubin.exists():
        text = folder / f"{key}.cu"
        text.write_text(source)
        run = subprocess.run(
            [
                "nvcc",
                "-cubin",
                f"-gencode=arch=compute_{arch},code=sm_{arch}",
                "-std=c++17",
                "-Xptxas",
                "-v",
                f"-I{REPOSITORY}/device/ptx",
                f"-I{REPOSITORY}/device/common",
                str(text),
                "-o",
                f"{cubin}.part",
            ],
            capture_output=True,
            text=True,
        )
        if run.returncode != 0:
            raise RuntimeError(run.stderr[-2000:])
        log.write_text(run.stderr)
        os.rename(f"{cubin}.part", cubin)
    return cubin.read_bytes(), log.read_text()


class Loaded:
    """A launch list with its kernels loaded and its workspaces made."""

    def __init__(self, plan):
        self.plan = plan
        self.functions = []
        torch.cuda.current_stream()  # PyTorch's context is current from here on
        for kernel in plan["kernels"]:
            cubin, log = compile_kernel(kernel["source"])
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            check(CUDA.cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
            check(
                CUDA.cuModuleGetFunction(ctypes.byref(function), module, kernel["name"].encode()),
                "cuModuleGetFunction",
            )
            check(
                CUDA.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, kernel["shared_bytes"]),
                "cuFuncSetAttribute",
            )
            if max(kernel["cluster"]) > 8:
                check(
                    CUDA.cuFuncSetAttribute(function, NON_PORTABLE_CLUSTER, 1), "cuFuncSetAttribute"
                )
            self.functions.append(function)
        self.workspaces = {
            w["name"]: torch.empty(w["shape"], dtype=TORCH_TYPES[w["dtype"]], device="cuda")
            for w in plan["workspaces"]
        }
        self.bound = {}

    def bind(self, buffers):
        """Arguments of every kernel over these tensors, kept for launch(). No kernel may want its
        elements in an order of its own."""
        if orders := [
            arg["buffer"]
            for kernel in self.plan["kernels"]
            for arg in kernel["args"]
            if "packed" in arg
        ]:
            raise ValueError(
                f"kernels want {', '.join(orders)} packed (bench/packing.py), and nothing here "
                "packs"
            )
        buffers = {**buffers, **self.workspaces}
        key = tuple(sorted((name, tensor.data_ptr()) for name, tensor in buffers.items()))
        if key in self.bound:
            return self.bound[key]
        calls = []
        for kernel, function in zip(self.plan["kernels"], self.functions):
            held = []
            zeroed = [buffers[arg["buffer"]] for arg in kernel["args"] if arg.get("zeroed")]
            for arg in kernel["args"]:
                pointer = buffers[arg["buffer"]].data_ptr()
                held.append(
                    encode(arg["tensor_map"], pointer)
                    if "tensor_map" in arg
                    else ctypes.c_void_p(pointer)
                )
            pointers = (ctypes.c_void_p * len(held))(*[ctypes.addressof(h) for h in held])
            calls.append((function, kernel, pointers, held, zeroed))
        self.bound[key] = calls
        return calls

    def launch(self, calls):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        for function, kernel, pointers, _, zeroed in calls:
            for buffer in zeroed:
                check(
                    CUDA.cuMemsetD8Async(
                        ctypes.c_void_p(buffer.data_ptr()), 0, buffer.nbytes, stream
                    ),
                    "cuMemsetD8Async",
                )
            shape = (
                *kernel["grid"],
                kernel["threads"],
                1,
                1,
                kernel["shared_bytes"],
                stream,
                pointers,
            )
            if kernel.get("cooperative"):
                check(CUDA.cuLaunchCooperativeKernel(function, *shape), "cuLaunchCooperativeKernel")
            elif kernel.get("overlaps"):
                attribute = Attribute(PROGRAMMATIC_SERIALIZATION, 0, (ctypes.c_int * 16)(1))
                config = Config(
                    (ctypes.c_uint * 3)(*kernel["grid"]),
                    (ctypes.c_uint * 3)(kernel["threads"], 1, 1),
                    kernel["shared_bytes"],
                    stream,
                    ctypes.pointer(attribute),
                    1,
                )
                check(
                    CUDA.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None),
                    "cuLaunchKernelEx",
                )
            else:
                check(CUDA.cuLaunchKernel(function, *shape, None), "cuLaunchKernel")


def encode(spec, pointer):
    rank = len(spec["dims"])
    raw = ctypes.create_string_buffer(128 + 64)
    address = (ctypes.addressof(raw) + 63) // 64 * 64
    tensor_map = (ctypes.c_char * 128).from_address(address)
    tensor_map._keep = raw
    dims = (ctypes.c_uint64 * rank)(*spec["dims"])
    strides = (ctypes.c_uint64 * max(1, rank - 1))(*spec["strides_bytes"])
    box = (ctypes.c_uint32 * rank)(*spec["box"])
    steps = (ctypes.c_uint32 * rank)(*([1] * rank))
    swizzle = {0: 0, 32: 1, 64: 2, 128: 3}[spec["swizzle_bytes"]]
    check(
        CUDA.cuTensorMapEncodeTiled(
            ctypes.c_void_p(address),
            MAP_TYPES[spec["dtype"]],
            rank,
            ctypes.c_void_p(pointer),
            dims,
            strides,
            box,
            steps,
            0,
            swizzle,
            2,
            0,
        ),
        "cuTensorMapEncodeTiled",
    )
    return tensor_map
