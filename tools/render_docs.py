#!/usr/bin/env python3
"""Writes what documents repeat from data, so that the two never differ.
Usage: render_docs.py [--check] [ROOT]


In README.md and docs/*.md the text between `<!-- begin WHAT -->` and `<!-- end -->` is replaced.
WHAT is

  errors                  the table of error codes, from src/base/error_codes.def
  results MACHINE         every group of bench/results/MACHINE/*.json as a full table
  fuzz                    the last long run of random programs, tests/fuzz/last_run.json
  graphs                  the last long run of random graphs, tests/fuzz/last_graphs.json
  corpus                  what each candidate of tests/verify/corpus got, its results.json
  compiler MACHINE        the compiler's own figures, bench/results/MACHINE/compiler.json
  ranking MACHINE         how predicted costs order measured times,
                          bench/results/MACHINE/ranking.json
  banks MACHINE           shared-memory wavefronts, emulated and counted by the GPU,
                          bench/results/MACHINE/banks.json
  matrix_banks MACHINE    cycles of wgmma and of the copy engine by swizzle,
                          bench/results/MACHINE/matrix_banks.json
  search MACHINE          how long searches take to find a good kernel,
                          bench/results/MACHINE/search.json
  profiles MACHINE        what the units of a GPU were busy with,
                          bench/results/MACHINE/profiles.json
  packed FOLDER           what it takes to read weights packed or not,
                          bench/results/FOLDER/packed.json
  misses MACHINE          the rows of bench/results/MACHINE/*.json below their goal in
                          bench/goals.json
  overhead FILE           what judging a candidate adds to its own runs,
                          bench/results/faults/FILE.json
  results MACHINE N G..   one table of the first N rows of every group, or of the groups named, the
                          columns that matter most

bench/goals.json: for each machine a list of {"cases": patterns of fnmatch, "ratio": least of it or
"tbs": least terabytes a second, "aim": what is hoped for, "least_bytes": moved by a row that is
meant, "geometric_mean": least of the ratios of all}. A row's goal is the first that fits it.

With --check nothing is written and the exit status is 1 when a document differs.
"""
import fnmatch
import json
import math
import pathlib
import re
import sys

from markdown import reflow

BLOCK = re.compile(r"(<!-- begin ([^>]*?) -->\n)(.*?)(<!-- end -->)", re.S)
# A long meaning is several literals, one behind another, as in C++.
ROW = re.compile(
    r'^WARPLOOM_ERROR\(\s*\w+, "([^"]+)", (\d+),\s+"((?:[^"\\]|\\.|"\s+")*)"\)|^// (.+)$', re.M
)


def render_errors(root):
    text = (root / "src/base/error_codes.def").read_text()
    lines, title = [], None
    for code, status, meaning, comment in ROW.findall(text[text.index("\n\n") :]):
        if comment:
            title = comment
            continue
        if title:
            lines += ["", f"### {title}", "", "| code | exit status | meaning |", "|---|---|---|"]
            title = None
        whole = re.sub(r'"\s+"', "", meaning)
        lines.append(f"| `{code}` | {status} | {whole} |")
    return "\n".join(lines[1:]) + "\n"


def number(value, digits=3):
    """Three significant digits, no exponent between 0.001 and a million."""
    if value is None or value == "":
        return "–"
    if not isinstance(value, (int, float)):
        return str(value)
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"{value:.1e}"
    if abs(value) >= 100 or float(value).is_integer():
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def percent(value):
    return "–" if value is None else f"{100 * value:.0f} %"


def table(headers, rows):
    lines = [
        "| " + " | ".join(headers) + " |",
        "|" + "|".join(["---"] + ["---:"] * (len(headers) - 1)) + "|",
    ]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def load_groups(root, machine):
    groups = []
    for path in sorted((root / "bench/results" / machine).glob("*.json")):
        data = json.loads(path.read_text())
        if "ours_us" in (data.get("rows") or [{}])[0]:  # others are no comparisons with peers
            groups.append((path.stem, data))
    return groups


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


def outcome_table(first, counts, best):
    """One row a name, one column a code of outcomes, the best first."""
    codes = sorted(
        {code for of in counts.values() for code in of}, key=lambda code: (code != best, code)
    )
    return table(
        [first] + codes + ["all"],
        [
            [name or "–"] + [str(of.get(code, 0)) for code in codes] + [str(sum(of.values()))]
            for name, of in sorted(counts.items())
        ],
    )


def at_commit(run):
    return f", at {run['commit'][:12]}" if run.get("commit") else ""


