"""What bounds the stored plans' kernels: a profile of each by ncu, and the roofline of all rows
that have been measured.

    python3 bench/profiles.py measure --plans bench/plans/h200 --out \
        bench/results/h200/profiles.json [--case NAME …]
        # on the GPU, with ncu
    python3 bench/profiles.py plot --results bench/results/h200 --out docs/roofline.svg

A kernel's row: its time alone with the caches flushed, the share of their peak that the tensor
cores, DRAM, L2, the first level with shared memory and instruction issue reach, warps at work of
those a multiprocessor can hold, and where its warps waited longest: cycles a warp waits for that
reason between two instructions. Exit status 1: a case has no plan or ncu no figures of it; its old
rows stay."""
import argparse
import csv
import io
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import gpu

SHARES = {
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "dram": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "issue": "sm__issue_active.avg.pct_of_peak_sustained_elapsed",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
STALL = re.compile(
    r"smsp__average_warps_issue_stalled_(?!selected|not_selected)(\w+)_per_issue_active\.ratio"
)
MISSES = [
    "softmax_fp32_4096x65536",
    "softmax_fp32_32768x65536",
    "softmax_bf16_32768x65536",
    "layernorm_32768x65536_fp32",
    "layernorm_16384x4096_fp32",
    "layernorm_fp32",
    "conv2d_11x11_fp32",
    "conv2d_relu_maxpool_fp32",
    "conv2d_relu_maxpool_tf32",
    "gemm_e4m3_4096x4096x4096_nt",
    "gemm_e4m3_8192x8192x8192_nt",
    "gemm_e4m3_blocks_8192x8192x8192_nt",
    "gemm_bf16_2049x3073x4097",
    "gemm_bf16_1x14336x4096",
    "gemm_bf16_16x4096x14336",
    "gemm_bf16_128x14336x4096",
    "gemm_bf16_4096x4096x4096",
    "gemm_bf16_8192x8192x8192",
    "gemm_tf32_4096x4096x4096",
]


def rows_of(case, table):
    """The rows of one case from what ncu prints as its raw page."""
    out = []
    for line in list(csv.DictReader(io.StringIO(table[table.index('"ID"') :])))[
        1:
    ]:  # the first names the units
        value = lambda key: float(line.get(key, "0").replace(",", "") or 0)
        stalls = {found[1]: round(value(key), 2) for key in line if (found := STALL.fullmatch(key))}
        out.append(
            {
                "case": case,
                "kernel": line["Kernel Name"],
                "us": round(value("gpu__time_duration.sum") / 1000, 2),
                **{name: round(value(metric), 1) for name, metric in SHARES.items()},
                "stalls": {
                    name: stalls[name] for name in sorted(stalls, key=stalls.get, reverse=True)[:3]
                },
            }
        )
    return out


def save(options, commit, rows):
    head = {"device": options.gpu, "commit": commit, "command": "python3 " + " ".join(sys.argv)}
    options.out.write_text(
        json.dumps(head, indent=1)[:-2]
        + ',\n "rows": [\n'
        + ",\n".join("  " + json.dumps(row) for row in rows)
        + "\n ]\n}\n"
    )


def measure(options):
    stored = json.loads(options.out.read_text()) if options.out.exists() else {"rows": []}
    rows = [{"commit": stored.get("commit") or "unknown", **row} for row in stored["rows"]]
    commit, failed = options.commit or gpu.commit(), 0
    for case in options.case or MISSES:
        path = options.plans / f"{case}.json"
        if not path.exists():
            print(f"{case}: no plan", file=sys.stderr)
            failed += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(path, folder)
            names = "|".join(
                sorted(
                    {kernel["name"] for kernel in json.loads(path.read_text())["plan"]["kernels"]}
                )
            )
            sections = [
                word
                for name in (
                    "SpeedOfLight",
                    "ComputeWorkloadAnalysis",
                    "WarpStateStats",
                    "SchedulerStats",
                    "Occupancy",
                )
                for word in ("--section", name)
            ]
            command = [
                "ncu",
                "--csv",
                "--page",
                "raw",
                "--print-units",
                "base",
                "--clock-control",
                "none",
                "--kernel-name",
                f"regex:^({names})$",
                *sections,
                sys.executable,
                str(pathlib.Path(__file__).parent / "sanitize.py"),
                folder,
            ]
            text = subprocess.run(command, capture_output=True, text=True).stdout
        if '"ID"' not in text:
            print(f"{case}: {text[-300:]}", file=sys.stderr)
            failed += 1
            continue
        rows = [row for row in rows if row["case"] != case] + [
            row | {"commit": commit} for row in rows_of(case, text)
        ]
        print(f"{case}: {rows[-1]}", flush=True)
        save(options, commit, rows)  # after every case: who is stopped keeps what there is
    return 1 if failed else 0


COLOURS = {
    "fp8": "#7b4ba6",
    "bf16": "#1b6ca8",
    "fp16": "#00798c",
    "tf32": "#2e8b57",
    "fp32": "#d1495b",
    "vector": "#3d3d3d",
}


def plot(options):
    """Left: products against the rooflines of their tracks. Right: operators that only move data,
    against the rate of DRAM."""
    stored = [
        json.loads((options.results / f"{group}.json").read_text())
        for group in ("dense", "crfm", "rowwise")
    ]
    card = gpu.known_card(stored[0]["device"])
    dram = card.gbs / 1000  # TB/s
    peaks = {track: peak for track, peak in card.tflops.items() if track != "fp16"}  # as bf16
    rows = [row for group in stored for row in group["rows"]]
    products = [row for row in rows if row["tflops"] > 0 and row["gbs"] > 0]
    movers = [row for row in rows if row["tflops"] == 0 and row["gbs"] > 0]
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 470" font-family="sans-serif" '
        'font-size="11">',
        '<rect width="960" height="470" fill="white"/>',
    ]

    def panel(x0, width, across, up, title):
        y0, height = 400, 370
        place = (
            lambda value, low, high, size: (math.log10(value) - math.log10(low))
            / (math.log10(high) - math.log10(low))
            * size
        )
        x, y = (lambda v: x0 + place(v, *across[:2], width)), (
            lambda v: y0 - place(v, *up[:2], height)
        )
        out.append(
            f'<rect x="{x0}" y="{y0 - height}" width="{width}" height="{height}" fill="none" '
            'stroke="#999"/>'
        )
        for (low, high, _), line in (
            (
                across,
                lambda t: f'<text x="{x(t):.0f}" y="{y0 + 15}" text-anchor="middle">{t:g}</text>',
            ),
            (up, lambda t: f'<text x="{x0 - 4}" y="{y(t) + 4:.0f}" text-anchor="end">{t:g}</text>'),
        ):
            out.extend(
                line(10.0**power)
                for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
            )
        out.append(
            f'<text x="{x0 + width / 2}" y="{y0 + 34}" '
            f'text-anchor="middle">{across[2]}</text><text x="{x0}" '
            f'y="{y0 - height - 8}">{up[2]}</text>'
            f'<text x="{x0 + width / 2}" y="{y0 + 56}" text-anchor="middle">{title}</text>'
        )
        return x, y

    def dot(x, y, row, colour):
        out.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" '
            f'fill-opacity="0.75"><title>{row["case"]}: {row["ours_us"]:.4g} µs, '
            f'{100 * row["roofline_fraction"]:.0f} % of the roofline, {row["ratio"]:.2f} of '
            f'{row["best_peer"]}</title></circle>'
        )

    x, y = panel(
        60,
        460,
        (0.5, 10000, "operations a byte"),
        (0.5, 3000, "TFLOP/s"),
        f"{len(products)} products and convolutions",
    )
    for i, (track, peak) in enumerate(peaks.items()):
        ridge = peak / dram
        out.append(
            f'<path d="M {x(0.5):.0f} {y(0.5 * dram):.0f} L {x(ridge):.0f} {y(peak):.0f} L '
            f'{x(10000):.0f} {y(peak):.0f}" fill="none" '
            f'stroke="{COLOURS[track]}" stroke-opacity="0.6"/><text x="{x(10000) - 4:.0f}" '
            f'y="{y(peak) - 4:.0f}" text-anchor="end" '
            f'fill="{COLOURS[track]}">{track}{", fp16" if track == "bf16" else ""}</text>'
        )
    for row in products:
        dot(
            x(min(10000, 1000 * row["tflops"] / row["gbs"])),
            y(row["tflops"]),
            row,
            COLOURS[row["track"]],
        )
    size = lambda row: row["gbs"] * row["ours_us"] * 1e-3  # MB
    x, y = panel(
        600,
        320,
        (5, 30000, "megabytes moved"),
        (0.5, 10, "TB/s"),
        f"{len(movers)} row-wise operators",
    )
    out.append(
        f'<line x1="{x(5):.0f}" x2="{x(30000):.0f}" y1="{y(dram):.0f}" y2="{y(dram):.0f}" '
        'stroke="#999"/>'
        f'<text x="{x(5) + 4:.0f}" y="{y(dram) - 4:.0f}">DRAM, {dram:g} TB/s</text>'
    )
    for row in movers:
        dot(x(size(row)), y(row["gbs"] / 1000), row, COLOURS[row["track"]])
    options.out.write_text("\n".join(out) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("measure")
    verb.add_argument("--plans", type=pathlib.Path, required=True)
    verb.add_argument("--out", type=pathlib.Path, required=True)
    verb.add_argument("--case", action="append")
    verb.add_argument("--gpu", default=gpu.query("name") or "NVIDIA H200")
    verb.add_argument("--commit", default="")
    verb = verbs.add_parser("plot")
    verb.add_argument("--results", type=pathlib.Path, required=True)
    verb.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    return {"measure": measure, "plot": plot}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
