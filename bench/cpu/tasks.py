#!/usr/bin/env python3
"""Searches KernelBench's tasks, as ONNX files, on the CPU target and judges what comes of it again;
writes bench/results/<cpu>/kernelbench.json.

    bench/cpu/tasks.py --warploom EXE --models FOLDER [--budget 60s] [TASK …]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import measure

TASKS = [
    "level1_40_LayerNorm",
    "level2_76_Gemm_Add_ReLU",
    "level2_63_Gemm_ReLU_Divide",
    "level2_12_Gemm_Multiply_LeakyReLU",
    "level2_29_Matmul_Mish_Mish",
    "level2_99_Matmul_GELU_Softmax",
]


def run(*command):
    return json.loads(
        subprocess.run(
            [str(word) for word in command] + ["--json"], capture_output=True, text=True
        ).stdout
    )


def main():
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--warploom", type=pathlib.Path, required=True)
    flags.add_argument("--models", type=pathlib.Path, required=True)
    flags.add_argument("--budget", default="60s")
    flags.add_argument("tasks", nargs="*", default=TASKS)
    given = flags.parse_args()
    rows = []
    for task in given.tasks:
        with tempfile.TemporaryDirectory() as folder:
            found = run(
                given.warploom,
                "optimize",
                given.models / f"{task}.onnx",
                "--target",
                "cpu",
                "--budget",
                given.budget,
                "--out",
                folder + "/out",
                "--archive",
                folder + "/archive.sqlite",
            )
            if isinstance(found["error"], dict):
                rows.append({"task": task, "verdict": found["error"]["code"]})
            else:
                again = run(given.warploom, "verify", folder + "/out")
                refused = isinstance(again["error"], dict)
                rows.append(
                    {
                        "task": task,
                        "verdict": again["error"]["code"] if refused else "accepted",
                        "us": found["best_us"],
                        "interval_us": found["best_interval_us"],
                        "roofline_fraction": found["roofline_fraction"],
                        "error": found["error"] if refused else again["error"],
                        "track": found["track"],
                        "candidates": found["candidates"],
                        "schedule": found["schedule"],
                    }
                )
        print(rows[-1], file=sys.stderr)
    name = measure.cpu_name()
    result = {
        "device": f"{name}, {len(os.sched_getaffinity(0))} cores",
        "commit": measure.run("git", "rev-parse", "HEAD").strip(),
        "command": f"bench/cpu/tasks.py --models FOLDER --budget {given.budget}",
        "rows": rows,
    }
    folder = measure.ROOT / "bench/results" / measure.folder_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernelbench.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
