"""The board of KernelBench tasks (bench/results/CARD/kernelbench_cold.json): its gates, and a table
with the losers first.

A row's standing goes by the faster of its peers and by intervals; near the copy rate nobody wins:

>>> row = {"right": True, "ours_us": 100, "interval_us": [99, 101], "io_bytes": 3e8}
>>> row |= {"eager_us": 150, "eager_interval_us": [149, 151], "copy_gbs": 4000}
>>> row |= {"compile_us": 110, "compile_interval_us": [109, 111]}
>>> standing(row), best_peer(row), ratio_of(row)
('faster', 'compile', 1.1)
>>> standing(row | {"compile_interval_us": [100, 120]})
'tied'
>>> standing(row | {"ours_us": 112, "interval_us": [112, 112]})
'slower'
>>> behind = row | {"ours_us": 130, "interval_us": [129, 131]}
>>> standing(behind)
'lost'
>>> standing(behind | {"io_bytes": 5e8})
'tied'
>>> standing(row | {"right": False}), standing(row | {"eager_us": None, "compile_us": None})
('failed', 'unknown')
"""

import json
import math
import statistics

from render_tables import number, percent, table

BEHIND = 1.03  # slower by more than this is a loss
COPYING = 0.95  # of the copy rate: both are as fast as memory
TARGETS = (
    ("right kernel", "100 %", "100 %"),
    ("wall time at most budget + 1 s", "100 %", "–"),
    ("candidates judged a region, median", "≥ 30", "≥ 100"),
    ("faster or tied", "≥ 90 %", "≥ 97 %"),
    ("slower by more than 3 %", "≤ 5 %", "0 %"),
    ("geometric mean over the best peer", "≥ 1.8 (fp32)", "≥ 2.5"),
    ("judging one candidate, median", "≤ 100 ms", "≤ 50 ms"),
)


def peers_of(row):
    return {name: row[f"{name}_us"] for name in ("eager", "compile") if row.get(f"{name}_us")}


def best_peer(row):
    peers = peers_of(row)
    return min(peers, key=peers.get) if peers else None


def ratio_of(row):
    """The best peer's time over ours; None where one of them is unknown."""
    best = best_peer(row)
    return peers_of(row)[best] / row["ours_us"] if best and row.get("ours_us") else None


def copies(row, us):
    """Whether a time is that of moving each byte once at the copy rate of the same run."""
    rate = row.get("copy_gbs")
    return bool(rate) and row["io_bytes"] / us / 1e3 >= COPYING * rate


def standing(row):
    """faster, tied, slower (less than 3 % behind), lost, or unknown."""
    ratio = ratio_of(row)
    if not row["right"]:
        return "failed"
    if ratio is None:
        return "unknown"
    best = best_peer(row)
    ours, theirs = row["interval_us"], row[f"{best}_interval_us"]
    if ours[1] < theirs[0]:
        return "faster"
    as_copies = copies(row, row["ours_us"]) and copies(row, peers_of(row)[best])
    if ours[0] <= theirs[1] or as_copies:
        return "tied"
    return "slower" if ratio >= 1 / BEHIND else "lost"


def share(rows, holds):
    return f"{percent(sum(map(holds, rows)) / len(rows))} of {len(rows)}" if rows else "–"


def regions_of(row):
    return max(1, len(row.get("regions") or []))


def judge_ms(row):
    judged = (row.get("seconds") or {}).get("judge")
    return 1000 * judged / row["candidates"] if judged and row.get("candidates") else None


def gates(rows, budget):
    """What each of TARGETS stands at."""
    ratios = [ratio for row in rows if row["right"] and (ratio := ratio_of(row))]
    compared = [row for row in rows if standing(row) != "unknown"]
    judged = [ms for row in rows if (ms := judge_ms(row))]
    counts = [(row.get("candidates") or 0) / regions_of(row) for row in rows]
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None
    return [
        share(rows, lambda row: row["right"]),
        share(rows, lambda row: row["wall_s"] <= budget + 1),
        number(statistics.median(counts)) if counts else "–",
        share(compared, lambda row: standing(row) in ("faster", "tied")),
        share(compared, lambda row: standing(row) in ("lost", "failed")),
        f"{mean:.2f} of {len(ratios)}" if mean else "–",
        f"{statistics.median(judged):.0f} ms of {len(judged)}" if judged else "–",
    ]


