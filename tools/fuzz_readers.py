#!/usr/bin/env python3
"""Runs the readers under libFuzzer and sanitizers (docs/fuzzing.md), from seeds and the kept corpus
on.

  cmake --preset fuzz && cmake --build --preset fuzz
      # clang++ and its runtime library: Debian's clang, libclang-rt-14-dev
  tools/fuzz_readers.py --seconds 600 [READER...]
      # one after the other; ends with 1 after a finding, which it names
  tools/fuzz_readers.py --keep [READER...]
      # also packs what adds coverage as the kept corpus

Seeds are made by build/release/warploom: models of tests/fuzz/readers/models.txt, the examples, an
archive of a short search."""
import argparse
import os
import pathlib
import re
import shutil
import sqlite3
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
            "3s",
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


SEEDS = {
    "onnx_binary": binary_models,
    "onnx_text": models,
    "tile_program": programs,
    "archive": archives,
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
