"""Rendered table of what the search of boundaries between regions is worth
(bench/results/MACHINE/boundaries.json, which bench/boundaries.py writes)."""

import json
import math

from render_tables import number, table

HEADERS = ["network", "fused, µs", "searched, µs", "fused / searched", "tried", "boundaries"]


def counted(rows):
    return [row for row in rows if "ratio" in row and not row["undecided"]]


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
        rows = data["rows"]
        known = counted(rows)
        head = f"{data['device']}, `{data['command']}`"
        if known:
            mean = math.exp(sum(math.log(row["ratio"]) for row in known) / len(known))
            head += f"; geometric mean of the {len(known)} decided rows {mean:.2f}×"
        parts.append(head + ".\n\n" + table(HEADERS, [line_of(row) for row in rows]))
    return "\n".join(parts)
