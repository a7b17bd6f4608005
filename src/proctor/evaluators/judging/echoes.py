"""Echoes: whether an answer in JSON only repeats an object that stands in a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

# An object that breaks off after so many characters cost time to read; nobody means to write so
# many of them in one text, so such a text is taken for a trap.
LONG, MOST_LONG = 1000, 200
_BEGIN = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:', re.DOTALL)
_ESCAPED = re.compile(r'\\+(?=")')


class _Pairs(list[tuple[str, Any]]):
    """An object as its pairs: a key that is there twice has said both."""


_READER = json.JSONDecoder(
    object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str, strict=False
)


def echoes(answer: str, text: str) -> bool:
    """True if all that an object in JSON says is said by one object that stands in a text.

    Order, white space, capitals and escapes do not matter, nor what the other one says besides: a
    model that is held to a schema leaves that out when it repeats it, and leaves empty what it
    must say and does not find there.

    >>> echoes('{"rating": "good"}', 'Say { "n": 1, "r\\\\u0061ting" : "Good" } now.')
    True
    """
    if "{" not in text:
        return False
    try:
        said = _READER.decode(answer)
        return bool(said) and any(one is None or _within(said, one) for one in _objects(text))
    except RecursionError:
        # Nothing that deep was asked for.
        return True
    except ValueError:
        return False


def _objects(text: str) -> Iterator[_Pairs | None]:
    """Every object that stands in a text, also inside others; None where it would take for ever."""
    # Inside a text inside JSON, quotation marks are escaped.
    for way in dict.fromkeys((text, _ESCAPED.sub("", text))):
        end = broken = 0
        for begin in _BEGIN.finditer(way):
            if begin.start() < end:
                continue
            try:
                found, end = _READER.raw_decode(way, begin.start())
                yield from _inside(found)
            except json.JSONDecodeError as error:
                broken += error.pos - begin.start() > LONG
            except RecursionError:
                broken += 1
            if broken > MOST_LONG:
                yield None


def _inside(found: Any) -> Iterator[_Pairs | None]:
    """An object and all objects in it."""
    waiting = [found]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _Pairs):
            yield one
            waiting += [value for _, value in one]
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str) and "{" in one:
            yield from _objects(one)


def _within(said: Any, other: Any) -> bool:
    """True if the other says everything that is said."""
    if isinstance(said, _Pairs):
        return isinstance(other, _Pairs) and all(
            value == ""
            or any(_plain(key) == _plain(their) and _within(value, it) for their, it in other)
            for key, value in said
        )
    if isinstance(said, list):
        same = isinstance(other, list) and not isinstance(other, _Pairs)
        return same and len(said) == len(other) and all(map(_within, said, other))
    return not isinstance(other, list) and _plain(said) == _plain(other)


def _plain(value: Any) -> str:
    """A word or a number without what does not matter: 4.0 is 4, and "Good" is good."""
    text = "".join(str(value).split()).casefold()
    try:
        return repr(float(text))
    except ValueError:
        return text
