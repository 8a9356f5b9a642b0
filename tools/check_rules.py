#!/usr/bin/env python3
"""No line over 100 columns, no file over 500 lines: sources, scripts and documents.
Usage: check_rules.py [--write] [ROOT]. What offends since before is in tools/offenders.txt."""

import pathlib
import subprocess
import sys

import markdown
import offenders

COLUMNS, LINES = 100, 500
CHECKS = {"line-over-100", "file-over-500"}
FOLDERS = ("src", "include", "device", "tests", "tools", "bench", "cmake", "python", "examples")
SUFFIXES = {".h", ".cpp", ".cu", ".def", ".py", ".cmake", ".js", ".css", ".sh"}
# Data in the form of code, and files that stay as an earlier version wrote them.
APART = ("tests/fixtures/", "tests/verify/corpus/", "bench/results/", "bench/plans/")


def files_of(root):
    """What git knows or does not ignore."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    ):
        path = root / name
        if not name or name.startswith(APART) or not path.is_file():
            continue
        code = path.suffix in SUFFIXES and name.split("/")[0] in (*FOLDERS, "resources")
        if code or path.suffix == ".md" or name == "run":
            yield name


def count(root):
    counted, looked_at = {}, set()
    for name in files_of(root):
        text = (root / name).read_text(errors="replace")
        looked_at.add(name)
        if name.endswith(".md"):
            long = len(markdown.too_long(text))
        else:
            long = sum(len(line) > COLUMNS for line in text.splitlines())
        if long:
            counted[name, "line-over-100"] = long
        if not name.endswith(".md") and text.count("\n") > LINES:
            counted[name, "file-over-500"] = 1
    return counted, looked_at


def main():
    write = "--write" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    root = pathlib.Path(arguments[0] if arguments else ".")
    counted, looked_at = count(root)
    listed = offenders.load(root)
    if write:
        offenders.save(root, offenders.shrunk(listed, counted, looked_at, CHECKS))
    faults = offenders.worse(listed, counted)
    print("\n".join(faults))
    print(f"{len(looked_at)} files, {sum(counted.values())} offences of old, {len(faults)} new")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