def refusal_table(run):
    return table(
        ["times", "refusal"],
        [
            [str(count), message.replace("|", "\\|")]
            for message, count in sorted(run["refusals"].items(), key=lambda item: -item[1])
        ],
    )


def render_graphs(root):
    run = json.loads((root / "tests/fuzz/last_graphs.json").read_text())
    head = (
        f"Seeds {run['first_seed']} to {run['first_seed'] + run['graphs'] - 1}: {run['agree']} of "
        f"{run['graphs']} random graphs of "
        "1 to 6 operators agree between interpreter, CPU target, emulator and FP64; "
        f"{run['bugs']} faults, {run['refused']} refused by "
        f"name ({percent(run['refused'] / run['graphs'])}); {run['seconds']:.0f} "
        f"s{at_commit(run)}.\n\n"
    )
    operators = ", ".join(
        f"{name} {count}"
        for name, count in sorted(run["operators"].items(), key=lambda item: (-item[1], item[0]))
    )
    return head + "\n".join(
        [
            outcome_table("graphs on", run["by_target"], "agrees"),
            outcome_table("schedules of regions on", run["schedules"], "built"),
            refusal_table(run),
            f"Operators of the graphs that agree: {operators}.\n",
        ]
    )


def render_fuzz(root):
    run = json.loads((root / "tests/fuzz/last_run.json").read_text())
    head = (
        f"Seeds {run['first_seed']} to {run['first_seed'] + run['programs'] - 1}: "
        f"{run['programs']} programs, "
        f"{run['runs']} runs on a target in {run['seconds']:.0f} s, {run['bugs']} faults, "
        f"{run['refused']} refused by name "
        f"({percent(run['refused'] / run['runs'])}){at_commit(run)}.\n\n"
    )
    return head + "\n".join(
        [
            outcome_table("target", run["by_target"], "agrees"),
            outcome_table("kind", run["by_kind"], "agrees"),
            refusal_table(run),
        ]
    )


def render_corpus(root):
    """A row a candidate, by kind; `expected` from its head, the rest from results.json."""
    folder = root / "tests/verify/corpus"
    results = json.loads((folder / "results.json").read_text())
    headers = ["candidate", "what it does", "expected", "CPU", "H200", "what caught it"]
    devices = [f"{column} {device}" for column, device in sorted(results["devices"].items())]
    parts = [f"Measured on: {'; '.join(devices)}.\n"]
    for kind, title in (("cheats", "Cheats"), ("wrong", "Wrong kernels"), ("honest", "Controls")):
        rows, right = [], 0
        for path in sorted((folder / kind).iterdir()):
            head = {}
            for line in path.read_text().splitlines():
                if line.startswith("//   "):
                    head[key] += line[4:]
                elif line.startswith("// ") and ": " in line:
                    key, text = line[3:].split(": ", 1)
                    head.setdefault(key, text)
                else:
                    break
            expected, found = head["expect"], {
                column: results["verdicts"].get(column, {}).get(f"{kind}/{path.name}")
                for column in ("cpu", "h200")
            }
            cells = [
                "–"
                if not one
                else f"`{one['code']}`"
                if one["code"] == expected
                else f"**`{one['code']}`**"
                for one in found.values()
            ]
            caught = next((one["by"] for one in found.values() if one and one["by"]), "–")
            rows.append(
                [
                    f"`{path.name}`",
                    head.get("cheat") or head.get("bug") or head["control"],
                    f"`{expected}`",
                    *cells,
                    caught,
                ]
            )
            right += any(one and one["code"] == expected for one in found.values())
        measured = sum(row[3] != "–" or row[4] != "–" for row in rows)
        parts.append(
            f"### {title}\n\n{right} of {measured} that were run got the code that they should; "
            f"{len(rows) - measured} wait for a machine.\n"
        )
        lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
        parts.append("\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n")
    return "\n".join(parts)


def render_ranking(root, machine):
    data = json.loads((root / "bench/results" / machine / "ranking.json").read_text())
    rows = []
    for group, of in data["spearman"].items():
        rows.append(
            [
                group,
                str(of["candidates"]),
                f"{of['all']:.3f}",
                f"{of['median_within_a_problem']:.3f}",
            ]
        )
        for case, value in of["within_a_problem"].items():
            rows.append(
                [
                    f"`{case}`",
                    str(sum(row["case"] == case and "predicted_us" in row for row in data["rows"])),
                    f"{value:.3f}",
                    "",
                ]
            )
    return f"{data['gpu']}; times measured at {data['commit'][:12]}.\n\n" + table(
        ["problem", "candidates", "rank correlation", "median within"], rows
    )


