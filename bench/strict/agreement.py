#!/usr/bin/env python3
"""Whether the strict judge's times are those of a plain benchmark of the same calls.

    bench/strict/agreement.py [PROGRAM] [--rounds 3] [--out FILE]

Each kernel is verified as foreign text (`warploom verify`, one call at a time in a cell), and timed
by outside.cpp, which copies its inputs and fills its outputs in the same way and calls it in its
own process. Both take turns, --rounds times; the ratio is of the medians of each round. Kernels of
one block run on one thread, the others on all cores.

A time that the judge says is a bound must be one. Exits with 1 where a kernel of 200 us or more is
off by more than 3 %, or one of 20 us or more by more than 10 %, in the median of the rounds.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

MATMUL = """
extern "C" void k(void* const* b, long long block, void*) {
  auto* x = static_cast<const float*>(b[0]);
  auto* w = static_cast<const float*>(b[1]);
  auto* y = static_cast<float*>(b[2]);
  constexpr int N = %(n)d;
  const int first = static_cast<int>(block) * N / %(blocks)d;
  for (int i = first; i < first + N / %(blocks)d; ++i) {
    float row[N] = {};
    for (int k = 0; k < N; ++k)
      for (int j = 0; j < N; ++j) row[j] += x[i * N + k] * w[k * N + j];
    for (int j = 0; j < N; ++j) y[i * N + j] = row[j];
  }
}
"""
RELU = """
extern "C" void k(void* const* b, long long block, void*) {
  auto* x = static_cast<const float*>(b[0]);
  auto* y = static_cast<float*>(b[1]);
  constexpr long long N = %(n)d;
  const long long first = block * N / %(blocks)d;
  for (long long i = first; i < first + N / %(blocks)d; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
"""
SOFTMAX = """
#include <cmath>
extern "C" void k(void* const* b, long long block, void*) {
  constexpr int N = 512;
  const long long first = block * %(n)d / %(blocks)d;
  for (long long row = first; row < first + %(n)d / %(blocks)d; ++row) {
    auto* x = static_cast<const float*>(b[0]) + row * N;
    auto* y = static_cast<float*>(b[1]) + row * N;
    float most = x[0];
    for (int j = 1; j < N; ++j) most = x[j] > most ? x[j] : most;
    float sums[8] = {};
    for (int j = 0; j < N; ++j) { y[j] = std::exp(x[j] - most); sums[j %% 8] += y[j]; }
    float sum = 0;
    for (float one : sums) sum += one;
    for (int j = 0; j < N; ++j) y[j] /= sum;
  }
}
"""


def cases():
    """(name, text, problem, blocks, [argument])"""
    for blocks in (1, 16):
        for n in (64, 128, 256, 384):
            text = MATMUL % {"n": n, "blocks": blocks}
            yield (
                f"matmul {n}, {blocks} blocks",
                text,
                f"matmul(x[{n},{n}], w[{n},{n}])",
                blocks,
                [f"in:{4 * n * n}", f"in:{4 * n * n}", f"out:{4 * n * n}"],
                "x,w,y",
            )
        for n in (1 << 18, 1 << 20, 1 << 22):
            text = RELU % {"n": n, "blocks": blocks}
            arguments = [f"in:{4 * n}", f"out:{4 * n}"]
            yield f"relu {n}, {blocks} blocks", text, f"relu(x[{n}])", blocks, arguments, "x,y"
        for n in (64, 512):
            text = SOFTMAX % {"n": n, "blocks": blocks}
            arguments = [f"in:{2048 * n}", f"out:{2048 * n}"]
            name = f"softmax {n} rows, {blocks} blocks"
            yield name, text, f"softmax(x[{n},512])", blocks, arguments, "x,y"


def run(command, **more):
    ran = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def judged(program, text, model):
    said = json.loads(run([program, "verify", text, "--problem", model, "--json"]))
    return said["median_us"], said.get("time_is_bound", False)


def record_of(rows, options):
    """What is stored: the rows, and where and of what they were taken."""
    commit = options.commit or run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"])
    model = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "commit": commit.strip(),
        "machine": model.group(1) if model else None,
        "cores": len(os.sched_getaffinity(0)),
        "rounds": options.rounds,
        "kernels": rows,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/release/warploom"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blocks", type=int, help="only kernels of so many blocks")
    parser.add_argument("--out")
    parser.add_argument("--commit", help="that PROGRAM is of, where git does not know")
    options = parser.parse_args()
    compiler = os.environ.get("CXX", "g++").split()
    flags = "-O3 -march=native -mprefer-vector-width=512 -std=c++20 -fno-math-errno"
    flags += " -ffp-contract=fast"
    rows, missed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        outside = folder / "outside"
        headers = [f"-I{ROOT / 'device'}", "-pthread"]
        run([*compiler, "-O2", "-std=c++20", str(HERE / "outside.cpp"), *headers, "-o", outside])
        for number, (name, text, problem, blocks, arguments, names) in enumerate(cases()):
            if options.blocks not in (None, blocks):
                continue
            source = folder / f"k{number}.cpp"
            source.write_text(f"// warploom: kernel k grid={blocks} args={names}\n{text}")
            image = folder / f"k{number}.so"
            run([*compiler, *flags.split(), "-shared", "-fPIC", source, "-o", image])
            model = folder / f"k{number}.onnx"
            run([options.program, "new", problem, "--out", model])
            pairs = []
            for _ in range(options.rounds):
                inside, bound = judged(options.program, source, model)
                times = json.loads(run([outside, image, "k", str(blocks), "0", "60", *arguments]))
                pairs.append((inside, statistics.median(times), bound))
            ratio = statistics.median(inside / plain for inside, plain, _ in pairs)
            plain = statistics.median(plain for _, plain, _ in pairs)
            bound = any(one for _, _, one in pairs)
            allowed = 1.03 if plain >= 200 else 1.10 if plain >= 20 else None
            fits = ratio >= 1 / 1.03 if bound or not allowed else 1 / allowed <= ratio <= allowed
            missed += not fits
            rows.append(
                {
                    "kernel": name,
                    "blocks": blocks,
                    "outside_us": plain,
                    "ratio": ratio,
                    "ratios": [inside / outer for inside, outer, _ in pairs],
                    "bound": bound,
                    "within": fits,
                }
            )
            word = "at most" if bound else "is"
            print(
                f"{name:28} outside {plain:9.1f} us, judge {word} {ratio:6.3f} of it"
                f"{'' if fits else '   MISSED'}",
                flush=True,
            )
    print(f"{len(rows) - missed} of {len(rows)} within what they should be")
    if options.out:
        record = record_of(rows, options)
        pathlib.Path(options.out).write_text(json.dumps(record, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
