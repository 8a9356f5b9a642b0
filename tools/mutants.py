#!/usr/bin/env python3
"""Runs every mutant of the emitted kernels on the emulator and writes docs/mutation.md.
Usage: mutants.py ROOT BUILD


The mutants, and the kernels they are made from, are in tests/kernels/mutants*. Exit status 1 when
one goes unnoticed."""
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

HEAD = """# Mutants of emitted kernels

Written by `tools/mutants.py`; the kernels, the mutations and the list of equivalent mutants are in
`tests/kernels/mutants*` and `tests/kernels/equivalent_mutants.cpp`. CI runs the mutants of a third
of the kernels.

Every synchronisation of an emitted text is removed, weakened or moved, one at a time, and the
kernel runs on the emulator with asynchronous effects early, late and at random. A mutant counts as
caught only if all three runs tell, by a hazard, by a deadlock, or by wrong numbers. What goes
unnoticed must be proved equivalent: a rule with a test of the kernel's text.

"""


def run_all(build, record):
    """Two processes, each with every other kernel; the exit status."""
    command = [os.path.join(build, "test_kernels"), "--gtest_filter=*Mutants.*", "--gtest_brief=1"]
    shards = [
        subprocess.Popen(
            command,
            env=dict(
                os.environ,
                WARPLOOM_MUTANTS=f"{record}.{i}",
                GTEST_TOTAL_SHARDS="2",
                GTEST_SHARD_INDEX=str(i),
            ),
        )
        for i in range(2)
    ]
    return max(shard.wait() for shard in shards)


def commit_of(root):
    """ ", at COMMIT" where git knows it."""
    try:
        run = subprocess.run(
            ["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
        )
    except OSError:
        return ""
    return f", at {run.stdout.strip()}" if run.returncode == 0 else ""


def way(row):
    if not all(row["caught"]):
        return "equivalent" if row["equivalent"] else "unnoticed"
    return next((c for c in row["caught"] if c in ("deadlock", "numbers")), "hazard")


def table(head, rows, key):
    columns = ["hazard", "deadlock", "numbers", "equivalent", "unnoticed"]
    groups = collections.OrderedDict()
    for row in rows:
        groups.setdefault(key(row), collections.Counter())[way(row)] += 1
    groups["**all**"] = sum(groups.values(), collections.Counter())
    lines = [
        f"| {head} | mutants | " + " | ".join(columns) + " |",
        "|---|" + "---:|" * (len(columns) + 1),
    ]
    for name, n in groups.items():
        lines.append(
            f"| {name} | {sum(n.values())} | " + " | ".join(str(n[c]) for c in columns) + " |"
        )
    return "\n".join(lines) + "\n"


def main():
    root, build = sys.argv[1], sys.argv[2]
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "mutants")
        status = run_all(build, record)
        rows = [
            json.loads(line) for i in range(2) for line in open(f"{record}.{i}", encoding="utf-8")
        ]
    rows.sort(key=lambda r: (r["family"], r["case"], r["kernel"], r["line"]))
    kernels = len({(r["case"], r["kernel"]) for r in rows})
    text = (
        HEAD + f"{len(rows)} mutants of {kernels} kernels, {len({r['case'] for r in rows})} launch "
        f"lists{commit_of(root)}.\n\n"
    )
    text += (
        "## By family\n\n"
        + table("family", rows, lambda r: f"{r['family']} ({r['target']})")
        + "\n"
    )
    text += (
        "## By mutation\n\n"
        + table("call", sorted(rows, key=lambda r: r["call"]), lambda r: f"`{r['call']}`")
        + "\n"
    )
    text += "## Equivalent mutants\n\n"
    text += "| call | change | mutants | why the kernel means the same |\n|---|---|---:|---|\n"
    same = collections.Counter(
        (r["call"], r["change"], r["equivalent"]) for r in rows if r["equivalent"]
    )
    for (call, change, reason), n in sorted(same.items()):
        text += f"| `{call}` | {change} | {n} | {reason} |\n"
    with open(os.path.join(root, "docs", "mutation.md"), "w", encoding="utf-8") as out:
        out.write(text)
    for r in rows:
        if way(r) == "unnoticed":
            print(
                f"{r['case']}, {r['kernel']}, line {r['line']}: {r['call']} {r['change']}: "
                f"{r['text']}"
            )
    print(
        f"{len(rows)} mutants, {sum(way(r) == 'unnoticed' for r in rows)} unnoticed, in "
        f"{time.time() - start:.0f} s"
    )
    return status


sys.exit(main())
