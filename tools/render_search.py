"""Rendered tables of strategies on closed sub-spaces (bench/results/search_curves.json, which
bench/closed/measure.py writes)."""

import json
import math

from render_tables import number, percent, table

FILE = "bench/results/search_curves.json"
NEAR = "bench/results/search_near.json"
FILTER = "bench/results/search_filter.json"


def name_of(row):
    start = ", drawn start" if row["start"] == "drawn" else ""
    return f"`{row['strategy']}`" + (f", {row['policy']}" if row["policy"] else "") + start


def candidates(row, key):
    """A median; where most seeds never came so far all of the problem's plans."""
    median = row[key]["median"]
    return row["plans"] if median is None else median


def reached(rows, key):
    return sum(row[key]["median"] is not None for row in rows)


def geometric_mean(numbers):
    return math.exp(sum(math.log(max(1, one)) for one in numbers) / len(numbers))


def summary_row(name, rows):
    shares = [
        percent(sum(row[f"best_at_{count}"] for row in rows) / len(rows)) for count in (16, 64, 256)
    ]
    return [
        name,
        number(geometric_mean([candidates(row, "to_095") for row in rows])),
        number(geometric_mean([candidates(row, "to_098") for row in rows])),
        f"{reached(rows, 'to_098')} of {len(rows)}",
        *shares,
    ]


def by_name(rows):
    out = {}
    for row in rows:
        out.setdefault(name_of(row), []).append(row)
    return out


HEADERS = ["strategy, policy, start", "to 0.95", "to 0.98", "reach it", "of 16", "of 64", "of 256"]


def render_summary(rows):
    made = [summary_row(name, of) for name, of in by_name(rows).items()]
    return table(HEADERS, sorted(made, key=lambda row: float(row[2])))


def interval(figures):
    ends = [number(figures[key]) for key in ("low", "high")]
    return f"{number(figures['median'])} ({ends[0]} to {ends[1]})"


def render_rows(rows):
    """A problem a row: what each strategy needs to 0.98 with its own best policy."""
    names = list(by_name(rows))
    by_problem = {}
    for row in rows:
        by_problem.setdefault((row["problem"], row["plans"]), {})[name_of(row)] = row
    lines = [
        [problem, str(plans)]
        + [interval(of[name]["to_098"]) if name in of else "–" for name in names]
        for (problem, plans), of in by_problem.items()
    ]
    return table(["problem", "plans", *names], lines)


RANDOM_NEEDS = 100  # candidates to 0.98, from which on strategies are held against each other
PROMISED = {"random": 4, "evolution": 2, "lfbo": 2}  # times fewer candidates than theirs
WITHIN = 64
CLOSED = 0.6  # of what greedy linear search leaves open


def with_start(rows, strategy, policy, start):
    """By problem; strategies that begin nowhere are the same for every start."""
    return {
        row["problem"]: row
        for row in rows
        if row["strategy"] == strategy
        and row["policy"] in (policy, None)
        and row["start"] in (start, None)
    }


def gap_closed(tree, linear):
    """Of what the linear search's best of 64 lacks to the best, over all problems."""
    open_gap = sum(1 - row["best_at_64"] for row in linear.values())
    left = sum(1 - row["best_at_64"] for row in tree.values())
    return None if open_gap <= 0 else 1 - left / open_gap


def render_gates(rows):
    """Tree search by a policy and a start against what was promised of it."""
    lines = []
    for start in ("guessed", "drawn"):
        for policy in ("uniform", "analytic", "learned"):
            tree = with_start(rows, "tree", policy, start)
            rivals = {name: with_start(rows, name, policy, start) for name in PROMISED}
            hard = [
                problem
                for problem, row in rivals["random"].items()
                if candidates(row, "to_098") >= RANDOM_NEEDS
            ]
            within = sum(
                row["to_098"]["median"] is not None and row["to_098"]["median"] <= WITHIN
                for row in tree.values()
            )
            worst = max(candidates(row, "to_098") for row in tree.values())
            line = [f"{policy}, {start}", f"{within} of {len(tree)}, at most {number(worst)}"]
            for name, times in PROMISED.items():
                needed = {problem: candidates(rivals[name][problem], "to_098") for problem in hard}
                kept = sum(
                    times * candidates(tree[problem], "to_098") <= needed[problem]
                    for problem in hard
                )
                # A search needs one candidate at least.
                least = sum(count < times for count in needed.values())
                words = f" ({least} at its least)" if least else ""
                line.append(f"{kept} of {len(hard)}{words}")
            closed = gap_closed(tree, with_start(rows, "linear", policy, start))
            line.append("–" if closed is None else percent(closed))
            lines.append(line)
    headers = ["tree search by, start", f"0.98 within {WITHIN}", "≤ 1/4 of random's",
               "≤ 1/2 of evolution's", "≤ 1/2 of LFBO's", "of linear's gap closed"]
    return table(headers, lines)


def render_search_curves(root, what):
    """`what`: all, large (problems of more than 100 plans), problems or gates."""
    rows = json.loads((root / FILE).read_text())["rows"]
    if what == "gates":
        return render_gates(rows)
    large = [row for row in rows if row["plans"] > 100]
    if what == "problems":
        return render_rows(large)
    return render_summary(large if what == "large" else rows)


def render_kinds(root, file, heading, kind_of):
    """Strategies on the same problems, a row each kind."""
    path = root / file
    if not path.exists():
        return "Nothing is stored yet.\n"
    lines = []
    for name, of in by_name(json.loads(path.read_text())["rows"]).items():
        kinds = list(dict.fromkeys(kind_of(row) for row in of))
        for kind in kinds:
            some = [row for row in of if kind_of(row) == kind]
            lines.append([name, kind, *summary_row("", some)[1:]])
    return table(["strategy, policy, start", heading, *HEADERS[1:]], lines)


def render_near(root):
    """Searches that begin at the bests of other problems, too, of problems that have any near."""
    return render_kinds(root, NEAR, "begins at bests of others",
                        lambda row: "yes" if row["begins_near"] else "no")


def render_filter(root):
    return render_kinds(root, FILTER, "odds that are taken last",
                        lambda row: f"below {row['unlikely_percent']} %"
                        if row["unlikely_percent"] else "none")
