"""Launches every plan of a folder once on random inputs: the program that compute-sanitizer watches.

    compute-sanitizer --tool memcheck python3 bench/sanitize.py PLANS      (likewise racecheck, synccheck, initcheck)
"""
import json
import pathlib
import sys

import torch

import launch


def main():
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        row = json.loads(path.read_text())
        loaded = launch.Loaded(row["plan"])
        buffers = {}
        for spec in row["plan"]["inputs"]:
            buffers[spec["name"]] = torch.randn(spec["shape"], device="cuda").to(launch.TORCH_TYPES[spec["dtype"]])
        for spec in row["plan"]["outputs"]:
            dtype = launch.TORCH_TYPES[spec["dtype"]]
            poison = float("nan") if dtype.is_floating_point else -1
            buffers[spec["name"]] = torch.full(spec["shape"], poison, device="cuda", dtype=dtype)
        loaded.launch(loaded.bind(buffers))
        torch.cuda.synchronize()
        written = all(bool(torch.isfinite(buffers[spec["name"]]).all()) for spec in row["plan"]["outputs"])
        print(f"{row['case']:<32} {row.get('schedule', '')}: {'written' if written else 'NOT ALL WRITTEN'}", flush=True)


if __name__ == "__main__":
    main()
