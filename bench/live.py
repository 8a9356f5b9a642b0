#!/usr/bin/env python3
"""Searches six problems by every strategy on this machine and keeps each one's winner, in
resumable parts.

  live.py WARPLOOM OUT [--seconds 110] [--budget 10s] [--under COMMAND]

Each search is cold: its caches and its archive are empty. It has its budget for all of it, the
bundle's check included. Strategies that take actions go by the learned policy. A problem's
strategies follow each other, so that a machine that changes changes for all of them; the reference
is timed in turns with each winner. Problems are none of those of bench/policy or bench/closed. A
row that is there is not searched again, and no search is begun that would not end within
--seconds. --under: what each search is started by. --commit: of which the program is; default: the
tree's.
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import time

PROBLEMS = {
    "matmul": "matmul(x[384,640], w[640,512])",
    "matmul_gelu": "gelu(matmul(x[320,384], w[384,768]) + b[768])",
    "convolution": "relu(conv(x[2,48,26,26], w[64,48,3,3], b[64], pads=1))",
    "softmax": "softmax(x[700,1100])",
    "layernorm": "layernorm(x[900,800], g[800], b[800])",
    "transpose": "transpose(x[900,1300])",
}
STRATEGIES = [
    ("enumerate", None),
    ("random", None),
    ("beam", None),
    ("lfbo", None),
    ("linear", "learned"),
    ("branch", "learned"),
    ("tree", "learned"),
    ("evolution", "learned"),
]
FIGURES = ["best_us", "best_low_us", "best_high_us", "reference", "reference_us", "speedup",
           "speedup_interval", "candidates", "refused", "proven", "seconds", "schedule", "device",
           "machine"]
LONGER = 1.5  # times its budget, that a search is given at the most


def searched(options, problem, strategy, policy):
    """One search's record."""
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/{problem}.onnx"
        caches = os.environ | {"XDG_CACHE_HOME": f"{folder}/cache"}
        new = [options.warploom, "new", PROBLEMS[problem], "--out", model]
        subprocess.run(new, check=True, stdout=subprocess.DEVNULL, env=caches)
        line = [*shlex.split(options.under), options.warploom, "optimize", model, "--target", "cpu",
                "--budget", options.budget, "--strategy", strategy, "--seed", "1", "--quiet",
                "--archive", f"{folder}/archive.sqlite", "--out", f"{folder}/bundle", "--json"]
        if policy:
            line += ["--policy", policy]
        ran = subprocess.run(line, capture_output=True, text=True, env=caches)
        said = json.loads(ran.stdout)
    row = {"problem": problem, "text": PROBLEMS[problem], "strategy": strategy, "policy": policy,
           "status": ran.returncode}
    if "error" in said and ran.returncode != 0:
        return row | {"error": said["error"]}
    return row | {key: said.get(key) for key in FIGURES}


def commit_of(root):
    line = ["git", "-C", str(root), "rev-parse", "HEAD"]
    return subprocess.run(line, capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("warploom", type=os.path.abspath)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=110)
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--under", default="")
    parser.add_argument("--commit", default=commit_of(pathlib.Path(__file__).parent))
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    head = {"commit": options.commit, "budget": options.budget,
            "cold": True, "seed": 1, "command": "bench/live.py WARPLOOM OUT"}
    record = json.loads(options.out.read_text()) if options.out.exists() else head | {"rows": []}
    if record["budget"] != options.budget:
        raise SystemExit(f"{options.out} has searches of {record['budget']}")
    there = {(row["problem"], row["strategy"], row["policy"]) for row in record["rows"]}
    each = LONGER * float(options.budget.removesuffix("s"))
    for problem in PROBLEMS:
        for strategy, policy in STRATEGIES:
            if (problem, strategy, policy) in there:
                continue
            if time.monotonic() + each > until:
                print(f"{len(record['rows'])} of {len(PROBLEMS) * len(STRATEGIES)} searches")
                return
            record["rows"].append(searched(options, problem, strategy, policy))
            options.out.write_text(json.dumps(record, indent=1) + "\n")
    print("all searches are there")


main()
