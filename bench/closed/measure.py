#!/usr/bin/env python3
"""Records what became of every plan of the closed sub-spaces of problems.json, in parts.

  measure.py WARPLOOM draw             ranges of config fields, and their plans; nothing is measured
  measure.py WARPLOOM compile SECONDS  what has no outcome yet
  measure.py WARPLOOM measure SECONDS  the same; wants a machine with nothing else to do
  measure.py WARPLOOM replay           search_curves.json: every strategy on what was recorded
  measure.py WARPLOOM near             search_near.json: the same begun at the bests of the others
  measure.py WARPLOOM filter           search_filter.json: with what the policy promises little of
                                       taken last, and without

Every step goes on where earlier ones stopped: compile and measure until nothing is left. With the
word gpu behind the step it is the problems of the GPU at hand, and gpu.gz.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# From where it is called, so that records name no machine's folders.
HERE = pathlib.Path(os.path.relpath(pathlib.Path(__file__).parent))
WITH_ACTIONS = ["linear", "branch", "tree", "evolution"]
RESULTS = HERE.parent / "results"
CURVES = RESULTS / "search_curves.json"


def record(warploom, kind, *words):
    target = "cpu" if kind == "cpu" else "auto"
    line = [warploom, "record", *map(str, words), "--into", str(HERE / f"{kind}.gz")]
    subprocess.run([*line, "--target", target], check=True)


def recorded(warploom, kind):
    """The names of the problems that are there."""
    path = HERE / f"{kind}.gz"
    if not path.exists():
        return []
    line = [warploom, "record", "--into", str(path), "--phase", "propose", "--json"]
    said = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    return [one["name"] for one in json.loads(said)["problems"]]


def draw(warploom, kind):
    listed = json.loads((HERE / "problems.json").read_text())
    there = recorded(warploom, kind)
    with tempfile.TemporaryDirectory() as folder:
        for one in listed[kind]:
            if one["name"] in there:
                continue
            model = f"{folder}/{one['name']}.onnx"
            made = [warploom, "new", one["text"], "--out", model]
            if "dtype" in one:
                made += ["--dtype", one["dtype"]]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
            record(warploom, kind, model, "--phase", "propose", "--hold-out", "--closed",
                   "--plans", one["plans"], "--seed", listed["seed"])


def replay(warploom, kind, words):
    rows = []
    for start in ["guessed", "drawn"]:
        # Those that take no actions do not begin anywhere: they are replayed once.
        only = [] if start == "guessed" else [
            word for name in WITH_ACTIONS for word in ("--strategy", name)]
        line = [warploom, "replay", str(HERE / f"{kind}.gz"), "--out", str(CURVES), "--start",
                start, *only, *words]
        subprocess.run(line, check=True)
        curves = json.loads(CURVES.read_text())
        rows += curves["rows"]
    curves["rows"] = rows
    listed = json.loads((HERE / "problems.json").read_text())
    family = {one["name"]: one["family"] for one in listed[kind]}
    for row in rows:
        row["family"] = family[row["problem"]]
    CURVES.write_text(json.dumps(curves, indent=1) + "\n")


def replayed(warploom, kind, path, words):
    line = [warploom, "replay", str(HERE / f"{kind}.gz"), "--out", str(path), *words]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return json.loads(path.read_text())


def near(warploom, kind, words):
    """Of problems that have something near: strategies begun there, and not."""
    path = RESULTS / "search_near.json"
    words = ["--policy", "analytic", *words]
    rows = []
    for chosen in (False, True):
        found = replayed(warploom, kind, path, [*words, *(["--near"] if chosen else [])])
        rows += [row | {"begins_near": chosen} for row in found["rows"]]
    told = {row["problem"] for row in rows if row["near"] > 0}
    found["rows"] = [row for row in rows if row["problem"] in told]
    path.write_text(json.dumps(found, indent=1) + "\n")


def filtered(warploom, kind, words):
    """The learned policy, with what it gives less than some per cent of odds taken last."""
    path = RESULTS / "search_filter.json"
    words = [word for name in WITH_ACTIONS for word in ("--strategy", name)] + words
    rows = []
    for start in ("guessed", "drawn"):
        for percent in ("0", "2", "5", "10"):
            found = replayed(warploom, kind, path, ["--policy", "learned", "--start", start,
                                                    "--unlikely", percent, *words])
            rows += found["rows"]
    found["rows"] = rows
    path.write_text(json.dumps(found, indent=1) + "\n")


def main():
    warploom, step, *rest = sys.argv[1:]
    kind = "gpu" if "gpu" in rest else "cpu"
    rest = [word for word in rest if word != "gpu"]
    if step == "draw":
        draw(warploom, kind)
    elif step == "replay":
        replay(warploom, kind, rest)
    elif step == "near":
        near(warploom, kind, rest)
    elif step == "filter":
        filtered(warploom, kind, rest)
    else:
        record(warploom, kind, "--phase", step, "--budget", rest[0] + "s")


main()
