"""Rendered table of what the search of boundaries between regions is worth
(bench/results/MACHINE/boundaries.json, which bench/boundaries.py writes)."""

import json

from render_tables import number, table

HEADERS = ["network", "fused, µs", "searched, µs", "fused / searched", "tried", "boundaries"]


def ratio_of(row):
    low, high = row["interval"]
    word = ", undecided" if row["undecided"] else ""
    return f"{row['ratio']:.2f}× ({low:.2f} to {high:.2f}){word}"


def line_of(row):
    name = f"`{row['case']}`"
    if "failed" in row:
        return [name, "–", "–", "failed", "–", "–"]
    changes = f"`{row['changes']}`" if row["changes"] else "as fused"
    times = [number(row[way]["us"]) for way in ("fused", "searched")]
    return [name, *times, ratio_of(row), str(row["tried"]), changes]


def render_boundaries(root):
    """A table a machine, a row a network and seed."""
    parts = []
    for path in sorted((root / "bench/results").glob("*/boundaries.json")):
        data = json.loads(path.read_text())
        head = f"{data['device']}, `{data['command']}`, one seed each; decided are ratios whose "
        head += "interval is no wider than 5 %."
        parts.append(head + "\n\n" + table(HEADERS, [line_of(row) for row in data["rows"]]))
    return "\n".join(parts)
