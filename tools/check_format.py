#!/usr/bin/env python3
"""Every source is laid out as .clang-format says, every document as tools/markdown.py does.
Usage: check_format.py [--write] [ROOT]; `./run format` writes. Exit status 77: no clang-format."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

from markdown import reflow

CLANG_FORMAT = "clang-format-19"
FOLDERS = ("src", "include", "device", "tests", "bench", "examples")
# Stored as they are: kernels that lie to the judge, whose first lines are data, and older formats.
AS_THEY_ARE = ("tests/verify/corpus", "tests/fixtures")


def wanted(path):
    """The bytes of the file as they should be."""
    if path.suffix == ".md":
        return reflow(path.read_text()).encode()
    return subprocess.run([CLANG_FORMAT, str(path)], capture_output=True, check=True).stdout


def first_difference(path, write):
    """Line of the first difference, or 0."""
    text = path.read_bytes()
    laid_out = wanted(path)
    if text == laid_out:
        return 0
    if write:
        path.write_bytes(laid_out)
    pairs = zip(text.splitlines(), laid_out.splitlines())
    return next((line for line, (a, b) in enumerate(pairs, 1) if a != b), 1)


def files_of(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu") and not str(path.relative_to(root)).startswith(
                AS_THEY_ARE
            ):
                yield path
    yield from sorted(
        [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/**/*.md")]
    )


def main():
    write = "--write" in sys.argv
    folders = [argument for argument in sys.argv[1:] if argument != "--write"]
    root = pathlib.Path(folders[0] if folders else ".")
    if not shutil.which(CLANG_FORMAT):
        print(f"{CLANG_FORMAT} is not installed")
        return 77
    files = list(files_of(root))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        lines = pool.map(lambda path: first_difference(path, write), files)
        faults = [(path, line) for path, line in zip(files, lines) if line]
    if write:
        print(f"{len(faults)} of {len(files)} files were laid out anew")
        return 0
    for path, line in faults:
        print(f"{path.relative_to(root)}:{line}: not laid out")
    mend = "; `./run format` mends the others" if faults else ""
    print(f"{len(files) - len(faults)} of {len(files)} files are laid out{mend}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
