#!/usr/bin/env python3
"""Runs every test and every check of a built tree and counts them. Usage: test_all.py ROOT BUILD [REGEX]

Tests come from ctest (in parallel); checks are the scripts beside this one. The last line reads
`N passed, N failed, N skipped`; the exit status is 1 when anything failed. With REGEX only matching tests run, no checks.
"""
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as xml


def run_ctest(build, regex):
    """(passed, failed, skipped, names of the failed, reasons of the skipped) of all ctest tests."""
    report = os.path.join(os.path.abspath(build), "ctest.xml")
    if os.path.exists(report):
        os.remove(report)
    command = [
        "ctest",
        "--test-dir",
        build,
        "-j",
        str(os.cpu_count() or 1),
        "--output-junit",
        report,
        "--output-on-failure",
        "--no-tests=error",
        "-Q",
    ]
    subprocess.run(
        command + (["-R", regex] if regex else []),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if not os.path.exists(report):
        print("ctest found no tests")
        return 0, 1, 0
    passed = failed = skipped = 0
    for case in xml.parse(report).getroot().iter("testcase"):
        if case.get("status") == "run":
            passed += 1
        elif case.find("failure") is not None or case.get("status") == "fail":
            failed += 1
            print(f"FAILED {case.get('name')}")
            for line in (case.findtext("system-out") or "").splitlines()[-40:]:
                print(f"    {line}")
        else:
            skipped += 1
    return passed, failed, skipped


def checks(root, build):
    """(name, command) of every check that is not a test."""
    tool = lambda name, *more: [sys.executable, os.path.join(root, "tools", name), *more]
    yield "arrows between rooms", tool("check_arrows.py", root)
    yield "rendered tables", tool("render_docs.py", "--check", root)
    yield "format", tool("check_format.py", root)
    yield "examples of the packing helper", [
        sys.executable,
        "-m",
        "doctest",
        os.path.join(root, "bench", "packing.py"),
    ]
    yield "portable executable", tool("check_portable.py", os.path.join(build, "warploom"))
    yield "tidy", tool("check_tidy.py", root, build, "150")


def main():
    root, build = sys.argv[1], sys.argv[2]
    regex = sys.argv[3] if len(sys.argv) > 3 else ""
    start = time.time()
    passed, failed, skipped = run_ctest(build, regex)
    print(
        f"tests: {passed} passed, {failed} failed, {skipped} skipped in {time.time() - start:.0f} s"
    )
    for name, command in [] if regex else checks(root, build):
        start = time.time()
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = (result.stdout + result.stderr).strip().splitlines()
        seconds = time.time() - start
        if result.returncode == 77:
            skipped += 1
            print(f"{name}: skipped ({lines[-1] if lines else ''})")
        elif result.returncode == 0:
            passed += 1
            print(f"{name}: {lines[-1] if lines else 'ok'} ({seconds:.1f} s)")
        else:
            failed += 1
            print(f"{name}: FAILED")
            for line in lines[:60]:
                print(f"    {line}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
