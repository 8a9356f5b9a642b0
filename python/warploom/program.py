"""The executable `warploom`: where it is, and what it answers.

warploom_command.py, which needs no torch, finds it.
"""
from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any, Sequence

import warploom_command

from .errors import WarploomError

LAST_WORDS = 8  # lines of the program's, in an error that has no code


def program() -> str:
    """The path of the executable; a WarploomError says how to name it where it is not found."""
    found = warploom_command.found()
    if found is None:
        raise WarploomError(
            "program-missing", warploom_command.MISSING, remedy=warploom_command.REMEDY
        )
    return found


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