def render_banks(root, machine):
    data = json.loads((root / "bench/results" / machine / "banks.json").read_text())
    rows = []
    for row in data["rows"]:
        if not any(row["emulated"][kind] for kind in ("loads", "stores")):
            continue
        same = all(
            abs(row["emulated"][kind] - row["measured"][kind]) <= 0.02 * row["measured"][kind]
            for kind in ("loads", "stores")
        )
        rows.append(
            [
                f"`{row['program']}`",
                *(
                    f"{row[side][kind]:.0f}"
                    for kind in ("loads", "stores")
                    for side in ("emulated", "measured")
                ),
                "yes" if same else "no",
            ]
        )
    return table(
        [
            "program",
            "loads, emulated",
            "loads, counted",
            "stores, emulated",
            "stores, counted",
            "within 2 %",
        ],
        rows,
    )


def render_matrix_banks(root, machine):
    """A row a type or a copy, a column a swizzle: the least of bound over cycles, on all
    multiprocessors; of wgmma with two warpgroups."""
    path = root / "bench/results" / machine / "matrix_banks.json"
    if not path.exists():
        return f"Not measured yet on this machine ({machine}).\n"
    data = json.loads(path.read_text())
    cells = {}
    for row in data["rows"]:
        if row["sms"] == 1 or row["warpgroups"] == 1:
            continue
        name = (
            f"`{row['type']}`" + (", beside copies" if row["kind"] == "both" else "")
            if row["n"]
            else f"{row['kind']} of 128 rows"
        )
        mode = (
            f"{row['swizzle']} B"
            if row["swizzle"]
            else "none"
            if row["width"] == 16
            else "none, rows of 128 B"
        )
        cells.setdefault(name, {}).setdefault(mode, []).append(row["ratio"] if row["right"] else 0)
    modes = ["none", "32 B", "64 B", "128 B", "none, rows of 128 B"]
    failed = "".join(
        f" Group `{group}` failed: {why.splitlines()[0][:80]}."
        for group, why in data["failed"].items()
        if why
    )
    return (
        f"{data['device']}, driver {data['driver']}, at "
        f"{data['commit'][:12] or 'an unknown commit'}.{failed}\n\n"
        + table(
            ["bound / cycles", *modes],
            [
                [name, *(f"{min(of[mode]):.2f}" if mode in of else "–" for mode in modes)]
                for name, of in cells.items()
            ],
        )
    )


def render_modelnew(root, machine):
    data = json.loads((root / "bench/results" / machine / "modelnew.json").read_text())
    rows = [
        [
            f"`{row['task']}`",
            row["trials"],
            number(row["us"]),
            number(row["eager_us"]),
            f"{row['eager_us'] / row['us']:.2f}×",
        ]
        for row in data["rows"]
    ]
    return f"{data['device']}, torch {data['torch']}, at {data['commit'][:12]}.\n\n" + table(
        ["task", "trials right", "ours, µs", "eager, µs", "ratio"], rows
    )


def render_search(root, machine):
    data = json.loads((root / "bench/results" / machine / "search.json").read_text())
    rows = [
        [
            f"`{row['case']}`",
            str(row["candidates"]),
            number(row["cold_s"]),
            percent(row["cold_of_best"]),
            number(row["warm_s"]),
            percent(row["warm_of_best"]),
        ]
        for row in data["searches"]
    ]
    return f"{data['device']}, at {data['commit'][:12]}.\n\n" + table(
        [
            "case",
            "candidates",
            "empty archive, s",
            "of the best",
            "archive that knows it, s",
            "of the best",
        ],
        rows,
    )


def render_profiles(root, machine):
    data = json.loads((root / "bench/results" / machine / "profiles.json").read_text())
    units = ["tensor", "dram", "l2", "l1", "issue", "warps"]
    rows = [
        [
            f"`{row['case']}`",
            f"`{row['kernel']}`",
            number(row["us"]),
            *(f"{row[unit]:.0f} %" for unit in units),
            ", ".join(
                f"{name.replace('_', ' ')} {number(cycles, 2)}"
                for name, cycles in row["stalls"].items()
            ),
        ]
        for row in data["rows"]
        if not row["kernel"].startswith("prepare")
    ]
    return f"{data['device']}, by `{data['command']}` at {commits_of(data)}.\n\n" + table(
        [
            "case",
            "kernel",
            "µs",
            "tensor",
            "DRAM",
            "L2",
            "L1, shared",
            "issue",
            "warps",
            "waiting, cycles an instruction",
        ],
        rows,
    )


