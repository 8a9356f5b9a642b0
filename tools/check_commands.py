#!/usr/bin/env python3
"""The documents' commands run as written. Usage: check_commands.py ROOT BUILD [DOCUMENT…]

Every block of a document that begins with three backticks and `sh` runs, line by line, in a copy of
the tree of its own for each document; a line that fails is a fault. A block that begins with `sh
needs …` does not run here, and says why: `sh needs a GPU`, `sh needs an hour`. Two things differ
from what is written: searches get a budget of two seconds, and `./run` and `warploom` are the
executable that was built.

>>> text = "a\\n```sh\\nmake x   # says so\\n```\\n```sh needs a GPU\\nnvcc\\n```\\n"
>>> list(blocks(text))
[('', ['make x   # says so']), ('a GPU', ['nvcc'])]
>>> as_run("./run optimize a.onnx --budget 60s   # searches")
'./run optimize a.onnx --budget 2s   # searches'
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```sh(?: needs ([^\n]*))?\n(.*?)^```$", re.M | re.S)
SECONDS_A_COMMAND = 300


def blocks(text):
    """(what it needs or "", commands) of every block of shell commands."""
    for needs, body in FENCE.findall(text):
        commands = body.replace("\\\n", " ").splitlines()
        yield needs, [line for line in commands if line.strip() and not line.startswith("#")]


def as_run(command):
    return re.sub(r"--budget[ =]\S+", "--budget 2s", command)


def copy_of(root, build, folder):
    """What git knows of the tree, with the program that is built in the place of its builder."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    ):
        if name and (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    programs = folder / ".programs"
    programs.mkdir()
    os.symlink(build.resolve() / "warploom", programs / "warploom")
    os.symlink(build.resolve().parent, folder / "build")
    (folder / "run").unlink()
    (folder / "run").symlink_to(programs / "warploom")
    return programs


def run_document(root, build, document):
    """(commands that ran, blocks that did not, faults) of one document."""
    ran, left_out, faults = 0, 0, []
    text = (root / document).read_text()
    if not FENCE.search(text):
        return ran, left_out, faults
    with tempfile.TemporaryDirectory(prefix="warploom-commands-") as name:
        folder = pathlib.Path(name)
        programs = copy_of(root, build, folder)
        found = dict(
            os.environ,
            PATH=f"{programs}:{os.environ['PATH']}",
            XDG_CACHE_HOME=str(folder / ".cache"),
            EXAMPLES="examples",
        )
        for needs, commands in blocks(text):
            left_out += bool(needs)
            for command in [] if needs else commands:
                ran += 1
                shell = ["timeout", str(SECONDS_A_COMMAND), "bash", "-c", as_run(command)]
                result = subprocess.run(
                    shell, cwd=folder, env=found, capture_output=True, text=True, check=False
                )
                if result.returncode != 0:
                    said = (result.stdout + result.stderr).strip()[-600:]
                    faults.append(f"{document}: {command}\n    status {result.returncode}: {said}")
    return ran, left_out, faults


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    documents = sys.argv[3:]
    if not documents:
        every = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/**/*.md")]
        documents = [str(path.relative_to(root)) for path in sorted(every)]
    outcomes = [run_document(root, build, document) for document in documents]
    faults = [fault for outcome in outcomes for fault in outcome[2]]
    print("\n".join(faults))
    ran, left_out = sum(outcome[0] for outcome in outcomes), sum(outcome[1] for outcome in outcomes)
    print(
        f"{ran} commands of {len(documents)} documents, {len(faults)} failed; "
        f"{left_out} blocks need what is not here"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
