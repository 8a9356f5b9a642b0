"""Rendered tables of live searches (bench/results/MACHINE/live.json, which bench/live.py
writes)."""

import json
import math

from render_tables import number, table


def name_of(row):
    return f"`{row['strategy']}`" + (f", {row['policy']}" if row["policy"] else "")


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else None


def render_live(root, machine):
    """A strategy a row: its winner's time on each problem, over that of the fastest strategy there,
    and the geometric mean of these."""
    path = root / "bench" / "results" / machine / "live.json"
    if not path.exists():
        return "Nothing is stored yet.\n"
    rows = json.loads(path.read_text())["rows"]
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    fastest = {
        problem: min(row["best_us"] for row in rows
                     if row["problem"] == problem and row.get("best_us"))
        for problem in problems
    }
    lines = []
    for name in dict.fromkeys(map(name_of, rows)):
        own = {row["problem"]: row for row in rows if name_of(row) == name}
        cells = []
        shares = []
        for problem in problems:
            row = own.get(problem, {})
            if not row.get("best_us"):
                cells.append("–")
                continue
            shares.append(row["best_us"] / fastest[problem])
            tried = f"{row['candidates']} tried"
            cells.append(f"{number(row['best_us'])} µs ({shares[-1]:.2f}; {tried})")
        complete = len(shares) == len(problems)
        lines.append([name, f"{geometric_mean(shares):.3f}" if complete else "–", *cells])
    headers = ["strategy, policy", "geometric mean", *problems]
    return table(headers, sorted(lines, key=lambda line: (line[1] == "–", line[1])))
