#!/usr/bin/env python3
"""How big and how dense the code is, a line a room: a trend to look at, which never fails.

    trend.py [ROOT]                   the working tree's figures
    trend.py [ROOT] --commit COMMIT   those of a commit
    trend.py [ROOT] --write COMMIT    docs/readability.md: that commit's figures beside today's

A statement is a declaration, an expression statement or a return, without the bodies of lambdas in
it; a code line is one that is neither empty nor a comment alone. C++ alone is counted, by
tools/cxx.py.

>>> figures = figures_of(["int a = 1;\\n\\n// why\\nint b = f(a, 2);\\n"])
>>> figures.files, figures.lines, figures.code_lines, figures.tokens
(1, 4, 2, 15)
>>> figures.per_line, figures.median, figures.p95
(7.5, 10, 10)
"""

import argparse
import collections
import concurrent.futures
import io
import pathlib
import subprocess
import tarfile

import check_rules
import cxx

FOLDERS = ("src", "include", "device", "tests", "bench", "examples")
PAGE = pathlib.Path("docs/readability.md")
FIELDS = "files lines code_lines tokens per_line median p95 faults"
Figures = collections.namedtuple("Figures", FIELDS)

INTRODUCTION = """# How the code reads, in figures

Written by `tools/trend.py --write {before}`: the code of commit {before} and of today, counted by
`tools/cxx.py`. `./run test` prints today's figures; they are a trend and never fail. What is
refused is in `CONTRIBUTING.md`.
"""


def counted(text):
    """(lines, code lines, tokens, tokens of each statement, kinds of faults) of one file."""
    lines = text.splitlines()
    stripped = [line.strip() for line in lines]
    code = [line for line in stripped if line and not line.startswith(("//", "/*", "*"))]
    found = cxx.read(text)
    kinds = [kind for kind, *_ in found.faults]
    kinds += ["line-over-100"] * sum(len(line) > check_rules.COLUMNS for line in lines)
    kinds += ["file-over-500"] * (len(lines) > check_rules.LINES)
    return len(lines), len(code), cxx.leaves_of(found.tokens), found.statements, kinds


def summed(files):
    """The figures of several files, each as `counted` gives it."""
    lines, code, tokens = (sum(file[at] for file in files) for at in range(3))
    statements = sorted(length for file in files for length in file[3]) or [0]
    return Figures(
        len(files),
        lines,
        code,
        tokens,
        round(tokens / max(code, 1), 1),
        statements[len(statements) // 2],
        statements[int(len(statements) * 0.95)],
        collections.Counter(kind for file in files for kind in file[4]),
    )


def figures_of(texts):
    return summed([counted(text) for text in texts])


def room_of(name):
    """The row that a file counts in: a room of src, else its first folder."""
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] == "src" and len(parts) > 2 else parts[0]


def is_code(name):
    path = pathlib.PurePath(name)
    folder = path.parts[0] in FOLDERS
    return folder and path.suffix in check_rules.CPP and not name.startswith(check_rules.APART)


def texts_of(root, commit=None):
    """{file: text} of the working tree or a commit."""
    if commit is None:
        names = filter(is_code, check_rules.files_of(root))
        return {name: (root / name).read_text(errors="replace") for name in names}
    command = ["git", "-C", str(root), "archive", commit]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        return {
            member.name: members.extractfile(member).read().decode(errors="replace")
            for member in members
            if member.isfile() and is_code(member.name)
        }


def rooms_of(texts):
    """{room: figures}, the last being all of src, include and device: what is delivered."""
    names = sorted(texts)
    with concurrent.futures.ProcessPoolExecutor() as pool:
        files = list(pool.map(counted, [texts[name] for name in names], chunksize=8))
    rooms = collections.defaultdict(list)
    for name, file in zip(names, files):
        rooms[room_of(name)].append(file)
        if name.startswith(("src/", "include/", "device/")):
            rooms["src, include, device"].append(file)
    return {room: summed(rooms[room]) for room in sorted(rooms, key=lambda r: (", " in r, r))}


def cells(figures):
    if figures is None:
        return [""] * 5
    return [
        f"{figures.code_lines:,}",
        f"{figures.tokens:,}",
        f"{figures.per_line}",
        f"{figures.median}",
        f"{figures.p95}",
    ]


def printed(rooms):
    """Lines for a terminal."""
    heads = ["files", "code lines", "tokens", "a line", "a statement", "95 %"]
    lines = [f"{'room':<22}" + "".join(f"{head:>12}" for head in heads)]
    for room, figures in rooms.items():
        row = [str(figures.files), *cells(figures)]
        lines.append(f"{room:<22}" + "".join(f"{cell:>12}" for cell in row))
    return lines


def page_of(before, old, new):
    """docs/readability.md."""
    total = "src, include, device"
    lines = [INTRODUCTION.format(before=before), "## Rules\n"]
    lines += ["Places in `src`, `include` and `device` that break a rule.\n"]
    lines += [f"| rule | {before} | today |", "|---|---:|---:|"]
    for kind in sorted(check_rules.CHECKS):
        lines.append(f"| {kind} | {old[total].faults[kind]} | {new[total].faults[kind]} |")
    lines += ["\n## Rooms\n", f"The first figure of each pair is of {before}.\n"]
    heads = ["code lines", "tokens", "tokens a code line", "tokens a statement", "95 of 100"]
    lines.append("| room | " + " | ".join(f"{head} | today" for head in heads) + " |")
    lines.append("|---|" + "---:|" * 2 * len(heads))
    for room in [*sorted({*old, *new} - {total}), total]:
        pairs = zip(cells(old.get(room)), cells(new.get(room)))
        lines.append(f"| {room} | " + " | ".join(f"{a} | {b}" for a, b in pairs) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--commit")
    parser.add_argument("--write", metavar="COMMIT")
    options = parser.parse_args()
    rooms = rooms_of(texts_of(options.root, options.commit))
    if options.write:
        old = rooms_of(texts_of(options.root, options.write))
        (options.root / PAGE).write_text(page_of(options.write, old, rooms))
        return
    print("\n".join(printed(rooms)))


if __name__ == "__main__":
    main()
