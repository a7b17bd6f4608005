"""JSON objects read so strictly that nothing in them can be said twice."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

_SPACE = re.compile(r"[ \t\r\n]*")


class Member(NamedTuple):
    """The value of one key, and where in the text it begins."""

    value: Any
    start: int


def members(text: str) -> dict[str, Member]:
    """The members of a text that is one JSON object and nothing else.

    A key that is there twice is refused: of two verdicts one may be quoted.

    >>> members('{"rating": "good"}')["rating"]
    Member(value='good', start=11)
    """
    try:
        return _members(text)
    except RecursionError:
        raise ValueError("it is not the JSON that was asked for (it is nested too deep)") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not the JSON that was asked for ({error.msg})") from None


def _members(text: str) -> dict[str, Member]:
    read = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once).raw_decode
    found: dict[str, Member] = {}
    at = _past(text, _skip(text, 0), "{")
    while not text.startswith("}", at):
        if found:
            at = _past(text, at, ",")
        if not text.startswith('"', at):
            raise json.JSONDecodeError("a key was expected", text, at)
        key, at = read(text, at)
        start = _past(text, _skip(text, at), ":")
        if key in found:
            raise json.JSONDecodeError("a key is there twice", text, at)
        value, at = read(text, start)
        found[key] = Member(value, start)
        at = _skip(text, at)
    if _skip(text, at + 1) != len(text):
        raise json.JSONDecodeError("something follows it", text, at)
    return found


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _past(text: str, at: int, sign: str) -> int:
    """Where the next thing begins after a sign that must be there."""
    if not text.startswith(sign, at):
        raise json.JSONDecodeError(f"{sign} was expected", text, at)
    return _skip(text, at + 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise json.JSONDecodeError("a key is there twice", "", 0)
    return dict(pairs)


def _refuse(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant} is not JSON", "", 0)
