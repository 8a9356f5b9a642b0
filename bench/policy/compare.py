#!/usr/bin/env python3
"""Trains the shipped policy and compares policies on recorded problems that were held out.
Usage: compare.py WARPLOOM [--seeds N] [--keep]

Writes resources/policy/weights.json, unless --keep: then those that are there are compared; and
bench/results/policy/compared.json:

  trained   from what, and how long
  course    the training, a point a round
  shapes    {rows, summary}: problems of shapes that were not trained on
  families  by family the same, of its problems alone, by a policy that was trained without them
  seeds     by training seed the summary of `shapes`, to see how much is chance

A row is a policy on a problem: tries until a plan has 0.95 and 0.98 of the best recorded speed,
medians over seeds with 95 % intervals, and the best among the first 16 and 64.
"""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
OUTCOMES = HERE / "outcomes.gz"
WEIGHTS = ROOT / "resources" / "policy" / "weights.json"
COMPARED = ROOT / "bench" / "results" / "policy" / "compared.json"
FAMILIES = ["matmul_cpu", "conv_cpu", "cpu_rowwise", "direct"]
TRAINING_SEEDS = [2, 3]


def train(warploom, *words):
    line = [warploom, "train", "--from", str(OUTCOMES), *map(str, words), "--json"]
    said = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    for key in ("rows", "summary"):  # of what is trained alone
        said[key] = [row for row in said[key] if row["policy"] != "shipped"]
    return said


def summed_up(rows):
    """As `warploom train` does it (src/search/policy/compare.cpp), of some of its rows."""
    out = []
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]

        def mean(key):
            return math.exp(sum(math.log1p(row[key]["median"]) for row in own) / len(own)) - 1

        best = sum(row["best_at_16"] for row in own) / len(own)
        out.append({"policy": policy, "problems": len(own), "to_095": mean("to_095"),
                    "to_098": mean("to_098"), "best_at_16": best})
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("warploom")
    parser.add_argument("--seeds", default="20")
    parser.add_argument("--keep", action="store_true")
    flags = parser.parse_args()
    seeds = ["--seeds", flags.seeds]
    with tempfile.TemporaryDirectory() as folder:
        course = pathlib.Path(folder) / "course.json"
        if flags.keep:
            shapes = train(flags.warploom, "--weights", WEIGHTS, *seeds)
            shapes["trained"] = json.loads(WEIGHTS.read_text())["trained"]
        else:
            words = ["--out", WEIGHTS, "--curve", course, *seeds]
            shapes = train(flags.warploom, *words)
        out = {"trained": shapes["trained"],
               "shapes": {"summary": shapes["summary"], "rows": shapes["rows"]},
               "families": {}, "seeds": {}}
        if course.exists():
            out["course"] = json.loads(course.read_text())["curve"]
    for family in FAMILIES:
        all_rows = train(flags.warploom, "--without", family, *seeds)["rows"]
        rows = [row for row in all_rows if row["family"] == family]
        out["families"][family] = {"summary": summed_up(rows), "rows": rows}
    for seed in TRAINING_SEEDS:
        out["seeds"][seed] = train(flags.warploom, "--seed", seed, *seeds)["summary"]
    COMPARED.parent.mkdir(exist_ok=True)
    COMPARED.write_text(json.dumps(out, indent=1) + "\n")


main()
