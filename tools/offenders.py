"""What broke a rule of how code reads before it was one: tools/offenders.txt, which only shrinks.

A row is `PATH CHECK COUNT`. A check hands over what it counted, for the files that it looked at:

>>> listed = {("a.cpp", "line-over-100"): 2}
>>> found = count([("a.cpp", "line-over-100")] * 3 + [("b.cpp", "line-over-100")])
>>> for name, check, sentence in worse(listed, found):
...     print(sentence)
a.cpp: line-over-100 3 times, 2 allowed
b.cpp: line-over-100 1 times, 0 allowed
>>> shrunk(listed, {("a.cpp", "line-over-100"): 1}, {"a.cpp"}, {"line-over-100"})
{('a.cpp', 'line-over-100'): 1}
>>> shrunk(listed, {}, {"a.cpp"}, {"line-over-100"})
{}

A row `PATH not-looked-at 1` says that clang-tidy has not seen the file since the rules began: what
it finds there is no fault yet, and the first look puts what it counted in the row's place.

>>> unseen = {("b.cpp", NOT_LOOKED_AT): 1}
>>> worse(unseen, {("b.cpp", "misc-include-cleaner"): 4}, {"misc-include-cleaner"})
[]
>>> found = {("b.cpp", "misc-include-cleaner"): 4}
>>> shrunk(unseen, found, {"b.cpp"}, {"misc-include-cleaner"}, first_looks={"b.cpp"})
{('b.cpp', 'misc-include-cleaner'): 4}

When a rule is new, its rows are what is counted; those of other checks stay:

>>> anew(listed | unseen, {("c.cpp", "function-over-80"): 1}, {"line-over-100", "function-over-80"})
{('b.cpp', 'not-looked-at'): 1, ('c.cpp', 'function-over-80'): 1}
"""

import collections

NOT_LOOKED_AT = "not-looked-at"

HEAD = """# Files that broke a rule before it was one (CONTRIBUTING.md), and how often. Rows only
# shrink: `./run offenders` writes what is left. PATH CHECK COUNT
"""


def load(root):
    rows = {}
    path = root / "tools" / "offenders.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            name, check, number = line.rsplit(" ", 2)
            rows[name, check] = int(number)
    return rows


def save(root, rows):
    lines = [f"{name} {check} {number}\n" for (name, check), number in sorted(rows.items())]
    (root / "tools" / "offenders.txt").write_text(HEAD + "".join(lines))


def count(offences):
    """{(file, check): how often} of (file, check) pairs."""
    return dict(collections.Counter(offences))


def worse(listed, counted, of_first_look=frozenset()):
    """(file, check, sentence) for each count beyond what is listed. With checks `of_first_look` a
    file that waits for its first look does not offend."""
    return [
        (name, check, f"{name}: {check} {number} times, {listed.get((name, check), 0)} allowed")
        for (name, check), number in sorted(counted.items())
        if number > listed.get((name, check), 0)
        and not (check in of_first_look and (name, NOT_LOOKED_AT) in listed)
    ]


def shrunk(listed, counted, files, checks, first_looks=frozenset()):
    """The rows after a look at `files` with `checks`: never higher than they were, but of those
    files of `first_looks` that waited for one."""
    waited = {name for name, check in listed if check == NOT_LOOKED_AT and name in first_looks}
    rows = {(name, check): number for (name, check), number in counted.items() if name in waited}
    for (name, check), number in listed.items():
        seen = name in files and check in checks
        left = min(number, counted.get((name, check), 0)) if seen else number
        if left and not (check == NOT_LOOKED_AT and name in waited):
            rows[name, check] = left
    return rows


def anew(listed, counted, checks):
    """The rows with those of `checks` replaced by what was counted."""
    kept = {row: number for row, number in listed.items() if row[1] not in checks}
    return kept | {row: number for row, number in counted.items() if row[1] in checks}
