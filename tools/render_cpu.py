"""Rendered tables of the CPU target (bench/results/MACHINE/cpu.json, which bench/cpu/measure.py
writes) and what its groups are held to (bench/goals.json, "cpu")."""

import json
import math

from render_tables import number, percent, table

NAMES = {
    "matmul": "fp32 matmul, squares",
    "skinny": "skinny, odd and batched matmul, GEMV",
    "half": "bf16 matmul",
    "epilogue": "matmul with bias, activation, residual, norm behind",
    "conv": "convolutions of ResNet-50 and MobileNet",
    "chain": "fused chains",
    "row": "rows, pools, pointwise, transposes: of the copy rate",
}


def has_groups(data):
    return any("budget_s" in row for row in data.get("rows", []))


def geometric_mean(rows):
    return math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))


def counted(rows):
    """The rows whose ratio is decided."""
    return [row for row in rows if row.get("ratio") and not row.get("undecided")]


def left_out(rows):
    """In words: how many rows have no ratio, and why."""
    undecided = sum(bool(row.get("undecided")) for row in rows)
    failed = sum("failed" in row for row in rows)
    alone = sum("failed" not in row and not row.get("ratio") for row in rows)
    kinds = ((undecided, "undecided"), (failed, "failed"), (alone, "without a reference"))
    return ", ".join(f"{count} {word}" for count, word in kinds if count) or "–"


def goal_words(goal):
    parts = [f"mean ≥ {goal['mean']:.2f}×"] if "mean" in goal else []
    parts += [f"each ≥ {goal['least']:.2f}×"] if "least" in goal else []
    return ", ".join(parts)


def is_reached(rows, goal):
    mean = geometric_mean(rows) >= goal.get("mean", 0)
    return mean and min(row["ratio"] for row in rows) >= goal.get("least", 0)


def group_line(group, rows, goal):
    known = counted(rows)
    if not known:
        return [NAMES[group], str(len(rows)), "–", "–", goal_words(goal), left_out(rows)]
    lowest = min(known, key=lambda row: row["ratio"])
    missed = "" if is_reached(known, goal) else ", **missed**"
    return [
        NAMES[group],
        str(len(rows)),
        f"{geometric_mean(known):.2f}×",
        f"{lowest['ratio']:.2f}× (`{lowest['case']}`)",
        goal_words(goal) + missed,
        left_out(rows),
    ]


def render_cpu(root):
    """A table a machine, a row a group."""
    goals = json.loads((root / "bench/goals.json").read_text())["cpu"]
    parts = []
    for path in sorted((root / "bench/results").glob("*/cpu.json")):
        data = json.loads(path.read_text())
        if not has_groups(data):
            continue
        of = {
            group: [row for row in data["rows"] if row.get("group") == group] for group in NAMES
        }
        lines = [group_line(group, rows, goals[group]) for group, rows in of.items() if rows]
        headers = ["work", "rows", "geometric mean", "lowest", "goal", "not counted"]
        parts.append(f"{data['device']}:\n\n" + table(headers, lines))
    return "\n".join(parts) or "No machine has been measured yet.\n"


def row_line(row):
    if "failed" in row:
        return [f"`{row['case']}`", "–", row["failed"]] + ["–"] * 8
    peer = row.get("best_peer")
    low, high = row.get("interval") or (None, None)
    ratio = f"{row['ratio']:.2f}×" if row.get("ratio") else "–"
    rate = f"{number(row['tflops'])} TFLOP/s" if row["tflops"] else f"{number(row['gbs'])} GB/s"
    return [
        f"`{row['case']}`",
        number(row["ours_us"]),
        f"{peer} {number(row['peers'][peer]['us'])}" if peer else "–",
        ratio + (" undecided" if row.get("undecided") else ""),
        f"{low:.3f} to {high:.3f}" if low else "–",
        f"{row['reference_ratio']:.2f}×" if "reference_ratio" in row else "–",
        rate,
        percent(row.get("roofline_fraction")),
        number(row.get("error")),
        str(row["candidates"]),
        number(row["search_seconds"]),
    ]


def commits_of(data):
    commits = dict.fromkeys(row["commit"][:12] for row in data["rows"])
    return ", ".join(commits)


def full_cpu_results(data):
    headers = ["case", "ours, µs", "beside, µs", "ratio", "95 % interval", "of a library", "rate"]
    headers += ["of roofline", "error", "candidates", "search, s"]
    made = f"{data['device']}. Made by `{data['command']}` at {commits_of(data)}.\n\n"
    return made + table(headers, [row_line(row) for row in data["rows"]])
