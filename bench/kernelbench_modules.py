#!/usr/bin/env python3
"""KernelBench-format files from module to row: optimized, judged under two rules, timed.

    python3 bench/kernelbench_modules.py TASKS --out rows.jsonl \\
        [--budget 20s] [--track tf32] [--target cpu] [--limit 3600] [--only SUBSTRING] [--again]

TASKS is a folder of files with `Model`, get_inputs() and get_init_inputs(), KernelBench's own
level1/, level2/, … or anybody's. A task is one process and one line of JSON; tasks that the file
has with this track, budget and target are not done again. bench/kernelbench.py is the board of ONNX
files and cold searches; this is what a user of the package gets.

Right is asked twice. `upstream`: KernelBench's rule, torch.allclose with 1e-4 (1e-2 in 16 bits) on
five draws of the task's own inputs. `repaired`: those inputs of both signs, with an offset, and
larger, since many tasks hand in uniform numbers of 0 to 1, for which a constant is right in more
than one; there the relative Frobenius error against FP64 must be at most the bundle's tolerance, or
what the module itself loses on the same inputs. `impact` and `spread` tell an unsound task: how far
the outputs of two draws lie apart, and an output's deviation beside its largest element.

>>> import torch
>>> names = [name for name, _ in repaired([torch.rand(4, 4), torch.arange(3)], 1)]
>>> names
['signs', 'offset', 'scale']
>>> signs = dict(repaired([torch.rand(64), torch.arange(3)], 1))["signs"]
>>> bool((signs[0] < 0).any() and (signs[0] > 0).any()), signs[1].tolist()
(True, [0, 1, 2])
>>> told_once([{"task": "a", "right": True, "impact": 0.5, "spread": 0.5},
...            {"task": "b", "right": False, "impact": 0.0, "spread": 0.5}])
'2 tasks, 1 right under both rules; 1 sound, 1 right'
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
TRIALS = 5
SEED = 42  # KernelBench's
LEAST_IMPACT = 1e-2  # of a sound task: both numbers
LEAST_SPREAD = 1e-2


def module_at(path):
    """A task's file as a module."""
    spec = importlib.util.spec_from_file_location("task", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["task"] = module
    spec.loader.exec_module(module)
    return module


class Task:
    """A file's model and inputs on a device."""

    def __init__(self, path, device):
        self.source = module_at(path)
        self.device = device
        torch.manual_seed(SEED)
        self.model = self.source.Model(*self.source.get_init_inputs()).to(device).eval()

    def inputs(self, seed):
        """The task's own inputs by a seed."""
        torch.manual_seed(seed)
        return [self.moved(value) for value in self.source.get_inputs()]

    def moved(self, value):
        """An input on the device."""
        return value.to(self.device) if isinstance(value, torch.Tensor) else value


def is_real(value):
    """Whether it is a tensor of floating-point numbers."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def repaired(inputs, seed):
    """(name, inputs): the same of both signs, with an offset, larger."""
    ways = {
        "signs": lambda x: 2 * (x - x.mean()),
        "offset": lambda x: x + 2 * x.std(unbiased=False),
        "scale": lambda x: 8 * x,
    }
    for name, way in ways.items():
        yield name, [way(value) if is_real(value) else value for value in inputs]


def close(ours, theirs):
    """KernelBench's rule."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    tolerance = 1e-2 if ours.element_size() < 4 and ours.is_floating_point() else 1e-4
    return bool(torch.allclose(ours, theirs, atol=tolerance, rtol=tolerance))


def judged(task, faster, tolerance):
    """What both rules say, and how sound the task is."""
    from warploom.comparing import computed_by, computed_in_own_precision, error_of, flat

    row = {"upstream": True, "repaired": {}, "errors": {}}
    draws = []
    for trial in range(TRIALS):
        inputs = task.inputs(SEED + trial)
        wanted = flat(task.model(*inputs))
        found = flat(faster(*inputs))
        row["upstream"] &= len(found) == len(wanted) and all(map(close, found, wanted))
        draws.append(wanted[0].double())
    if len(draws) > 1:
        row["impact"] = relative(draws[0] - draws[1], draws[0])
    largest = draws[0].abs().max().item()
    row["spread"] = draws[0].std(unbiased=False).item() / largest if largest else 0.0
    for name, inputs in repaired(task.inputs(SEED + TRIALS), SEED):
        exact, _ = computed_by(task.model, inputs)
        own = flat(computed_in_own_precision(task.model, inputs))
        errors, allowed = [], []
        for ours, theirs, eager in zip(flat(faster(*inputs)), flat(exact), own):
            errors.append(error_of(ours, theirs.to(ours.device)))
            allowed.append(max(tolerance, error_of(eager, theirs.to(eager.device))))
        finite = all(torch.isfinite(one).any().item() for one in flat(exact) if is_real(one))
        row["errors"][name] = [errors, allowed]
        right = all(error <= most for error, most in zip(errors, allowed))
        row["repaired"][name] = right if finite else None  # nothing to compare
    row["right"] = row["upstream"] and all(one is not False for one in row["repaired"].values())
    return row


def relative(difference, whole):
    """The norm of a difference beside that of the whole."""
    size = whole.norm().item()
    return difference.norm().item() / size if size else 0.0


def timed(task, faster, checking, compiles):
    """Medians in microseconds by turns."""
    inputs = task.inputs(SEED)
    calls = {"ours": lambda *_: faster(*inputs), "eager": lambda *_: task.model(*inputs)}
    row = {"compile_fail": None}
    if compiles and hasattr(torch, "compile"):
        try:
            compiled = torch.compile(task.model)
            compiled(*inputs)
            calls["compile"] = lambda *_: compiled(*inputs)
        except Exception as error:  # whatever a compiler may throw
            row["compile_fail"] = f"{type(error).__name__}: {str(error)[:200]}"
    if task.device == "cuda":
        import timing

        samples = timing.alternate(calls)
        for name, values in samples.items():
            row[f"{name}_us"] = round(timing.median(values), 3)
            row[f"{name}_interval_us"] = timing.interval(values)
        return row
    for name, us in checking.times(calls, torch.device("cpu")).items():
        row[f"{name}_us"] = round(us, 3)
    return row


def peak(call):
    """A call's largest device memory, in bytes; nothing on a CPU."""
    if not torch.cuda.is_available():
        return None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def row_of(options):
    """One task, in a process of its own."""
    import warploom
    from warploom import checking

    on_gpu = options.target != "cpu" and torch.cuda.is_available()
    torch.backends.cuda.matmul.allow_tf32 = options.track == "tf32"
    torch.backends.cudnn.allow_tf32 = options.track == "tf32"
    row = {"code": None, "fail": None, "right": False}
    try:
        task = Task(options.tasks, "cuda" if on_gpu else "cpu")
        with torch.no_grad(), tempfile.TemporaryDirectory(prefix="modules.") as folder:
            inputs = tuple(task.inputs(SEED))
            faster = warploom.optimize(
                task.model,
                inputs,
                budget=options.budget,
                track=options.track,
                target=options.target,
                out=pathlib.Path(folder) / "task",
                quiet=True,
            )
            found = warploom.outcome(faster)
            bundle = warploom.load(found.bundle, trust=True).bundle
            row["plan"] = found.search.get("plan")
            row["peak_bytes"] = peak(lambda: faster(*inputs))
            row["eager_peak_bytes"] = peak(lambda: task.model(*inputs))
            row |= judged(task, faster, bundle.plan["tolerance"])
            row |= timed(task, faster, checking, not options.no_compile)
    except Exception as error:  # a task is anybody's code
        row["code"] = getattr(error, "code", type(error).__name__)
        row["fail"] = str(error)[:600]
        row["right"] = False
    return row


def identity(path, options):
    """What tells a row from others."""
    level = path.parent.name
    return {
        "task": f"{level}_{path.stem}" if level.startswith("level") else path.stem,
        "track": options.track,
        "budget": options.budget,
        "target": options.target,
    }


def in_a_process(path, options):
    """The row of a task, whatever becomes of its process."""
    command = [sys.executable, __file__, str(path), "--one", "--budget", options.budget]
    command += ["--track", options.track, "--target", options.target]
    command += ["--no-compile"] if options.no_compile else []
    start = time.monotonic()
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=options.patience, check=False
        )
        lines = ran.stdout.strip().splitlines()
        row = json.loads(lines[-1])
    except subprocess.TimeoutExpired:
        row = {"right": False, "code": "time-out", "fail": f"after {options.patience} s"}
    except (IndexError, ValueError):
        row = {"right": False, "code": f"exit {ran.returncode}", "fail": ran.stderr[-400:]}
    return {**row, "wall_s": round(time.monotonic() - start, 1)}


