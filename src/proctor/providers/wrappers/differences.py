"""Why two questions are not the same: the nearest one that is known, and where it differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from proctor import codec
from proctor.records.model import ModelRequest

# So much of a text is shown, and so much of it before the place where two texts part.
SHOWN, BEFORE = 60, 20
# Judges fence what they quote with a mark that is made out of it. It differs wherever anything
# does, and says nothing.
_FENCE = re.compile(r"<<<[^<>\n]{1,80}? ([0-9a-f]{16})\b")
MARK = "mark"
# What stands where one side has no such field.
_NOTHING = object()


class Difference(NamedTuple):
    """The first field that differs, and what stands there on either side, cut to what differs."""

    field: str
    asked: str
    known: str


def first_difference(asked: ModelRequest, known: ModelRequest) -> Difference | None:
    """Where two requests first differ, or None if they are the same.

    >>> from proctor.records.session import Message
    >>> one = ModelRequest((Message("user", "Capital of Spain?"),))
    >>> two = ModelRequest((Message("user", "Capital of Italy?"),))
    >>> first_difference(one, two)
    Difference(field='messages.0.content', asked="'Capital of Spain?'", known="'Capital of Italy?'")
    """
    found = _between(_unmarked(asked), _unmarked(known), ())
    return found or _between(codec.plain(asked), codec.plain(known), ())


def nearest(asked: ModelRequest, known: Iterable[ModelRequest]) -> int | None:
    """The place of the request that differs least, or None if there is none.

    Fewest different fields first, then the most lines in common, then the longest common beginning
    and end. All of them are looked at, so this is meant to be quick and not to be subtle.
    """
    wanted = _Look(asked)
    likeness = {place: wanted.distance(_Look(request)) for place, request in enumerate(known)}
    return min(likeness, key=likeness.__getitem__) if likeness else None


class _Look:
    """What is compared of a request: its fields, the lines of its messages, and their text."""

    __slots__ = ("_fields", "_lines", "_text")

    def __init__(self, request: ModelRequest) -> None:
        plain = _unmarked(request)
        self._text = codec.encode(plain.get("messages")).decode()
        self._lines = Counter(self._text.split("\\n"))
        self._fields = plain

    def distance(self, other: _Look) -> tuple[int, int, int]:
        names = self._fields.keys() | other._fields.keys()
        different = sum(self._fields.get(name) != other._fields.get(name) for name in names)
        shared = sum(len(line) * n for line, n in (self._lines & other._lines).items())
        start = _shared_start(self._text, other._text)
        rest = min(len(self._text), len(other._text)) - start
        end = _shared_start(self._text[: -rest - 1 : -1], other._text[: -rest - 1 : -1])
        return different, -shared, -start - end


def _shared_start(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _unmarked(request: ModelRequest) -> dict[str, Any]:
    """A request as plain data, with the same word for the marks of its fences."""
    text = codec.encode(request).decode()
    for mark in set(_FENCE.findall(text)):
        text = text.replace(mark, MARK)
    found: dict[str, Any] = msgspec.json.decode(text)
    return found


def _between(asked: Any, known: Any, path: tuple[str, ...]) -> Difference | None:
    if asked == known and type(asked) is type(known):
        return None
    pairs: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(asked, dict) and isinstance(known, dict):
        names = [*asked, *(name for name in known if name not in asked)]
        pairs = ((str(n), asked.get(n, _NOTHING), known.get(n, _NOTHING)) for n in names)
    elif isinstance(asked, list | tuple) and isinstance(known, list | tuple):
        both = enumerate(zip_longest(asked, known, fillvalue=_NOTHING))
        pairs = ((str(place), one, two) for place, (one, two) in both)
    for name, one, two in pairs:
        found = _between(one, two, (*path, name))
        if found is not None:
            return found
    return Difference(".".join(path), *_excerpts(asked, known))


def _excerpts(asked: Any, known: Any) -> tuple[str, str]:
    """Both values from a little before the place where they part."""
    if not (isinstance(asked, str) and isinstance(known, str)):
        return _excerpt(_written(asked), 0), _excerpt(_written(known), 0)
    same = next((i for i, (a, b) in enumerate(zip(asked, known, strict=False)) if a != b), None)
    apart = min(len(asked), len(known)) if same is None else same
    start = max(0, apart - BEFORE)
    return repr(_excerpt(asked, start)), repr(_excerpt(known, start))


def _written(value: Any) -> str:
    return "nothing" if value is _NOTHING else codec.encode(value).decode()


def _excerpt(text: str, start: int) -> str:
    cut = text[start : start + SHOWN]
    return ("…" if start else "") + cut + ("…" if start + SHOWN < len(text) else "")
