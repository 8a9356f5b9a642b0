"""Searches the benchmark's cases with the portable executable and keeps the plans found, in
resumable parts.

    python3 bench/search.py --warploom build/portable/warploom --plans bench/plans/h200 [--budget \
        20s] [--only SUBSTRING] [--archive FILE]

A case whose plan is stored already is skipped, so that a part that was cut off goes on where it
stopped; `--archive` names the archive to bring along. bench/measure.py re-measures the plans beside
all peers. Exit status 1: a case has got no plan, or could not be renewed."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from cases import CASES


def write(options, source, row, text):
    if row["problem"]["kind"] != "torch":
        return source.write_text(text)
    types = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}
    subprocess.run(
        [options.warploom, "new", text, "--dtype", types[row["dtype"]], "--out", str(source)],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def shown(options, source, row, text, schedule):
    """The launch list of a schedule, written by way of `source`; or nothing, and what was said."""
    try:
        write(options, source, row, text)
    except subprocess.CalledProcessError as problem:
        return None, str(problem)
    return show(options, source, row, "launch_list", "--what", "source", "--schedule", schedule)


def show(options, source, row, wanted, *flags):
    run = subprocess.run(
        [
            options.warploom,
            "show",
            str(source),
            "--target",
            "sm_90a",
            "--track",
            row["track"],
            "--json",
            *flags,
        ],
        capture_output=True,
        text=True,
    )
    try:
        return json.loads(run.stdout)[wanted], ""
    except (json.JSONDecodeError, KeyError):
        return None, f"exit {run.returncode}: {run.stdout[-400:]} {run.stderr[-300:]}"


def shown_in_regions(options, source, row, text, stored):
    """The stored plan of several regions, each different one and its kernels as often as before:
    their texts are new, the buffers are not."""
    write(options, source, row, text)
    regions, said = show(options, source, row, "regions", "--what", "regions")
    kernels = []
    for region, line in zip(
        [r for r in regions or [] if r["families"]], stored["schedule"].split("\n")
    ):
        part, said = show(
            options,
            source,
            row,
            "launch_list",
            "--what",
            "source",
            "--region",
            str(region["number"]),
            "--schedule",
            line.split(": ", 1)[1],
        )
        if not part:
            return None, said
        kernels += part["kernels"]
    old = stored["plan"]["kernels"]
    if len(kernels) != len(old):
        return None, said or f"{len(kernels)} kernels, and {len(old)} before"
    for new, was in zip(kernels, old):
        buffers = [
            list(dict.fromkeys(arg["buffer"] for arg in kernel["args"])) for kernel in (new, was)
        ]
        if len(buffers[0]) != len(buffers[1]):
            return None, f"{new['name']} takes {buffers[0]}, and {buffers[1]} before"
        new["source"] = re.sub(rf"\b{new['name']}\b", was["name"], new["source"])
        new["name"] = was["name"]
        for arg in new["args"]:
            arg["buffer"] = dict(zip(*buffers))[arg["buffer"]]
    return stored["plan"] | {"kernels": kernels}, ""


def renew(options):
    failed = []
    for row, text in CASES:
        target = options.plans / f"{row['case']}.json"
        if options.only not in row["case"] or not target.exists():
            continue
        stored = json.loads(target.read_text())
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / f"{row['case']}.textproto"
            plan, said = (
                shown_in_regions(options, source, row, text, stored)
                if "\n" in stored["schedule"]
                else shown(options, source, row, text, stored["schedule"])
            )
        if plan:
            target.write_text(json.dumps(stored | {"plan": plan}) + "\n")
        else:
            failed.append(row["case"])
            print(f"{row['case']}: {said}", file=sys.stderr)
    if failed:
        print(f"not renewed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--warploom", required=True)
    parser.add_argument("--plans", type=pathlib.Path, required=True)
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--only", default="")
    parser.add_argument("--archive")
    parser.add_argument(
        "--renew",
        action="store_true",
        help="search nothing: emit the stored schedules again, as the compiler now does",
    )
    options = parser.parse_args()
    options.plans.mkdir(parents=True, exist_ok=True)
    if options.renew:
        return renew(options)
    failed = 0
    for row, text in CASES:
        target = options.plans / f"{row['case']}.json"
        if options.only not in row["case"] or target.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / f"{row['case']}.textproto"
            write(options, source, row, text)
            command = [
                options.warploom,
                "optimize",
                str(source),
                "--budget",
                options.budget,
                "--track",
                row["track"],
                "--json",
                "--out",
                folder + "/out",
            ]
            run = subprocess.run(
                command + (["--archive", options.archive] if options.archive else []),
                capture_output=True,
                text=True,
            )
            try:
                result = json.loads(run.stdout)
                plan = json.loads((pathlib.Path(folder) / "out" / "plan.json").read_text())
            except (json.JSONDecodeError, FileNotFoundError):
                failed = 1
                print(
                    f"{row['case']}: no plan (exit {run.returncode}): {run.stdout[-600:]} "
                    f"{run.stderr[-300:]}",
                    file=sys.stderr,
                )
                continue
        schedule = plan["schedule"]  # of several regions: their text
        if isinstance(schedule, dict):
            schedule = schedule["family"] + "".join(
                f" {k}={v}" for k, v in schedule["fields"].items()
            )
        row |= {
            "schedule": schedule,
            "candidates": result["candidates"],
            "search_seconds": round(result["seconds"], 1),
            "plan": plan["launch_list"],
        }
        target.write_text(json.dumps(row) + "\n")
        print(
            f"{row['case']:<34} {result['best_us']:>10.1f} us  {result['speedup']:.3f}x "
            f"{result['reference']}  error {result['error']:.2e}  "
            f"{result['candidates']} candidates in {result['seconds']:.0f} s  {row['schedule']}",
            flush=True,
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
