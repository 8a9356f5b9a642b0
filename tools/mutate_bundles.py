#!/usr/bin/env python3
"""Damages a bundle in many ways, and gives each to `warploom run` or `warploom verify`.

  tools/mutate_bundles.py build/release/warploom BUNDLE [--count 1000] [--seed 1] [--no-named]

Bytes are flipped, files cut, keys of the plan deleted or given another value, files exchanged; in
half of them the hashes are made to fit again, as somebody does who knows how. Whatever comes of it,
the program ends with one JSON object and an exit status for bad input, of the machine or of the
kernels, within a minute; a folder beside the bundle, and the bundle itself, stay as they are.
Before these come edits that somebody made up who wants to deceive, each of which `verify` of the
bundle must refuse (NAMED).
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


def changed(change):
    """An edit of the plan as JSON."""

    def edit(bundle):
        file = bundle / "plan.json"
        plan = json.loads(file.read_text(encoding="utf-8"))
        change(plan)
        file.write_text(json.dumps(plan), encoding="utf-8")

    return edit


def appended(name, text):
    """An edit that puts text behind the first file of that ending."""

    def edit(bundle):
        file = next(path for path in files_of(bundle) if path.name.endswith(name))
        file.write_bytes(file.read_bytes() + text.encode())

    return edit


def added(name, text):
    def edit(bundle):
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_text(text)

    return edit


def key_twice(bundle):
    file = bundle / "plan.json"
    text = file.read_text(encoding="utf-8").rstrip()
    first = '{"launch_list": {"engine": "cpu", "kernels": []}, '
    file.write_text(first + text[1:], encoding="utf-8")


def folder_as_link(name):
    def edit(bundle):
        (bundle / name).rename(bundle.parent / name)
        (bundle / name).symlink_to(pathlib.Path("..") / name)

    return edit


def plan_as_link(bundle):
    (bundle / "plan.json").rename(bundle.parent / "elsewhere.json")
    (bundle / "plan.json").symlink_to("../elsewhere.json")


def text_of_plan(old, new):
    """An edit of the plan's text: of the first place of `old`."""

    def edit(bundle):
        file = bundle / "plan.json"
        text = file.read_text(encoding="utf-8")
        assert old in text, old
        file.write_text(text.replace(old, new, 1), encoding="utf-8")

    return edit


def kernel_of(plan):
    return plan["launch_list"]["kernels"][0]


def without_seal(change):
    def both(plan):
        change(plan)
        plan["files"].pop("plan.json", None)

    return changed(both)


NAMED = {
    "a key twice, of which the first says that nothing is launched": key_twice,
    "a grid of 2^62": without_seal(lambda plan: kernel_of(plan).update(grid=[2**62, 1, 1])),
    "a grid of 2^64": without_seal(lambda plan: kernel_of(plan).update(grid=[2**64, 1, 1])),
    "a grid of halves": without_seal(lambda plan: kernel_of(plan).update(grid=[1.5, 1, 1])),
    "a grid of 1e999": without_seal(lambda plan: kernel_of(plan).update(grid=[1e308 * 10, 1, 1])),
    "scratch of 2^60": without_seal(lambda plan: kernel_of(plan).update(shared_bytes=2**60)),
    "a shape below 0": without_seal(
        lambda plan: plan["launch_list"]["inputs"][0].update(shape=[-1, -1])
    ),
    "a preparation by a kernel that is not there": without_seal(
        lambda plan: plan["launch_list"].update(prepare=[999])
    ),
    "an unknown type": without_seal(
        lambda plan: plan["launch_list"]["inputs"][0].update(dtype="f33")
    ),
    "another engine": without_seal(lambda plan: plan["launch_list"].update(engine="cuda")),
    "a kernel's name that is a path": without_seal(
        lambda plan: kernel_of(plan).update(name="../../canary/secret")
    ),
    "a kernel's name of another direction of writing": without_seal(
        lambda plan: kernel_of(plan).update(name="relu\u202egpj")
    ),
    "a bundle's name with a line's end": without_seal(lambda plan: plan.update(name="a\nb: c")),
    "a constant outside": without_seal(
        lambda plan: plan.update(constants={"w": "../../canary/secret"})
    ),
    "a hash of a file outside": changed(
        lambda plan: plan["files"].update({"../../canary/secret": "0"})
    ),
    "a name that is no UTF-8": lambda bundle: (bundle / "plan.json").write_bytes(
        (bundle / "plan.json").read_bytes().replace(b'"name": "', b'"name": "\xff\xfe', 1)
        + b"\n\xff"
    ),
    "no seal, and another summary": without_seal(
        lambda plan: plan.update(summary="Twice as fast.")
    ),
    "a header for devices that includes another file": appended(
        "wl_cpu.h", '\n#include "/etc/hostname"\n'
    ),
    "a header for devices with a space more": appended("wl_cpu.h", " "),
    "a module for Python that does more": appended(".py", "\nimport os\n"),
    "a Makefile that does more": appended("Makefile", "\ncheck: more\nmore:\n\ttrue\n"),
    "a makefile that make prefers": added("GNUmakefile", "check:\n\ttrue\n"),
    "a launcher with a constructor": appended(
        "_host.cpp", "\n__attribute__((constructor)) static void before() {}\n"
    ),
    "a kernel file with a constructor": appended(
        "_kernels.cpp", "\n__attribute__((constructor)) static void before() {}\n"
    ),
    "a kernel file that includes another file": appended(
        "_kernels.cpp", '\n#include "/etc/hostname"\n'
    ),
    "a module that Python takes first": added("torch.py", "raise SystemExit\n"),
    "a hidden file": added(".gdbinit", "shell true\n"),
    "a file of another direction of writing": added("mine\u202egpj.cpp", "int x;\n"),
    "two files that differ in how an accent is written": added("e\u0301.h", "\n"),
    "check/ as a link": folder_as_link("check"),
    "device/ as a link": folder_as_link("device"),
    "plan.json as a link": plan_as_link,
}

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


def try_named(program, bundle, work, canary, environment):
    """How many of the named edits `verify` accepts, or that have another fault."""
    findings = 0
    for name, edit in NAMED.items():
        copy = work / "b/bundle"
        shutil.copytree(bundle, copy)
        edit(copy)
        faults = []
        for command in (["verify"], ["run", "--out", str(work / "b/out")]):
            line = [program, command[0], str(copy), *command[1:], "--json"]
            code, fault = fault_of(line, environment)
            if command[0] == "verify" and code == "fine":
                fault = fault or "accepted"
            print(f"{name}: {command[0]} says {code}", flush=True)
            faults += [fault] if fault else []
        if tree(work / "canary") != canary:
            faults.append("the folder beside it was changed")
        findings += bool(faults)
        for fault in faults:
            print(f"  FOUND: {fault}", flush=True)
        shutil.rmtree(work / "b")
    return findings


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-named", action="store_true")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    codes, findings = collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="warploom-mutate-") as scratch:
        work = pathlib.Path(scratch)
        (work / "canary").mkdir()
        (work / "canary/secret").write_text("s" * 128)
        canary = tree(work / "canary")
        environment = {**os.environ, "XDG_CACHE_HOME": str(work / "cache")}
        if not arguments.no_named:
            findings += try_named(program, arguments.bundle, work, canary, environment)
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
