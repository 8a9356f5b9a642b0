"""Rendered tables of the learned policy (bench/results/policy/compared.json, which
bench/policy/compare.py writes)."""

import json

from render_tables import number, percent, table

FILE = "bench/results/policy/compared.json"


def summary_rows(name, summary):
    return [
        [
            name,
            str(one["problems"]),
            one["policy"],
            number(one["to_095"]),
            number(one["to_098"]),
            percent(one["best_at_16"]),
        ]
        for one in summary
    ]


def interval(spread):
    return f"{number(spread['median'])} ({number(spread['low'])} to {number(spread['high'])})"


def render_summary(data):
    headers = ["held out", "problems", "policy", "tries to 0.95", "to 0.98", "best of 16"]
    rows = summary_rows("shapes", data["shapes"]["summary"])
    for family, one in data["families"].items():
        rows += summary_rows(f"`{family}`", one["summary"])
    return table(headers, rows)


def render_rows(data):
    headers = ["problem", "family of the best", "plans", "policy", "tries to 0.95", "to 0.98"]
    rows = [
        [
            f"`{row['problem']}`",
            f"`{row['family']}`",
            str(row["plans"]),
            row["policy"],
            interval(row["to_095"]),
            interval(row["to_098"]),
        ]
        for row in data["shapes"]["rows"]
    ]
    return table(headers, rows)


def render_policy(root, what):
    data = json.loads((root / FILE).read_text())
    return render_rows(data) if what == "rows" else render_summary(data)
