#!/usr/bin/env python3
"""The KernelBench board: every task searched cold, beside torch eager and torch.compile.

    python3 bench/kernelbench.py --warploom build/portable/warploom \\
        --tasks ONNX_FILES --kernelbench CHECKOUT --kernelbench-commit 423217d \\
        --limit 540 [--track tf32] [--budget 20] [--gpus 2] [--only SUBSTRING] [--out FILE]

CHECKOUT: a clone of KernelBench, or its folder KernelBench/ alone; level1_19_ReLU.onnx of the tasks
is exported from KernelBench/level1/19_ReLU.py. A row is one task: `warploom optimize` with empty
caches and an empty archive, then in a process of its own the bundle's module, the module as it is
and the module compiled, by turns, at equal precision (kernelbench_peers.py).

The board is made in parts. Rows that FILE (default: kernelbench_cold.json of the card's results)
has of this track are not measured again, unless --again; the rest comes in an order that --seed
draws, so that a partial board is a fair sample. No row begins that would not end within --limit, as
far as rows so far tell. With --gpus N as many rows are measured at a time, each with a GPU and a
share of the cores of its own. Of the tf32 board the tasks are every third, in that order, that has
a contraction. Exit status 1: a row failed.

>>> order = lambda names: [one["task"] for one in order_of([{"task": x} for x in names], "fp32", 1)]
>>> order("abcdefgh") == order("hgfedcba") != list("abcdefgh")
True
>>> seconds = seconds_of([{"phase": "planning", "from": 0, "to": 1},
...                       {"phase": "trying candidates", "from": 1, "to": 5}])
>>> apart = judged_apart(seconds, [{"verdict": {"judge_ms": 1500}}, {}])
>>> apart["setup"], apart["judge"], apart["time"]
(1.0, 1.5, 2.5)
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import gpu

CONTRACTIONS = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"}
LEVELS = (1, 2)
FIRST_ROW_SECONDS = 150  # what a row is taken for while none was measured
PATIENCE = 10  # budgets, and a minute, that a search may take before it is ended
START_S = 6  # in which a search opens its GPU, several processes of it
STARTS = threading.Lock()
PEERS = pathlib.Path(__file__).with_name("kernelbench_peers.py")

# What a row's `seconds` are called, by words of the timeline's phases (src/search/timeline.h).
PHASES = (
    ("bundle", "bundle"),
    ("whole", "whole"),
    ("again", "time"),
    ("compiling", "compile"),
    ("trying", "judge"),
    ("reading", "setup"),
    ("planning", "setup"),
    ("FP64", "setup"),
)


def order_of(tasks, track, seed):
    """Tasks in the order that the seed draws, whatever order they come in."""
    ordered = sorted(tasks, key=lambda task: task["task"])
    random.Random(seed).shuffle(ordered)
    if track == "fp32":
        return ordered
    return [task for task in ordered if CONTRACTIONS & set(task["ops"])][::3]


def tasks_of(folder):
    lines = (folder / "index.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [row for row in rows if row["onnx"] and row["level"] in LEVELS]


def module_of(checkout, task):
    """level1_19_ReLU: KernelBench/level1/19_ReLU.py."""
    level, name = task.split("_", 1)
    inner = checkout / "KernelBench"
    return (inner if inner.is_dir() else checkout) / level / f"{name}.py"


def seconds_of(timeline):
    """A timeline's seconds by what they were spent on. `judge` is measuring, too, until what the
    archive says of judging is known (judged_apart)."""
    out = dict.fromkeys(("setup", "compile", "judge", "time", "whole", "bundle", "other"), 0.0)
    for stretch in timeline:
        words = stretch["phase"]
        name = next((name for word, name in PHASES if word in words), "other")
        out[name] += stretch["to"] - stretch["from"]
    return out


def archived(path):
    """The candidates' records of an archive that one search wrote."""
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as archive:
            rows = archive.execute("SELECT record FROM candidates").fetchall()
    except sqlite3.Error:
        return []
    return [json.loads(record) for (record,) in rows]


def judged_apart(seconds, records):
    """The time that candidates were tried is what judging took, and the rest: calls, and waiting
    for compilers."""
    screened = [record for record in records if record.get("stage") != "promoted"]
    verdicts = [record.get("verdict") or {} for record in screened]
    judged = sum((verdict.get("judge_ms") or 0) for verdict in verdicts) / 1000
    tried = seconds["judge"]
    seconds["judge"] = min(judged, tried) if screened else tried
    seconds["time"] += tried - seconds["judge"]
    return {name: round(value, 3) for name, value in seconds.items()}


