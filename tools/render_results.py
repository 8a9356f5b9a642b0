"""Rendered tables of benchmarks against peers (bench/results/MACHINE/*.json) and their goals
(bench/goals.json)."""

import fnmatch
import json
import math

from render_cpu import full_cpu_results, has_groups
from render_tables import number, percent, table


def load_groups(root, machine):
    groups = []
    for path in sorted((root / "bench/results" / machine).glob("*.json")):
        data = json.loads(path.read_text())
        first = ((data.get("rows") if isinstance(data, dict) else None) or [{}])[0]
        is_comparison = "ours_us" in first or "budget_s" in first  # with peers
        if "case" in first and is_comparison:
            groups.append((path.stem, data))
    return groups


def render_machines(root):
    """A row a folder of bench/results whose files compare with peers."""
    lines = []
    for folder in sorted((root / "bench/results").iterdir()):
        groups = load_groups(root, folder.name) if folder.is_dir() else []
        devices = sorted({data["device"] for _, data in groups if data.get("device")})
        rows = sum(len(data["rows"]) for _, data in groups)
        names = ", ".join(f"`{group}`" for group, _ in groups)
        if groups:
            lines.append([f"`{folder.name}`", ", ".join(devices), names, str(rows)])
    return table(["folder", "machine", "groups", "rows"], lines)


def best_peer_text(row):
    peer = row.get("best_peer")
    time = (row.get("peers", {}).get(peer) or {}).get("us") if peer else None
    return f"{peer} {number(time)}" if peer else "–"


def load_goals(root, machine):
    path = root / "bench/goals.json"
    return json.loads(path.read_text()).get(machine, []) if path.exists() else []


def fits(row, goal):
    moved = row["ours_us"] * (row.get("gbs") or 0) * 1e3  # microseconds times GB/s
    return moved >= goal.get("least_bytes", 0) and any(
        fnmatch.fnmatchcase(row["case"], pattern) for pattern in goal["cases"]
    )


def goal_of(row, goals):
    return next((goal for goal in goals if fits(row, goal)), None)


def reached(row, goal):
    """The figure that the goal is about, and as text."""
    value = row["gbs"] / 1000 if "tbs" in goal else row.get("ratio") or 0
    return value, f"{value:.2f} TB/s" if "tbs" in goal else f"{value:.3f}×"


def least_of(goal):
    return goal["tbs" if "tbs" in goal else "ratio"]


def is_missed(row, goal):
    return reached(row, goal)[0] < least_of(goal)


def goal_text(goal):
    unit = " TB/s" if "tbs" in goal else "×"
    aim = f", aim {goal['aim']:g}{unit}" if "aim" in goal else ""
    return f"≥ {least_of(goal):g}{unit}{aim}"


def goal_cell(row, goals):
    goal = goal_of(row, goals)
    if goal is None:
        return "–"
    return goal_text(goal) + (", **missed**" if is_missed(row, goal) else "")


def means(rows, goals):
    """A line for each goal of a geometric mean that has rows among these."""
    lines = []
    for goal in goals:
        if "geometric_mean" in goal and (
            of := [row for row in rows if goal_of(row, goals) is goal]
        ):
            mean = math.exp(sum(math.log(row["ratio"]) for row in of) / len(of))
            types = "/".join(sorted({row["dtype"] for row in of}))
            lines.append(
                f"- Geometric mean of the {len(of)} rows with goal {goal_text(goal)} in {types}: "
                f"{mean:.3f}×, "
                f"goal ≥ {goal['geometric_mean']:.2f}×"
                + (", **missed**" if mean < goal["geometric_mean"] else "")
                + "\n"
            )
    return "".join(lines)


