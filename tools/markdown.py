"""Markdown within 100 columns: paragraphs and list items are filled anew where a line is longer.
 Tables, code, headings, HTML and what stands in backticks stay as they are, so that a line
may be longer only for a reason that `too_long` knows.

>>> print(reflow("- " + "word " * 30), end="")
- word word word word word word word word word word word word word word word word word word word
  word word word word word word word word word word word
"""

import re
import textwrap

COLUMNS = 100
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s")
HEAD = re.compile(r"\s*(?:[-*+]|\d+\.)\s+|\s*>\s*|\s*")
# A filled line must not begin with what Markdown would take for an item, a heading or a quote.
BEGINS_ANEW = re.compile(r"\s*(?:[-*+]\s|\d+\.\s|#+\s|>|\||={2,}|-{2,})")


def fill(lines):
    """The lines of one paragraph, filled; as they were where a filled one would begin anew."""
    head = HEAD.match(lines[0]).group(0)
    quote = head.strip() == ">"
    rest = [line.strip().lstrip(">").strip() if quote else line.strip() for line in lines[1:]]
    spans = []

    def hide(match):
        """A span of code as one word of its own width."""
        spans.append(match.group(0))
        return f"\x02{len(spans) - 1:05d}".ljust(len(match.group(0)), "\x03")

    text = re.sub(r"`[^`]*`", hide, " ".join([lines[0][len(head) :], *rest]))
    show = lambda match: spans[int(match.group(1))]
    for columns in range(COLUMNS, COLUMNS - 10, -1):
        filled = textwrap.wrap(
            text,
            columns,
            initial_indent=head,
            subsequent_indent=head if quote else " " * len(head),
            break_long_words=False,
            break_on_hyphens=False,
        )
        if quote or not any(BEGINS_ANEW.match(line) for line in filled[1:]):
            return [re.sub("\x02(\\d{5})\x03*", show, line) for line in filled]
    return lines


def paragraphs(text):
    """(may be filled, lines) of each run of lines that belong together."""
    run, code = [], False
    for line in text.split("\n"):
        fence = line.strip().startswith("```")
        apart = (
            fence
            or code
            or not line.strip()
            or line.lstrip().startswith(("|", "#", "<"))
            or (line.startswith("    ") and not run)
        )
        if run and (apart or ITEM.match(line)):
            yield True, run
            run = []
        if apart:
            yield False, [line]
        else:
            run.append(line)
        code ^= fence
    if run:
        yield True, run


def reflow(text):
    lines = []
    for fillable, run in paragraphs(text):
        longest = max(len(line) for line in run)
        lines += fill(run) if fillable and longest > COLUMNS else run
    return "\n".join(lines)


def too_long(text):
    """Numbers of the lines over 100 columns that are prose."""
    faults, at = [], 1
    for fillable, run in paragraphs(text):
        faults += [
            at + index
            for index, line in enumerate(run)
            if fillable and len(line) > COLUMNS and len(re.sub(r"`[^`]*`", "", line)) > 40
        ]
        at += len(run)
    return faults
