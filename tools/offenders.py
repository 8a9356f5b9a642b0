"""What broke a rule of how code reads before it was one: tools/offenders.txt, which only shrinks.

A row is `PATH CHECK COUNT`. A check hands over what it counted, for the files that it looked at:

>>> listed = {("a.cpp", "line-over-100"): 2}
>>> worse(listed, {("a.cpp", "line-over-100"): 3, ("b.cpp", "line-over-100"): 1})
['a.cpp: line-over-100 3 times, 2 allowed', 'b.cpp: line-over-100 1 times, 0 allowed']
>>> shrunk(listed, {("a.cpp", "line-over-100"): 1}, {"a.cpp"}, {"line-over-100"})
{('a.cpp', 'line-over-100'): 1}
>>> shrunk(listed, {}, {"a.cpp"}, {"line-over-100"})
{}
"""

HEAD = """# Files that broke a rule before it was one (CONTRIBUTING.md), and how often. Rows only
# shrink: `./run offenders` writes what is left. PATH CHECK COUNT
"""


def load(root):
    rows = {}
    path = root / "tools" / "offenders.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            name, check, count = line.rsplit(" ", 2)
            rows[name, check] = int(count)
    return rows


def save(root, rows):
    lines = [f"{name} {check} {count}" for (name, check), count in sorted(rows.items())]
    (root / "tools" / "offenders.txt").write_text(HEAD + "\n".join(lines) + "\n")


def worse(listed, counted):
    """A sentence for each count beyond what is listed."""
    return [
        f"{name}: {check} {count} times, {listed.get((name, check), 0)} allowed"
        for (name, check), count in sorted(counted.items())
        if count > listed.get((name, check), 0)
    ]


def shrunk(listed, counted, files, checks):
    """The rows after a look at `files` with `checks`: never higher than they were."""
    rows = {}
    for (name, check), count in listed.items():
        seen = name in files and check in checks
        left = min(count, counted.get((name, check), 0)) if seen else count
        if left:
            rows[name, check] = left
    return rows
