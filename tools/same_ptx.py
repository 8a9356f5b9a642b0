#!/usr/bin/env python3
"""Are two builds' golden kernels the same but for names? The guard of a change that only renames.

    same_ptx.py OLD/test_kernels NEW/test_kernels [--out FILE] [--rows REGEX]

Each build writes the text of every row of tests/ptxas.lock (WARPLOOM_TEXTS, see
tests/kernels/ptxas_test.cpp). Texts that differ, and all texts where a device header differs,
become PTX by nvcc; PTX is compared after its names were replaced by numbers. A row ends as one of

    equal text    the same text and the same headers
    equal PTX     after names
    different     with the first line that differs

Exit status: 0 if no row is different, 1 if one is, 77 if nvcc is needed and not there.

A commit from before WARPLOOM_TEXTS is taught it in a checkout of its own:

    git worktree add --detach /tmp/old 00f95323
    tools/same_ptx.py --teach /tmp/old
    cmake -S /tmp/old --preset release && ninja -C /tmp/old/build/release test_kernels
    ./run build && ninja -C build/release test_kernels
    tools/same_ptx.py /tmp/old/build/release/test_kernels build/release/test_kernels \\
        --out docs/readability/same-ptx.txt

Names are what PTX declares: kernels, parameters, variables, labels. Registers have numbers already.

>>> old = '''.visible .entry sum_parts(.param .u64 sum_parts_param_0) { // a comment
... ld.param.u64 %rd1, [sum_parts_param_0];
... $L__BB0_2: bra $L__BB0_2; }'''
>>> new = old.replace("sum_parts", "reduce_split_k").replace("BB0_2", "BB1_7")
>>> normalised(old) == normalised(new)
True
>>> normalised(old) == normalised(new.replace("u64 %rd1", "u32 %rd1"))
False
>>> print(*normalised(old), sep="\\n")
.visible .entry n0(.param .u64 n1) {
ld.param.u64 %rd1, [n1];
n2: bra n2; }

A name may not stand for two, nor two names for one:

>>> two = ".shared .b8 a[4]; .shared .b8 b[4]; ld.shared.b32 %r1, [a]; ld.shared.b32 %r2, [b];"
>>> normalised(two) == normalised(two.replace("[b];", "[a];"))
False

Kernels are matched by name, and those that are left by what they are:

>>> pairs([("gemm/main", 1), ("gemm/sum", 2)], [("gemm/main", 3), ("gemm/reduce", 2)], str)
[('gemm/main', 1, 3), ('gemm/reduce', 2, 2)]
>>> pairs([("gone/main", 1)], [("new/main", 2)], str)
[('gone/main', 1, None), ('new/main', None, 2)]
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HOOK = "TEST(PtxasLock, HoldsTheTextOfEveryGoldenKernel) {\n"
TEST = pathlib.Path("tests/kernels/ptxas_test.cpp")
DECLARED = re.compile(
    r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)"  # kernels and functions
    # A variable or a parameter: its space, what else is said of it, its type, its name.
    r"|\.(?:param|shared|global|const|local)\b(?:\s*\.(?:align\s+\d+|\w+))*\s+([\w$]+)"
    r"|\.reg\s+\.\w+\s+([A-Za-z_$][\w$]*)"  # of inline assembly
    r"|^\s*([\w$]+):"  # labels
    r"|(\$L__\w+)",
    re.M,
)


def normalised(ptx):
    """The lines of a PTX text without comments, every declared name replaced by a number."""
    ptx = re.sub(r"/\*.*?\*/", "", ptx, flags=re.S)
    ptx = re.sub(r"//[^\n]*", "", ptx)
    names = {}
    for match in DECLARED.finditer(ptx):
        name = next(group for group in match.groups() if group)
        names.setdefault(name, f"n{len(names)}")
    replaced = re.sub(r"(?<![\w$%.])[A-Za-z_$][\w$]*", lambda m: names.get(m[0], m[0]), ptx)
    return [line.strip() for line in replaced.splitlines() if line.strip()]


def pairs(old, new, meaning_of):
    """(name, old's value, new's value) of each row: of one name, else of one meaning; None stands
    for what the other lacks."""
    olds, news = dict(old), dict(new)
    found = [(name, olds[name], value) for name, value in news.items() if name in olds]
    waiting = collections.defaultdict(list)
    for name, value in olds.items():
        if name not in news:
            waiting[meaning_of(value)].append((name, value))
    for name, value in news.items():
        if name not in olds:
            rows = waiting[meaning_of(value)]
            found.append((name, rows.pop(0)[1] if rows else None, value))
    found += [(name, value, None) for rows in waiting.values() for name, value in rows]
    return sorted(found, key=lambda row: row[0])


def texts_of(program, folder):
    """[(row, (target, file))] of a build's golden kernels, written below `folder`."""
    (folder / "device").mkdir(parents=True)
    command = [program, "--gtest_filter=PtxasLock.HoldsTheTextOfEveryGoldenKernel"]
    environment = dict(os.environ, WARPLOOM_TEXTS=str(folder))
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    index = folder / "index"
    if ran.returncode or not index.exists():
        sys.exit(f"{program} wrote no texts: see --teach\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    rows = [line.rsplit(" ", 2) for line in index.read_text().splitlines()]
    return [(name, (target, folder / file)) for name, target, file in rows]


def headers_of(folder):
    return {path.name: path.read_text() for path in sorted((folder / "device").iterdir())}


class Compiler:
    """nvcc, and what it made before: a comparison that was broken off goes on where it was."""

    def __init__(self):
        self.nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
        self.folder = pathlib.Path(tempfile.gettempdir()) / "warploom_same_ptx"
        self.folder.mkdir(exist_ok=True)

    def ptx_of(self, row):
        """The normalised PTX of a row (target, file)."""
        target, file = row
        headers = headers_of(file.parent)
        key = hashlib.sha256(repr((target, file.read_text(), headers)).encode()).hexdigest()
        kept = self.folder / f"{key}.ptx"
        if not kept.exists():
            out = file.with_suffix(".ptx")
            flags = ["-ptx", f"-arch={target}", "-std=c++17", "-I", file.parent / "device"]
            command = [self.nvcc, *flags, file, "-o", out]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                sys.exit(f"{file}: nvcc says\n{ran.stderr[-2000:]}")
            shutil.move(out, kept)
        return normalised(kept.read_text())


def compared(compiler, same_headers, old, new):
    """What one row comes to."""
    if old is None or new is None:
        return "different: only in the " + ("new build" if old is None else "old build")
    if old[0] != new[0]:
        return f"different: target {old[0]}, now {new[0]}"
    if same_headers and old[1].read_text() == new[1].read_text():
        return "equal text"
    before, after = compiler.ptx_of(old), compiler.ptx_of(new)
    if before == after:
        return "equal PTX"
    for one, other in zip(before, after):
        if one != other:
            return f"different: `{one}`, now `{other}`"
    return f"different: {len(before)} lines, now {len(after)}"


def teach(checkout):
    """Adds WARPLOOM_TEXTS to the test of an older checkout."""
    here = (pathlib.Path(__file__).resolve().parent.parent / TEST).read_text()
    function = here[here.index("// FOLDER/device/HEADER") : here.index(HOOK)]
    call = '  if (const char* folder = std::getenv("WARPLOOM_TEXTS")) return write_texts(folder);\n'
    path = pathlib.Path(checkout) / TEST
    text = path.read_text()
    if "WARPLOOM_TEXTS" not in text:
        path.write_text(text.replace(HOOK, function + HOOK + call))


def report_of(old, new, rows, folder):
    """The lines of the report, and whether a row is different."""
    olds, news = texts_of(old, folder / "old"), texts_of(new, folder / "new")
    same_headers = headers_of(folder / "old") == headers_of(folder / "new")
    compiler = Compiler()
    nvcc = compiler.nvcc
    meaning_of = lambda row: (row[0], *compiler.ptx_of(row)) if nvcc else row[1].read_text()
    matched = [row for row in pairs(olds, news, meaning_of) if re.search(rows, row[0])]
    equal = all(o and n and o[1].read_text() == n[1].read_text() for _, o, n in matched)
    if not nvcc and not (same_headers and equal):
        print("texts or headers differ, and there is no nvcc to compare what becomes of them")
        sys.exit(77)
    ends = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for end in pool.map(lambda row: compared(compiler, same_headers, *row[1:]), matched):
            ends.append(end)
            if len(ends) % 20 == 0:
                print(f"{len(ends)} of {len(matched)} kernels", file=sys.stderr, flush=True)
    counts = collections.Counter(end.split(":")[0] for end in ends)
    kinds = ", ".join(f"{counts[kind]} {kind}" for kind in ("equal text", "equal PTX", "different"))
    lines = [
        "# Written by tools/same_ptx.py: golden kernels before and after, one line each.",
        f"# {len(ends)} kernels: {kinds}; device headers {'equal' if same_headers else 'differ'}.",
    ]
    lines += [f"{name:<68} {end}" for (name, *_), end in zip(matched, ends)]
    return lines, counts["different"] > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--teach", metavar="CHECKOUT")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--rows", default="")
    options = parser.parse_args()
    if options.teach:
        teach(options.teach)
        return 0
    if len(options.programs) != 2:
        parser.error("two builds of test_kernels are compared")
    with tempfile.TemporaryDirectory() as folder:
        lines, different = report_of(*options.programs, options.rows, pathlib.Path(folder))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines[1:2] if options.out else lines))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
