#!/usr/bin/env python3
r"""Runs every test and every check of a built tree and counts them.

    test_all.py ROOT BUILD          what CI runs: long tests by a sample that the commit draws
    test_all.py ROOT BUILD all      long tests whole, clang-tidy over every file
    test_all.py ROOT BUILD REGEX    tests whose names match, no checks

Tests come from ctest (in parallel) and, where torch is, from python/tests; checks are the scripts
beside this one. How far it is goes to standard error every two seconds. Standard output ends with
the trend of sizes, what took how long, the slowest tests, and a line `N passed, N failed, N
skipped`; the exit status is 1 when anything failed.

The environment's WARPLOOM_STEPS names what went before, as `./run` does it:

>>> earlier_steps("installing packages=3;building=400")
[('installing packages', 3.0), ('building', 400.0)]
>>> print(*table([("building", 400), ("tests", 61.26)]), sep="\n")
  building     400.0 s
  tests         61.3 s
"""

import os
import re
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor

# Debian's, which has Debian's torch.
PYTHON = "/usr/bin/python3"

# As many failed tests are run once more, alone.
MOST_RUN_AGAIN = 3
ONLY_ALONE = "FAILED AMONG OTHERS, PASSED ALONE"


class Progress:
    """Says on standard error what runs, every two seconds, until it is left."""

    def __init__(self, what):
        self.what, self.done, self.all, self.detail = what, 0, 0, ""
        self.start = time.time()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def text(self):
        spent = time.time() - self.start
        if not self.all:
            return f"{self.what}, {spent:.0f} s"
        left = (self.all - self.done) * spent / max(self.done, 1)
        about = f"{left / 60:.0f} min" if left >= 120 else f"{left:.0f} s"
        known = f", about {about} left" if spent > 5 and self.done else ""
        return f"{self.what}: {self.done} of {self.all}{known}{self.detail}"

    def run(self):
        terminal = sys.stderr.isatty()
        while not self.ended.wait(0.5 if terminal else 1.8):
            line = self.text()
            sys.stderr.write(f"\r\033[K{line[:99]}" if terminal else line + "\n")
            sys.stderr.flush()
        if terminal:
            sys.stderr.write("\r\033[K")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def earlier_steps(text):
    """(step, seconds) of what `./run` did before."""
    pairs = [step.rsplit("=", 1) for step in text.split(";") if "=" in step]
    return [(name, float(seconds)) for name, seconds in pairs]


def table(rows):
    """Lines of names and seconds."""
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:<{width}} {seconds:>9.1f} s" for name, seconds in rows]


