#!/usr/bin/env python3
"""Whether the strict judge's times are those of a plain benchmark of the same calls.

    bench/strict/agreement.py [--program build/release/bench_strict] [--pairs 61] [--out FILE]

For each kernel beside.cpp makes strict calls (in a cell, as `warploom verify` times foreign text)
and plain ones (in one process, on threads of its own) in turns, with the same refill of inputs and
outputs. The ratio is of their medians; its interval comes of resampling the pairs. Kernels of one
block run on one thread, the others on all cores.

Below 20 us, and where what is taken off a strict call is doubtful by more than is allowed here, the
judge says a bound, which must be one. Exits with 1 where another kernel of 200 us or more is off by
more than 3 %, or one of 20 us or more by more than 10 %.
"""

import argparse
import json
import os
import pathlib
import random
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
    """(name, text, blocks, [argument])"""
    for blocks in (1, 16):
        for n in (64, 128, 256, 384):
            text = MATMUL % {"n": n, "blocks": blocks}
            square = n * n
            arguments = [f"in:{square}", f"in:{square}", f"out:{square}"]
            yield f"matmul {n}, {blocks} blocks", text, blocks, arguments
        for n in (1 << 18, 1 << 20, 1 << 22):
            text = RELU % {"n": n, "blocks": blocks}
            yield f"relu {n}, {blocks} blocks", text, blocks, [f"in:{n}", f"out:{n}"]
        for n in (64, 512):
            text = SOFTMAX % {"n": n, "blocks": blocks}
            arguments = [f"in:{512 * n}", f"out:{512 * n}"]
            yield f"softmax {n} rows, {blocks} blocks", text, blocks, arguments


def run(command, **more):
    ran = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def interval_of(strict, plain):
    """Of the ratio of the medians, 95 %, by drawing pairs again."""
    drawn = random.Random(1)
    ratios = []
    for _ in range(1000):
        places = [drawn.randrange(len(strict)) for _ in strict]
        above = statistics.median(strict[i] for i in places)
        ratios.append(above / statistics.median(plain[i] for i in places))
    ratios.sort()
    return [ratios[25], ratios[974]]


def judged(name, said):
    """The row of a kernel: what the judge would say of it, as is_only_bounded() decides."""
    plain = statistics.median(said["plain_us"])
    strict = said["strict_us"]
    median = statistics.median(strict)
    allowed = 0.03 if median >= 200 else 0.10
    bound = median < 20 or said["doubt_us"] > allowed * median
    if bound:
        strict = [us + said["overhead_us"] for us in strict]
    ratio = statistics.median(strict) / plain
    if bound:
        fits = ratio >= 1 / 1.03
    else:
        fits = 1 / (1 + allowed) <= ratio <= 1 + allowed
    return {
        "kernel": name,
        "plain_us": plain,
        "ratio": ratio,
        "interval": interval_of(strict, said["plain_us"]),
        "overhead_us": said["overhead_us"],
        "overhead_spread_us": said["overhead_spread_us"],
        "doubt_us": said["doubt_us"],
        "bound": bound,
        "within": fits,
    }


def record_of(rows, options):
    """What is stored: the rows, and where and of what they were taken."""
    commit = options.commit or run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"])
    model = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "commit": commit.strip(),
        "machine": model.group(1) if model else None,
        "cores": len(os.sched_getaffinity(0)),
        "pairs": options.pairs,
        "kernels": rows,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build/release/bench_strict"))
    parser.add_argument("--pairs", type=int, default=61)
    parser.add_argument("--blocks", type=int, help="only kernels of so many blocks")
    parser.add_argument("--out")
    parser.add_argument("--commit", help="that PROGRAM is of, where git does not know")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "kernel.cpp"
        for name, text, blocks, arguments in cases():
            if options.blocks not in (None, blocks):
                continue
            source.write_text(text)
            command = [options.program, source, "k", str(blocks), str(options.pairs), *arguments]
            row = judged(name, json.loads(run(command)))
            rows.append(row)
            word = "at most" if row["bound"] else "is"
            low, high = row["interval"]
            print(
                f"{name:28} plain {row['plain_us']:9.1f} us, judge {word} {row['ratio']:6.3f} of "
                f"it ({low:.3f} to {high:.3f}){'' if row['within'] else '   MISSED'}",
                flush=True,
            )
    missed = sum(not row["within"] for row in rows)
    print(f"{len(rows) - missed} of {len(rows)} within what they should be")
    if options.out:
        record = record_of(rows, options)
        pathlib.Path(options.out).write_text(json.dumps(record, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
