#!/usr/bin/env python3
"""Weights that are read packed beside the same row by row: writes
bench/results/ptxas/packed.json. Usage: packed.py [--warploom FILE]


Of the examples in PROGRAMS, and of them with W and S row by row: loads of W and S by a thread for
each 64 of k, counted in the emitted text; instructions (the kernel's code in units of 16 bytes,
padding too) and registers by ptxas; the predicted time of 4096 x 4096 weights and 128 rows. Needs
nvcc and readelf; no GPU."""
import argparse
import json
import pathlib
import re
import tempfile

import measure

PROGRAMS = ["w4a16_packed", "w4a16_packed_wgmma"]
TARGET, ARCH = "sm_90a", "90a"
LARGE = {
    "grid(4, 2)": "grid(64, 2)",
    "W u4 [256, 512]": "W u4 [4096, 4096]",
    "[256, 8]": "[4096, 32]",
    "X f16 [128, 512]": "X f16 [128, 4096]",
    "C f16 [256, 128] strides [1, 256]": "C f16 [4096, 128] strides [1, 4096]",
    "in 0 .. 8:": "in 0 .. 64:",
}


def compiled(warploom, folder, text):
    source = folder / "program.tile"
    source.write_text(text)
    return json.loads(measure.run(warploom, "compile", str(source), "--target", TARGET, "--json"))


def loads(kernel):
    """{bytes: loads} of W and S in the loop over k, by a thread."""
    counts, loops = {}, []  # (indent, turns) of the loops around a line
    for line in kernel.split("\n"):
        indent = len(line) - len(line.lstrip())
        loops = [loop for loop in loops if loop[0] < indent]
        if found := re.search(r"for \(int (\w+) = 0; \w+ < (\d+);", line):
            loops.append((indent, found[1], int(found[2])))
        if (found := re.search(r"ld_global<(\d+)>\(.*?, [WS]\b", line)) and any(
            name == "k" for _, name, _ in loops
        ):
            turns = 1
            for _, name, count in loops:
                turns *= 1 if name == "k" else count
            counts[int(found[1])] = counts.get(int(found[1]), 0) + turns
    return counts


def ptxas(folder, kernel):
    """(instructions, registers, bytes spilled)"""
    text, cubin = folder / "kernel.cu", folder / "kernel.cubin"
    text.write_text(kernel)
    log = measure.run(
        "bash",
        "-c",
        f"nvcc -cubin -gencode=arch=compute_{ARCH},code=sm_{ARCH} -std=c++17 -Xptxas -v "
        f"-I{measure.ROOT}/device/ptx "
        f"-I{measure.ROOT}/device/common {text} -o {cubin} 2>&1",
    )
    sizes = re.findall(
        r"\s\.text\.\w+\s+PROGBITS\s+\w+\s+\w+\s+(\w+)", measure.run("readelf", "-SW", str(cubin))
    )
    return (
        int(sizes[0], 16) // 16,
        int(re.search(r"Used (\d+) registers", log)[1]),
        sum(map(int, re.findall(r"(\d+) bytes spill", log))),
    )


def main():
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--warploom", default=str(measure.BUILD / "warploom"))
    warploom, rows = flags.parse_args().warploom, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program in PROGRAMS:
            whole = (measure.ROOT / "examples/tile" / f"{program}.tile").read_text()
            for packed in (False, True):
                text = (
                    whole
                    if packed
                    else re.sub(r"^(global [WS] .*) packed$", r"\1", whole, flags=re.M)
                )
                kernel = compiled(warploom, folder, text)["launch_list"]["kernels"][0]["source"]
                large = text
                for small, other in LARGE.items():
                    assert small in large, small
                    large = large.replace(small, other)
                instructions, registers, spilled = ptxas(folder, kernel)
                rows.append(
                    {
                        "program": program,
                        "packed": packed,
                        "loads": loads(kernel),
                        "instructions": instructions,
                        "registers": registers,
                        "spilled": spilled,
                        "predicted_us": round(
                            compiled(warploom, folder, large)["solutions"][0]["predicted_us"], 1
                        ),
                    }
                )
                print(rows[-1])
    result = {
        "target": TARGET,
        "ptxas": re.search(r"release ([\d.]+)", measure.run("ptxas", "--version"))[1],
        "commit": measure.run("git", "rev-parse", "--short", "HEAD").strip(),
        "command": "bench/compiler/packed.py",
        "rows": rows,
    }
    path = measure.ROOT / "bench/results/ptxas/packed.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
