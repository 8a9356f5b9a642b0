#!/usr/bin/env python3
"""Writes docs/first-run.md: what README's first command prints on a bare Debian 12, with its times.

    tools/first_run.py --commit COMMIT -- COMMAND…    COMMAND runs it on such a machine

COMMAND prints `--- begins` where the run begins. Both streams are shown as they come, each line
with the seconds since the start. Of lines of progress, which come every two seconds, the first and
the last of each kind stay. The longest silence is measured over all lines.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

from markdown import reflow

HEAD = """# The first command, on a bare Debian 12

Written by `tools/first_run.py`; nothing was installed but the base system and git. Seconds since
the start stand before each line; of progress, a line every two seconds, the first and the last of
each kind are shown.

"""
FIRST_COMMAND = "./run optimize examples/conv_relu_maxpool.textproto --budget 60s"  # README's
BEGINS = "--- begins"  # a line that COMMAND may print before the run itself
PROGRESS = re.compile(
    r"^(reading the lists|packages|configuring|building \w+|\d+ of \d+ s|planning|setting up)\b"
)


def kind_of(line):
    """What a line of progress is about; None for any other line."""
    found = PROGRESS.match(line)
    return re.sub(r"\d+", "N", found.group(1)) if found else None


def shown(lines):
    """The lines without those of progress that are neither the first nor the last of their kind."""
    kept = []
    for at, (seconds, line) in enumerate(lines):
        kind = kind_of(line)
        before = at > 0 and kind_of(lines[at - 1][1]) == kind
        after = at + 1 < len(lines) and kind_of(lines[at + 1][1]) == kind
        if kind is None or not before or not after:
            kept.append((seconds, line))
        elif kept[-1][1] != "…":
            kept.append((seconds, "…"))
    return kept


def run(command):
    """(status, [(seconds, line)], longest silence) of the command."""
    start = last = time.time()
    lines, longest = [], 0.0
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    for line in process.stdout:
        now = time.time()
        if line.rstrip() == BEGINS:  # what made the machine before is no part of the run
            start = last = now
            lines.clear()
            longest = 0.0
            continue
        longest = max(longest, now - last)
        last = now
        lines.append((now - start, line.rstrip()))
    return process.wait(), lines, longest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--commit", required=True)
    parser.add_argument("--command-shown", default=FIRST_COMMAND)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    status, lines, longest = run([word for word in options.command if word != "--"])
    text = HEAD + f"`{options.command_shown}` at {options.commit}: status {status}, "
    text += f"{lines[-1][0]:.0f} s in all; no silence was longer than {longest:.1f} s.\n\n```text\n"
    text += "".join(f"{seconds:6.1f}  {line}\n" for seconds, line in shown(lines)) + "```\n"
    root = pathlib.Path(__file__).resolve().parent.parent
    (root / "docs" / "first-run.md").write_text(reflow(text))
    print(f"status {status}, longest silence {longest:.1f} s, {len(lines)} lines")
    return status


if __name__ == "__main__":
    sys.exit(main())