def microseconds(row, name):
    us = row.get(f"{name}_us")
    return number(us) if us else "–"


def table_of(rows):
    """Losers first: what failed, then by how far it is behind."""
    ordered = sorted(rows, key=lambda row: (row["right"], ratio_of(row) or 0))
    lines = []
    for row in ordered:
        ratio, seconds = ratio_of(row), row.get("seconds") or {}
        spent = " / ".join(
            number(seconds.get(name)) for name in ("setup", "compile", "judge", "time", "whole")
        )
        lines.append(
            [
                f"`{row['task']}`",
                row["fail"] or row.get("peers_fail") or standing(row),
                microseconds(row, "ours"),
                microseconds(row, "eager"),
                microseconds(row, "compile"),
                f"{ratio:.2f}×" if ratio else "–",
                percent(row.get("roofline_fraction")),
                f"{row.get('candidates') or 0} in {regions_of(row)}",
                ", ".join(row.get("families") or []) or "–",
                number(row["wall_s"]),
                spent if seconds else "–",
                number(row.get("error")),
            ]
        )
    lines = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    headers = ["task", "standing", "ours, µs", "eager, µs", "compile, µs", "best peer ÷ ours"]
    headers += ["of the bound", "candidates in regions", "families", "wall, s"]
    headers += ["setup / compile / judge / time / whole, s", "error"]
    return table(headers, lines)


def board_of(folder, data, track):
    rows = [row for row in data["rows"] if row["track"] == track]
    if not rows:
        return ""
    whole = data["tasks"][track]
    state = "complete" if len(rows) == whole else f"a sample of {len(rows)} of {whole} tasks"
    commits = sorted({row["commit"][:12] for row in rows})
    versions = ", ".join(f"{name} {of}" for name, of in data.get("peers", {}).items())
    head = (
        f"### {folder}, {track}\n\n{data['device']}, driver {data['driver']}, CUDA "
        f"{data.get('cuda') or '–'}, {versions}; KernelBench at {data['kernelbench']}; budget "
        f"{data['budget_s']:g} s; {state}; at {', '.join(commits)}.\n\n"
    )
    values = gates(rows, data["budget_s"])
    lines = [[name, value, gate, aim] for (name, gate, aim), value in zip(TARGETS, values)]
    return head + table(["measure", "today", "gate", "aim"], lines) + "\n" + table_of(rows) + "\n"


def boards_in(root):
    for path in sorted((root / "bench/results").glob("*/kernelbench_cold.json")):
        yield path.parent.name, json.loads(path.read_text())


def render_kernelbench(root):
    boards = [
        board_of(folder, data, track)
        for folder, data in boards_in(root)
        for track in ("fp32", "tf32")
    ]
    return "".join(boards) or "No card has a board yet.\n"


def summary_line(data, track):
    """A board in a line: how many tasks, and what became of them."""
    rows = [row for row in data["rows"] if row["track"] == track]
    right, wall, _, level, behind, mean, _ = gates(rows, data["budget_s"])
    measured = f"{len(rows)} of {data['tasks'][track]}"
    budget = f"{data['budget_s']:g} s"
    values = [value.split(" of ")[0] for value in (right, level, behind, mean, wall)]
    return [data["device"], track, budget, measured, *values[:3], f"{values[3]}×", values[4]]


def render_kernelbench_summary(root):
    lines = [
        summary_line(data, track)
        for _, data in boards_in(root)
        for track in ("fp32", "tf32")
        if any(row["track"] == track for row in data["rows"])
    ]
    headers = ["card", "track", "budget", "tasks measured", "right", "faster or tied"]
    headers += ["behind", "geometric mean", "in time"]
    return table(headers, lines)