def render_misses(root, machine):
    goals, lines = load_goals(root, machine), []
    rows = [row for _, data in load_groups(root, machine) for row in data["rows"]]
    with_goals = [(row, goal) for row in rows if (goal := goal_of(row, goals))]
    for row, goal in with_goals:
        if is_missed(row, goal):
            value, text = reached(row, goal)
            lines.append(
                [
                    f"`{row['case']}`",
                    goal_text(goal),
                    text,
                    f"{100 * value / least_of(goal):.1f} %",
                    best_peer_text(row),
                    number(row["ours_us"]),
                ]
            )
    idle = [
        f"`{pattern}`"
        for goal in goals
        for pattern in goal["cases"]
        if not fnmatch.filter([row["case"] for row in rows], pattern)
    ]
    return (
        f"{len(lines)} of {len(with_goals)} rows with a goal miss it.\n\n"
        + table(["case", "goal", "reached", "of the goal", "best peer, µs", "ours, µs"], lines)
        + "\n"
        + means(rows, goals)
        + (f"\nGoals without a row: {', '.join(idle)}.\n" if idle else "")
    )


def commits_of(data):
    """The newest run's, and how many rows are of which others."""
    newest, others = data.get("commit") or "", {}
    for row in data.get("rows", []):
        if row.get("commit", newest) != newest:
            others.setdefault(row["commit"], []).append(row)
    kept = ", ".join(f"{len(rows)} at {commit[:12]}" for commit, rows in others.items())
    return (newest[:12] or "an unknown commit") + (f" (older rows: {kept})" if kept else "")


def short_results(groups, limit):
    rows = []
    for _, data in groups:
        for row in data.get("rows", [])[:limit]:
            rate = (
                f"{number(row['tflops'])} TFLOP/s"
                if row.get("tflops")
                else (f"{number(row['gbs'])} GB/s" if row.get("gbs") else "–")
            )
            rows.append(
                [
                    f"`{row['case']}`",
                    row.get("track", "–"),
                    number(row.get("ours_us")),
                    best_peer_text(row),
                    f"{row['ratio']:.2f}×" if row.get("ratio") else "–",
                    rate,
                    percent(row.get("roofline_fraction")),
                    number(row.get("error")),
                ]
            )
    return table(
        ["case", "track", "ours, µs", "best peer, µs", "ratio", "rate", "of roofline", "error"],
        rows,
    )


def full_results(groups, goals):
    parts = []
    for group, data in groups:
        if has_groups(data):
            parts.append(f"### {group}\n\n{full_cpu_results(data)}")
            continue
        peers = ", ".join(f"{name} {version}" for name, version in data.get("peers", {}).items())
        parts.append(
            f"### {group}\n\n{data.get('device', '')}, driver {data.get('driver', '–')}, "
            f"CUDA {data.get('cuda', '–')}; peers: {peers or 'none'}. Made by "
            f"`{data.get('command', '')}`"
            f" at {commits_of(data)}.\n"
        )
        names = sorted({name for row in data.get("rows", []) for name in row.get("peers", {})})
        aimed = any(goal_of(row, goals) for row in data.get("rows", []))
        headers = (
            ["case", "track", "ours, µs", "95 % interval"]
            + [f"{name}, µs (error)" for name in names]
            + ["ratio"]
            + ["goal"] * aimed
            + [
                "TFLOP/s",
                "GB/s",
                "of roofline",
                "error",
                "workspace, bytes",
                "prepare, µs",
                "candidates",
                "search, s",
            ]
        )
        rows = []
        for row in data.get("rows", []):
            low, high = (row.get("interval_us") or [None, None])[:2]
            cells = [
                f"`{row['case']}`",
                row.get("track", "–"),
                number(row.get("ours_us")),
                f"{number(low)} to {number(high)}",
            ]
            for name in names:
                peer = row.get("peers", {}).get(name)
                cells.append(
                    f"{number(peer.get('us'))} ({number(peer.get('error'))})" if peer else "–"
                )
            cells += [f"{row['ratio']:.2f}×" if row.get("ratio") else "–"] + [
                goal_cell(row, goals)
            ] * aimed
            cells += [number(row.get(key)) for key in ("tflops", "gbs")] + [
                percent(row.get("roofline_fraction"))
            ]
            cells += [
                number(row.get(key))
                for key in (
                    "error",
                    "workspace_bytes",
                    "prepare_us",
                    "candidates",
                    "search_seconds",
                )
            ]
            rows.append(cells)
        parts.append(table(headers, rows))
        if lines := means(data.get("rows", []), goals):
            parts.append(lines)
    return "\n".join(parts)
