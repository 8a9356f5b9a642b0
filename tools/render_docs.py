#!/usr/bin/env python3
"""Writes what documents repeat from data, so that the two never differ.
Usage: render_docs.py [--check] [ROOT]


In README.md and docs/*.md the text between `<!-- begin WHAT -->` and `<!-- end -->` is replaced.
WHAT is

  errors                  the table of error codes, from src/base/error_codes.def
  kernelbench             the boards of KernelBench tasks, bench/results/*/kernelbench_cold.json
  kernelbench summary     a line for each of these boards
  machines                which machines have results, bench/results
  cpu                     what the CPU target reaches, by groups of work and machines,
                          bench/results/*/cpu.json
  boundaries              networks with fusion's regions and with searched ones,
                          bench/results/*/boundaries.json
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
  search_curves WHAT      how many candidates strategies need on closed sub-spaces, of all
                          problems, of large ones or by problem: bench/results/search_curves.json
  near                    what bests of other problems gain: bench/results/search_near.json
  filter                  what the policy's promise gains: bench/results/search_filter.json
  live MACHINE            what every strategy's winner takes in searches of a budget,
                          bench/results/MACHINE/live.json
  profiles MACHINE        what the units of a GPU were busy with,
                          bench/results/MACHINE/profiles.json
  packed FOLDER           what it takes to read weights packed or not,
                          bench/results/FOLDER/packed.json
  misses MACHINE          the rows of bench/results/MACHINE/*.json below their goal in
                          bench/goals.json
  policy WHAT             how many plans policies try, "summary" or "rows" of
                          bench/results/policy/compared.json
  overhead FILE           what judging a candidate adds to its own runs,
                          bench/results/faults/FILE.json
  results MACHINE N G..   one table of the first N rows of every group, or of the groups named, the
                          columns that matter most

bench/goals.json: for each machine a list of {"cases": patterns of fnmatch, "ratio": least of it or
"tbs": least terabytes a second, "aim": what is hoped for, "least_bytes": moved by a row that is
meant, "geometric_mean": least of the ratios of all}. A row's goal is the first that fits it. "cpu"
has for each group of bench/cpu/rows.py "mean", least of the geometric mean, "least" of each row,
and "aim".

With --check nothing is written and the exit status is 1 when a document differs.
"""
import json
import pathlib
import re
import sys

import render_measured
from markdown import reflow
from render_boundaries import render_boundaries
from render_cpu import render_cpu
from render_kernelbench import render_kernelbench, render_kernelbench_summary
from render_live import render_live
from render_policy import render_policy
from render_results import (
    full_results,
    load_goals,
    load_groups,
    render_machines,
    render_misses,
    short_results,
)
from render_search import render_filter, render_near, render_search_curves
from render_tables import at_commit, outcome_table, percent, refusal_table

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
    headers = ["candidate", "what it does", "expected", "CPU", "GPU", "what caught it"]
    devices = [f"{column} {device}" for column, device in sorted(results["devices"].items())]
    parts = [f"Measured on: {'; '.join(devices)}.\n"]
    counts = results.get("controls", {})
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
                for column in ("cpu", "gpu")
            }
            cells = [
                "–"
                if not one
                else f"`{one['code']}`"
                if one["code"] in expected.split(" or ")
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
            right += any(one and one["code"] in expected.split(" or ") for one in found.values())
            if kind == "honest" and counts:
                rows[-1].append(accepted_times(counts.get(f"{kind}/{path.name}")))
        measured = sum(row[3] != "–" or row[4] != "–" for row in rows)
        parts.append(
            f"### {title}\n\n{right} of {measured} that were run got the code that they should; "
            f"{len(rows) - measured} wait for a machine.\n"
        )
        names = headers + (["accepted"] if kind == "honest" and counts else [])
        lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        parts.append("\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n")
    if counts:
        parts.append(text_of_controls(counts))
    return "\n".join(parts)


def accepted_times(count):
    """Of a control: on the machine as it is and under load, together."""
    if not count:
        return "–"
    return f"{count['as_is'][0] + count['loaded'][0]} of {count['as_is'][1] + count['loaded'][1]}"


def text_of_controls(counts):
    always = sum(all(right == of for right, of in one.values()) for one in counts.values())
    most = max(sum(of for _, of in one.values()) for one in counts.values())
    others = [name for name in sorted(counts) if not name.startswith("honest/")]
    text = (
        f"{always} of {len(counts)} controls for a CPU were accepted each of {most} times, by "
        "turns on the machine as it was and while a process spun on every core "
        "(`bench/strict/controls.py`)"
    )
    rest = ", ".join(f"`{name}` {accepted_times(counts[name])}" for name in others)
    return text + (f"; of others: {rest}.\n" if rest else ".\n")


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
    if words == ["kernelbench"]:
        return render_kernelbench(root)
    if words == ["kernelbench", "summary"]:
        return render_kernelbench_summary(root)
    if words == ["boundaries"]:
        return render_boundaries(root)
    if words == ["cpu"]:
        return render_cpu(root)
    if words == ["machines"]:
        return render_machines(root)
    if words[0] == "policy" and len(words) == 2:
        return render_policy(root, words[1])
    if words[0] == "misses" and len(words) == 2:
        return render_misses(root, words[1])
    if words[0] == "search_curves" and len(words) == 2:
        return render_search_curves(root, words[1])
    if words[0] == "live" and len(words) == 2:
        return render_live(root, words[1])
    if words == ["near"]:
        return render_near(root)
    if words == ["filter"]:
        return render_filter(root)
    own = getattr(render_measured, f"render_{words[0]}", None)
    if own and len(words) == 2:
        return own(root, words[1])
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
