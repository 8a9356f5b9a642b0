#!/usr/bin/env python3
"""Measures the CPU target on this machine and writes bench/results/<cpu>/cpu.json.  Usage: bench/cpu/measure.py [--budget 30s]

Every case is a search of its own by the executable, which times the candidate and oneDNN alternately in one run. A naive loop nest
and the rate of a plain copy, best of several, are measured before and after (floor.c); the better of the two counts.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [  # name, example, floating-point operations, bytes
    ("gemm_fp32_1024x1024x1024", "matmul_fp32_1024", 2 * 1024**3, 12 * 1024**2),
    ("gemm_bias_gelu_fp32_512x768x1024", "matmul_bias_gelu", 2 * 512 * 768 * 1024, 4 * (512 * 1024 + 1024 * 768 + 512 * 768)),
    ("softmax_fp32_4096x65536", "softmax_fp32_4096x65536", 0, 8 * 4096 * 65536),
]


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def cpu_name():
    return re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text()).group(1).strip()


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--budget", default="30s")
    budget = flags.parse_args().budget
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        floor = pathlib.Path(folder) / "floor"
        run("gcc", "-O3", "-march=native", ROOT / "bench/cpu/floor.c", "-o", floor, "-lpthread")
        floors = [run(floor, "1024", "1024", str(threads)).split()]
        rows = []
        for case, example, flops, moved in CASES:
            found = json.loads(run("./run", "optimize", f"examples/{example}.textproto", "--target", "cpu", "--budget", budget,
                                   "--json", "--no-resume", "--out", f"{folder}/{case}"))
            us = found["best_us"]
            rows.append({"case": case, "dtype": "fp32", "track": found["track"], "ours_us": us,
                         "interval_us": found["best_interval_us"],
                         "peers": {found["reference"]: {"us": found["reference_us"], "error": found["reference_error"]}},
                         "best_peer": found["reference"], "ratio": found["reference_us"] / us, "tflops": flops / us * 1e-6,
                         "gbs": moved / us * 1e-3, "roofline_fraction": found["roofline_fraction"], "error": found["error"],
                         "workspace_bytes": 0, "prepare_us": 0, "candidates": found["candidates"],
                         "search_seconds": found["seconds"], "schedule": found["schedule"]})
        floors.append(run(floor, "1024", "1024", str(threads)).split())
    naive_us = min(float(f[0]) for f in floors) * 1e6
    copy_gbs, huge_gbs = (max(float(f[i]) for f in floors) * 1e-9 for i in (1, 2))
    rows[0]["peers"]["naive"] = {"us": naive_us, "error": None}
    for row in rows:
        if row["tflops"] == 0:
            row |= {"of_copy_rate": row["gbs"] / copy_gbs, "of_copy_rate_on_huge_pages": row["gbs"] / huge_gbs}
    name = cpu_name()
    result = {"device": f"{name}, {threads} cores", "driver": "", "cuda": "", "peers": {"naive": "gcc -O3 -march=native"},
              "commit": run("git", "rev-parse", "HEAD").strip(), "command": f"bench/cpu/measure.py --budget {budget}",
              "copy_gbs": copy_gbs, "copy_gbs_on_huge_pages": huge_gbs, "rows": rows}
    folder = ROOT / "bench/results" / re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
