#!/usr/bin/env python3
"""Measures the CPU target on this machine and writes bench/results/<cpu>/cpu.json.
Usage: bench/cpu/measure.py [--budget 30s]


Every case is a search of its own by the executable, which times the candidate and oneDNN
alternately in one run. Convolutions are timed again in turns with oneDNN's (convolution.cpp, which
takes libdnnl-dev). A naive loop nest and the rate of a plain copy, best of several, are measured
before and after (floor.c); the better of the two counts."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [  # name, example or expression, floating-point operations, bytes
    ("gemm_fp32_1024x1024x1024", "matmul_fp32_1024", 2 * 1024**3, 12 * 1024**2),
    (
        "gemm_bias_gelu_fp32_512x768x1024",
        "matmul_bias_gelu",
        2 * 512 * 768 * 1024,
        4 * (512 * 1024 + 1024 * 768 + 512 * 768),
    ),
    ("softmax_fp32_4096x65536", "softmax_fp32_4096x65536", 0, 8 * 4096 * 65536),
    # A gigabyte or more: larger than any cache.
    (
        "layernorm_fp32_65536x4096",
        "layernormalization(x[65536,4096], g[4096], b[4096])",
        0,
        8 * 65536 * 4096,
    ),
    (
        "maxpool_3x3_s2_fp32",
        "maxpool(x[320,64,112,112], kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1])",
        0,
        5 * 320 * 64 * 112 * 112,
    ),
    (
        "maxpool_2x2_s2_fp32",
        "maxpool(x[320,64,112,112], kernel_shape=[2,2], strides=[2,2])",
        0,
        5 * 320 * 64 * 112 * 112,
    ),
    (
        "averagepool_3x3_s1_fp32",
        "averagepool(x[640,64,56,56], kernel_shape=[3,3], pads=[1,1,1,1])",
        0,
        8 * 640 * 64 * 56 * 56,
    ),
    ("gelu_bias_fp32_65536x4096", "gelu(add(x[65536,4096], b[4096]))", 0, 8 * 65536 * 4096),
    ("transpose_fp32_16384x16384", "transpose(x[16384,16384])", 0, 8 * 16384 * 16384),
]
CONVOLUTIONS = [  # name, N CI H W CO K stride pad relu pool
    ("conv_3x3_64_56", (8, 64, 56, 56, 64, 3, 1, 1, 0, 0)),
    ("conv_3x3_128_28", (8, 128, 28, 28, 128, 3, 1, 1, 0, 0)),
    ("conv_3x3_512_7", (8, 512, 7, 7, 512, 3, 1, 1, 0, 0)),
    ("conv_relu_maxpool", (8, 16, 56, 56, 32, 3, 1, 1, 1, 2)),
    ("conv_relu_maxpool_64", (8, 64, 56, 56, 64, 3, 1, 1, 1, 2)),
]


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def convolution_case(name, shape):
    n, ci, h, w, co, k, stride, pad, relu, pool = shape
    p, q = ((size + 2 * pad - k) // stride + 1 for size in (h, w))
    text = f"conv(x[{n},{ci},{h},{w}], w[{co},{ci},{k},{k}], b[{co}], "
    text += f"strides=[{stride},{stride}], pads=[{pad},{pad},{pad},{pad}])"
    text = f"relu({text})" if relu else text
    text = (
        f"maxpool({text}, kernel_shape=[{pool},{pool}], strides=[{pool},{pool}])" if pool else text
    )
    out = n * co * p * q
    return (
        name,
        text,
        2 * out * ci * k * k,
        4 * (n * ci * h * w + co * ci * k * k + out // max(1, pool * pool)),
    )


def cpu_name():
    return (
        re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())
        .group(1)
        .strip()
    )


def folder_of(name):
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--budget", default="30s")
    flags.add_argument(
        "--program", default="./run", help="the built executable, where it is not built here"
    )
    given = flags.parse_args()
    budget, program = given.budget, given.program
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        floor = pathlib.Path(folder) / "floor"
        run("gcc", "-O3", "-march=native", ROOT / "bench/cpu/floor.c", "-o", floor, "-lpthread")
        floors = [run(floor, "1024", "1024", str(threads)).split()]
        rows = []
        peer = pathlib.Path(folder) / "convolution"
        run("g++", "-std=c++17", "-O2", ROOT / "bench/cpu/convolution.cpp", "-o", peer, "-ldnnl")
        for case, what, flops, moved in CASES + [
            convolution_case(name, shape) for name, shape in CONVOLUTIONS
        ]:
            model = f"examples/{what}.textproto"
            if "(" in what:
                model = f"{folder}/{case}.onnx"
                run(program, "new", what, "--out", model)
            found = json.loads(
                run(
                    program,
                    "optimize",
                    model,
                    "--target",
                    "cpu",
                    "--budget",
                    budget,
                    "--json",
                    "--no-resume",
                    "--out",
                    f"{folder}/{case}",
                )
            )
            peers = (
                {
                    found["reference"]: {
                        "us": found["reference_us"],
                        "error": found["reference_error"],
                    }
                }
                if found["reference_us"]
                else {}
            )
            us, interval = found["best_us"], found["best_interval_us"]
            shape = dict(CONVOLUTIONS).get(case)
            if shape:  # in turns: theirs, ours, theirs, ours
                turns = [
                    (
                        float(run(peer, *map(str, shape))),
                        json.loads(
                            run(program, "bench", f"{folder}/{case}", "--time", "1s", "--json")
                        ),
                    )
                    for _ in range(3)
                ]
                theirs = sorted(turn[0] for turn in turns)[1]
                ours = sorted((turn[1] for turn in turns), key=lambda one: one["median_us"])[1]
                us, interval = ours["median_us"], [ours["low_us"], ours["high_us"]]
                peers = {"oneDNN 2.6.3": {"us": theirs, "error": None}}
            best = next(iter(peers), None)
            rows.append(
                {
                    "case": case,
                    "dtype": "fp32",
                    "track": found["track"],
                    "ours_us": us,
                    "interval_us": interval,
                    "peers": peers,
                    "best_peer": best,
                    "ratio": peers[best]["us"] / us if best else None,
                    "tflops": flops / us * 1e-6,
                    "gbs": moved / us * 1e-3,
                    "roofline_fraction": found["roofline_fraction"] * found["best_us"] / us,
                    "error": found["error"],
                    "workspace_bytes": 0,
                    "prepare_us": 0,
                    "candidates": found["candidates"],
                    "search_seconds": found["seconds"],
                    "schedule": found["schedule"],
                }
            )
            print(f"{case}: {us:.1f} us, {peers}", file=sys.stderr)
        floors.append(run(floor, "1024", "1024", str(threads)).split())
    naive_us = min(float(f[0]) for f in floors) * 1e6
    copy_gbs, huge_gbs = (max(float(f[i]) for f in floors) * 1e-9 for i in (1, 2))
    rows[0]["peers"]["naive"] = {"us": naive_us, "error": None}
    for row in rows:
        if row["tflops"] == 0:
            row |= {
                "of_copy_rate": row["gbs"] / copy_gbs,
                "of_copy_rate_on_huge_pages": row["gbs"] / huge_gbs,
            }
    name = cpu_name()
    result = {
        "device": f"{name}, {threads} cores",
        "driver": "",
        "cuda": "",
        "peers": {"naive": "gcc -O3 -march=native"},
        "commit": run("git", "rev-parse", "HEAD").strip(),
        "command": f"bench/cpu/measure.py --budget {budget}",
        "copy_gbs": copy_gbs,
        "copy_gbs_on_huge_pages": huge_gbs,
        "rows": rows,
    }
    folder = ROOT / "bench/results" / folder_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