def render_overhead(root, name):
    data = json.loads((root / "bench/results/faults" / f"{name}.json").read_text())
    columns = {
        "MB": "megabytes",
        "median, ms": "added_ms_median",
        "mean, ms": "added_ms_mean",
        "first, ms": "added_ms_first",
        "of it recording, ms": "of_it_recording_ms",
        "own timed runs, ms": "own_timed_runs_ms",
    }
    rows = [
        [row["problem"], *(f"{row[key]:.1f}" for key in columns.values())]
        for row in data["problems"]
    ]
    return f"{data['machine']}; the bar is {data['bar_ms']:.0f} ms.\n\n" + table(
        ["problem", *columns], rows
    )


def render_compiler(root, machine):
    data = json.loads((root / "bench/results" / machine / "compiler.json").read_text())
    compilers = ", ".join(data["compilers"].values())
    steps = [
        [
            row["case"],
            number(row["ms"]),
            " to ".join(number(ms) for ms in row["interval_ms"]),
            number(row["least_ms"]),
            number(row["cpu_ms"]),
            number(row["bar_ms"]),
        ]
        for row in data["rows"]
    ]
    programs = [
        [
            f"{row['kernel']} (`{row['example']}`)",
            *(str(row[key]) for key in ("lines", "hexcute", "cutlass")),
        ]
        for row in data["programs"]
    ]
    return (
        f"{data['device']}, load {data['load']:.1f}; {compilers}. Made by `{data['command']}` at "
        f"{data['commit'][:12]}.\n\n"
        + table(
            ["step", "median, ms", "95 % interval", "least, ms", "processor, ms", "bar, ms"], steps
        )
        + "\n"
        + table(["program", "lines", "Hexcute", "CUTLASS"], programs)
    )


def render_packed(root, folder):
    data = json.loads((root / "bench/results" / folder / "packed.json").read_text())
    loads = lambda counts: ", ".join(
        f"{count} of {size} byte{'s' * (size != '1')}" for size, count in counts.items()
    )
    rows = [
        [
            f"`{row['program']}`" + ("" if row["packed"] else ", rows"),
            loads(row["loads"]),
            *(str(row[key]) for key in ("instructions", "registers", "spilled")),
            f"{row['predicted_us']:.1f}",
        ]
        for row in data["rows"]
    ]
    return (
        f"{data['target']}, ptxas {data['ptxas']}, by `{data['command']}` at "
        f"{data['commit'][:12]}.\n\n"
        + table(
            ["program", "loads", "instructions", "registers", "bytes spilled", "predicted, µs"],
            rows,
        )
    )


def render(what, root):
    words = what.split()
    if words == ["errors"]:
        return render_errors(root)
    if words == ["fuzz"]:
        return render_fuzz(root)
    if words == ["graphs"]:
        return render_graphs(root)
    if words == ["corpus"]:
        return render_corpus(root)
    own = {
        "compiler": render_compiler,
        "ranking": render_ranking,
        "banks": render_banks,
        "matrix_banks": render_matrix_banks,
        "modelnew": render_modelnew,
        "profiles": render_profiles,
        "overhead": render_overhead,
        "packed": render_packed,
        "misses": render_misses,
        "search": render_search,
    }
    if words[0] in own and len(words) == 2:
        return own[words[0]](root, words[1])
    if words[:1] == ["results"] and len(words) >= 2:
        groups = [
            group
            for group in load_groups(root, words[1])
            if len(words) < 4 or group[0] in words[3:]
        ]
        if not groups:
            return f"No measurements on this machine ({words[1]}) are stored yet.\n"
        return (
            short_results(groups, int(words[2]))
            if len(words) >= 3
            else full_results(groups, load_goals(root, words[1]))
        )
    raise SystemExit(f"render_docs.py: nobody knows how to render '{what}'")


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    check = "--check" in sys.argv[1:]
    root = pathlib.Path(arguments[0] if arguments else ".")
    blocks = differing = 0
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        text = path.read_text()
        rendered = BLOCK.sub(
            lambda m: m.group(1) + "\n" + reflow(render(m.group(2), root)) + "\n" + m.group(4), text
        )
        blocks += len(BLOCK.findall(text))
        if rendered == text:
            continue
        differing += 1
        if check:
            print(
                f"{path.relative_to(root)} differs from its data; `python3 tools/render_docs.py` "
                "mends it"
            )
        else:
            path.write_text(rendered)
            print(f"{path.relative_to(root)} written")
    print(f"{blocks} rendered blocks, {differing} documents differed")
    return 1 if check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
