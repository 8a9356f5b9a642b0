"""A bundle's folder as a function of tensors: run(), and adopt() for modules."""
import ctypes
import functools
import json
import pathlib

import torch

from . import adoption, build
from .calling import Calls
from .elements import torch_type
from .torch_operator import is_compiling, operator_of, through_operator
from .refusing import InputError, LaunchError, are_gradients_on, refuse_gradients
from .tensors import Tensor
from .watching import same_tensors, state_of


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
        places = range(len(self.inputs))
        self.places_of_given = [i for i in places if self.inputs[i].file is None]
        self.places_of_held = [i for i in places if self.inputs[i].file is not None]
        self.places_of_outputs = [len(self.inputs) + i for i in range(len(self.outputs))]
        constant = launches.get("constants", [])
        self.constant_among_given = [
            i for i, tensor in enumerate(self.given) if tensor.name in constant
        ]
        self.constants = {}  # those of the files, by name and device
        self.functions = {}
        self.fitting = set()  # devices that were looked at
        self.calls = Calls(self, {})  # with the constants of the files
        self.others = None  # those with the constants that were given last, and their state
        self.recorded = []  # what CUDA graphs took: they may be replayed at any time

    def __repr__(self):
        wants = ", ".join(map(str, self.given))
        gives = ", ".join(map(str, self.outputs))
        return f"<bundle {self.name}: {wants} -> {gives}, for {self.arch or 'this CPU'}>"

    def names_of_given(self):
        """The inputs of a call, in words."""
        return ", ".join(tensor.name for tensor in self.given)

    @functools.cached_property
    def library(self):
        """The launcher, built at the first call."""
        try:
            made = self.built()
        except build.BuildError as error:
            raise LaunchError(str(error), "bundle-not-built") from error
        getattr(made, self.workspace).restype = ctypes.c_size_t
        return made

    def built(self):
        """The library of the bundle's sources."""
        if self.arch:
            command = [*build.cuda_compiler(), "-shared", "-Xcompiler", "-fPIC"]
        else:
            command = [*build.cpp_compiler(), "-shared", "-fPIC"]
        command += [*self.flags, *(f"-I{self.folder / place}" for place in self.includes)]
        return build.library(self.folder, self.name, self.sources, self.includes, command)

    @functools.cached_property
    def operator(self):
        """The kernels as an operator of torch's."""
        return operator_of(self)

    def function(self, name):
        """A function of NAME.h that takes an array of addresses, a workspace and a stream."""
        found = self.functions.get(name)
        if found is None:
            found = getattr(self.library, name)
            found.argtypes = [ctypes.c_void_p] * (3 if self.arch else 2)
            self.functions[name] = found
        return found

    def device_of(self, inputs):
        """Where a call computes: where its first tensor is."""
        for value in inputs:
            if isinstance(value, torch.Tensor):
                device = value.device
                break
        else:
            device = torch.device("cuda", torch.cuda.current_device()) if self.arch else CPU
        if device not in self.fitting:
            self.check_device(device)
            self.fitting.add(device)
        return device

    def check_device(self, device):
        """Refuses tensors of a device that the kernels are not for."""
        if device.type != ("cuda" if self.arch else "cpu"):
            where = f"a GPU, {self.arch}" if self.arch else "the CPU"
            raise InputError(
                f"{self.name} runs on {where}; its inputs are on {device}: move them there, or "
                "optimize the module for where they are",
                "input-device",
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
            raise LaunchError(
                f"{self.name} is made for {self.arch}; {device} is sm_{found}: optimize the module "
                "on this card",
                "wrong-card",
            )

    def constant(self, tensor, device):
        """A constant of the model file."""
        key = (tensor.name, str(device))
        if key not in self.constants:
            data = bytearray((self.folder / tensor.file).read_bytes())
            values = torch.frombuffer(data, dtype=torch_type(tensor.dtype))
            values = values.reshape(tensor.shape).to(device)
            self.constants[key] = tensor.packed(values, values.device, self.name)
        return self.constants[key]

    def run(self, *inputs, out=None, constants=None):
        """The outputs, one tensor or a tuple, on the device and stream of the inputs.

        `out`: tensors that the outputs are written into; it is returned. `constants`: by name,
        instead of the file's.
        """
        if is_compiling() and out is None and constants is None:
            return through_operator(self, inputs)
        if are_gradients_on():
            refuse_gradients(self.name, [*inputs, *(constants or {}).values()])
        return self.calls_with(constants)(inputs, out)

    def calls_with(self, constants):
        """Calls with these constants; the last ones are kept while the tensors are the same."""
        if not constants:
            return self.calls
        others = self.others  # both at once: another thread may exchange them
        if others is None or not same_tensors(others[1], constants):
            others = self.others = (Calls(self, dict(constants)), state_of(constants))
        return others[0]

    def adopt(self, model, check=True, onnx=None):
        """`model`, a torch.nn.Module or a class of such, with the kernels as its forward().

        Its parameters and buffers stay its own: the kernels compute with whatever weights it has.
        `check`: the first call also computes as the module itself would and compares. `onnx`: a
        file exported from the module, for a module that cannot be exported here.
        """
        return adoption.adopt(self, model, check, onnx)


CPU = torch.device("cpu")
