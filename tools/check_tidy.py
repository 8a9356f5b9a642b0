#!/usr/bin/env python3
"""clang-tidy, with the lists of .clang-tidy, over src, device and tests.

    check_tidy.py ROOT BUILD                 files changed of late first, then others, for 150 s
    check_tidy.py ROOT BUILD --seconds N     so many seconds; 0: all files, whatever it takes
    check_tidy.py ROOT BUILD --write         all files; tools/offenders.txt shrinks to what is left
    check_tidy.py ROOT BUILD --only PREFIX … all files whose names begin so, each fault as it is:
                                             tools/offenders.txt excuses none

Without the precompiled header, so that each file must include what it uses. A file that was looked
at is not looked at again until it or a header changes. A file may offend as often as
tools/offenders.txt lists, and no more; a file that does not compile without the precompiled header
does not include what it uses (clang-diagnostic-error).
Exit status 77: no clang-tidy here.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

import check_rules
import offenders

CLANG_TIDY = "clang-tidy-19"
FOUND = re.compile(r"^(/[^:]+):(\d+):(\d+): (?:warning|error): (.*) \[([\w.,-]+)\]$", re.M)
FOLDERS = ("src", "include", "device", "tests")
APART = ("tests/fixtures/", "tests/verify/corpus/")


def flags_of(entry):
    """What clang needs of a compile command: include paths, definitions and the language."""
    words = entry["command"].split()
    flags = ["-Wcomma"]
    for at, word in enumerate(words):
        if word == "-isystem":
            flags += [word, words[at + 1]]
        elif re.match(r"-(I|D|std=)", word):
            flags.append(word.replace("\\", ""))
    return flags


def changed_of_late(root):
    """Files of the working tree and of the last commits, by name; none where git knows no more."""
    names = set()
    for command in (["diff", "--name-only", "HEAD"], ["log", "-20", "--name-only", "--format="]):
        ran = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True)
        names |= set(ran.stdout.split("\n"))
    return names


def look(path, flags, root):
    """{(file, line, column, check, message)} of all that one translation unit shows."""
    command = [CLANG_TIDY, "--quiet", str(path), "--", *flags]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = set()
    for name, line, column, message, checks in FOUND.findall(ran.stdout):
        name = os.path.normpath(name)  # a header that was reached by "../room/name.h"
        if pathlib.Path(name).is_relative_to(root):
            name = str(pathlib.Path(name).relative_to(root))
            check = checks.split(",")[0]
            found.add((name, int(line), int(column), check, message))
    return found


def work_of(root, build):
    """(name, file, flags, stamp) of each translation unit; the stamp holds what was found."""
    digest = hashlib.sha256((root / ".clang-tidy").read_bytes())
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.h")):
            digest.update(path.read_bytes())
    stamps = build / "tidy"
    stamps.mkdir(exist_ok=True)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        name = str(path.relative_to(root)) if path.is_relative_to(root) else ""
        if not name.startswith(FOLDERS) or name.startswith(APART) or not path.exists():
            continue
        key = digest.digest() + path.read_bytes() + name.encode()
        yield name, path, flags_of(entry), stamps / (hashlib.sha256(key).hexdigest() + ".json")


def count(found):
    return dict(collections.Counter((name, check) for name, _, _, check, _ in found))


def report(found, listed):
    """A sentence for each file that offends more often than is listed, and the places."""
    faults = []
    for sentence in offenders.worse(listed, count(found), {check for *_, check, _ in found}):
        faults.append(sentence)
        name, check = sentence.split(": ")[0], sentence.split(": ")[1].split(" ")[0]
        faults += [
            f"    {where}:{line}: {message}"
            for where, line, _, one, message in sorted(found)
            if (where, one) == (name, check)
        ][:5]
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    if not shutil.which(CLANG_TIDY):
        print(f"{CLANG_TIDY} is not installed")
        return 77
    root = options.root.resolve()
    work = [w for w in work_of(root, options.build) if w[0].startswith(tuple(options.only) or "")]
    late = changed_of_late(root)
    random.Random(int(time.time() // 86400)).shuffle(work)
    work.sort(key=lambda item: item[0] not in late)
    everything = options.write or options.seconds == 0 or options.only
    end = float("inf") if everything else time.time() + options.seconds

    def outcome(item):
        name, path, flags, stamp = item
        if stamp.exists():
            return {tuple(row) for row in json.loads(stamp.read_text())}
        if time.time() > end:
            return None
        found = look(path, flags, root)
        stamp.write_text(json.dumps(sorted(found)))
        return found

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(outcome, work))
    seen = [found for found in outcomes if found is not None]
    found = set().union(*seen)
    if options.only:
        faults = [f"{file}:{line}: {message} [{check}]"
                  for file, line, _, check, message in sorted(found)
                  if file.startswith(tuple(options.only))]
        print("\n".join(faults))
        print(f"{len(seen)} files looked at, {len(faults)} faults")
        return 1 if faults else 0
    listed = offenders.load(root)
    if options.write:
        names = {name for name, *_ in work} | {name for name, _ in listed}
        checks = {check for _, check in listed if check not in check_rules.CHECKS}
        offenders.save(root, offenders.shrunk(listed, count(found), names, checks, names))
    faults = report(found, listed)
    print("\n".join(faults))
    print(
        f"{len(seen)} of {len(work)} files looked at, {len(faults)} faults; others await their turn"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