class Place:
    """Where a row is measured: a GPU, and the cores that are not another's."""

    def __init__(self, gpu_index, of, rates):
        cores = sorted(os.sched_getaffinity(0))
        self.gpu = gpu_index
        self.cores = ",".join(map(str, cores[gpu_index::of]))
        self.rates = rates

    def run(self, command, seconds, environment=None):
        """What the command says, at most `seconds` later: subprocess.TimeoutExpired then."""
        return subprocess.run(
            ["taskset", "--cpu-list", self.cores, *command],
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": str(self.gpu), **(environment or {})},
        )


def begin_alone():
    """Waits until no other search is within its first seconds: a driver opens one GPU of a machine
    after another, so that searches which begin at once would wait for each other's."""
    STARTS.acquire()
    timer = threading.Timer(START_S, STARTS.release)
    timer.daemon = True
    timer.start()


def cold_cache(folder, rates):
    """Environment of a search that knows nothing but the card's rates."""
    cache = folder / "cache"
    (cache / "warploom").mkdir(parents=True)
    if rates.is_dir():
        shutil.copytree(rates, cache / "warploom" / "rates")
    return {"XDG_CACHE_HOME": str(cache)}


def searched(options, task, folder, place, seconds):
    """The search's half of a row. `folder` holds the bundle afterwards."""
    seconds = min(seconds, PATIENCE * options.budget + 60)
    command = [options.warploom, "optimize", str(options.tasks / task["onnx"])]
    command += ["--budget", f"{options.budget}s", "--track", options.track, "--json"]
    command += ["--archive", str(folder / "archive.sqlite"), "--out", str(folder / "bundle")]
    environment = cold_cache(folder, place.rates)
    begin_alone()
    start = time.monotonic()
    try:
        run = place.run(command, seconds, environment)
    except subprocess.TimeoutExpired:
        return {"right": False, "wall_s": round(time.monotonic() - start, 1), "fail": "time-out"}
    wall = round(time.monotonic() - start, 2)
    try:
        found = json.loads(run.stdout)
    except json.JSONDecodeError:
        fail = f"exit {run.returncode}: {run.stderr[-200:]}"
        return {"right": False, "wall_s": wall, "fail": fail}
    records = archived(folder / "archive.sqlite")
    families = sorted({record["family"] for record in records if record.get("family")})
    row = {"wall_s": wall, "families": families, "candidates": len(records)}
    error = found.get("error")
    if isinstance(error, dict):  # of an outcome it is a number
        fail = ": ".join(filter(None, [error.get("code"), (error.get("found") or "")[:300]]))
        return {**row, "right": False, "fail": fail}
    timeline = found.get("timeline") or []
    regions = found.get("regions") or []
    return {
        **row,
        "right": bool(found.get("proven")),
        "candidates": found["candidates"],
        "refused": found["refused"],
        "regions": [
            {"label": one["label"], "times": one["times"], "us": one["best_us"]} for one in regions
        ],
        "search_us": found["best_us"],
        "reference": found["reference"],
        "reference_us": found["reference_us"],
        "error": found["error"],
        "bound": found["bound"],
        "bound_us": found["bound_us"],
        "seconds": judged_apart(seconds_of(timeline), records),
        "timeline": timeline,
        "schedule": found["schedule"],
        "fail": None if found.get("proven") else "not proven",
    }


def beside_peers(options, task, folder, place, seconds):
    """The other half, timed in a process of its own; once more without compile where that took
    all the time."""
    command = [sys.executable, str(PEERS), str(module_of(options.kernelbench, task["task"]))]
    command += [str(folder / "bundle"), "--track", options.track]
    deadline = time.monotonic() + seconds
    for flags in ([], ["--no-compile"]):
        left = max(20.0, deadline - time.monotonic())
        timeout = min(left, 240.0) if not flags else left
        try:
            run = place.run(command + flags, timeout)
        except subprocess.TimeoutExpired:
            continue
        lines = run.stdout.strip().splitlines()
        try:
            return json.loads(lines[-1])
        except (IndexError, json.JSONDecodeError):
            return {"peers_fail": f"exit {run.returncode}: {run.stderr[-400:]}"}
    return {"peers_fail": "time-out"}


def fractions(row):
    """What of its bound ours reaches; null where it is faster, since data stays in a cache."""
    us, bound = row.get("ours_us"), row.get("bound_us")
    fraction = round(bound / us, 4) if us and bound else None
    return fraction if fraction is None or fraction <= 1 else None


def measured_row(options, task, place, seconds):
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kernelbench.") as name:
        folder = pathlib.Path(name)
        row = searched(options, task, folder, place, seconds)
        if row["right"]:
            left = seconds - (time.monotonic() - start)
            row |= beside_peers(options, task, folder, place, left)
    row["roofline_fraction"] = fractions(row)
    row["io_bytes"] = task["io_bytes"]
    row["row_s"] = round(time.monotonic() - start, 1)
    head = {"task": task["task"], "level": task["level"], "track": options.track}
    wanted = ("ours_us", "interval_us", "eager_us", "eager_interval_us", "compile_us")
    wanted += ("compile_interval_us", "copy_gbs", "reference", "error", "seconds")
    return {**head, **dict.fromkeys(wanted), **row, "commit": options.commit}


