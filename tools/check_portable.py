#!/usr/bin/env python3
"""The executable needs glibc at run time and nothing else, and no newer glibc than 2.36.
Usage: check_portable.py FILE"""
import re
import subprocess
import sys

ALLOWED = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}
NEWEST_GLIBC = (2, 36)


def main():
    path = sys.argv[1]
    dynamic = subprocess.run(
        ["readelf", "-dW", path], capture_output=True, text=True, check=True
    ).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", dynamic))
    versions = subprocess.run(
        ["readelf", "-VW", path], capture_output=True, text=True, check=True
    ).stdout
    newest = max(
        [tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", versions)],
        default=(0, 0),
    )
    faults = [f"{path} needs {name}" for name in sorted(needed - ALLOWED)]
    if newest > NEWEST_GLIBC:
        faults.append(f"{path} needs glibc {newest[0]}.{newest[1]}")
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        faults.append(f"{path} carries a run path")
    print(
        "\n".join(faults)
        if faults
        else f"needs {', '.join(sorted(needed))} and glibc {newest[0]}.{newest[1]}"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
