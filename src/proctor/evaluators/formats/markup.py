"""Check XML with expat, HTML by the balance of its tags, and Markdown with a CommonMark parser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple
from xml.parsers import expat

from proctor.errors import EvaluatorError
from proctor.evaluators.formats.format_error import FormatError, FormatOptions, make_error_at
from proctor.evaluators.score_conversion import preview

if TYPE_CHECKING:
    from markdown_it.token import Token

_VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")
# Elements whose end tag is optional in HTML.
_OPTIONAL_END = re.compile(
    "html|head|body|p|li|dt|dd|option|optgroup|rp|rt|tr|td|th|thead|tbody|tfoot|colgroup|caption"
)
_FOREIGN = frozenset({"svg", "math"})
_TAG_START = re.compile(r"<(?:!--|!|\?|/?[A-Za-z])")
_NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
# Quotation marks count only after an equals sign. Possessive, so that an unfinished tag takes linear time.
_TAG_REST = re.compile(r"(?>[^>=]++|=\s*+(?>\"[^\"]*+\"|'[^']*+'|(?![\"'])))*+>")
# The content of these elements has no tags.
_RAW = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style", "textarea", "title")}
_DASHES = re.compile(r"\s*+:?-++:?\s*+")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
# a[i][j] and the two citations in [1][2] are not links.
_UNRESOLVED = re.compile(r"(?<!\w)\[([^\[\]]+)\]\[([^\[\]]*)\]")
_LETTER = re.compile(r"[^\W\d]")
_BROKEN_LINK = re.compile(r"(?<!\w)\[([^\[\]]+)\]\(")
# The parser searches the rest of the text for each open bracket.
_MAX_OPEN_BRACKETS = 500


class _EntityDeclared(Exception):
    pass


class _Element(NamedTuple):
    name: str
    start: int
    is_foreign: bool


def check_xml(text: str, _: FormatOptions) -> FormatError | None:
    """Check that XML is well formed; entity declarations are errors, and nothing is downloaded."""
    parser = expat.ParserCreate()

    def reject_entity(*_: object) -> int:
        raise _EntityDeclared

    parser.EntityDeclHandler = reject_entity
    parser.ExternalEntityRefHandler = reject_entity
    try:
        parser.Parse(text, True)
    except _EntityDeclared:
        what = "it declares an entity, which is not allowed for safety"
        return FormatError(what, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)
    except expat.ExpatError as error:
        return FormatError(expat.ErrorString(error.code), error.lineno, error.offset + 1)
    return None


def check_html(text: str, _: FormatOptions) -> FormatError | None:
    """Check that the tags of HTML are balanced; optional end tags (li, p, td …) may be missing.

    Attributes and nesting rules are not checked.
    """
    open_elements: list[_Element] = []
    has_tags = False
    for kind, name, start in _find_tags(text):
        if kind == "unfinished":
            return make_error_at(text, start, f"the tag {preview(text[start : start + 20])} is not finished")
        has_tags = has_tags or kind != "end"
        if _VOID.fullmatch(name):
            continue
        if kind == "end":
            if error := _close_element(text, open_elements, name, start):
                return error
            continue
        is_foreign = name in _FOREIGN or bool(open_elements and open_elements[-1].is_foreign)
        # HTML ignores the slash of <div/>, except in SVG and MathML.
        if kind == "start" or not is_foreign:
            open_elements.append(_Element(name, start, is_foreign))
    unclosed = [element for element in open_elements if not _OPTIONAL_END.fullmatch(element.name)]
    if unclosed:
        return make_error_at(text, unclosed[-1].start, f"<{unclosed[-1].name}> is not closed")
    return None if has_tags else FormatError("it has no tag")


def _find_tags(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind ("start", "empty", "end"), name and position of each tag, up to the first unfinished tag."""
    position = 0
    while (tag_start := _TAG_START.search(text, position)) is not None:
        start = tag_start.start()
        tag = _NAME.match(text, start)
        if tag is None:
            closing = "-->" if tag_start[0] == "<!--" else ">"
            end = text.find(closing, tag_start.end() if closing == ">" else start + 2)
            end += len(closing) if end >= 0 else 0
        else:
            rest = _TAG_REST.match(text, tag.end())
            end = rest.end() if rest else -1
        if end < 0:
            yield "unfinished", "", start
            return
        position = end
        if tag is not None:
            name = tag[1].lower()
            kind = "end" if tag_start[0][1] == "/" else "empty" if text[end - 2] == "/" else "start"
            yield kind, name, start
            if kind == "start" and name in _RAW:
                closing_tag = _RAW[name].search(text, end)
                position = closing_tag.start() if closing_tag else len(text)


