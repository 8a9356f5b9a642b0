#!/usr/bin/env python3
"""What a call from Python costs beside the launcher's own, by turns, in microseconds.

    python3 bench/python_calls.py [--target cpu] [--layers 20] [--budget 5s]

Two modules, a perceptron and a stack of `--layers` linear layers with norms, are optimized and
called in five ways: the launcher by ctypes with addresses made before (`bare`), the bundle's run(),
run() with out=, the adopted module, and the adopted module that holds its weights. A row a module;
what a way takes more than `bare` is the package's. On a GPU calls are not waited for: it is the
time until the next can begin."""
import argparse
import ctypes
import pathlib
import statistics
import sys
import tempfile
import time

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import warploom

CALLS = 1000
ROUNDS = 9


def modules(layers):
    """(name, module, input)."""
    yield "perceptron", nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 16)), (16, 64)
    blocks = [nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16)) for _ in range(layers)]
    yield "stack", nn.Sequential(*blocks), (4, 16)


def bare_call(bundle, x):
    """The launcher with everything made before."""
    device = x.device
    held = [bundle.constant(tensor, device) for tensor in bundle.held]
    outputs = [torch.empty(one.shape, dtype=one.type, device=device) for one in bundle.outputs]
    bundle.run(x)
    kept = next(iter(bundle.calls.kept.values()))
    array = kept.copied(kept.addresses)
    for place, value in zip(bundle.places_of_given, [x]):
        array[place] = value.data_ptr()
    for place, value in zip(bundle.places_of_outputs, outputs):
        array[place] = value.data_ptr()
    call = bundle.function(bundle.launcher)
    arguments = [array, kept.work]
    if bundle.arch:
        arguments.append(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    return lambda alive=(held, outputs): call(*arguments)


def medians(ways):
    """The median of each way, taken by turns."""
    samples = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                way()
            samples[name].append((time.perf_counter() - start) / CALLS * 1e6)
    return {name: statistics.median(values) for name, values in samples.items()}


def row_of(module, x, options):
    """The times of one module."""
    with tempfile.TemporaryDirectory(prefix="calls.") as folder:
        how = {"budget": options.budget, "target": options.target, "quiet": True}
        out = pathlib.Path(folder) / "module"
        adopted = warploom.optimize(module, x, out=out, candidates=2, **how)
        loaded = warploom.load(out, trust=True)
        holding = loaded.adopt(module)
        holding(x)
        holding.hold_weights()
        bundle = loaded.bundle
        first = bundle.run(x)
        out = torch.empty_like(first)
        return medians(
            {
                "bare": bare_call(bundle, x),
                "run": lambda: bundle.run(x),
                "out=": lambda: bundle.run(x, out=out),
                "adopted": lambda: adopted(x),
                "held": lambda: holding(x),
                "eager": lambda: module(x),
            }
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default="auto")
    parser.add_argument("--budget", default="5s")
    parser.add_argument("--layers", type=int, default=20)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    on_gpu = options.target != "cpu" and torch.cuda.is_available()
    for name, module, shape in modules(options.layers):
        module = module.eval().to("cuda" if on_gpu else "cpu")
        x = torch.randn(shape, device="cuda" if on_gpu else "cpu")
        row = row_of(module, x, options)
        weights = len(list(module.parameters()))
        ways = "  ".join(f"{way} {us:.2f}" for way, us in row.items())
        print(f"{name}, {weights} weights: {ways}", flush=True)


if __name__ == "__main__":
    main()
