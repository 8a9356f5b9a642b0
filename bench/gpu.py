"""What nvidia-smi says of the first GPU, the datasheet's rates of an H200, and the commit that
figures are of."""
import os
import pathlib
import subprocess
import sys

PEAK_TFLOPS = {
    "fp8": 1979.0,
    "bf16": 989.4,
    "fp16": 989.4,
    "tf32": 494.7,
    "fp32": 329.8,
}  # datasheet; fp32: three products of 16-bit halves
DRAM_GBS = 4800.0
L2_BYTES = 50 << 20
CLOCKS = "clocks.sm,clocks.mem,temperature.gpu,power.draw"


def query(fields):
    """These fields as nvidia-smi prints them; "" where none answers."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "--id=0"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def commit():
    """What --commit is unless given: WARPLOOM_COMMIT, else git's HEAD, else "unknown", which
    standard error is told."""
    if named := os.environ.get("WARPLOOM_COMMIT"):
        return named
    try:
        run = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=pathlib.Path(__file__).parent,
            capture_output=True,
            text=True,
        )
        if run.returncode == 0:
            return run.stdout.strip()
    except OSError:
        pass
    print(
        "no git here: the figures' commit is recorded as \"unknown\"; --commit names it",
        file=sys.stderr,
    )
    return "unknown"
