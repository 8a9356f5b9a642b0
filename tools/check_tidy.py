#!/usr/bin/env python3
"""clang-tidy, with the short list of .clang-tidy, over as many files as fit in the time given (default 150 s).

A file that passed is not looked at again until it or a header changes; which files come first depends on the day, so all
have their turn. Usage: check_tidy.py ROOT BUILD [SECONDS]. Exit status 77: no clang-tidy here.
"""
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


def compile_flags(entry):
    """What clang needs of a compile command: include paths and definitions; the precompiled header is another compiler's."""
    words = entry["command"].split()
    flags, at = [], 1
    while at < len(words):
        if words[at] == "-isystem":
            flags += words[at : at + 2]
            at += 1
        elif re.match(r"-(I|D|std=)", words[at]):
            flags.append(words[at].replace("\\", ""))
        at += 1
    return flags


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 150
    if not shutil.which("clang-tidy"):
        print("clang-tidy is not installed")
        return 77
    headers = hashlib.sha256((root / ".clang-tidy").read_bytes())
    for path in sorted((root / "src").rglob("*.h")):
        headers.update(path.read_bytes())
    stamps = build / "tidy"
    stamps.mkdir(exist_ok=True)
    # The headers of the precompiled header, under a name beside which clang finds no foreign binary.
    prefix = stamps / "prefix.h"
    shutil.copy(build / "CMakeFiles/warploom_pch_holder.dir/cmake_pch.hxx", prefix)
    work = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if (root / "src") not in path.parents or not path.exists():
            continue
        stamp = (
            stamps
            / hashlib.sha256(headers.digest() + path.read_bytes() + str(path).encode()).hexdigest()
        )
        if not stamp.exists():
            work.append((path, compile_flags(entry), stamp))
    total = len(work)
    random.Random(int(time.time() // 86400)).shuffle(work)
    end = time.time() + seconds

    def look(item):
        path, flags, stamp = item
        if time.time() > end:
            return None
        command = [
            "clang-tidy",
            "--quiet",
            str(path),
            "--",
            *flags,
            "-include",
            str(prefix),
            "-Wno-everything",
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            stamp.touch()
            return ""
        return result.stdout + result.stderr

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = [outcome for outcome in pool.map(look, work) if outcome is not None]
    faults = [outcome for outcome in outcomes if outcome]
    print("\n".join(faults))
    print(
        f"{len(outcomes) - len(faults)} of {len(outcomes)} files looked at are tidy; {total - len(outcomes)} await their turn"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
