"""Markdown: every text is Markdown, so what is looked for are the usual accidents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from proctor.errors import EvaluatorError
from proctor.evaluators.formats.fault import Fault
from proctor.evaluators.formats.terms import Terms

if TYPE_CHECKING:
    from markdown_it.token import Token

_DASHES = re.compile(r"\s*+:?-++:?\s*+")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
# Neither a[i][j] nor the two citations in [1][2] is a link.
_UNRESOLVED = re.compile(r"(?<!\w)\[([^\[\]]+)\]\[([^\[\]]*)\]")
_LETTER = re.compile(r"[^\W\d]")
# For each bracket that is not closed the parser looks through all that follows.
_MOST_OPEN = 500
_BROKEN_LINK = re.compile(r"(?<!\w)\[([^\[\]]+)\]\(")


def markdown(text: str, _: Terms) -> Fault | None:
    """Markdown without accidents, by a CommonMark parser with tables.

    Looked for are: a code fence that is never closed, a table whose rows differ in their number
    of cells, a heading more than one level below the one before it, a link that points nowhere,
    whose brackets do not close, or whose reference is not defined.
    """
    from markdown_it import MarkdownIt

    if not text.strip():
        return Fault("the text is empty")
    if text.count("[") - text.count("]") > _MOST_OPEN:
        raise EvaluatorError(f"more than {_MOST_OPEN} brackets in it are not closed")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    lines = text.splitlines()
    faults = [*_fences(tokens, lines), *_tables(tokens, lines), *_headings(tokens), *_links(tokens)]
    return min(faults, key=lambda fault: fault.line, default=None)


def _fences(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[Fault]:
    for token in tokens:
        if token.type == "fence" and token.map is not None:
            first, end = token.map
            last = lines[end - 1].strip(" \t>") if end - first > 1 else ""
            if not (last.startswith(token.markup) and set(last) == {token.markup[0]}):
                yield Fault(f"the code fence {token.markup} is never closed", first + 1)


def _tables(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[Fault]:
    width = 0
    for token in tokens:
        if token.map is None:
            continue
        line = token.map[0]
        if token.type == "table_open":
            width = _cells(lines[line])
        elif token.type == "tr_open" and (found := _cells(lines[line])) != width:
            yield Fault(f"the row has {found} cells, the head of its table {width}", line + 1)
        elif token.type == "paragraph_open":
            yield from _failed_tables(lines[line : token.map[1]], line + 1)


def _failed_tables(lines: Sequence[str], start: int) -> Iterator[Fault]:
    """Tables that the parser takes for a paragraph, as head and delimiter row do not agree."""
    for place, line in enumerate(lines[1:], start=1):
        head = lines[place - 1]
        if "|" in head and _is_delimiter_row(line) and _cells(head) != _cells(line):
            yield Fault(
                f"the table's head has {_cells(head)} cells, the row of dashes {_cells(line)}",
                start + place,
            )


def _is_delimiter_row(line: str) -> bool:
    row = line.strip()
    inner = row.removeprefix("|").removesuffix("|")
    return "|" in row and all(map(_DASHES.fullmatch, inner.split("|")))


def _cells(line: str) -> int:
    row = line.strip(" \t>")
    row = row.removeprefix("|")
    if _UNESCAPED_PIPE.search(row[-2:] if len(row) > 1 else row) and row.endswith("|"):
        row = row[:-1]
    return len(_UNESCAPED_PIPE.split(row))


def _headings(tokens: Sequence[Token]) -> Iterator[Fault]:
    above = 0
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            if above and level > above + 1 and token.map is not None:
                yield Fault(
                    f"a heading of level {level} follows one of level {above}", token.map[0] + 1
                )
            above = level


def _links(tokens: Sequence[Token]) -> Iterator[Fault]:
    for token in tokens:
        if token.type != "inline" or token.map is None:
            continue
        line = token.map[0] + 1
        children = token.children or []
        if any(child.type == "link_open" and not child.attrGet("href") for child in children):
            yield Fault("a link points nowhere", line)
        prose = "".join(child.content if child.type == "text" else " " for child in children)
        if found := _BROKEN_LINK.search(prose):
            yield Fault(f"the link [{found[1]}](…) is broken", line)
        elif found := next(
            (one for one in _UNRESOLVED.finditer(prose) if _LETTER.search(one[2])), None
        ):
            yield Fault(f"the link [{found[1]}] has no definition of its reference", line)
