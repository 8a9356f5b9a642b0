"""The executable `warploom`: where it is, and what it answers.

A wheel that `./run build wheel` made holds it. Otherwise it is built with `./run build` and named:
WARPLOOM_PROGRAM holds its path, or its folder is on PATH.
"""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
from typing import Any, Iterator, Sequence

from .errors import WarploomError

HERE = pathlib.Path(__file__).resolve().parent
LAST_WORDS = 8  # lines of the program's, in an error that has no code


def candidates() -> Iterator[str | os.PathLike | None]:
    """Where the executable may be, the surest place first."""
    yield os.environ.get("WARPLOOM_PROGRAM")
    yield HERE / "bin" / "warploom"  # of the wheel
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("warploom", path=folder) if folder else None
        if found and not is_script(found):
            yield found
    yield HERE.parents[1] / "build" / "release" / "warploom"  # of a source tree


def is_script(path: str) -> bool:
    """Whether it is a text that an interpreter runs, as the wheel's own command."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def program() -> str:
    """The path of the executable; a WarploomError says how to name it where it is not found."""
    for place in candidates():
        if place and os.access(place, os.X_OK) and os.path.isfile(place):
            return str(place)
    raise WarploomError(
        "program-missing",
        "the program warploom was not found",
        remedy="build it with `./run build`, and put it on PATH or set WARPLOOM_PROGRAM to its "
        "path; a wheel that `./run build wheel` made holds it",
    )


def main() -> None:
    """The command `warploom` of the wheel: the executable, with the same arguments."""
    try:
        path = program()
    except WarploomError as error:
        sys.exit(str(error))
    os.execv(path, [path, *sys.argv[1:]])


def answer(arguments: Sequence[str], quiet: bool = False) -> dict[str, Any]:
    """What `warploom ARGUMENTS --json` answers; its progress goes to standard error as it comes.

    An error of the program's becomes a WarploomError with the program's code.
    """
    command = [program(), *map(str, arguments), "--json"]
    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        telling = threading.Thread(target=tell, args=(running.stderr, said, quiet))
        telling.start()
        out = running.stdout.read()
        telling.join()
    try:
        found = json.loads(out)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        last = "".join(said[-LAST_WORDS:]).strip()
        raise WarploomError(
            "program-failed",
            f"`warploom {arguments[0]}` ended with {running.returncode}: {last}",
            remedy="see `warploom doctor`; else please report it with the model",
        )
    error = found.get("error")
    if isinstance(error, dict):  # of an outcome it is a number
        found_there = f", found {error['found']}" if error.get("found") else ""
        raise WarploomError(
            error.get("code", "program-failed"),
            f"{error.get('message', '')}{found_there}",
            error.get("place", ""),
            error.get("remedy", ""),
        )
    return found


def tell(stream, said: list[str], quiet: bool) -> None:
    """Hands the program's progress on, line by line."""
    for line in stream:
        said.append(line)
        if not quiet:
            print(line, end="", file=sys.stderr, flush=True)
