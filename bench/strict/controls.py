#!/usr/bin/env python3
"""How often each honest kernel is accepted, by turns on the machine as it is and under load.

    bench/strict/controls.py [PROGRAM] [--times 20] [--seconds 60] [--also FILE.cpp=PROBLEM …]

Every control of tests/verify/corpus/honest that is for a CPU, and those named with --also, is
judged by `verify` --times times: one round of all on the machine as it is, one while a process
spins on every core, and so on. A call works for --seconds and then stops; the next one goes on
where it stopped (--state), unless the program is another one. With --write the counts so far go
into the column `controls` of tests/verify/corpus/results.json, from which docs/verification.md is
made.
Exits with 1 where a control was refused: the refusals are in the state.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/verify/corpus"


def controls(also):
    """Name, file and problem of each."""
    for path in sorted((CORPUS / "honest").glob("*.cpp")):
        problem = re.search(r"^// problem: (.*)$", path.read_text(), re.MULTILINE).group(1)
        yield f"honest/{path.name}", path, CORPUS / f"problems/{problem}.textproto"
    for pair in also:
        file, problem = pair.split("=", 1)
        yield f"trials/{pathlib.Path(file).name}", pathlib.Path(file), pathlib.Path(problem)


def judged(program, path, problem, cache):
    """None where it was accepted, else why not."""
    command = [program, "verify", path, "--problem", problem, "--target", "cpu", "--json"]
    ran = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": cache}
    )
    try:
        error = json.loads(ran.stdout).get("error")
    except ValueError:
        return ran.stderr[-500:] or "no answer"
    return None if not isinstance(error, dict) else error


def spinning(under_load):
    if not under_load:
        return []
    command = [sys.executable, "-c", "while True: pass"]
    return [subprocess.Popen(command) for _ in range(len(os.sched_getaffinity(0)))]


def loaded_state(path, program):
    known = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()
    if path.exists():
        state = json.loads(path.read_text())
        if state["program"] == known:
            return state
    return {"program": known, "counts": {}, "refusals": []}


def go_on(chosen, state, all_controls):
    """Until the time is up or nothing is left: whether nothing is left."""
    end = time.monotonic() + chosen.seconds
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(chosen.times):
            kind = "loaded" if turn % 2 else "as_is"
            left = [
                one
                for one in all_controls
                if state["counts"].setdefault(one[0], {"as_is": [0, 0], "loaded": [0, 0]})[kind][1]
                <= turn // 2
            ]
            others = spinning(left and kind == "loaded")
            try:
                for name, path, problem in left:
                    if time.monotonic() > end:
                        return False
                    error = judged(chosen.program, path, problem, folder)
                    count = state["counts"][name][kind]
                    count[0] += error is None
                    count[1] += 1
                    if error is not None:
                        state["refusals"].append({"control": name, "turn": kind, "error": error})
                    chosen.state.write_text(json.dumps(state, indent=1))
            finally:
                for one in others:
                    one.kill()
                    one.wait()
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/release/warploom"))
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--also", nargs="*", default=[])
    parser.add_argument("--state", type=pathlib.Path, default=ROOT / "build/controls.json")
    chosen = parser.parse_args()
    all_controls = list(controls(chosen.also))
    state = loaded_state(chosen.state, chosen.program)
    go_on(chosen, state, all_controls)
    judged_so_far = sum(count[1] for one in state["counts"].values() for count in one.values())
    print(
        f"{judged_so_far} of {chosen.times * len(all_controls)} judged, "
        f"{len(state['refusals'])} refused"
    )
    if chosen.write:
        results = json.loads((CORPUS / "results.json").read_text())
        results["controls"] = {
            name: state["counts"][name] for name, _, _ in all_controls if name in state["counts"]
        }
        text = json.dumps(results, indent=1, sort_keys=True) + "\n"
        (CORPUS / "results.json").write_text(text)
    return 1 if state["refusals"] else 0


if __name__ == "__main__":
    sys.exit(main())
