"""Does the predicted cost of synthesis order candidates as their measured times do?

    python3 bench/rank.py measure --warploom build/portable/warploom --out \
        bench/results/h200/ranking.json
    python3 bench/rank.py predict --warploom build/release/warploom --results \
        bench/results/h200/ranking.json [--plot docs/ranking.svg]

`measure` judges and times schedules drawn at random from every family that covers a problem (a GPU
is needed). `predict` asks for the predicted time of each on any machine, stores it beside the
measured one with Spearman's rank correlation, and plots both; a row without a prediction stays, is
named, counts in no correlation, and makes the exit status 1."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import gpu
import kernelbench
from cases import matmul, softmax

CASES = [
    *[
        matmul("bf16", *shape)
        for shape in [
            (4096, 4096, 4096),
            (2048, 2048, 2048),
            (8192, 1024, 4096),
            (512, 14336, 4096),
            (64, 4096, 14336),
            (1000, 3000, 2000),
        ]
    ],
    matmul("fp32", 2048, 2048, 2048, "tf32", "nt"),
    matmul("fp32", 2048, 2048, 2048),
    softmax("fp32", 4096, 65536),
    softmax("fp32", 16384, 4096),
    softmax("fp32", 65536, 1024),
    softmax("bf16", 8192, 8192),
    softmax("fp32", 2048, 20000),
]


def measure(options):
    rows = []
    for row, text in CASES:
        with tempfile.TemporaryDirectory() as folder:
            source, archive = (
                pathlib.Path(folder) / f"{row['case']}.textproto",
                f"{folder}/archive.sqlite",
            )
            source.write_text(text)
            subprocess.run(
                [
                    options.warploom,
                    "optimize",
                    str(source),
                    "--budget",
                    options.budget,
                    "--candidates",
                    str(options.candidates),
                    "--strategy",
                    "random",
                    "--track",
                    row["track"],
                    "--json",
                    "--out",
                    folder + "/out",
                    "--archive",
                    archive,
                ],
                capture_output=True,
                text=True,
            )
            found = [
                (record["schedule"], record["median_us"])
                for record in kernelbench.archived(archive)
                if record.get("median_us") and not record.get("error_code")
            ]
        for schedule, us in found:
            rows.append(
                {
                    "case": row["case"],
                    "group": row["group"],
                    "track": row["track"],
                    "schedule": schedule,
                    "measured_us": round(us, 2),
                }
            )
        print(f"{row['case']:<32} {len(found)} candidates", flush=True)
    save(
        options.out,
        {
            "gpu": options.gpu,
            "commit": options.commit or gpu.commit(),
            "models": {row["case"]: text for row, text in CASES},
            "rows": rows,
        },
    )


def save(path, results):
    rows = results.pop("rows")
    head = json.dumps(results, indent=1)[:-2]
    path.write_text(
        head + ',\n "rows": [\n' + ",\n".join("  " + json.dumps(row) for row in rows) + "\n ]\n}\n"
    )
    results["rows"] = rows


def predict(options):
    results = json.loads(options.results.read_text())
    with tempfile.TemporaryDirectory() as folder:
        for row in results["rows"]:
            source = pathlib.Path(folder) / f"{row['case']}.textproto"
            if not source.exists():
                source.write_text(results["models"][row["case"]])
            shown = subprocess.run(
                [
                    options.warploom,
                    "show",
                    str(source),
                    "--what",
                    "cost",
                    "--target",
                    "sm_90a",
                    "--track",
                    row["track"],
                    "--schedule",
                    row["schedule"],
                    "--json",
                ],
                capture_output=True,
                text=True,
            )
            row.pop("predicted_us", None)
            try:
                found = json.loads(shown.stdout)
            except json.JSONDecodeError:
                found = {"error": {"code": f"exit status {shown.returncode}"}}
            if found.get("predicted_us", 0) > 0:
                row["predicted_us"] = round(found["predicted_us"], 2)
            else:
                print(
                    f"{row['case']}: no prediction ({(found.get('error') or {}).get('code')}): "
                    f"{row['schedule']}",
                    file=sys.stderr,
                )
    predicted = predicted_rows(results)
    results["spearman"] = {
        group: {
            "candidates": len(some := [r for r in predicted if r["group"] == group]),
            "all": spearman(some),
            "within_a_problem": {
                case: spearman([r for r in some if r["case"] == case])
                for case in sorted({r["case"] for r in some})
            },
        }
        for group in ("dense", "rowwise")
    }
    for group, values in results["spearman"].items():
        values["median_within_a_problem"] = round(
            statistics.median(values["within_a_problem"].values() or [0.0]), 3
        )
        print(group, json.dumps(values))
    save(options.results, results)
    if options.plot:
        options.plot.write_text(plot(results))
    print(f"{len(predicted)} of {len(results['rows'])} rows predicted")
    return 0 if len(predicted) == len(results["rows"]) else 1


def predicted_rows(results):
    return [row for row in results["rows"] if "predicted_us" in row]


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for i in range(start, end + 1):
            out[order[i]] = (start + end) / 2
        start = end + 1
    return out


def spearman(rows):
    if len(rows) < 3:
        return 0.0
    a, b = ranks([r["predicted_us"] for r in rows]), ranks([r["measured_us"] for r in rows])
    return round(statistics.correlation(a, b), 3) if len(set(a)) > 1 and len(set(b)) > 1 else 0.0


def plot(results):
    """Two panels, both axes logarithmic: predicted across, measured up, the diagonal where they
    agree."""
    colours = [
        "#1b6ca8",
        "#d1495b",
        "#2e8b57",
        "#edae49",
        "#7b4ba6",
        "#3d3d3d",
        "#00798c",
        "#b5651d",
    ]
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 470" font-family="sans-serif" '
        'font-size="11">',
        '<rect width="900" height="470" fill="white"/>',
    ]
    for panel, group in enumerate(("dense", "rowwise")):
        rows = [r for r in predicted_rows(results) if r["group"] == group]
        values = [r[k] for r in rows for k in ("predicted_us", "measured_us")] or [1]
        low, high = math.log10(min(values)) - 0.1, math.log10(max(values)) + 0.1
        x0, y0, size = 60 + 445 * panel, 400, 370
        at = lambda v: (math.log10(v) - low) / (high - low) * size
        out.append(
            f'<rect x="{x0}" y="{y0 - size}" width="{size}" height="{size}" fill="none" '
            'stroke="#999"/>'
            f'<line x1="{x0}" y1="{y0}" x2="{x0 + size}" y2="{y0 - size}" stroke="#bbb"/>'
        )
        for power in range(math.ceil(low), math.floor(high) + 1):
            p = at(10**power)
            out.append(
                f'<text x="{x0 + p:.0f}" y="{y0 + 15}" text-anchor="middle">{10 ** power:g} '
                'µs</text>'
                f'<text x="{x0 - 4}" y="{y0 - p + 4:.0f}" text-anchor="end">{10 ** power:g}</text>'
            )
        for i, case in enumerate(sorted({r["case"] for r in rows})):
            colour = colours[i % len(colours)]
            out += [
                f'<circle cx="{x0 + at(r["predicted_us"]):.1f}" '
                f'cy="{y0 - at(r["measured_us"]):.1f}" r="2.5" fill="{colour}" fill-opacity="0.7">'
                f'<title>{r["schedule"]}</title></circle>'
                for r in rows
                if r["case"] == case
            ]
            out.append(
                f'<text x="{x0 + 8}" y="{y0 - size + 16 + 13 * i}" fill="{colour}">{case}</text>'
            )
        out.append(
            f'<text x="{x0 + size / 2}" y="{y0 + 36}" text-anchor="middle">predicted</text><text '
            f'x="{x0 + size / 2}" y="{y0 + 56}" text-anchor="middle">'
            f'{group}: {len(rows)} candidates, rank correlation '
            f'{results["spearman"][group]["all"]:.2f} (within a problem '
            f'{results["spearman"][group]["median_within_a_problem"]:.2f})</text>'
        )
    return "\n".join(out) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("measure")
    verb.add_argument("--warploom", required=True)
    verb.add_argument("--out", type=pathlib.Path, required=True)
    verb.add_argument("--candidates", type=int, default=40)
    verb.add_argument("--budget", default="40s")
    verb.add_argument("--gpu", default=gpu.query("name") or "unknown")
    verb.add_argument("--commit", default="")
    verb = verbs.add_parser("predict")
    verb.add_argument("--warploom", required=True)
    verb.add_argument("--results", type=pathlib.Path, required=True)
    verb.add_argument("--plot", type=pathlib.Path)
    options = parser.parse_args()
    return {"measure": measure, "predict": predict}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
