#!/usr/bin/env python3
"""clang-tidy, with the lists of .clang-tidy, over src, device and tests.

    check_tidy.py ROOT BUILD                 what changed since tools/offenders.txt was written, for
                                             400 s; then others, until 100 s are spent
    check_tidy.py ROOT BUILD --seconds N     N in place of 400; 0: all files, whatever it takes
    check_tidy.py ROOT BUILD --write         all files; tools/offenders.txt shrinks to what is left
    check_tidy.py ROOT BUILD --write --anew  it becomes what is found, of files that were not looked
                                             at (--seconds N) that they were not
    check_tidy.py ROOT BUILD --only PREFIX … all files whose names begin so, each fault as it is:
                                             tools/offenders.txt excuses none

Without the precompiled header, so that each file must include what it uses. What a file showed is
kept in BUILD/tidy and holds until the file, a header that it includes or .clang-tidy changes: a
look at everything that was broken off goes on where it was. A file may offend as often as
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
import threading
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


def changed(root):
    """Files that are not as they were when tools/offenders.txt was written last: then all were
    looked at. Of the working tree alone where git knows no such commit."""
    git = ["git", "-C", str(root)]
    log = [*git, "log", "-1", "--format=%H", "--", "tools/offenders.txt"]
    base = subprocess.run(log, capture_output=True, text=True, check=False).stdout.strip()
    names = set()
    for what in (["diff", "--name-only", base or "HEAD"], ["ls-files", "-o", "--exclude-standard"]):
        ran = subprocess.run([*git, *what], capture_output=True, text=True, check=False)
        names |= set(ran.stdout.split("\n"))
    return names - {""}


def touched(names, files):
    """Of translation units {name: headers it includes} those to look at after `files` changed: they
    themselves, and for each header the first that includes it, of its own name where there is one.

    >>> units = {"src/a.cpp": {"src/a.h", "src/b.h"}, "src/b.cpp": {"src/b.h"}, "src/c.cpp": set()}
    >>> sorted(touched(units, {"src/c.cpp", "src/b.h"}))
    ['src/b.cpp', 'src/c.cpp']
    """
    found = {name for name in names if name in files}
    for header in files:
        own = header.removesuffix(".h")
        users = [name for name, headers in names.items() if header in headers]
        if header.endswith(".h") and users:
            found.add(min(users, key=lambda name: (not name.startswith(own + "."), name)))
    return found


def look(path, flags, root):
    """{(file, line, column, check, message)} of all that one translation unit shows."""
    command = [CLANG_TIDY, "--quiet", str(path), "--", *flags]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode < 0:
        sys.exit(f"{path}: {CLANG_TIDY} ended by signal {-ran.returncode}")
    found = set()
    for name, line, column, message, checks in FOUND.findall(ran.stdout):
        name = os.path.normpath(name)  # a header that was reached by "../room/name.h"
        if pathlib.Path(name).is_relative_to(root):
            name = str(pathlib.Path(name).relative_to(root))
            check = checks.split(",")[0]
            found.add((name, int(line), int(column), check, message))
    return found


def headers_of(root, build):
    """{object file: headers of the project that it was built from}, as ninja knows."""
    ran = subprocess.run(
        ["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=False
    )
    found, headers = {}, set()
    for line in ran.stdout.splitlines():
        if not line.startswith(" "):
            headers = found.setdefault(line.split(":")[0], set())
            continue
        path = pathlib.Path(os.path.normpath(build / line.strip()))
        if path.suffix == ".h" and path.is_relative_to(root):
            headers.add(str(path.relative_to(root)))
    return found


Unit = collections.namedtuple("Unit", "name path flags headers stamp")


def units_of(root, build):
    """Each translation unit; its stamp is the file that holds what was found."""
    everywhere = set()
    for folder in FOLDERS:
        everywhere |= {str(path.relative_to(root)) for path in (root / folder).rglob("*.h")}
    digest_of = lambda path: hashlib.sha256(path.read_bytes()).digest()
    digests = {name: digest_of(root / name) for name in everywhere}
    known = headers_of(root, build)
    stamps = build / "tidy"
    stamps.mkdir(exist_ok=True)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        name = str(path.relative_to(root)) if path.is_relative_to(root) else ""
        if not name.startswith(FOLDERS) or name.startswith(APART) or not path.exists():
            continue
        # One that was never built may include anything.
        headers = known.get(entry.get("output", ""), everywhere) & everywhere
        key = hashlib.sha256((root / ".clang-tidy").read_bytes() + digest_of(path) + name.encode())
        for header in sorted(headers):
            key.update(header.encode() + digests[header])
        yield Unit(name, path, flags_of(entry), headers, stamps / (key.hexdigest() + ".json"))


class Looker:
    """Looks at units, or at what an earlier look left, and says on standard error how far it is."""

    def __init__(self, root, count):
        self.root, self.count, self.done, self.looked = root, count, 0, 0
        self.start = self.said = time.time()
        self.lock = threading.Lock()

    def outcome(self, unit, end):
        """What was found in a unit; None after the time `end`."""
        found = self.kept(unit)
        if found is None and time.time() < end:
            found = look(unit.path, unit.flags, self.root)
            part = unit.stamp.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            part.write_text(json.dumps(sorted(found)))
            part.replace(unit.stamp)
            self.looked += 1
        self.say()
        return found

    def kept(self, unit):
        try:
            return {tuple(row) for row in json.loads(unit.stamp.read_text())}
        except (OSError, ValueError):
            return None

    def say(self):
        with self.lock:
            self.done += 1
            if self.looked and time.time() - self.said > 5:
                self.said = time.time()
                left = (self.count - self.done) * (self.said - self.start) / self.looked / 60
                print(
                    f"tidy: {self.done} of {self.count}, at most {left:.0f} min left",
                    file=sys.stderr,
                    flush=True,
                )


def report(found, listed):
    """A sentence for each file that offends more often than is listed, and the places."""
    faults = []
    counted = offenders.count((name, check) for name, _, _, check, _ in found)
    for name, check, sentence in offenders.worse(listed, counted, {row[3] for row in found}):
        faults.append(sentence)
        faults += [
            f"    {where}:{line}: {message}"
            for where, line, _, one, message in sorted(found)
            if (where, one) == (name, check)
        ][:5]
    return faults


def renewed(listed, found, names, unseen, anew):
    """The rows after a look that found `found` in units `names`, others being `unseen`."""
    counted = offenders.count((name, check) for name, _, _, check, _ in found)
    checks = {check for _, check in [*listed, *counted]} - check_rules.CHECKS
    if anew:
        rows = offenders.anew(listed, counted, checks)
        return rows | {(name, offenders.NOT_LOOKED_AT): 1 for name in unseen}
    names = names | {name for name, _ in listed}
    return offenders.shrunk(listed, counted, names - unseen, checks, names - unseen)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    return parser.parse_args()


def ends(options):
    """Until when units that changed are looked at, and until when others."""
    seconds = options.seconds
    if seconds is None:
        seconds = 0 if options.write or options.only else 400
    if seconds == 0:
        return float("inf"), float("inf")
    return time.time() + seconds, time.time() + (seconds if options.write else min(100, seconds))


def main():
    options = arguments()
    if not shutil.which(CLANG_TIDY):
        print(f"{CLANG_TIDY} is not installed")
        return 77
    root, build = options.root.resolve(), options.build.resolve()
    units = [u for u in units_of(root, build) if u.name.startswith(tuple(options.only) or "")]
    first = touched({unit.name: unit.headers for unit in units}, changed(root))
    random.Random(int(time.time() // 86400)).shuffle(units)
    units.sort(key=lambda unit: unit.name not in first)
    end_of_first, end_of_others = ends(options)
    looker = Looker(root, len(units))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        end_of = lambda unit: end_of_first if unit.name in first else end_of_others
        outcomes = list(pool.map(lambda unit: looker.outcome(unit, end_of(unit)), units))
    unseen = {unit.name for unit, found in zip(units, outcomes) if found is None}
    found = set().union(*(found for found in outcomes if found is not None))
    if options.only:
        faults = [
            f"{file}:{line}: {message} [{check}]"
            for file, line, _, check, message in sorted(found)
            if file.startswith(tuple(options.only))
        ]
        print("\n".join(faults))
        print(f"{len(units)} files looked at, {len(faults)} faults")
        return 1 if faults else 0
    listed = offenders.load(root)
    if options.write:
        if unseen:  # and headers that only they may include
            unseen |= set().union(*(unit.headers for unit in units if unit.name in unseen))
        listed = renewed(listed, found, {unit.name for unit in units}, unseen, options.anew)
        offenders.save(root, listed)
    faults = report(found, listed)
    print("\n".join(faults))
    print(
        f"{len(units) - len(unseen)} of {len(units)} files looked at, {len(first - unseen)} of"
        f" {len(first)} that changed; {len(faults)} lines of faults"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
