"""XML by expat, and HTML by its own rules for tags, comments and raw text, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.parsers import expat

from proctor.evaluators.formats.fault import Fault, at
from proctor.evaluators.formats.terms import Terms
from proctor.evaluators.verdict import shown

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
            return at(text, start, f"the tag {shown(text[start : start + 20])} is not finished")
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
