"""Numbers and tables of rendered documents."""


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
