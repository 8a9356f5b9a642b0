#!/usr/bin/env python3
"""Measures the CPU target on this machine and writes bench/results/<cpu>/cpu.json.

    bench/cpu/measure.py [--budget 10s] [--only GROUP] [--case PATTERN] [--all] [--list]

A row (rows.py) is a search of its own, cold: without an archive and with an empty cache. What it
wrote is then timed by beside.cpp, in turns with oneDNN and, where it is installed, OpenBLAS, in
rows and in their own layouts; `ratio` is that to the fastest of them. In the group `row` it is that
to the fastest plain copy of as many bytes, which takes turns in the same run on the same kind of
pages (`reference_ratio` is that to a library, where it has such a call).

A ratio is the median of the ratios of at least 9 alternating pairs. It counts where its 95 %
interval is no wider than 5 % of it, and where other processes took no more than 3 % of the cores
meanwhile (`foreign_share`): a core that is taken away for a moment costs a library whose threads
wait for each other ten times its time, in every call alike. Else the row is measured again, three
times at most, and is `undecided` after that.

Rows that cpu.json has of this commit and budget are kept, so that who was interrupted goes on;
others of the file stay until they are measured again. A machine of more than 4 cores measures the
rows with `few` unless --all asks for the rest.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

from rows import GROUPS, all_rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAIRS = 15
WIDEST = 0.05  # of a ratio: an interval that counts
MOST_FOREIGN = 0.03  # of the cores' time: what other processes may take while a row is timed
TIMES = 3
MANY_CORES = 4


def run(*command, **more):
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def cpu_name():
    return (
        re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())
        .group(1)
        .strip()
    )


def folder_of(name):
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def cores():
    return len(os.sched_getaffinity(0))


def results_of(name, count, folder):
    """The file of a machine: where one of the same name has another number of cores, its own."""
    path = folder / folder_of(name) / "cpu.json"
    known = json.loads(path.read_text())["device"] if path.exists() else ""
    if known and not known.endswith(f", {count} cores"):
        path = folder / f"{folder_of(name)}_{count}_cores" / "cpu.json"
    return path


def seconds_of(budget):
    number, unit = re.fullmatch(r"([\d.]+)(ms|s|m)", budget).groups()
    return float(number) * {"ms": 1e-3, "s": 1, "m": 60}[unit]


def search(program, row, budget_s, folder):
    """What a cold search says of the row; its bundle lies in FOLDER/out."""
    model = row.text
    if "(" in row.text:
        model = f"{folder}/{row.case}.onnx"
        run(program, "new", row.text, "--dtype", row.dtype, "--out", model)
    constants = [word for name in row.constants() for word in ("--constant", name)]
    command = [program, "optimize", model, "--target", "cpu", "--budget", f"{budget_s:g}s"]
    command += ["--json", "--no-resume", "--archive", f"{folder}/archive.sqlite"]
    command += ["--out", f"{folder}/out", *constants]
    cold = os.environ | {"XDG_CACHE_HOME": f"{folder}/cache"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=cold, check=False)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"error": {"code": f"status {done.returncode}", "message": done.stderr[-300:]}}


def is_narrow(interval, ratio):
    return interval[1] - interval[0] <= WIDEST * ratio


def busy_seconds(stat):
    """That all cores worked since the machine started, by the text of /proc/stat.

    >>> busy_seconds("cpu  100 20 30 5000 70 1 2 3 0 0") * os.sysconf("SC_CLK_TCK")
    156.0
    """
    user, nice, system, _, _, irq, softirq, steal = map(int, stat.split()[1:9])
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """That processes which this one waited for worked."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_watched(command):
    """(what it printed, which share of the cores other processes took meanwhile)."""
    stat = pathlib.Path("/proc/stat")
    busy, own, start = busy_seconds(stat.read_text()), own_seconds(), time.monotonic()
    said = run(*command)
    others = busy_seconds(stat.read_text()) - busy - (own_seconds() - own)
    return said, max(0.0, others) / (cores() * (time.monotonic() - start))


def of_kind(said, kind):
    """The one that is the hardest to beat."""
    return min(
        (one for one in said["others"] if one["kind"] == kind),
        key=lambda one: one["ratio"],
        default=None,
    )


def beside(program, row, folder, seconds):
    """What the turns say, which of the others the ratio is of, and after how many attempts."""
    kind = "copy" if row.group == "row" else "reference"
    command = [program, f"{folder}/out", PAIRS, seconds, *(["copy"] if kind == "copy" else [])]
    best = None
    for tried in range(1, TIMES + 1):
        text, foreign = run_watched(command)
        said = json.loads(text) | {"foreign_share": round(foreign, 4)}
        rival = of_kind(said, kind)
        if rival is None:
            return said, None, tried
        width = (rival["interval"][1] - rival["interval"][0]) / rival["ratio"]
        disturbed = foreign > MOST_FOREIGN
        if best is None or (disturbed, width) < best[0]:
            best = ((disturbed, width), said, rival)
        if not disturbed and is_narrow(rival["interval"], rival["ratio"]):
            break
    return best[1], best[2], tried


def is_undecided(said, rival):
    if rival is None:
        return False
    is_disturbed = said["foreign_share"] > MOST_FOREIGN
    return is_disturbed or not is_narrow(rival["interval"], rival["ratio"])


def refused(row, found, given, commit):
    error = found.get("error") or {}
    code = error.get("code", "unknown") if isinstance(error, dict) else "unknown"
    return {
        "case": row.case,
        "group": row.group,
        "failed": code,
        "budget_s": given,
        "cores": cores(),
        "commit": commit,
    }


