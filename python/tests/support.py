"""What the tests share: three real models, and bundles of them, each made once.

Bundles that tests only read are kept beside the program, with what the first call compiled: under
a hash of the program, the model and the flags. The first process that needs one makes it, under a
lock, while others wait; so neither the processes of a run nor the next run make it again. The
program is WARPLOOM_PROGRAM, on PATH or built in this source tree; the target WARPLOOM_TARGET,
by default auto: the GPU if there is one.
"""
import atexit
import contextlib
import fcntl
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed (Debian: python3-torch)") from None
from torch import nn

import warploom
from warploom import exporting

SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="warploom-python-"))
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
os.environ.setdefault("XDG_CACHE_HOME", str(SCRATCH / "cache"))
TARGET = os.environ.get("WARPLOOM_TARGET", "auto")
DEVICE = torch.device("cuda" if TARGET != "cpu" and torch.cuda.is_available() else "cpu")


class Block(nn.Module):
    """Two convolutions with batch norms around a residual."""

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(h)))


class ResNet(nn.Module):
    """A stem, two blocks, a norm that follows no convolution, and a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.last = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        h = self.blocks(torch.relu(self.norm(self.stem(x))))
        return self.head(torch.relu(self.last(h)).mean((2, 3)))


class Transformer(nn.Module):
    """A layer of attention and one of a perceptron, normalised before each."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm2 = nn.LayerNorm(32)
        self.perceptron = nn.Sequential(
            nn.Linear(32, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 32)
        )

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.perceptron(self.norm2(x))


class Language(nn.Module):
    """Embeddings of tokens and places, and logits."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50, 16)
        self.places = nn.Embedding(12, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 50)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.norm(self.tokens(ids) + self.places(places)))


MODELS = {
    ResNet: lambda: torch.randn(2, 3, 16, 16),
    Transformer: lambda: torch.randn(2, 10, 32),
    Language: lambda: torch.randint(0, 50, (2, 12)),
}
# As users export: torch's defaults, and so that no weight is touched.
DEFAULTS = {"dynamo": False} if exporting.has_dynamo() else {}
UNTOUCHED = exporting.untouched_weights()


def with_weights(module, seed):
    """The module for evaluation with other weights, statistics of norms among them."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point():
                positive = 0.5 if "running_var" in name else -0.2
                drawn = torch.rand(tensor.shape, generator=generator) * 0.5 + positive
                tensor.copy_(drawn)
    return module.eval().to(DEVICE)


# Weights are tested here, and not how fast kernels are: one that is right will do.
SHORT = {"budget": "60s", "candidates": "1", "archive": str(SCRATCH / "archive.sqlite")}


def made(file, folder, *flags):
    """Searches for the bundle of an ONNX file and writes it into `folder`."""
    command = [warploom.program(), "optimize", str(file), "--out", str(folder), "--target", TARGET]
    command += ["--quiet", *flags]
    for flag, value in SHORT.items():
        command += [f"--{flag}", value]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise AssertionError(ran.stdout + ran.stderr)


@contextlib.contextmanager
def locked(path):
    """Holds an exclusive lock on a file."""
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def hash_of(*parts):
    """20 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:20]


@functools.cache
def kept_folder():
    """Where bundles of this very program are kept; those of others are removed."""
    program = pathlib.Path(warploom.program()).resolve()
    folder = program.parent / "shared_bundles"
    try:
        folder.mkdir(exist_ok=True)
        with locked(folder / "lock"):
            own = folder / hash_of(program.read_bytes())
            for other in folder.iterdir():
                if other.is_dir() and other != own:
                    shutil.rmtree(other, ignore_errors=True)
            own.mkdir(exist_ok=True)
            return own
    except OSError:  # an installed program's folder
        return SCRATCH


def optimized(file, *flags):
    """The folder of the bundle of an ONNX file, which nobody may change."""
    words = " ".join([file.name, TARGET, os.environ.get("CXX", ""), *flags])
    folder = kept_folder() / f"{file.stem}-{hash_of(file.read_bytes(), words.encode())}"
    with locked(f"{folder}.lock"):
        if not folder.exists():
            part = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
            made(file, part, *flags)
            part.rename(folder)
    return folder


FOLDERS = {}
BUNDLES = {}


def bundle_of(name, module, inputs, keywords=None):
    """The bundle of a module exported with `keywords`, loaded at the first call for `name`."""
    if name not in BUNDLES:
        file = SCRATCH / f"{name}.onnx"
        exporting.export(module, inputs, file, **(DEFAULTS if keywords is None else keywords))
        FOLDERS[name] = optimized(file)
        BUNDLES[name] = warploom.load(FOLDERS[name], trust=True)
    return BUNDLES[name]


def error_between(found, wanted):
    """Relative Frobenius error."""
    return ((found - wanted).double().norm() / wanted.double().norm()).item()
