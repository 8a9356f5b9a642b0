"""Rendered tables of what is measured of the compiler, the search and the judge: a file of
bench/results and a function each."""

import json

from render_results import commits_of
from render_tables import number, percent, table


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
