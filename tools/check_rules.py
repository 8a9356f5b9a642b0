#!/usr/bin/env python3
"""The rules of how code reads (CONTRIBUTING.md) that need no compiler, over the whole tree.

    check_rules.py [ROOT]                  fails where a file offends more often than is listed
    check_rules.py [ROOT] --only PREFIX …  every offence in files whose names begin so
    check_rules.py [ROOT] --write          tools/offenders.txt shrinks to what is left
    check_rules.py [ROOT] --write --anew   it becomes what is counted: when a rule is new

Sources, scripts and documents: no line over 100 columns, no file over 500 lines. C++: one
declarator a declaration, no comma statements, no nested conditional operators, functions to 80
lines and nested to 4, named lambdas to 25 lines, classes to 250 (tools/cxx.py). The other rules are
tools/check_tidy.py's.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys

import cxx
import markdown
import offenders

COLUMNS, LINES = 100, 500
CHECKS = {
    "line-over-100",
    "file-over-500",
    "several-declarators",
    "comma-statement",
    "nested-conditional",
    "function-over-80",
    "nesting-over-4",
    "lambda-over-25",
    "class-over-250",
}
FOLDERS = ("src", "include", "device", "tests", "tools", "bench", "cmake", "python", "examples")
CPP = {".h", ".cpp", ".cu"}
SUFFIXES = CPP | {".def", ".py", ".cmake", ".js", ".css", ".sh"}
# Data in the form of code, and files that stay as an earlier version wrote them.
APART = ("tests/fixtures/", "tests/verify/corpus/", "bench/results/", "bench/plans/")


def files_of(root):
    """What git knows or does not ignore."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    for name in ran.stdout.split("\n"):
        path = root / name
        if not name or name.startswith(APART) or not path.is_file():
            continue
        code = path.suffix in SUFFIXES and name.split("/")[0] in (*FOLDERS, "resources")
        if code or path.suffix == ".md" or name == "run":
            yield name


def faults_of(path):
    """(check, line, amount) of each offence of one file."""
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        return [("line-over-100", line, 1) for line in markdown.too_long(text)]
    lines = text.splitlines()
    found = [("line-over-100", at, len(x)) for at, x in enumerate(lines, 1) if len(x) > COLUMNS]
    if len(lines) > LINES:
        found.append(("file-over-500", len(lines), len(lines)))
    return found + (cxx.read(text).faults if path.suffix in CPP else [])


def all_faults(root):
    """{file: its offences} of every file that the rules hold for."""
    names = list(files_of(root))
    with concurrent.futures.ProcessPoolExecutor() as pool:
        return dict(zip(names, pool.map(faults_of, [root / n for n in names], chunksize=8)))


def places(found, name, check):
    return [f"    {name}:{line}: {amount}" for one, line, amount in found[name] if one == check]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--anew", action="store_true")
    options = parser.parse_args()
    found = all_faults(options.root)
    if options.only:
        lines = [
            f"{name}:{line}: {check} {amount}"
            for name, faults in found.items()
            for check, line, amount in faults
            if name.startswith(tuple(options.only))
        ]
        print("\n".join(lines))
        return 1 if lines else 0
    pairs = [(name, check) for name, rows in found.items() for check, *_ in rows]
    counted = offenders.count(pairs)
    listed = offenders.load(options.root)
    if options.write and options.anew:
        listed = offenders.anew(listed, counted, CHECKS)
        offenders.save(options.root, listed)
    elif options.write:
        offenders.save(options.root, offenders.shrunk(listed, counted, set(found), CHECKS))
    worse = offenders.worse(listed, counted)
    for name, check, sentence in worse:
        print("\n".join([sentence, *places(found, name, check)[:5]]))
    print(f"{len(found)} files, {sum(counted.values())} offences of old, {len(worse)} new")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
