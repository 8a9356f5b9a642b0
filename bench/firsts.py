#!/usr/bin/env python3
"""How good are the first candidates that a search tries?

    python3 bench/firsts.py measure --warploom build/portable/warploom [--out FILE] [--limit 540]
    python3 bench/firsts.py report [--out FILE]

`measure` searches 12 matrix products, 6 convolutions, 6 row-wise operators and 6 loops on the GPU
that is here, each from an empty archive, for --budget seconds. A search tries first what it
predicts to be fastest; the best of its first 8 and 16 candidates, refused ones among them, is
compared with the best that is known: of all candidates of this search and of those before it. Cases
that FILE (default: firsts.json of the card's results) has are not searched again, unless --again,
which keeps the best known. `report` prints the table and the gates of each group; exit status 1: a
gate is missed, or a case has no row."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import cases
import gpu
import kernelbench
import search

FIRST = (8, 16)
# A group's gates: the best known time over that of the best of the first 8, and 16.
GATES = {"gemm": (0.96, 0.98), "conv": (0.90, 0.95), "rowwise": (0.90, 0.95), "loops": (0.90, 0.95)}
GROUPS = {
    "gemm": (
        "gemm_bf16_4096x4096x4096 gemm_bf16_2048x2048x2048 gemm_bf16_8192x1024x8192 "
        "gemm_bf16_512x512x32768 gemm_fp16_4096x14336x4096 gemm_bf16_1x4096x4096 "
        "gemm_bf16_16x14336x4096 gemm_bf16_128x4096x14336 gemm_tf32_4096x4096x4096 "
        "gemm_fp32_4096x4096x4096 gemm_bf16_2049x3073x4097 gemm_e4m3_4096x4096x4096_nt"
    ),
    "conv": (
        "conv2d_11x11_tf32 conv2d_3x3_fp32 conv2d_3x3_tf32 conv2d_3x3_bf16 "
        "conv2d_3x3_256x14_bf16 conv_transposed_4x4_bf16"
    ),
    "rowwise": (
        "softmax_fp32_4096x8192 softmax_bf16_16384x4096 layernorm_16384x4096_fp32 "
        "rmsnorm_4096x8192_bf16 sum_16384x4096_fp32 argmax_4096x8192_fp32"
    ),
    "loops": (
        "gelu_chain_fp32 batchnorm_relu_fp32 maxpool_3x3_fp32 transpose_fp32 sum_of_columns_fp32 "
        "cumsum_of_lines_down_1048576x64_fp32"
    ),
}
GROUP_OF = {case: group for group, names in GROUPS.items() for case in names.split()}


def time_of(record):
    """A candidate's time as it was first measured: finalists are measured again."""
    if record.get("error_code"):
        return None
    return record.get("screened_us") or record.get("median_us")


def searched(options, row, text):
    with tempfile.TemporaryDirectory(prefix="firsts.") as name:
        folder = pathlib.Path(name)
        source = folder / f"{row['case']}.textproto"
        search.write(options, source, row, text)
        command = [options.warploom, "optimize", str(source), "--budget", f"{options.budget}s"]
        command += ["--strategy", "beam", "--track", row["track"], "--json"]
        command += ["--archive", str(folder / "archive.sqlite"), "--out", str(folder / "out")]
        subprocess.run(command, capture_output=True, text=True)
        return kernelbench.archived(folder / "archive.sqlite")


def best_of(times):
    return min((us for us in times if us), default=None)


def measured(row, records, before):
    times = [time_of(record) for record in records]
    best = best_of([*times, (before or {}).get("best_us")])
    at_best = next((r["schedule"] for r, us in zip(records, times) if us == best), None)
    out = {
        "case": row["case"],
        "group": GROUP_OF[row["case"]],
        "track": row["track"],
        "candidates": len(records),
        "right": sum(us is not None for us in times),
        "best_us": best,
        "schedule": at_best or (before or {}).get("schedule"),
    }
    for count in FIRST:
        us = best_of(times[:count])
        out[f"best_of_{count}"] = us
        out[f"reached_{count}"] = round(best / us, 4) if us and best else None
    return out


def measure(options):
    deadline = time.monotonic() + options.limit
    stored = json.loads(options.out.read_text()) if options.out.exists() else {"rows": []}
    rows = {row["case"]: row for row in stored["rows"]}
    for row, text in cases.CASES:
        case = row["case"]
        known = case in rows and not options.again
        if case not in GROUP_OF or options.only not in case or known:
            continue
        if deadline - time.monotonic() < 2 * options.budget + 10:
            break
        rows[case] = measured(row, searched(options, row, text), rows.get(case))
        rows[case]["commit"] = options.commit
        print(rows[case], flush=True)
        head = {"device": gpu.query("name"), "budget_s": options.budget, "commit": options.commit}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({**head, "rows": list(rows.values())}, indent=1) + "\n")
    return report(options)


def report(options):
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    missed = len(GROUP_OF) - len(rows)
    for group, gates in GATES.items():
        of_group = [row for row in rows if row["group"] == group]
        for row in of_group:
            print(f"{row['case']:<40} {row['candidates']:>4} candidates", end="")
            for count in FIRST:
                print(f"  first {count}: {row[f'reached_{count}'] or math.nan:.3f}", end="")
            print(f"  best {row['best_us'] or math.nan:.1f} us")
        for count, gate in zip(FIRST, gates):
            reached = [row[f"reached_{count}"] or 0 for row in of_group]
            if not reached:
                continue
            fine = sum(value >= gate for value in reached)
            missed += fine < len(reached)
            print(
                f"{group}, first {count}: least {min(reached):.3f}, median "
                f"{statistics.median(reached):.3f}, {fine} of {len(reached)} reach {gate:g}"
            )
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("measure")
    verb.add_argument("--warploom", required=True)
    verb.add_argument("--budget", type=float, default=40)
    verb.add_argument("--limit", type=float, default=3600, help="seconds of the whole call")
    verb.add_argument("--only", default="")
    verb.add_argument("--again", action="store_true")
    verb.add_argument("--commit", default="")
    verb.add_argument("--out", type=pathlib.Path)
    verb = verbs.add_parser("report")
    verb.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    options.out = options.out or gpu.results() / "firsts.json"
    if options.verb == "report":
        return report(options)
    options.commit = options.commit or gpu.commit()
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