def doctor(options):
    """The card as the program sees it, its rates measured first."""
    run = subprocess.run(
        [options.warploom, "doctor", "--measure", "--json"], capture_output=True, text=True
    )
    found = json.loads(run.stdout)
    caches = [one["detail"] for one in found["findings"] if one["name"] == "cache folder"]
    rates = pathlib.Path(caches[0].split(",")[0]) / "rates" if caches else pathlib.Path("none")
    return found.get("card"), rates


def save(options, head, rows):
    options.out.parent.mkdir(parents=True, exist_ok=True)
    part = options.out.with_suffix(".part")
    text = json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n'
    part.write_text(text + ",\n".join("  " + json.dumps(row) for row in rows) + "\n ]\n}\n")
    part.rename(options.out)


def told(row):
    if row["fail"] or not row["ours_us"]:
        return row["fail"] or row.get("peers_fail")
    peers = ", ".join(
        f"{name} {row[f'{name}_us']:.1f}" for name in ("eager", "compile") if row[f"{name}_us"]
    )
    return f"{row['ours_us']:.1f} us, {peers}; {row['candidates']} candidates"


class Board:
    """Rows that are measured and those that are to be, for as many workers as there are GPUs."""

    def __init__(self, options):
        self.options = options
        self.deadline = time.monotonic() + options.limit
        self.lock = threading.Lock()
        self.took = []
        self.failed = 0
        self.head, self.rates = self.described()
        stored = json.loads(options.out.read_text()) if options.out.exists() else {"rows": []}
        self.rows = {(row["track"], row["task"]): row for row in stored["rows"]}
        self.open = [task for task in self.ordered() if self.wanted(task)]

    def ordered(self):
        return order_of(tasks_of(self.options.tasks), self.options.track, self.options.seed)

    def wanted(self, task):
        known = (self.options.track, task["task"]) in self.rows
        return self.options.only in task["task"] and (self.options.again or not known)

    def described(self):
        options = self.options
        card, rates = doctor(options)
        versions = subprocess.run([sys.executable, str(PEERS), "--versions"], capture_output=True)
        head = {
            "device": gpu.query("name"),
            "driver": gpu.query("driver_version"),
            "card": card,
            **json.loads(versions.stdout or "{}"),
            "kernelbench": options.kernelbench_commit,
            "commit": options.commit,
            "budget_s": options.budget,
            "seed": options.seed,
            "tasks": {
                track: len(order_of(tasks_of(options.tasks), track, options.seed))
                for track in ("fp32", "tf32")
            },
        }
        return head, rates

    def next_task(self):
        """The next task and the seconds it may take; None where no time is left for one."""
        with self.lock:
            left = self.deadline - time.monotonic()
            if not self.open or left < max(self.took, default=FIRST_ROW_SECONDS):
                return None
            return self.open.pop(0), left

    def keep(self, row):
        with self.lock:
            self.took.append(row["row_s"])
            self.failed += bool(row["fail"] or row.get("peers_fail"))
            self.rows[row["track"], row["task"]] = row
            save(self.options, self.head, list(self.rows.values()))
            print(f"{row['task']:<60} {told(row)}", flush=True)

    def work(self, place):
        while (given := self.next_task()) is not None:
            task, left = given
            self.keep(measured_row(self.options, task, place, left - 5))

    def measure(self):
        count = self.options.gpus
        places = [Place(index, count, self.rates) for index in range(count)]
        workers = [threading.Thread(target=self.work, args=(place,)) for place in places]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        track = self.options.track
        done = sum(known == track for known, _ in self.rows)
        print(f"{done} of {self.head['tasks'][track]} rows of the {track} board")
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--warploom", required=True)
    parser.add_argument("--tasks", type=pathlib.Path, required=True)
    parser.add_argument("--kernelbench", type=pathlib.Path, required=True)
    parser.add_argument("--kernelbench-commit", required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--track", default="fp32", choices=("fp32", "tf32"))
    parser.add_argument("--budget", type=float, default=20)
    parser.add_argument("--limit", type=float, default=3600, help="seconds of the whole call")
    parser.add_argument("--gpus", type=int, default=1, help="rows at a time, each on its own GPU")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    options.commit = options.commit or gpu.commit()
    options.out = options.out or gpu.results() / "kernelbench_cold.json"
    return Board(options).measure()


if __name__ == "__main__":
    sys.exit(main())
