#!/usr/bin/env python3
"""How many regions a model is cut into, and how many bytes they read and store.

  tools/plan_traffic.py build/release/warploom cpu MODEL.onnx …

Bytes are those of the tensors between regions, each read once by every region that reads it and
stored once; nothing is built or run. What constants alone make is made before the calls, and left
out. Of two builds the difference is what fusion changed.
"""
import json
import re
import subprocess
import sys

TENSOR = re.compile(r"([a-z]+)(\d+)(?:e\d+m\d+)? \[([\d,]*)\]$")
TYPES = {"f": None, "bf": None, "i": None, "u": None}


def bytes_of(text):
    """Of "f32 [64,96]"."""
    kind, bits, sizes = TENSOR.search(text).groups()
    elements = 1
    for size in filter(None, sizes.split(",")):
        elements *= int(size)
    return elements * (int(bits) / 8 if kind in TYPES else 1)


def moved(graph):
    """Bytes that a region reads and stores, by its text."""
    total = 0
    for line in graph.splitlines():
        line = line.strip()
        if line.startswith(("input ", "output ")):
            total += bytes_of(line)
    return total


def is_called(region):
    """Whether a call computes it: it is no other tensor's memory, and reads what calls give."""
    inputs = region["graph"].count("\n  input ")
    return not region["lies_in"] and len(region["constants"]) < inputs


def show(warploom, target, model):
    command = [warploom, "show", model, "--what", "regions", "--target", target, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    if "regions" not in answer:
        return None
    return [region for region in answer["regions"] if is_called(region)]


def main():
    warploom, target, *models = sys.argv[1:]
    print(f"{'regions':>8} {'several':>8} {'MB':>10}  model")
    for model in models:
        regions = show(warploom, target, model)
        if regions is None:
            print(f"{'refused':>28}  {model}")
            continue
        several = sum(region["graph"].count("\n  output ") > 1 for region in regions)
        total = sum(moved(region["graph"]) for region in regions) / 1e6
        print(f"{len(regions):>8} {several:>8} {total:>10.2f}  {model}")


if __name__ == "__main__":
    main()