def _close_element(text: str, open_elements: list[_Element], name: str, start: int) -> FormatError | None:
    depth = next((i for i in reversed(range(len(open_elements))) if open_elements[i].name == name), None)
    if depth is None:
        return make_error_at(text, start, f"</{name}> has no start tag")
    inner = [element for element in open_elements[depth + 1 :] if not _OPTIONAL_END.fullmatch(element.name)]
    del open_elements[depth:]
    return make_error_at(text, inner[-1].start, f"<{inner[-1].name}> is not closed before </{name}>") if inner else None


def check_markdown(text: str, _: FormatOptions) -> FormatError | None:
    """Check Markdown for open code fences, uneven tables, skipped heading levels and broken links."""
    from markdown_it import MarkdownIt

    if not text.strip():
        return FormatError("it is empty")
    if text.count("[") - text.count("]") > _MAX_OPEN_BRACKETS:
        raise EvaluatorError(f"more than {_MAX_OPEN_BRACKETS} brackets in it are not closed")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    lines = text.splitlines()
    errors = [*_check_fences(tokens, lines), *_check_tables(tokens, lines)]
    errors += [*_check_headings(tokens), *_check_links(tokens)]
    return min(errors, key=lambda error: error.line, default=None)


def _check_fences(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[FormatError]:
    for token in tokens:
        if token.type == "fence" and token.map is not None:
            first, end = token.map
            last = lines[end - 1].strip(" \t>") if end - first > 1 else ""
            if not (last.startswith(token.markup) and set(last) == {token.markup[0]}):
                yield FormatError(f"the code fence {token.markup} is not closed", first + 1)


def _check_tables(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[FormatError]:
    width = 0
    for token in tokens:
        if token.map is None:
            continue
        line = token.map[0]
        if token.type == "table_open":
            width = _count_cells(lines[line])
        elif token.type == "tr_open" and (count := _count_cells(lines[line])) != width:
            yield FormatError(f"the row has {count} cells, the header has {width}", line + 1)
        elif token.type == "paragraph_open":
            yield from _check_failed_tables(lines[line : token.map[1]], line + 1)


def _check_failed_tables(lines: Sequence[str], start: int) -> Iterator[FormatError]:
    """Find tables that the parser reads as a paragraph, because header and delimiter row differ."""
    for index, line in enumerate(lines[1:]):
        if "|" not in lines[index] or not _is_delimiter_row(line):
            continue
        header, count = _count_cells(lines[index]), _count_cells(line)
        if header != count:
            what = f"the table's header has {header} cells, its delimiter row has {count}"
            yield FormatError(what, start + index + 1)


def _is_delimiter_row(line: str) -> bool:
    row = line.strip()
    cells = row.removeprefix("|").removesuffix("|").split("|")
    return "|" in row and all(map(_DASHES.fullmatch, cells))


def _count_cells(line: str) -> int:
    row = line.strip(" \t>").removeprefix("|")
    if row.endswith("|") and _UNESCAPED_PIPE.search(row[-2:]):
        row = row[:-1]
    return len(_UNESCAPED_PIPE.split(row))


def _check_headings(tokens: Sequence[Token]) -> Iterator[FormatError]:
    previous = 0
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            if previous and level > previous + 1 and token.map is not None:
                yield FormatError(f"a heading of level {level} follows one of level {previous}", token.map[0] + 1)
            previous = level


def _check_links(tokens: Sequence[Token]) -> Iterator[FormatError]:
    for token in tokens:
        if token.type != "inline" or token.map is None:
            continue
        line = token.map[0] + 1
        children = token.children or []
        if any(child.type == "link_open" and not child.attrGet("href") for child in children):
            yield FormatError("a link has no address", line)
        prose = "".join(child.content if child.type == "text" else " " for child in children)
        if match := _BROKEN_LINK.search(prose):
            yield FormatError(f"the link [{match[1]}](…) is broken", line)
        elif match := next((m for m in _UNRESOLVED.finditer(prose) if _LETTER.search(m[2])), None):
            yield FormatError(f"the link [{match[1]}] has no definition of its reference", line)
