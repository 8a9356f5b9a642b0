#!/usr/bin/env python3
"""What optimize says of a small matmul on a machine that others use.

    bench/busy_machine.py [PROGRAM] [--runs 10]

First on the machine as it is, then --runs times while a process spins on every core. A speedup
that is decided, which the table prints in green, must lie within what the first run gave; all
others must be said to be undecided or unknown. Exits with 1 where one does not.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "examples", "matmul_small.textproto")
ROOM = 0.1  # beyond the first run's interval


def searched(program, folder):
    command = [
        program,
        "optimize",
        EXAMPLE,
        "--target",
        "cpu",
        "--budget",
        "2s",
        "--no-resume",
        "--archive",
        os.path.join(folder, "a.sqlite"),
        "--out",
        os.path.join(folder, "made"),
        "-q",
        "--json",
    ]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def described(outcome):
    return (
        f'{outcome["standing"]:9} speedup {outcome["speedup"]} {outcome["speedup_interval"]} '
        f'{(outcome["machine"] or {}).get("text")}'
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", default="build/release/warploom")
    parser.add_argument("--runs", type=int, default=10)
    chosen = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        quiet = searched(chosen.program, folder)
        print("as it is:", described(quiet))
        spinning = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(len(os.sched_getaffinity(0)))
        ]
        try:
            for _ in range(chosen.runs):
                outcome = searched(chosen.program, folder)
                print("loaded:  ", described(outcome))
                if outcome["standing"] not in ("faster", "slower"):
                    continue
                low, high = quiet["speedup_interval"] or (0, 0)
                wrong += not low * (1 - ROOM) <= outcome["speedup"] <= high * (1 + ROOM)
        finally:
            for process in spinning:
                process.kill()
    print(f"{wrong} of {chosen.runs} decided a speedup that the first run does not bear out")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
