#!/usr/bin/env python3
"""Runs the readers under libFuzzer and sanitizers (docs/fuzzing.md), from seeds and the kept corpus
on.

  cmake --preset fuzz && cmake --build --preset fuzz
      # clang++-19 and its runtime library: Debian's clang-19, libclang-rt-19-dev
  tools/fuzz_readers.py --seconds 600 [READER...]
      # one after the other; ends with 1 after a finding, which it names
  tools/fuzz_readers.py --keep [READER...]
      # also packs what adds coverage as the kept corpus

Seeds are made by build/release/warploom: models of tests/fuzz/readers/models.txt, the examples, an
archive of a short search."""
import argparse
import json
import os
import pathlib
import re
import shutil
import sqlite3
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/fuzz"
KEPT = ROOT / "tests/fuzz/readers/corpus"
WARPLOOM = ROOT / "build/release/warploom"
LONGEST = {
    "onnx_binary": 4096,
    "onnx_text": 4096,
    "tile_program": 4096,
    "archive": 16384,
    "plan": 65536,
    "kernel": 8192,
    "answer": 16384,
    "image": 32768,
}  # bytes of one input


def models(folder):
    """The models as texts, spelled or kept as examples."""
    for number, spelled in enumerate(
        (ROOT / "tests/fuzz/readers/models.txt").read_text().splitlines()
    ):
        subprocess.run(
            [WARPLOOM, "new", spelled, "--out", folder / f"{number}.textproto"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    for example in (ROOT / "examples").glob("*.textproto"):
        shutil.copy(example, folder)


def binary_models(folder):
    models(folder)
    for text in folder.glob("*.textproto"):
        made = subprocess.run(
            [
                "protoc",
                f"--proto_path={BUILD}/generated/onnx",
                "--encode=onnx.ModelProto",
                "onnx/onnx.proto",
            ],
            input=text.read_bytes(),
            stdout=subprocess.PIPE,
            check=True,
        )
        text.with_suffix(".onnx").write_bytes(made.stdout)
        text.unlink()


def programs(folder):
    for file in [
        *(ROOT / "examples/tile").glob("*.tile"),
        *(ROOT / "tests/kernels/tile").glob("*.tile"),
    ]:
        shutil.copy(file, folder)


def archives(folder):
    """One of a search, on small pages and without long verdicts; the same empty; of another
    version; of another program; none."""
    found = folder / "found.sqlite"
    subprocess.run(
        [
            WARPLOOM,
            "optimize",
            ROOT / "examples/softmax_small.textproto",
            "--target",
            "cpu",
            "--budget",
            "60s",
            "--candidates",
            "3",
            "--archive",
            found,
            "--out",
            BUILD / "readers/found",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )

    def change(file, *statements):
        connection = sqlite3.connect(file, isolation_level=None)
        for statement in [
            "PRAGMA journal_mode=DELETE",
            *statements,
            "PRAGMA page_size=512",
            "VACUUM",
            "PRAGMA journal_mode=WAL",
        ]:
            connection.execute(statement).fetchall()
        connection.close()

    change(found, "UPDATE candidates SET record=json_remove(record, '$.verdict.evidence')")
    for name, statement in [("no_record", "SELECT 1"), ("version_1", "PRAGMA user_version=1")]:
        shutil.copy(found, folder / f"{name}.sqlite")
        change(
            folder / f"{name}.sqlite",
            "DELETE FROM runs",
            "DELETE FROM candidates",
            "DELETE FROM problems",
            statement,
        )
    change(folder / "foreign.sqlite", "CREATE TABLE songs (name)")
    (folder / "short.sqlite").write_bytes(found.read_bytes()[:60])
    (folder / "text").write_text("no archive")


def plans(folder):
    for number, plan in enumerate((ROOT / "tests/fixtures").glob("*/bundles/*/plan.json")):
        whole = json.loads(plan.read_text())
        (folder / f"{number}.json").write_text(json.dumps(whole))
        whole["model"] = ""
        for kernel in whole["launch_list"]["kernels"]:
            kernel["source"] = '#include "wl_cpu.h"\nvoid k();\n'
        short = {key: whole[key] for key in ("launch_list", "constants", "name") if key in whole}
        (folder / f"{number}_short.json").write_text(json.dumps({**short, "summary": "A test."}))


def kernel_files(folder):
    for file in (ROOT / "tests/verify/corpus").rglob("*.c[pu]*"):
        shutil.copy(file, folder)


def cbor(value):
    """As nlohmann::json::to_cbor writes it, as far as answers need that."""

    def head(kind, count):
        for width, code in ((1, 24), (2, 25), (4, 26), (8, 27)):
            if width == 1 and count < 24:
                return bytes([kind << 5 | count])
            if count < 1 << 8 * width:
                return bytes([kind << 5 | code]) + count.to_bytes(width, "big")
        raise ValueError(count)

    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())


def answers(folder):
    """A verdict of a kernel that is accepted, one of a refusal, an error, a phase."""
    corpus = ROOT / "tests/verify/corpus"
    for name, kernel in [("accepted", "honest/softmax.cpp"), ("refused", "cheats/zeros.cpp")]:
        problem = corpus / "problems/softmax.textproto"
        command = [WARPLOOM, "verify", corpus / kernel, "--problem", problem, "--json"]
        said = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
        is_error = isinstance(said["error"], dict)  # a verdict's is a figure
        verdict = {"accepted": False, "refused": said["error"]} if is_error else said
        (folder / name).write_bytes(cbor({"verdict": verdict, "tainted": False}))
        if is_error:
            (folder / "error").write_bytes(cbor({"error": said["error"]}))
    (folder / "phase").write_bytes(cbor({"phase": "candidate", "expected_ms": 0.5}))


def images(folder):
    """Shared objects of honest kernels and of cheats, without what no check reads."""
    flags = ["-O1", "-shared", "-fPIC", "-std=c++20", "-nostdlib", "-Wl,--build-id=none", "-s"]
    for kind in ("honest", "cheats"):
        for file in sorted((ROOT / "tests/verify/corpus" / kind).glob("*.cpp"))[:8]:
            subprocess.run(["g++", *flags, "-o", folder / file.stem, file], check=False)


SEEDS = {
    "onnx_binary": binary_models,
    "onnx_text": models,
    "tile_program": programs,
    "archive": archives,
    "plan": plans,
    "kernel": kernel_files,
    "answer": answers,
    "image": images,
}


def fuzz(reader, seconds, keep):
    """What the run did, as one line, and whether it found nothing."""
    place = BUILD / "readers" / reader
    seeds, corpus = place / "seeds", place / "corpus"
    if not seeds.exists():
        seeds.mkdir(parents=True)
        SEEDS[reader](seeds)
    corpus.mkdir(exist_ok=True)
    packed = KEPT / f"{reader}.tar.xz"
    if packed.exists():
        subprocess.run(["tar", "-xJf", packed, "-C", corpus], check=True)
    limits = ["-timeout=1", "-rss_limit_mb=1024", f"-max_len={LONGEST[reader]}"]
    clean, line = True, f"{reader}: not run"
    if seconds:
        memory = (
            {"TMPDIR": "/dev/shm"} if os.path.isdir("/dev/shm") else {}
        )  # where archives lie while they are read
        done = subprocess.run(
            [
                BUILD / f"fuzz_{reader}",
                *limits,
                f"-max_total_time={seconds}",
                "-print_final_stats=1",
                f"-artifact_prefix={place}/",
                corpus,
                seeds,
            ],
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **memory},
        )
        figures = dict(re.findall(r"stat::(\w+):\s*(\d+)", done.stderr))
        clean = done.returncode == 0
        line = (
            f"{reader}: {figures.get('number_of_executed_units')} inputs in {seconds} s, peak "
            f"{figures.get('peak_rss_mb')} MiB, "
            + (
                "no finding"
                if clean
                else "FOUND " + " ".join(re.findall(r"Test unit written to (\S+)", done.stderr))
            )
        )
    if keep and clean:
        merged = place / "merged"
        shutil.rmtree(merged, ignore_errors=True)
        merged.mkdir()
        subprocess.run(
            [BUILD / f"fuzz_{reader}", *limits, "-merge=1", merged, seeds, corpus],
            stderr=subprocess.DEVNULL,
            check=True,
        )
        KEPT.mkdir(exist_ok=True)
        subprocess.run(
            [
                "tar",
                "--sort=name",
                "--mtime=@0",
                "--owner=0",
                "--group=0",
                "--numeric-owner",
                "-cJf",
                packed,
                "-C",
                merged,
                ".",
            ],
            check=True,
        )
        line += f"; {len(list(merged.iterdir()))} inputs kept in {packed.stat().st_size} bytes"
    return line, clean


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reader", nargs="*", choices=[*SEEDS, []], help="all where none is named")
    parser.add_argument("--seconds", type=int, default=0, help="for each reader")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    well = True
    for reader in arguments.reader or SEEDS:
        line, clean = fuzz(reader, arguments.seconds, arguments.keep)
        print(line, flush=True)
        well = well and clean
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
