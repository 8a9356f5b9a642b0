#!/usr/bin/env python3
"""Times every kernel of given schedules alone on this GPU: where a schedule's time goes.

    python3 bench/schedules.py --warploom build/portable/warploom --file LIST

A line of LIST is  EXPRESSION | TYPE | TRACK | SCHEDULE  as `warploom new` and
`warploom show --schedule` read them. Printed for each: the median of 15 runs with the L2 filled
with other data before, microseconds, and the predicted time of the whole. Nothing is checked here:
`warploom optimize` and `warploom verify` judge.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import torch

import launch
import timing

RUNS = 15


def launch_list(warploom, folder, expression, dtype, track, schedule):
    model = pathlib.Path(folder) / "model.onnx"
    model.unlink(missing_ok=True)
    subprocess.run(
        [warploom, "new", expression, "--dtype", dtype, "--out", str(model)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shown = subprocess.run(
        [
            warploom,
            "show",
            str(model),
            "--what",
            "source",
            "--target",
            "sm_90a",
            "--track",
            track,
            "--schedule",
            schedule,
            "--json",
        ],
        capture_output=True,
        text=True,
    )
    return json.loads(shown.stdout)


def kernel_times(plan):
    loaded = launch.Loaded(plan)
    buffers = {
        spec["name"]: torch.randn(spec["shape"], device="cuda").to(
            launch.TORCH_TYPES[spec["dtype"]]
        )
        for spec in plan["inputs"] + plan["outputs"]
    }
    calls = loaded.bind(buffers)
    flush = torch.empty(timing.FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    times = [[] for _ in calls]
    for _ in range(RUNS):
        flush.random_(0, 7)
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(len(calls) + 1)]
        marks[0].record()
        for call, after in zip(calls, marks[1:]):
            loaded.launch([call])
            after.record()
        torch.cuda.synchronize()
        for i, spent in enumerate(times):
            spent.append(marks[i].elapsed_time(marks[i + 1]) * 1e3)
    return [
        (kernel["name"], round(timing.median(spent), 1))
        for kernel, spent in zip(plan["kernels"], times)
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--warploom", required=True)
    parser.add_argument("--file", type=pathlib.Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in filter(None, options.file.read_text().splitlines()):
            expression, dtype, track, schedule = (word.strip() for word in line.split("|"))
            shown = launch_list(options.warploom, folder, expression, dtype, track, schedule)
            if "launch_list" not in shown:
                print(
                    f"{schedule}: {shown['error']['code']}, {shown['error']['found']}", flush=True
                )
                continue
            times = kernel_times(shown["launch_list"])
            print(
                round(sum(us for _, us in times), 1),
                dict(times),
                "predicted",
                round(shown.get("predicted_us", 0), 1),
                schedule,
                flush=True,
            )


if __name__ == "__main__":
    main()
