#!/usr/bin/env python3
"""No paragraph of a document has more than 120 words. Usage: check_paragraphs.py [ROOT]

A paragraph is what stands between blank lines; an item of a list is one of its own. Tables, code,
headings and blocks that `tools/render_docs.py` writes are none.

>>> long_paragraphs("a b c\\nd\\n\\n- e f\\n- g\\n", most=3)
[(1, 4)]
>>> long_paragraphs("| a b c d e |\\n\\n    a b c d e\\n\\n# a b c d e\\n", most=3)
[]
>>> long_paragraphs("<!-- begin x -->\\n\\na b c d\\n\\n<!-- end -->\\n\\na b c d\\n", most=3)
[(7, 4)]
>>> long_paragraphs("```sh\\na b c d\\n```\\n", most=3)
[]
"""

import pathlib
import re
import sys

from markdown import paragraphs

WORDS = 120
RENDERED = re.compile(r"<!-- begin [^>]*? -->\n.*?<!-- end -->", re.S)


def without_rendered(text):
    """The text with rendered blocks emptied and every line at its old number."""
    return RENDERED.sub(lambda block: "\n" * block.group(0).count("\n"), text)


def long_paragraphs(text, most=WORDS):
    """(line, words) of every paragraph of more than `most` words."""
    found, line = [], 1
    for is_prose, run in paragraphs(without_rendered(text)):
        words = len(" ".join(run).split())
        if is_prose and words > most:
            found.append((line, words))
        line += len(run)
    return found


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    patterns = ("*.md", "docs/**/*.md", "examples/**/*.md")
    documents = sorted(path for pattern in patterns for path in root.glob(pattern))
    faults = 0
    for path in documents:
        for line, words in long_paragraphs(path.read_text()):
            print(f"{path.relative_to(root)}:{line}: a paragraph of {words} words")
            faults += 1
    print(f"{len(documents)} documents, {faults} paragraphs of more than {WORDS} words")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
