#!/usr/bin/env python3
"""Every source is laid out as .clang-format says; `./run format` does it. Usage: check_format.py [ROOT]
Exit status 77: no clang-format here."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys


def differs(path):
    """Line of the first difference, or 0."""
    text = path.read_bytes()
    wanted = subprocess.run(["clang-format", str(path)], capture_output=True, check=True).stdout
    if text == wanted:
        return 0
    pairs = zip(text.splitlines(), wanted.splitlines())
    return next((line for line, (a, b) in enumerate(pairs, 1) if a != b), 1)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    if not shutil.which("clang-format"):
        print("clang-format is not installed")
        return 77
    files = [path for folder in ("src", "include", "device", "tests") for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".h", ".cpp")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [(path, line) for path, line in zip(files, pool.map(differs, files)) if line]
    for path, line in faults:
        print(f"{path.relative_to(root)}:{line}: not laid out as .clang-format says")
    print(f"{len(files) - len(faults)} of {len(files)} files are laid out as .clang-format says; "
          "`./run format` mends the others" if faults else f"{len(files)} files are laid out as .clang-format says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
