"""Do reads by wgmma, and writes and reads by the copy engine, meet bank conflicts in shared memory?
Cases of matrix_banks.cu on an H200.

    python3 bench/matrix_banks.py --out bench/results/h200/matrix_banks.json
    python3 bench/matrix_banks.py --compile-only
        # anywhere with nvcc: ptxas's registers and spills

One program a group of cases, each a process with a time limit. The result names under "failed" each
group that did not compile, hung, failed, had a wrong result or was faster than its bound, and keeps
the rows that such a group had printed; rows of wrong results have no cycles. Kinds of rows:
`wgmma`, cycles an instruction (of all warpgroups together) beside the tensor cores' bound, `load`
and `store`, cycles a box of 128 rows of `width` bytes beside 128 bytes a cycle, and `both`, wgmma
while boxes land in other shared memory. Exit status 2: something is missing here; 1: a group failed
or a result was wrong."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import gpu

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "bench/matrix_banks.cu"
TYPES = {
    "bf16": "wl::bf16",
    "f16": "wl::f16",
    "tf32": "wl::tf32",
    "e4m3": "wl::e4m3",
    "s8": "signed char",
}
GROUPS = {
    "copies": ["-DCOPIES"],
    **{name: [f"-DTYPE={text}", f'-DNAME="{name}"'] for name, text in TYPES.items()},
}


def missing(what, remedy):
    print(f"matrix_banks.py: {what}; {remedy}", file=sys.stderr)
    raise SystemExit(2)


def compile_group(nvcc, name, folder):
    """(name, log): the program at folder/name, or none and the log says why."""
    command = [
        "nice",
        nvcc,
        "-gencode=arch=compute_90a,code=sm_90a",
        "-std=c++20",
        "-O2",
        "-Xptxas",
        "-v",
        f"-I{REPOSITORY}/device/ptx",
        f"-I{REPOSITORY}/device/common",
        *GROUPS[name],
        str(SOURCE),
        "-o",
        str(folder / name),
    ]
    run = subprocess.run(command, capture_output=True, text=True)
    return name, run.stdout + run.stderr


def figures(log):
    """Kernels, most registers, bytes spilled, and what ptxas says about wgmma."""
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
    spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", log))
    return (
        len(registers),
        max(registers, default=0),
        spills,
        sorted(set(re.findall(r"C75\d\d|C76\d\d", log))),
    )


def run_group(program, seconds):
    """(rows, what went wrong or nothing)"""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            status = subprocess.run([program], stdout=out, stderr=err, timeout=seconds).returncode
            problem = f"exit status {status}" if status else ""
        except subprocess.TimeoutExpired:
            problem = f"ran past {seconds} s"
        out.seek(0)
        err.seek(0)
        lines = [
            line for line in out.read().split("\n") if line.endswith("}")
        ]  # a line cut short is no row
        return [json.loads(line) for line in lines], " ".join(
            filter(None, [problem, err.read().strip()[-500:]])
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=pathlib.Path, help="default: matrix_banks.json of the card's results"
    )
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--seconds", type=float, default=15, help="a group may run")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    options.out = options.out or gpu.results() / "matrix_banks.json"
    nvcc = shutil.which("nvcc") or shutil.which(
        "nvcc", path=os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")
    )
    if not nvcc:
        missing("no nvcc", "install CUDA 12 or later, or set PATH or CUDA_HOME to where it is")
    if not options.compile_only:
        if not (device := gpu.query("name")):
            missing("no GPU answers nvidia-smi", "run it on an H200, or with --compile-only here")
        if (capability := gpu.query("compute_cap")) != "9.0":
            missing(
                f"{device} has compute capability {capability}",
                "wgmma needs 9.0; run it on an H200",
            )
    with tempfile.TemporaryDirectory(prefix="matrix_banks.") as name:
        folder, rows, failed = pathlib.Path(name), [], {}
        with concurrent.futures.ThreadPoolExecutor(min(len(GROUPS), os.cpu_count() or 1)) as pool:
            logs = dict(pool.map(lambda group: compile_group(nvcc, group, folder), GROUPS))
        for group, log in logs.items():
            kernels, registers, spills, warnings = figures(log)
            print(
                f"{group:<7} {kernels:>2} kernels, {registers} registers at most, {spills} bytes "
                f"spilled, ptxas says {', '.join(warnings) or 'nothing'}"
            )
            if not (folder / group).exists():
                failed[group] = log[-2000:]
            elif spills or warnings:
                failed[group] = "not run: spills, or wgmma put in sequence"
            elif not options.compile_only:
                got, problem = run_group(str(folder / group), options.seconds)
                rows += got
                wrong, fast = sum(not row["right"] for row in got), sum(
                    row.get("ratio", 0) > 1.02 for row in got
                )
                if problem or wrong or fast:
                    failed[group] = (
                        problem
                        or f"{wrong} of {len(got)} results are wrong, {fast} faster than the bound"
                    )
    for group, problem in failed.items():
        print(f"{group}: {problem}", file=sys.stderr)
    if not options.compile_only and rows:
        head = {
            "device": device,
            "driver": gpu.query("driver_version"),
            "clocks": gpu.query(gpu.CLOCKS),
            "cuda": re.search(
                r"release ([\d.]+)",
                subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout,
            )[1],
            "commit": options.commit or gpu.commit(),
            "command": "python3 " + " ".join(sys.argv),
            "failed": failed,
        }
        text = (
            json.dumps(head, indent=1)[:-2]
            + ',\n "rows": [\n'
            + ",\n".join("  " + json.dumps(row) for row in rows)
            + "\n ]\n}\n"
        )
        options.out.parent.mkdir(parents=True, exist_ok=True)
        part = options.out.with_name(options.out.name + ".part")
        part.write_text(text)
        part.rename(options.out)
        print(f"{len(rows)} rows in {options.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