def environment(root, whole):
    """What tells long tests which sample to take (tests/support/sample.h)."""
    found = dict(os.environ)
    if whole:
        return found | {"WARPLOOM_WHOLE": "1"}
    command = ["git", "-C", root, "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    found.setdefault("WARPLOOM_SAMPLE_SEED", str(int(commit[:8] or "0", 16)))
    return found


def slowest(report, count=10):
    """(name, seconds) of the tests of a JUnit report that took longest."""
    if not os.path.exists(report):
        return []
    cases = xml.parse(report).getroot().iter("testcase")
    times = [(case.get("name"), float(case.get("time") or 0)) for case in cases]
    return sorted(times, key=lambda row: -row[1])[:count]


def cases_of(report):
    """{name: (outcome, what it printed)} of a JUnit report; outcomes: passed, failed, skipped."""
    found = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        outcome = "skipped"
        if case.get("status") == "run":
            outcome = "passed"
        elif case.find("failure") is not None or case.get("status") == "fail":
            outcome = "failed"
        found[case.get("name")] = (outcome, case.findtext("system-out") or "")
    return found


def gist(printed, count=6):
    """The lines of a failed test that say what was expected, or its last ones.

    >>> gist("[ RUN ] A\\nx.cpp:7: Failure\\nExpected: 1\\nWhich is: 2\\n[ FAILED ] A", 3)
    ['x.cpp:7: Failure', 'Expected: 1', 'Which is: 2']
    >>> gist("started\\nSegmentation fault", 1)
    ['Segmentation fault']
    """
    lines = printed.splitlines()
    first = next((i for i, line in enumerate(lines) if line.endswith(": Failure")), None)
    return lines[-count:] if first is None else lines[first : first + count]


def pass_alone(build, failed, found):
    """Those of the failed tests that pass when nothing else runs.

    Tests run twice as many at once as there are cores. One that a crowded machine fails is named
    and counted as passed; more than a few are no accident, and are not run again.
    """
    if not failed or len(failed) > MOST_RUN_AGAIN:
        return []
    report = os.path.join(os.path.abspath(build), "ctest_again.xml")
    command = ["ctest", "--test-dir", build, "--rerun-failed", "-j", "1", "--output-junit", report]
    with Progress("failed tests alone"):
        subprocess.run(command, capture_output=True, check=False, env=found)
    if not os.path.exists(report):
        return []
    again = cases_of(report)
    os.remove(report)
    return [name for name in failed if again.get(name, ("failed", ""))[0] == "passed"]


def print_samples(found):
    """What of long tests ran, and by which seed another run takes the same."""
    if not os.path.exists(found["WARPLOOM_SAMPLES"]):
        return
    with open(found["WARPLOOM_SAMPLES"], encoding="utf-8") as samples:
        for line in sorted(samples):
            print(
                f"{line.strip()} (WARPLOOM_SAMPLE_SEED={found.get('WARPLOOM_SAMPLE_SEED', 'all')})"
            )
    os.remove(found["WARPLOOM_SAMPLES"])


def run_ctest(root, build, report, regex, whole):
    """((passed, failed, skipped) of all ctest tests, lines on what failed); `report` says more."""
    if os.path.exists(report):
        os.remove(report)
    # Twice the cores: many tests wait for processes, clocks and files.
    command = ["ctest", "--test-dir", build, "-j", str(2 * (os.cpu_count() or 1)), "--output-junit"]
    command += [report, "--output-on-failure", "--no-tests=error"]
    command += ["-R", regex] if regex else []
    found = environment(root, whole)
    found["WARPLOOM_SAMPLES"] = os.path.join(os.path.abspath(build), "samples.txt")
    with Progress("tests") as progress:
        ctest = subprocess.Popen(
            command,
            env=found,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        failures = 0
        for line in ctest.stdout:
            if ended := re.match(r" *(\d+)/(\d+) Test +#", line):
                progress.done, progress.all = int(ended.group(1)), int(ended.group(2))
                failures += "***Failed" in line or "***Exception" in line or "***Timeout" in line
                progress.detail = f", {failures} failed" if failures else ""
        ctest.wait()
    print_samples(found)
    if not os.path.exists(report):
        print("ctest found no tests")
        return (0, 1, 0), []
    return count_tests(cases_of(report), build, found)


def count_tests(cases, build, found):
    """(passed, failed, skipped), and the lines that say what failed; prints what they printed."""
    failed = [name for name, (outcome, _) in cases.items() if outcome == "failed"]
    alone = pass_alone(build, failed, found)
    said = []
    for name in failed:
        printed = cases[name][1]
        how = ONLY_ALONE if name in alone else "FAILED"
        said += [f"{how} {name}", *(f"    {line}" for line in gist(printed))]
        print(f"{how} {name}")
        print(*(f"    {line}" for line in printed.splitlines()[-40:]), sep="\n")
    skipped = sum(outcome == "skipped" for outcome, _ in cases.values())
    still = len(failed) - len(alone)
    return (len(cases) - still - skipped, still, skipped), said


def run_python(root, build):
    """(passed, failed, skipped) of the tests that need torch."""
    tests = os.path.join(root, "python", "tests")
    if not os.path.isdir(tests):
        return 0, 0, 0
    found = dict(os.environ, WARPLOOM_PROGRAM=os.path.join(os.path.abspath(build), "warploom"))
    files = sorted(file for file in os.listdir(tests) if re.fullmatch(r"test_.*\.py", file))
    with Progress("tests of Python"), ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = list(pool.map(lambda file: run_python_file(tests, file, found), files))
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f"tests of Python: {passed} passed, {failed} failed, {skipped} skipped")
    return passed, failed, skipped


def run_python_file(tests, file, env):
    """(passed, failed, skipped) of one file's tests, in a process of its own."""
    command = [PYTHON, "-m", "unittest", "discover", "-v", "-s", tests, "-p", file]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    ended = re.search(r"Ran (\d+) tests?", ran.stderr)
    if not ended:
        print(f"tests of Python, {file}: FAILED\n" + ran.stderr[-2000:])
        return 0, 1, 0
    count = lambda word: int((re.search(rf"{word}=(\d+)", ran.stderr) or [0, 0])[1])
    failed, skipped = count("failures") + count("errors"), count("skipped")
    if failed:
        print(ran.stderr[-6000:])
    return int(ended.group(1)) - failed - skipped, failed, skipped


def checks(root, build, whole):
    """(name, command) of every check that is not a test."""
    tool = lambda name, *more: [sys.executable, os.path.join(root, "tools", name), *more]
    doctest = lambda *path: [sys.executable, "-m", "doctest", os.path.join(root, *path)]
    yield "arrows between rooms", tool("check_arrows.py", root)
    yield "rendered tables", tool("render_docs.py", "--check", root)
    yield "paragraphs of documents", tool("check_paragraphs.py", root)
    yield "examples of the check of paragraphs", doctest("tools", "check_paragraphs.py")
    yield "format", tool("check_format.py", root)
    yield "lines and files", tool("check_rules.py", root)
    yield "glossary", tool("check_glossary.py", root)
    yield "examples of the glossary's reader", doctest("tools", "check_glossary.py")
    yield "examples of the trend", doctest("tools", "trend.py")
    yield "examples of the packing helper", doctest("bench", "packing.py")
    yield "examples of the table of cards", doctest("bench", "gpu.py")
    yield "examples of the board's rows", doctest("bench", "kernelbench.py")
    yield "examples of the CPU board", doctest("bench", "cpu", "measure.py")
    yield "examples of the board's gates", doctest("tools", "render_kernelbench.py")
    yield "examples of the Markdown helper", doctest("tools", "markdown.py")
    yield "examples of the offenders' list", doctest("tools", "offenders.py")
    yield "examples of the commands' reader", doctest("tools", "check_commands.py")
    yield "examples of the reader of C++", doctest("tools", "cxx.py")
    yield "examples of the look at what changed", doctest("tools", "check_tidy.py")
    yield "examples of the test runner", doctest("tools", "test_all.py")
    yield "examples of the comparison of kernels", doctest("tools", "same_ptx.py")
    yield "documents' commands", tool("check_commands.py", root, build)
    yield "portable executable", tool("check_portable.py", os.path.join(build, "warploom"))
    yield "tidy", tool("check_tidy.py", root, build, *(["--seconds", "0"] if whole else []))


def run_checks(root, build, whole, steps):
    """((passed, failed, skipped) of the checks, lines on what failed); `steps` gets the times."""
    passed = failed = skipped = 0
    said = []
    for name, command in checks(root, build, whole):
        start = time.time()
        with Progress(name):
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        steps.append((name, time.time() - start))
        lines = (result.stdout + result.stderr).strip().splitlines()
        last = result.stdout.strip().splitlines()[-1:] or lines[-1:] or ["ok"]
        if result.returncode == 77:
            skipped += 1
            print(f"{name}: skipped ({last[0]})")
        elif result.returncode == 0:
            passed += 1
            print(f"{name}: {last[0]}")
        else:
            failed += 1
            print(f"{name}: FAILED")
            for line in lines[:60]:
                print(f"    {line}")
            said += [f"FAILED {name}", *(f"    {line}" for line in lines[:6])]
    return (passed, failed, skipped), said


def main():
    root, build = sys.argv[1], sys.argv[2]
    regex = sys.argv[3] if len(sys.argv) > 3 else ""
    whole = regex == "all"
    if whole:
        regex = ""
    steps = earlier_steps(os.environ.get("WARPLOOM_STEPS", ""))
    report = os.path.join(os.path.abspath(build), "ctest.xml")
    start = time.time()
    tests, said = run_ctest(root, build, report, regex, whole)
    counts = [tests]
    steps.append(("tests", time.time() - start))
    print("tests: {} passed, {} failed, {} skipped".format(*counts[0]))
    broken_checks = []
    if not regex:
        start = time.time()
        counts.append(run_python(root, build))
        steps.append(("tests of Python", time.time() - start))
        checked, broken_checks = run_checks(root, build, whole, steps)
        counts.append(checked)
        sys.stdout.flush()
        subprocess.run([sys.executable, os.path.join(root, "tools", "trend.py"), root], check=False)
    print("What took how long:", *table(steps), sep="\n")
    print("The slowest tests:", *table(slowest(report)), sep="\n")
    # At the end once more: a log that was cut keeps its end.
    print(*said, *broken_checks, sep="\n", end="\n" if said or broken_checks else "")
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    alone = sum(line.startswith(ONLY_ALONE) for line in said)
    words = f" ({alone} of them only alone)" if alone else ""
    print(f"{passed} passed{words}, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
