#!/usr/bin/env python3
"""Records what became of every plan of the closed sub-spaces of problems.json, in parts.

  measure.py WARPLOOM draw             ranges of config fields, and their plans; nothing is measured
  measure.py WARPLOOM compile SECONDS  what has no outcome yet
  measure.py WARPLOOM measure SECONDS  the same; wants a machine with nothing else to do
  measure.py WARPLOOM replay           search_curves.json: every strategy on what was recorded

Every step goes on where earlier ones stopped. WARPLOOM is the program; --target FILE of a GPU's own
when its problems are measured there: gpu is the third word of every step then.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
CURVES = HERE.parent / "results" / "search_curves.json"


def record(warploom, kind, *words):
    target = "cpu" if kind == "cpu" else "auto"
    line = [warploom, "record", *map(str, words), "--into", str(HERE / f"{kind}.gz")]
    subprocess.run([*line, "--target", target], check=True)


def draw(warploom, kind):
    listed = json.loads((HERE / "problems.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        for one in listed[kind]:
            model = f"{folder}/{one['name']}.onnx"
            made = [warploom, "new", one["text"], "--out", model]
            if "dtype" in one:
                made += ["--dtype", one["dtype"]]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
            record(warploom, kind, model, "--phase", "propose", "--hold-out", "--closed",
                   "--plans", one["plans"], "--seed", listed["seed"])


def main():
    warploom, step, *rest = sys.argv[1:]
    kind = "gpu" if "gpu" in rest else "cpu"
    rest = [word for word in rest if word != "gpu"]
    if step == "draw":
        draw(warploom, kind)
    elif step == "replay":
        line = [warploom, "replay", str(HERE / f"{kind}.gz"), "--problems",
                str(HERE / "problems.json"), "--out", str(CURVES), *rest]
        subprocess.run(line, check=True)
    else:
        record(warploom, kind, "--phase", step, "--budget", rest[0] + "s")


main()
