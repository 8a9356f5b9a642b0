#!/usr/bin/env python3
"""Measures the compiler's own steps on one core and writes bench/results/<cpu>/compiler.json.
Usage: measure.py [--samples 25]


Also counts the lines of the example programs, blank ones and comments left out, beside the counts
that were published for the same kernels in Hexcute and CUTLASS (Hexcute, arXiv 2504.16214, on lines
of code)."""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
BARS = {  # milliseconds that a case should not exceed
    "synthesis of gemm.tile for sm_90a": 50,
    "synthesis of gemm_mma.tile for sm_80": 50,
    "synthesis of attention.tile for sm_80": 500,
    "synthesis of attention_wgmma.tile for sm_90a": 500,
    "gemm.tile through NVRTC": 1000,
    "gemm.tile through NVRTC, from the cache": 20,
    "gemm compiled for the emulator": 500,
    "emulated k step of a tile 128x128x64, hazard rules on": 1,
    "emulated gemm 1024x1024x1024, hazard rules on": 1000,
}
PROGRAMS = [  # kernel, example, lines in Hexcute and CUTLASS
    ("GEMM", "gemm_mma.tile", 98, 703),
    ("warp-specialised GEMM", "gemm.tile", 169, 1024),
    ("FP8 block-scaled GEMM", "gemm_fp8.tile", 180, 900),
]


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def interval(values, resamples=1000):
    """95 % bootstrap interval of the median."""
    rng = random.Random(1)
    medians = sorted(
        statistics.median(rng.choices(values, k=len(values))) for _ in range(resamples)
    )
    return [medians[int(0.025 * resamples)], medians[int(0.975 * resamples)]]


def lines_of(example):
    text = (ROOT / "examples/tile" / example).read_text()
    return sum(
        1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    )


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--samples", type=int, default=25)
    samples = flags.parse_args().samples
    run("ninja", "-C", BUILD, "-j2", "bench_compiler")
    load = os.getloadavg()[0]
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    times = collections.OrderedDict()
    compilers, *taken = map(json.loads, run(BUILD / "bench_compiler", str(samples)).splitlines())
    for sample in taken:
        times.setdefault(sample["case"], []).append(sample)
    rows = []
    for case, of_case in times.items():
        ms = [sample["ms"] for sample in of_case]
        rows.append(
            {
                "case": case,
                "ms": statistics.median(ms),
                "interval_ms": interval(ms),
                "least_ms": min(ms),
                "cpu_ms": statistics.median(sample["cpu_ms"] for sample in of_case),
                "bar_ms": BARS.get(case),
                "samples": len(ms),
            }
        )
    programs = [
        {
            "kernel": kernel,
            "example": f"examples/tile/{example}",
            "lines": lines_of(example),
            "hexcute": hexcute,
            "cutlass": cutlass,
        }
        for kernel, example, hexcute, cutlass in PROGRAMS
    ]
    name = (
        re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())
        .group(1)
        .strip()
    )
    result = {
        "device": f"{name}, one core",
        "compilers": compilers,
        "load": load,
        "commit": run("git", "rev-parse", "HEAD").strip(),
        "command": f"bench/compiler/measure.py --samples {samples}",
        "rows": rows,
        "programs": programs,
    }
    folder = ROOT / "bench/results" / re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compiler.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