def measured(row, options, commit):
    budget_s = seconds_of(options.budget) * row.times
    with tempfile.TemporaryDirectory() as folder:
        found = search(options.program, row, budget_s, folder)
        if "best_us" not in found or not pathlib.Path(folder, "out/plan.json").exists():
            return refused(row, found, budget_s, commit)
        said, rival, tried = beside(options.beside, row, folder, options.seconds)
    us = said["ours_us"]
    library = of_kind(said, "reference")
    others = {one["name"]: {"us": one["us"], "error": None} for one in said["others"]}
    if library and library["name"] == found["reference"]:
        others[library["name"]]["error"] = found["reference_error"]
    out = {
        "case": row.case,
        "group": row.group,
        "dtype": row.dtype.replace("f32", "fp32"),
        "track": found["track"],
        "ours_us": us,
        "interval_us": said["ours_interval_us"],
        "peers": others,
        "best_peer": rival and rival["name"],
        "ratio": rival and rival["ratio"],
        "interval": rival and rival["interval"],
        "pairs": rival and rival["pairs"],
        "measured_times": tried,
        "undecided": is_undecided(said, rival),
        "foreign_share": said["foreign_share"],
        "tflops": row.flops / us * 1e-6,
        "gbs": said["bytes"] / us * 1e-3,
        "roofline_fraction": roofline_fraction(found, us),
        "error": found["error"],
        "candidates": found["candidates"],
        "search_seconds": found["seconds"],
        "budget_s": budget_s,
        "cold": True,
        "cores": said["cores"],
        "commit": commit,
        "schedule": found["schedule"],
    }
    if row.group == "row" and library:
        out["reference_ratio"] = library["ratio"]
    return out


def roofline_fraction(found, us):
    """Of the bound, at the time measured here; None where the search knows of no bound."""
    fraction = found["roofline_fraction"]
    return fraction and fraction * found["best_us"] / us


def wanted(options):
    rows = [row for row in all_rows() if options.all or cores() <= MANY_CORES or row.few]
    if options.only:
        rows = [row for row in rows if row.group in options.only]
    if options.case:
        rows = [row for row in rows if fnmatch.fnmatchcase(row.case, options.case)]
    return rows


def stored(path):
    """The rows of a file by their names; of files of before there were groups none."""
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {row["case"]: row for row in rows if "group" in row}


def write(path, rows, options, commit):
    order = {row.case: place for place, row in enumerate(all_rows())}
    known = [row for case, row in rows.items() if case in order]
    result = {
        "device": f"{cpu_name()}, {cores()} cores",
        "driver": "",
        "cuda": "",
        "peers": {},
        "commit": commit,
        "command": f"bench/cpu/measure.py --budget {options.budget}",
        "rows": sorted(known, key=lambda row: order[row["case"]]),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1) + "\n")
    part.replace(path)


def line_of(row):
    if "failed" in row:
        return f"{row['case']:48} failed: {row['failed']}"
    if row["ratio"] is None:
        return f"{row['case']:48} {row['ours_us']:10.1f} us, no reference"
    low, high = row["interval"]
    word = f"  UNDECIDED, others took {row['foreign_share']:.0%}" if row["undecided"] else ""
    also = f", {row['reference_ratio']:.2f} of a library" if "reference_ratio" in row else ""
    return (
        f"{row['case']:48} {row['ours_us']:10.1f} us, {row['ratio']:.3f} ({low:.3f} to {high:.3f}) "
        f"of {row['best_peer']}{also}, {row['candidates']} candidates{word}"
    )


def options_of():
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--budget", default="10s", help="of a search")
    flags.add_argument("--only", action="append", choices=GROUPS, help="a group; may come twice")
    flags.add_argument("--case", help="a pattern of names, as 'conv_3x3_*'")
    flags.add_argument("--all", action="store_true", help="on many cores, too")
    flags.add_argument("--list", action="store_true", help="the rows, and nothing is measured")
    flags.add_argument("--again", action="store_true", help="also what is of this commit")
    flags.add_argument("--seconds", type=float, default=3, help="of a row's turns, at least")
    flags.add_argument("--stop", type=float, help="begins no row after so many seconds")
    flags.add_argument("--out", help="another file")
    flags.add_argument("--program", default=str(ROOT / "build/release/warploom"))
    flags.add_argument("--beside", default=str(ROOT / "build/release/bench_cpu"))
    flags.add_argument("--commit", help="that PROGRAM is of, where git does not know")
    return flags.parse_args()


def main():
    options = options_of()
    rows = wanted(options)
    if options.list:
        for row in rows:
            print(f"{row.group:9} {row.case:48} {row.text}")
        return
    commit = options.commit or run("git", "rev-parse", "HEAD").strip()
    own = results_of(cpu_name(), cores(), ROOT / "bench/results")
    path = pathlib.Path(options.out or own)
    kept = stored(path)
    start = time.monotonic()
    for row in rows:
        known = kept.get(row.case)
        same = known and known["commit"] == commit
        if same and known["budget_s"] == seconds_of(options.budget) * row.times:
            if not options.again:
                continue
        if options.stop and time.monotonic() - start > options.stop:
            print("more is to be measured: the same command goes on", file=sys.stderr)
            return
        kept[row.case] = measured(row, options, commit)
        print(line_of(kept[row.case]), flush=True)
        write(path, kept, options, commit)


if __name__ == "__main__":
    main()
