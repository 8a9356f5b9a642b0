"""How long a search takes to find a good kernel on this GPU, from an empty archive and from one
that knows the problem.

    python3 bench/search_time.py --warploom build/portable/warploom --plans bench/plans/h200 --out \
        bench/results/h200/search.json

Each case is searched with an empty archive and its budget, and once more, for 3 s, with what that
left. What the two found is then timed beside the stored plan, alternately, over the same inputs;
the best of the three counts as the best. Exit status 1: a search failed."""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import gpu
import launch
import measure
import cases
import search
import timing

# A case and its budget in seconds.
CASES = {
    "gemm_bf16_4096x4096x4096": 30,
    "gemm_bf16_8192x1024x8192": 30,
    "softmax_fp32_4096x8192": 8,
    "layernorm_16384x4096_fp32": 8,
    "rmsnorm_4096x1024_bf16": 8,
}
WARM_BUDGET = 3


def optimize(options, folder, source, row, budget):
    """The plan, and the seconds that the whole command took."""
    begin = time.monotonic()
    run = subprocess.run(
        [
            options.warploom,
            "optimize",
            str(source),
            "--target",
            "sm_90a",
            "--track",
            row["track"],
            "--budget",
            f"{budget}s",
            "--archive",
            str(folder / "archive.db"),
            "--out",
            str(folder / "out"),
            "--json",
        ],
        capture_output=True,
        text=True,
    )
    seconds = time.monotonic() - begin
    if run.returncode != 0:
        raise RuntimeError((run.stdout + run.stderr)[-500:])
    return json.loads((folder / "out" / "plan.json").read_text()), seconds


def timed(row, plans):
    problem = measure.KINDS[row["problem"]["kind"]](row)
    count = min(64, max(2, int(2.5 * gpu.L2_BYTES / problem.bytes) + 1))
    sets, calls = [(problem.inputs(), problem.output()) for _ in range(count)], {}
    for name, plan in plans.items():
        loaded = launch.Loaded(plan)
        bound = [
            loaded.bind(
                {**dict(zip([i["name"] for i in plan["inputs"]], x)), plan["outputs"][0]["name"]: y}
            )
            for x, y in sets
        ]
        calls[name] = lambda turn, loaded=loaded, bound=bound: loaded.launch(bound[turn % count])
    return {
        name: timing.median(us) for name, us in timing.alternate_graphs(calls, count, 0.3).items()
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--warploom", required=True)
    parser.add_argument("--plans", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--case", action="append")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    rows, failed = [], 0
    for row, text in cases.CASES:
        if row["case"] not in (options.case or CASES):
            continue
        budget = CASES.get(row["case"], 45)
        try:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                source = folder / f"{row['case']}.textproto"
                search.write(options, source, row, text)
                found, cold = optimize(options, folder, source, row, budget)
                again, warm = optimize(options, folder, source, row, WARM_BUDGET)
            us = timed(
                row,
                {
                    "cold": found["launch_list"],
                    "warm": again["launch_list"],
                    "stored": json.loads((options.plans / f"{row['case']}.json").read_text())[
                        "plan"
                    ],
                },
            )
        except (RuntimeError, OSError, KeyError, ValueError) as error:
            failed += 1
            print(f"{row['case']}: {error}", flush=True)
            continue
        of_best = {name: round(min(us.values()) / each, 3) for name, each in us.items()}
        rows.append(
            {
                "case": row["case"],
                "budget_s": budget,
                "cold_s": round(cold, 1),
                "warm_s": round(warm, 2),
                "stored_us": round(us["stored"], 2),
                "cold_us": round(us["cold"], 2),
                "warm_us": round(us["warm"], 2),
                "cold_of_best": of_best["cold"],
                "warm_of_best": of_best["warm"],
                "candidates": found["candidates"],
            }
        )
        print(rows[-1], flush=True)
    head = {
        "device": gpu.query("name"),
        "commit": options.commit or gpu.commit(),
        "clocks": gpu.query(gpu.CLOCKS),
    }
    options.out.write_text(
        json.dumps(head, indent=1)[:-2]
        + ',\n "searches": [\n'
        + ",\n".join("  " + json.dumps(row) for row in rows)
        + "\n ]\n}\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
