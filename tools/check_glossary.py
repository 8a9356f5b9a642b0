#!/usr/bin/env python3
"""docs/glossary.md has every word that becomes a key or a name others build on.

    check_glossary.py [ROOT]           fails where a config field or a public type is not in it
    check_glossary.py [ROOT] --write   writes the tables of types between the page's markers

A config field is a row of src/kernels/config/*.def. A public type is a class, struct or enum of a
header of include/ or of a room, outside functions, other types, unnamed namespaces and `detail`.
Words are the first cells of the page's tables `| word | meaning |`; a cell may name several:

>>> sorted(words_of("| word | meaning |\\n|---|---|\\n| `block_m` | Rows. |\\n| RS, SS | … |\\n"))
['RS', 'SS', 'block_m']
>>> fields_of('WARPLOOM_FIELD(required, int64_t, block_m, 128, "", "rows")\\n#undef WARPLOOM_FIELD')
['block_m']

A type's meaning is the first sentence of the comment above it or on its line:

>>> text = '''// A map from here to there. It is whole.
... template <class T>
... struct Map {
...   struct Inner {};
... };
... enum class Kind { kOne };  // of maps
... class Later;
... namespace {
... struct Hidden {};
... }  // namespace
... struct Bare {
... };'''
>>> types_of(text)
[('Map', 'A map from here to there.'), ('Kind', 'of maps'), ('Bare', '')]
"""

import argparse
import pathlib
import re
import sys

PAGE = pathlib.Path("docs/glossary.md")
BEGIN, END = "<!-- types: written by tools/check_glossary.py --write -->", "<!-- /types -->"
FIELD = re.compile(r"^WARPLOOM_FIELD\(\s*\w+,\s*[\w:]+,\s*(\w+)", re.M)
TYPE = re.compile(r"(?:enum class|enum|class|struct|union) (?:\[\[\w+\]\] )?(\w+)[^;(]*\{")
INTRODUCTION = """
## Types

Public types by room; a meaning is the first sentence of the type's comment in the header.
"""


def words_of(page):
    """Words of the tables whose heads say so."""
    found, inside = set(), False
    for line in page.splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        if line.startswith("| word |"):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and "---" not in cells[1]:
            found |= {word.strip().strip("`") for word in cells[1].split(",")}
    return found


def fields_of(text):
    return FIELD.findall(text)


def sentence_of(comment):
    """The first sentence of the lines of a comment, as far as it stands before an example."""
    text = " ".join(comment[: comment.index("")] if "" in comment else comment).strip()
    end = re.search(r"\.(?=\s+[A-Z`]|$)", text)
    return (text[: end.end()] if end else text).removesuffix(":").rstrip()


def types_of(text):
    """(name, meaning) of each public type of a header that has a body there."""
    found, comment, hidden = [], [], 0
    for line in text.splitlines():
        if re.match(r"namespace( detail)? \{", line):
            hidden += 1
        elif hidden and re.match(r"\}  // namespace( detail)?$", line):
            hidden -= 1
        code, _, remark = line.partition("  // ")
        declared = None if hidden else TYPE.match(code)
        if declared:
            found.append((declared[1], sentence_of(comment) or sentence_of([remark])))
        if line.startswith("//"):
            comment.append(line[2:].strip())
        elif not line.startswith("template"):
            comment = []
    return found


def public_types(root):
    """(room, name, meaning, header) of each type of a header that others may include."""
    for folder in ("include", "src"):
        for path in sorted((root / folder).rglob("*.h")):
            name = path.relative_to(root / folder)
            room = "include" if folder == "include" else name.parts[0]
            for type_name, meaning in types_of(path.read_text()):
                said = re.sub(r"\s+", " ", meaning).replace("|", "\\|")
                yield room, type_name, said or f"Declared in `{name}`.", path.relative_to(root)


def tables_of(types):
    """The page's part with all types, a table a room."""
    lines = [BEGIN, INTRODUCTION]
    for room in dict.fromkeys(room for room, *_ in types):
        lines += [f"### `{room}`\n", "| word | meaning |", "|---|---|"]
        rows = {f"| `{name}` | {meaning} |" for one, name, meaning, _ in types if one == room}
        lines += sorted(rows)
        lines.append("")
    return "\n".join([*lines, END])


def written(page, types):
    """The page with the tables of types in their place, at its end where they have none yet."""
    if BEGIN not in page:
        page = page.rstrip() + f"\n\n{BEGIN}\n{END}\n"
    before, rest = page.split(BEGIN)
    return before + tables_of(types) + rest.split(END)[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    root = options.root
    types = list(public_types(root))
    page = (root / PAGE).read_text() if (root / PAGE).exists() else ""
    if options.write:
        page = written(page, types)
        (root / PAGE).write_text(page)
    words = words_of(page)
    faults = [
        f"{path.relative_to(root)}: the config field {field} is not in {PAGE}"
        for path in sorted((root / "src/kernels/config").glob("*.def"))
        for field in fields_of(path.read_text())
        if field not in words
    ]
    faults += [
        f"{path}: the type {name} is not in {PAGE}: tools/check_glossary.py --write lists it"
        for _, name, _, path in types
        if name not in words
    ]
    print("\n".join(faults))
    print(f"{len(words)} words, {len(types)} types, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
