#!/usr/bin/env python3
"""Damages a bundle in many ways, and gives each to `warploom run` or `warploom verify`.

  tools/mutate_bundles.py build/release/warploom BUNDLE [--count 1000] [--seed 1]

Bytes are flipped, files cut, keys of the plan deleted or given another value, files exchanged; in
half of them the hashes are made to fit again, as somebody does who knows how. Whatever comes of it,
the program ends with one JSON object and an exit status for bad input, of the machine or of the
kernels, within a minute; a folder beside the bundle, and the bundle itself, stay as they are.
Prints what was said how often, and every finding; ends with 1 where there is one."""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

VALUES = [None, True, -1, 0, 3, 2**62, 1e308, "", "x", "../../canary/secret", "/dev/zero",
          "a\0\x1b[2J\n", [], {}, [[[[]]]]]


def tree(folder):
    """What lies below the folder, by path: contents of files, targets of links."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def places(value, path=()):
    """Every place within a JSON value, as the keys that lead there; of lists the first two."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inside = enumerate(value[:2])
    for key, one in inside:
        yield from places(one, (*path, key))


def holder(value, path):
    for key in path[:-1]:
        value = value[key]
    return value


def change_plan(bundle, chance):
    """Deletes a key of the plan, or gives it another value."""
    file = bundle / "plan.json"
    plan = json.loads(file.read_text(encoding="utf-8"))
    path = chance.choice([one for one in places(plan) if one[0] != "files"])
    if chance.random() < 0.4:
        del holder(plan, path)[path[-1]]
        said = f"without {path}"
    else:
        value = chance.choice(VALUES)
        holder(plan, path)[path[-1]] = value
        said = f"{path} is {value!r}"
    if chance.random() < 0.5:
        plan.pop("files", None)
    file.write_text(json.dumps(plan), encoding="utf-8")
    return said


def files_of(bundle):
    return sorted(path for path in bundle.rglob("*") if path.is_file())


def flip_bytes(bundle, chance):
    file = chance.choice([bundle / "plan.json", chance.choice(files_of(bundle))])
    data = bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 3, 30])):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    file.write_bytes(data)
    return f"bytes of {file.name}"


def cut(bundle, chance):
    file = chance.choice([bundle / "plan.json", chance.choice(files_of(bundle))])
    data = file.read_bytes()
    file.write_bytes(data[: chance.randrange(len(data) + 1)])
    return f"end of {file.name}"


def exchange(bundle, chance):
    a, b = chance.sample(files_of(bundle), 2)
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)
    return f"{a.name} and {b.name} exchanged"


def replace(bundle, chance):
    """A file becomes a link, a folder, a pipe, or nothing."""
    file = chance.choice(files_of(bundle))
    file.unlink()
    kind = chance.choice(["link", "device", "folder", "pipe", "nothing", "sparse"])
    if kind == "link":
        file.symlink_to("../../canary/secret")
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "sparse":
        file.touch()
        os.truncate(file, 2**40)
    return f"{file.name} is a {kind}"


KINDS = [change_plan, change_plan, change_plan, flip_bytes, cut, exchange, replace]


def fault_of(command, environment):
    """What was said, and what is wrong with that; "" where nothing is."""
    try:
        ran = subprocess.run(command, capture_output=True, timeout=60, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return "nothing", "no end within a minute"
    try:
        said = json.loads(ran.stdout)
    except ValueError:
        return "nothing", f"status {ran.returncode}, no JSON: {ran.stderr[-300:]}"
    error = said.get("error")
    code = error["code"] if isinstance(error, dict) else "fine"
    wrong = ran.returncode not in (0, 2, 3, 4) or code == "internal"
    return code, f"status {ran.returncode}: {ran.stdout[-500:]}" if wrong else ""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    codes, findings = collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="warploom-mutate-") as scratch:
        work = pathlib.Path(scratch)
        (work / "canary").mkdir()
        (work / "canary/secret").write_text("s" * 128)
        canary = tree(work / "canary")
        environment = {**os.environ, "XDG_CACHE_HOME": str(work / "cache")}
        for number in range(arguments.count):
            chance = random.Random(f"{arguments.seed} {number}")
            bundle = work / "b/bundle"
            shutil.copytree(arguments.bundle, bundle)
            said = chance.choice(KINDS)(bundle, chance)
            before = None if "sparse" in said or "pipe" in said else tree(bundle)
            command = [program, "run", str(bundle), "--out", str(work / "b/out"), "--json"]
            if number % 4 == 0:
                command = [program, "verify", str(bundle), "--json"]
            if number % 4 == 2:
                command = [program, "verify", str(bundle / "plan.json"), "--json"]
            code, fault = fault_of(command, environment)
            codes[command[1], code] += 1
            if not fault and tree(work / "canary") != canary:
                fault = "the folder beside it was changed"
            if not fault and before is not None and tree(bundle) != before:
                fault = "the bundle was changed"
            if not fault and {path.name for path in work.iterdir()} - {"canary", "cache", "b"}:
                fault = "files beside it"
            if fault:
                findings += 1
                print(f"{number} ({command[1]}, {said}): {fault}", flush=True)
            shutil.rmtree(work / "b")
    for (command, code), times in sorted(codes.items()):
        print(f"{command} {code}: {times}")
    print(f"{arguments.count} bundles, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
