"""run(): the bundle's launcher on torch's tensors, through ctypes."""
import ctypes
import functools
import json
import pathlib

import torch

from . import adoption, build, refusing
from .elements import torch_type

ALIGNMENT = 64  # bytes; wide loads want it


class Tensor:
    """What the plan says of an input or output. `file`: where the bytes of a constant lie."""

    def __init__(self, spec, file=None):
        self.name = spec["name"]
        self.dtype = spec["dtype"]
        self.shape = tuple(spec["shape"])
        self.file = file

    def __str__(self):
        return f"{self.name} ({self.dtype} {list(self.shape)})"


class Bundle:
    """A bundle's folder as a function of tensors.

    `launcher`, `workspace` and `prepare` ("": none) name the functions of NAME.h; `sources` are
    compiled with `flags` and the folders `includes` of headers.
    """

    def __init__(self, folder, launcher, workspace, prepare, sources, includes, flags):
        self.folder = pathlib.Path(folder)
        self.plan = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
        self.name = self.plan["name"]
        self.launcher = launcher
        self.workspace = workspace
        self.prepare = prepare
        self.prepared = {}  # by device and stream
        self.sources = sources
        self.includes = includes
        self.flags = flags
        launches = self.plan["launch_list"]
        self.arch = launches["arch"] if launches["engine"] == "cuda" else ""
        files = self.plan["constants"]
        self.inputs = [Tensor(spec, files.get(spec["name"])) for spec in launches["inputs"]]
        self.outputs = [Tensor(spec) for spec in launches["outputs"]]
        self.given = [tensor for tensor in self.inputs if tensor.file is None]
        self.held = [tensor for tensor in self.inputs if tensor.file is not None]
        self.constants = {}  # those of the files, by name and device

    def __repr__(self):
        wants = ", ".join(map(str, self.given))
        gives = ", ".join(map(str, self.outputs))
        return f"<bundle {self.name}: {wants} -> {gives}, for {self.arch or 'this CPU'}>"

    @functools.cached_property
    def library(self):
        """The launcher, built at the first call."""
        if self.arch:
            command = [*build.cuda_compiler(), "-shared", "-Xcompiler", "-fPIC"]
        else:
            command = [*build.cpp_compiler(), "-shared", "-fPIC"]
        command += [*self.flags, *(f"-I{self.folder / place}" for place in self.includes)]
        made = build.library(self.folder, self.name, self.sources, self.includes, command)
        getattr(made, self.workspace).restype = ctypes.c_size_t
        return made

    def check_device(self, device):
        """Refuses tensors of a device that the kernels are not for."""
        if device.type != ("cuda" if self.arch else "cpu"):
            raise ValueError(
                f"{self.name} runs on {self.arch or 'the CPU'}; its inputs are on {device}"
            )
        if not self.arch:
            return
        needed = self.arch[3:].rstrip("a")
        major, minor = torch.cuda.get_device_capability(device)
        found = f"{major}{minor}"
        # Code for 8.0 runs on every 8.x; code for 9.0a on 9.0 alone.
        exact = self.arch.endswith("a")
        fits = found == needed if exact else found[0] == needed[0] and found >= needed
        if not fits:
            raise RuntimeError(f"{self.name} is made for {self.arch}; {device} is sm_{found}")

    def constant(self, tensor, device):
        """A constant of the model file."""
        key = (tensor.name, str(device))
        if key not in self.constants:
            data = bytearray((self.folder / tensor.file).read_bytes())
            values = torch.frombuffer(data, dtype=torch_type(tensor.dtype))
            self.constants[key] = values.reshape(tensor.shape).to(device)
        return self.constants[key]

    def checked(self, value, tensor, device):
        """The value as the kernels want it: packed, and at an address for wide loads."""
        fits = isinstance(value, torch.Tensor) and (
            tuple(value.shape) == tensor.shape
            and value.dtype == torch_type(tensor.dtype)
            and value.device == device
        )
        if not fits:
            found = type(value).__name__
            if isinstance(value, torch.Tensor):
                found = f"{value.dtype} {list(value.shape)} on {value.device}"
            raise ValueError(
                f"{self.name}: {tensor.name} must be {tensor.dtype} {list(tensor.shape)} on "
                f"{device}, not {found}"
            )
        value = value.detach().contiguous()
        return value if value.data_ptr() % ALIGNMENT == 0 else value.clone()

    def run(self, *inputs, constants=None):
        """The outputs, one tensor or a tuple. `constants`: by name, instead of the file's."""
        constants = constants or {}
        if len(inputs) != len(self.given):
            names = ", ".join(tensor.name for tensor in self.given)
            raise TypeError(
                f"{self.name} takes {len(self.given)} tensors, {names}; {len(inputs)} were given"
            )
        refusing.refuse_gradients(self.name, [*inputs, *constants.values()])
        tensors_given = (value for value in inputs if isinstance(value, torch.Tensor))
        first = next(tensors_given, None)
        device = torch.device("cuda" if self.arch else "cpu") if first is None else first.device
        self.check_device(device)
        rest = iter(inputs)
        tensors = []
        for tensor in self.inputs:
            value = constants.get(tensor.name) if tensor.file else next(rest)
            if tensor.file and value is None:
                tensors.append(self.constant(tensor, device))
            else:
                tensors.append(self.checked(value, tensor, device))
        return self.launched(tensors, device)

    def launched(self, tensors, device):
        """Calls the launcher on `tensors`, in the order of its parameters."""
        outputs = [
            torch.empty(tensor.shape, dtype=torch_type(tensor.dtype), device=device)
            for tensor in self.outputs
        ]
        workspace = self.prepared_workspace(tensors, device)
        self.call(self.launcher, [*tensors, *outputs], workspace, device)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def call(self, function, tensors, workspace, device):
        """Calls a function of NAME.h; the workspace is aligned here."""
        aligned = -workspace.data_ptr() % ALIGNMENT + workspace.data_ptr()
        arguments = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
        arguments.append(ctypes.c_void_p(aligned))
        launch = getattr(self.library, function)
        if self.arch:
            with torch.cuda.device(device):
                stream = torch.cuda.current_stream().cuda_stream
                status = launch(*arguments, ctypes.c_void_p(stream))
        else:
            status = launch(*arguments)
        if status != 0:
            what = f"CUDA error {status}" if self.arch else f"status {status}"
            raise RuntimeError(f"{self.name} could not be launched: {what}")

    def new_workspace(self, device):
        space = getattr(self.library, self.workspace)()
        return torch.empty(space + ALIGNMENT, dtype=torch.uint8, device=device)

    def prepared_workspace(self, tensors, device):
        """A workspace in which everything is prepared that is made of constants alone.

        It is kept, one a device and stream, and prepared again when a constant is another tensor
        or was changed in place. A change that PyTorch does not count (through `.data`) is not
        seen: `prepared.clear()` makes the next call prepare.
        """
        if not self.prepare:
            return self.new_workspace(device)
        stream = torch.cuda.current_stream(device).cuda_stream if self.arch else 0
        names = self.plan["launch_list"]["constants"]
        constants = [
            value for tensor, value in zip(self.inputs, tensors) if tensor.name in names
        ]
        versions = [(value.data_ptr(), value._version) for value in constants]
        known = self.prepared.get((device, stream))
        if known is None or known["versions"] != versions:
            workspace = self.new_workspace(device)
            self.call(self.prepare, constants, workspace, device)
            # The tensors are kept so that no other can come to lie where they do.
            known = {"workspace": workspace, "versions": versions, "constants": constants}
            self.prepared[(device, stream)] = known
        return known["workspace"]

    def adopt(self, model, check=True, onnx=None):
        """`model`, a torch.nn.Module or a class of such, with the kernels as its forward().

        Its parameters and buffers stay its own: the kernels compute with whatever weights it has.
        `check`: the first call also computes as the module itself would and compares. `onnx`: a
        file exported from the module, for a module that cannot be exported here.
        """
        return adoption.adopt(self, model, check, onnx)
