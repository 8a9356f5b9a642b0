#!/usr/bin/env python3
"""Every source is laid out as .clang-format says, without blank lines beside a namespace's braces and `#pragma once`.
Usage: check_format.py [--write] [ROOT]; `./run format` writes. Exit status 77: no clang-format here."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys


BRACE = rb"(?:namespace [^\n]*\{|#pragma once|\}  // namespace[^\n]*)"
BESIDE = re.compile(rb"^(" + BRACE + rb")\n\n+(?=[^\n])|\n(?=\n+" + BRACE + rb"$)", re.M)


def differs(path, write):
    """Line of the first difference, or 0."""
    text = path.read_bytes()
    wanted = subprocess.run(["clang-format", str(path)], capture_output=True, check=True).stdout
    wanted = BESIDE.sub(lambda match: match[1] + b"\n" if match[1] else b"", wanted)
    if text == wanted:
        return 0
    if write:
        path.write_bytes(wanted)
    pairs = zip(text.splitlines(), wanted.splitlines())
    return next((line for line, (a, b) in enumerate(pairs, 1) if a != b), 1)


def main():
    write = "--write" in sys.argv
    folders = [argument for argument in sys.argv[1:] if argument != "--write"]
    root = pathlib.Path(folders[0] if folders else ".")
    if not shutil.which("clang-format"):
        print("clang-format is not installed")
        return 77
    files = [path for folder in ("src", "include", "device", "tests") for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".h", ".cpp")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [(path, line) for path, line in zip(files, pool.map(lambda path: differs(path, write), files)) if line]
    if write:
        print(f"{len(faults)} of {len(files)} files were laid out")
        return 0
    for path, line in faults:
        print(f"{path.relative_to(root)}:{line}: not laid out as .clang-format says")
    print(f"{len(files) - len(faults)} of {len(files)} files are laid out as .clang-format says; "
          "`./run format` mends the others" if faults else f"{len(files)} files are laid out as .clang-format says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