def told(row):
    """A row in a line."""
    if row.get("fail"):
        return f"{row['code']}: {row['fail'].splitlines()[0][:120]}"
    repairs = [name for name, right in row["repaired"].items() if right is False]
    verdict = "right" if row["right"] else "wrong"
    if repairs:
        verdict += f" on {', '.join(repairs)}"
    elif not row["upstream"]:
        verdict += " upstream"
    peers = [f"{name} {row[f'{name}_us']}" for name in ("eager", "compile") if f"{name}_us" in row]
    return f"{verdict}, {row['ours_us']} us; {', '.join(peers)}"


def told_once(rows):
    """Two columns: all tasks, and without those whose outputs hardly depend on the inputs."""
    sound = [
        row
        for row in rows
        if row.get("impact", 1) >= LEAST_IMPACT and row.get("spread", 1) >= LEAST_SPREAD
    ]
    right = lambda among: sum(bool(row["right"]) for row in among)
    return (
        f"{len(rows)} tasks, {right(rows)} right under both rules; {len(sound)} sound, "
        f"{right(sound)} right"
    )


def board(options):
    """Every task of the folder, until the limit."""
    rows = []
    if options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text().splitlines() if line]
    known = {tuple(row[key] for key in head_keys()) for row in rows}
    deadline = time.monotonic() + options.limit
    done = []
    for path in sorted(options.tasks.rglob("*.py")):
        head = identity(path, options)
        is_known = tuple(head.values()) in known and not options.again
        if is_known or options.only not in head["task"]:
            continue
        if time.monotonic() > deadline:
            break
        row = {**head, **in_a_process(path, options)}
        done.append(row)
        with open(options.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{row['task']:<60} {told(row)}", flush=True)
    latest = {tuple(row[key] for key in head_keys()): row for row in [*rows, *done]}
    print(told_once(list(latest.values())))
    return 0 if all(row["right"] for row in done) else 1


def head_keys():
    """What tells rows apart."""
    return ("task", "track", "budget", "target")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("kernelbench.jsonl"))
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--track", default="fp32")
    parser.add_argument("--target", default="auto")
    parser.add_argument("--limit", type=float, default=3600, help="seconds; no task begins later")
    parser.add_argument("--patience", type=float, default=900, help="seconds a task may take")
    parser.add_argument("--only", default="")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--one", action="store_true", help="one file, one line of JSON")
    options = parser.parse_args()
    if options.one:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        print(json.dumps(row_of(options)))
        return 0
    return board(options)


if __name__ == "__main__":
    sys.exit(main())
