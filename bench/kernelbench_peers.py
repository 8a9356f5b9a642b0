#!/usr/bin/env python3
"""One row of the board (kernelbench.py): a bundle beside the module that it was exported from.

    python3 bench/kernelbench_peers.py KernelBench/level1/19_ReLU.py out/bundle [--track tf32]

The bundle's module, the module, and the module under torch.compile (default mode, cudnn.benchmark
on) take turns on the same inputs, which are drawn anew; the L2 is flushed before each call. Both
sides may use TF32 on the track tf32, and neither on fp32. Calls shorter than 100 us are timed as
CUDA graphs over several sets of inputs. A plain copy takes turns as well: its rate is what memory
gave in this run. Prints one line of JSON."""
import argparse
import importlib.util
import json
import pathlib
import sys

import torch

import timing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import warploom

SHORT_US = 100  # below that, starting a graph of several calls is no part of their time
LEAST_CALLS = 10
SETS_BYTES = 256 << 20  # more than twice any L2 of today: the sets of short calls together
COPY_BYTES = 1 << 30
SMALL = 0.05  # weights that the module does not name


def module_at(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def set_precision(track):
    allowed = track == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.benchmark = True


class Problem:
    """A module of KernelBench on the GPU, and the inputs of the bundle that was made of it."""

    def __init__(self, path, bundle):
        source = module_at(path, "task")
        torch.manual_seed(1)
        with torch.device("cuda"):
            self.model = source.Model(*source.get_init_inputs()).cuda().eval()
        self.inputs = source.get_inputs
        self.bundle = bundle
        self.weights = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        self.unnamed = []
        self.take_constants()

    def take_constants(self):
        """The module gets the values that the bundle was compiled with."""
        for tensor in self.bundle.held:
            weight = self.weights.get(tensor.name)
            if weight is not None and tuple(weight.shape) == tensor.shape:
                weight.copy_(self.bundle.constant(tensor, weight.device))

    def drawn(self):
        with torch.device("cuda"):
            return [x.cuda() if isinstance(x, torch.Tensor) else x for x in self.inputs()]

    def given(self, drawn):
        """The bundle's inputs: weights by name, the others in their order."""
        rest = [x for x in drawn if isinstance(x, torch.Tensor)]
        out = []
        for tensor in self.bundle.given:
            weight = self.weights.get(tensor.name)
            if weight is not None and tuple(weight.shape) == tensor.shape:
                out.append(weight)
            elif rest and tuple(rest[0].shape) == tensor.shape:
                out.append(rest.pop(0))
            else:
                self.unnamed.append(tensor.name)
                out.append(SMALL * torch.randn(tensor.shape, device="cuda"))
        return out


def bytes_of(tensors):
    return sum(x.numel() * x.element_size() for x in tensors if isinstance(x, torch.Tensor))


class Sets:
    """Inputs that calls take by turns: as many sets as are wanted and fit."""

    def __init__(self, problem):
        self.problem = problem
        self.all = []
        self.grow(2)

    def grow(self, count):
        while len(self.all) < count:
            free, _ = torch.cuda.mem_get_info()
            if self.all and 4 * bytes_of(self.all[0][0]) > free:
                break
            drawn = self.problem.drawn()
            self.all.append((drawn, self.problem.given(drawn)))

    def grow_for_short_calls(self):
        one = max(1, bytes_of(self.all[0][0]))
        self.grow(max(LEAST_CALLS, min(64, SETS_BYTES // one + 1)))

    def at(self, turn):
        return self.all[turn % len(self.all)]


def calls_of(problem, sets, compiled):
    calls = {
        "ours": lambda turn: problem.bundle.run(*sets.at(turn)[1]),
        "eager": lambda turn: problem.model(*sets.at(turn)[0]),
    }
    if compiled is not None:
        calls["compile"] = lambda turn: compiled(*sets.at(turn)[0])
    return calls


def compiled_module(problem, sets):
    """The module compiled and called once, or nothing and why."""
    torch._dynamo.reset()
    try:
        compiled = torch.compile(problem.model)
        compiled(*sets.at(0)[0])
        torch.cuda.synchronize()
        return compiled, None
    except Exception as problem_of_compiler:  # whatever a compiler may throw
        return None, f"{type(problem_of_compiler).__name__}: {str(problem_of_compiler)[:200]}"


def difference(ours, theirs):
    """Relative, of all elements; null where the module was given other constants."""
    if isinstance(ours, tuple) or isinstance(theirs, tuple) or ours.shape != theirs.shape:
        return None
    if not ours.is_floating_point():
        return float((ours != theirs).float().mean())
    above = below = 0.0
    for a, b in zip(ours.flatten().split(1 << 26), theirs.flatten().split(1 << 26)):
        above += float((a.double() - b.double()).square().sum())
        below += float(b.double().square().sum())
    return (above / below) ** 0.5 if below else None


def copy_gbs(seconds=0.3):
    free, _ = torch.cuda.mem_get_info()
    count = min(COPY_BYTES, free // 4) // 4
    x = torch.ones(count, device="cuda")
    y = torch.empty_like(x)
    us = timing.alternate({"copy": lambda turn: y.copy_(x)}, seconds)["copy"]
    return round(8 * count / timing.median(us) / 1e3, 1)


def timed(problem, sets, compiled, seconds):
    calls = calls_of(problem, sets, compiled)
    samples = timing.alternate(calls, 0.1, least=3)
    short = timing.median(samples["ours"]) < SHORT_US
    if not short:
        return timing.alternate(calls, seconds), "calls"
    sets.grow_for_short_calls()
    try:
        return timing.alternate_graphs(calls, len(sets.all), seconds), "graphs"
    except RuntimeError:  # a module whose calls cannot be recorded
        torch.cuda.synchronize()
        return timing.alternate(calls, seconds), "calls"


def row_of(options):
    set_precision(options.track)
    bundle = warploom.load(options.bundle, trust=True).bundle
    problem = Problem(options.module, bundle)
    sets = Sets(problem)
    drawn, given = sets.at(0)
    row = {"eager_difference": difference(bundle.run(*given), problem.model(*drawn))}
    compiled, why = None, "not asked for"
    if not options.no_compile:
        compiled, why = compiled_module(problem, sets)
    samples, how = timed(problem, sets, compiled, options.seconds)
    torch.cuda.empty_cache()
    row |= {"timed_as": how, "sets": len(sets.all), "compile_fail": why}
    row |= {"unnamed_inputs": sorted(set(problem.unnamed))}
    for name, values in samples.items():
        row[f"{name}_us"] = round(timing.median(values), 3)
        prefix = "" if name == "ours" else f"{name}_"
        row[f"{prefix}interval_us"] = timing.interval(values)
    del sets, drawn, given
    torch.cuda.empty_cache()
    return row | {"copy_gbs": copy_gbs()}


def versions():
    try:
        import triton

        found = triton.__version__
    except ImportError:
        found = None
    cudnn = torch.backends.cudnn.version()
    return {
        "cuda": torch.version.cuda,
        "peers": {"torch": torch.__version__, "triton": found, "cudnn": cudnn},
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("module", type=pathlib.Path, nargs="?")
    parser.add_argument("bundle", type=pathlib.Path, nargs="?")
    parser.add_argument("--track", default="fp32", choices=("fp32", "tf32"))
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--versions", action="store_true")
    options = parser.parse_args()
    if options.versions:
        print(json.dumps(versions()))
        return 0
    with torch.no_grad():
        print(json.dumps(row_of(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
