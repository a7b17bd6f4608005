"""Why two questions are not the same: the nearest one that is known, and where it differs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, NamedTuple

from proctor import codec
from proctor.records.model import ModelRequest

# So much of a text is compared and shown.
COMPARED, SHOWN, BEFORE = 4_000, 60, 20
# So many candidates are looked at closely, after a quick look at all.
CLOSE_LOOKS = 8
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
    return _between(codec.plain(asked), codec.plain(known), ())


def nearest(asked: ModelRequest, known: Iterable[ModelRequest]) -> int | None:
    """The place of the request that differs least, or None if there is none.

    Fewest different fields first, then the likest text.
    """
    fields = {name: codec.canonical(value) for name, value in _fields(asked)}
    text = _text(asked)
    rough = []
    for place, request in enumerate(known):
        different = sum(codec.canonical(value) != fields[name] for name, value in _fields(request))
        quick = difflib.SequenceMatcher(None, text, _text(request), autojunk=False).quick_ratio()
        rough.append((different, -quick, place, request))
    rough.sort(key=lambda one: one[:3])
    likeness = {
        place: (different, -difflib.SequenceMatcher(None, text, _text(request)).ratio(), place)
        for different, _, place, request in rough[:CLOSE_LOOKS]
    }
    return min(likeness, key=likeness.__getitem__) if likeness else None


def _fields(request: ModelRequest) -> Iterable[tuple[str, Any]]:
    return ((name, getattr(request, name)) for name in ModelRequest.__struct_fields__)


def _text(request: ModelRequest) -> str:
    return codec.encode(request.messages).decode()[:COMPARED]


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
