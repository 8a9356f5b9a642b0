#!/usr/bin/env python3
"""The documents' commands run as written. Usage: check_commands.py ROOT BUILD [DOCUMENT…]

Every block of a document that begins with three backticks and `sh` runs as a script that stops at
the first command that fails. The blocks of one document run one after another in one folder, a copy
of the tree, as somebody would who reads from the top. A block that begins with `sh needs …` does
not run here, and says why: `sh needs a GPU`, `sh needs an hour`. Two things differ from what is
written: searches get 15 seconds and timings two, and `./run` and `warploom` are the executable that
was built.

>>> text = "a\\n```sh\\nmake x   # says so\\n```\\n```sh needs a GPU\\nnvcc\\n```\\n"
>>> list(blocks(text))
[('', 'make x   # says so\\n'), ('a GPU', 'nvcc\\n')]
>>> as_run("./run optimize a.onnx --budget 60s   # searches")
'./run optimize a.onnx --budget 15s   # searches'
>>> commands_of("# a comment\\nmake \\\\\\n  x\\n\\ncat > y <<'END'\\na\\nb\\nEND\\nls\\n")
3
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

FENCE = re.compile(r"^```sh(?: needs ([^\n]*))?\n(.*?)^```$", re.M | re.S)
SECONDS_A_BLOCK = 300
# A failure names its command: the script alone would only have a status.
BEFORE = "set -e -o pipefail\ntrap 'echo \"failed: $BASH_COMMAND\" >&2' ERR\n"


def blocks(text):
    """(what it needs or "", commands) of every block of shell commands."""
    yield from FENCE.findall(text)


def as_run(script):
    shorter = re.sub(r"--budget[ =]\S+", "--budget 15s", script)
    return re.sub(r"--time[ =]\S+", "--time 2s", shorter)


def commands_of(script):
    without_texts = re.sub(r"<<'(\w+)'\n.*?\n\1$", "", script, flags=re.M | re.S)
    lines = without_texts.replace("\\\n", " ").splitlines()
    return sum(bool(line.strip()) and not line.startswith("#") for line in lines)


def copy_of(root, build, folder):
    """What git knows of the tree, with the program that is built in the place of its builder."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\n"):
        if name and (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    programs = folder / ".programs"
    programs.mkdir()
    (programs / "warploom").symlink_to(build.resolve() / "warploom")
    (folder / "build").symlink_to(build.resolve().parent)
    (folder / "run").unlink()
    (folder / "run").symlink_to(programs / "warploom")
    return programs


def fault_of(script, folder, found):
    """Why a block failed, "" if it did not."""
    shell = ["timeout", str(SECONDS_A_BLOCK), "bash", "-c", BEFORE + as_run(script)]
    result = subprocess.run(
        shell, cwd=folder, env=found, capture_output=True, text=True, check=False
    )
    if result.returncode == 0:
        return ""
    said = (result.stdout + result.stderr).strip()[-800:]
    return f"status {result.returncode} of\n{script}which said\n{said}"


def run_document(root, build, document):
    """(commands that ran, blocks that did not, faults) of one document."""
    ran, left_out, faults = 0, 0, []
    every = list(blocks((root / document).read_text()))
    if all(needs for needs, _ in every):
        return ran, len(every), faults
    start = time.time()
    with tempfile.TemporaryDirectory(prefix="warploom-commands-") as name:
        folder = pathlib.Path(name)
        programs = copy_of(root, build, folder)
        found = dict(
            os.environ,
            PATH=f"{programs}:{os.environ['PATH']}",
            XDG_CACHE_HOME=str(folder / ".cache"),
        )
        for needs, script in every:
            if needs:
                left_out += 1
                continue
            ran += commands_of(script)
            if fault := fault_of(script, folder, found):
                faults.append(f"{document}: {fault}")
    print(f"{document}: {ran} commands, {time.time() - start:.1f} s")
    return ran, left_out, faults


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    documents = sys.argv[3:]
    if not documents:
        every = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/**/*.md")]
        documents = [str(path.relative_to(root)) for path in sorted(every)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        outcomes = list(workers.map(lambda name: run_document(root, build, name), documents))
    faults = [fault for outcome in outcomes for fault in outcome[2]]
    if faults:
        print("\n".join(faults))
    ran, left_out = (sum(outcome[part] for outcome in outcomes) for part in (0, 1))
    print(
        f"{ran} commands of {len(documents)} documents, {len(faults)} blocks failed; "
        f"{left_out} blocks need what is not here"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
