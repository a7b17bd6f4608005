"""XML by expat, and HTML by its own rules for tags, comments and raw text, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from xml.parsers import expat

from proctor.errors import EvaluatorError
from proctor.evaluators.formats.fault import Fault, Terms, at
from proctor.evaluators.score_conversion import preview

if TYPE_CHECKING:
    from markdown_it.token import Token


_VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")
# Elements that HTML lets end without saying so.
_OPEN_ENDED = re.compile(
    "html|head|body|p|li|dt|dd|option|optgroup|rp|rt|tr|td|th|thead|tbody|tfoot|colgroup|caption"
)
_FOREIGN = frozenset(("svg", "math"))


class _Refused(Exception):
    pass


def xml(text: str, _: Terms) -> Fault | None:
    """A well-formed XML document; one that declares entities is refused, and nothing is fetched."""
    parser = expat.ParserCreate()
    refused: list[Fault] = []

    def refuse(*_: object) -> int:
        refused.append(
            Fault(
                "it declares an entity, which is not read for safety",
                parser.CurrentLineNumber,
                parser.CurrentColumnNumber + 1,
            )
        )
        raise _Refused

    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(text, True)
    except _Refused:
        return refused[0]
    except expat.ExpatError as error:
        return Fault(expat.ErrorString(error.code), error.lineno, error.offset + 1)
    return None


def html(text: str, _: Terms) -> Fault | None:
    """HTML whose tags are balanced, as far as HTML wants them to be.

    Elements that need no end tag (li, p, td …) may do without. Which element may stand inside
    which, and what attributes there are, is not looked at.
    """
    balance = _Balance()
    for kind, name, start in _tags(text):
        if kind == "cut":
            return at(text, start, f"the tag {preview(text[start : start + 20])} is not finished")
        if wrong := balance.take(kind, name, start):
            return at(text, *wrong)
    unclosed = [entry for entry in balance.open if not _OPEN_ENDED.fullmatch(entry[0])]
    if unclosed:
        name, start = unclosed[-1]
        return at(text, start, f"<{name}> is not closed")
    return None if balance.tags else Fault("there is no tag in it")


_MARK = re.compile(r"<(?:!--|!|\?|/?[A-Za-z])")
_NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
# Quotation marks count behind an equals sign only. No part is ever given back, so that a tag that
# does not end is found to be one in a single go.
_REST = re.compile(r"(?>[^>=]++|=\s*+(?>\"[^\"]*+\"|'[^']*+'|(?![\"'])))*+>")
# In these there are no tags but their own end.
_RAW = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in
        ("script", "style", "textarea", "title")}  # fmt: skip


def _tags(text: str) -> Iterator[tuple[str, str, int]]:
    """The start tags, empty tags and end tags of a text, each with its name and place.

    It stops with a "cut" at the first thing that is begun and never ends.
    """
    place = 0
    while (mark := _MARK.search(text, place)) is not None:
        start = mark.start()
        named = _NAME.match(text, start)
        if named is None:
            closing = "-->" if mark[0] == "<!--" else ">"
            end = text.find(closing, mark.end() if closing == ">" else start + 2)
            end += len(closing) if end >= 0 else 0
        else:
            rest = _REST.match(text, named.end())
            end = rest.end() if rest else -1
        if end < 0:
            yield "cut", "", start
            return
        place = end
        if named is not None:
            name = named[1].lower()
            kind = "end" if mark[0][1] == "/" else "empty" if text[end - 2] == "/" else "start"
            yield kind, name, start
            if kind == "start" and name in _RAW:
                ends = _RAW[name].search(text, end)
                place = ends.start() if ends else len(text)


class _Balance:
    """Keeps a list of the elements that are open, with their places."""

    def __init__(self) -> None:
        self.open: list[tuple[str, int]] = []
        self.tags = 0
        self._foreign = 0

    def take(self, kind: str, name: str, start: int) -> tuple[int, str] | None:
        """What is wrong when one more tag is read: its place, and in words."""
        if kind == "end":
            return None if _VOID.fullmatch(name) else self._close(name, start)
        self.tags += 1
        # Outside of drawings and formulas HTML does not see the slash in <div/>.
        ended = kind == "empty" and (self._foreign > 0 or name in _FOREIGN)
        if not ended and not _VOID.fullmatch(name):
            self.open.append((name, start))
            self._foreign += name in _FOREIGN
        return None

    def _close(self, name: str, start: int) -> tuple[int, str] | None:
        depth = next((i for i in range(len(self.open) - 1, -1, -1) if self.open[i][0] == name), -1)
        if depth < 0:
            return start, f"</{name}> ends what was never begun"
        inner = [entry for entry in self.open[depth + 1 :] if not _OPEN_ENDED.fullmatch(entry[0])]
        self._foreign -= sum(entry[0] in _FOREIGN for entry in self.open[depth:])
        del self.open[depth:]
        return (inner[-1][1], f"<{inner[-1][0]}> is not closed before </{name}>") if inner else None


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
                f"the table's head has {_cells(head)} cells, the row of dashes {_cells(line)}", start + place
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
                yield Fault(f"a heading of level {level} follows one of level {above}", token.map[0] + 1)
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
        elif found := next((one for one in _UNRESOLVED.finditer(prose) if _LETTER.search(one[2])), None):
            yield Fault(f"the link [{found[1]}] has no definition of its reference", line)
