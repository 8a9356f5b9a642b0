"""The first GPU: what nvidia-smi says of it, its datasheet's rates, where its results are kept, and
the commit that figures are of.

    card = gpu.card("NVIDIA H100 80GB HBM3")  # None where src/target/cards.def does not list it
    card.folder, card.gbs, card.tflops["tf32"]  # "h100_sxm", 3350.0, 494.7

>>> one = card("NVIDIA H100 80GB HBM3")
>>> one.folder, one.gbs, one.tflops["tf32"]
('h100_sxm', 3350.0, 494.7)
>>> card("NVIDIA H100"), results("NVIDIA A30").name
(None, 'a30')
"""
import dataclasses
import os
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
CARDS = REPOSITORY / "src/target/cards.def"
RESULTS = REPOSITORY / "bench/results"
CLOCKS = "clocks.sm,clocks.mem,temperature.gpu,power.draw"
L2_BYTES = 50 << 20  # more than any card's that is measured here


@dataclasses.dataclass
class Card:
    """Datasheet figures: gbs in 10^9 bytes a second; tflops by track, fp32 with three products of
    halves where these are faster."""

    name: str
    device: str
    gbs: float
    l2_bytes: int
    tflops: dict

    @property
    def folder(self):
        return folder_of(self.name)


def folder_of(name):
    """A card's or a processor's folder of bench/results: "H100 SXM" is h100_sxm."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def rows_of(macro):
    """A list of cards.def: the arguments of each row, without quotes."""
    for arguments in re.findall(rf"^{macro}\((.*)\)$", CARDS.read_text(), re.M):
        yield [argument.strip().strip('"') for argument in arguments.split(",")]


def listed_cards():
    keys = ("fp32", "tf32", "half", "fp8", "int8", "narrow")
    units = {row[0]: dict(zip(keys, map(float, row[2:]))) for row in rows_of("WARPLOOM_UNITS")}
    for name, unit, device, sms, ghz, tensor_ghz, gbs, l2_mib in rows_of("WARPLOOM_CARD"):
        rates = units[unit]
        plain = int(sms) * float(ghz) * rates["fp32"] * 1e-3
        tensor = int(sms) * float(tensor_ghz) * 1e-3
        half = tensor * rates["half"]
        tflops = {
            "fp32": max(plain, half / 3),
            "tf32": max(plain, tensor * rates["tf32"]),
            "bf16": half,
            "fp16": half,
            "fp8": max(half, tensor * rates["fp8"], tensor * rates["int8"]),
        }
        tflops = {track: round(rate, 1) for track, rate in tflops.items()}
        yield Card(name, "NVIDIA " + device, float(gbs), int(l2_mib) << 20, tflops)


def card(device=None):
    """The card by the name that its driver gives it; of none the first GPU's."""
    wanted = device or query("name")
    return next((one for one in listed_cards() if one.device == wanted), None)


def known_card(device=None):
    """The same, or an exit that says what is missing."""
    found = card(device)
    if found is None:
        raise SystemExit(
            f"{device or query('name') or 'no GPU here'}: src/target/cards.def has no row of it, "
            "which these figures need"
        )
    return found


def results(device=None):
    """Where the results of a card are kept: of one that is not listed, by its driver's name."""
    wanted = device or query("name")
    found = card(wanted)
    return RESULTS / (found.folder if found else folder_of(wanted.removeprefix("NVIDIA ")))


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
