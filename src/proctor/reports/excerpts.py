"""What data looks like in a report: as text, harmless to look at, and cut with a mark."""

from __future__ import annotations

import re
from typing import Any

from proctor import codec

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_LINE_END = re.compile("\r\n|[\r\u2028\u2029]")
# Control characters can move a terminal's cursor, and marks of direction can reorder a line.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def excerpt(value: Any, limit: int) -> str:
    """A value as text of at most about `limit` characters; line ends are kept.

    >>> excerpt({"city": "Paris"}, 100)
    '{"city":"Paris"}'
    >>> excerpt("abcdefgh", 5)
    'abcde… (3 more characters)'
    """
    text = value if isinstance(value, str) else codec.in_text(value)
    hidden = len(text) - limit
    if hidden > 0:
        text = f"{text[:limit]}… ({hidden:,} more character{'' if hidden == 1 else 's'})"
    return _visible(text)


def line(value: Any, limit: int) -> str:
    """The same on one line, line ends shown as ⏎.

    >>> line("to be\\nor not", 100)
    'to be ⏎ or not'
    """
    return " ⏎ ".join(part.strip() for part in excerpt(value, limit).strip().split("\n"))


def _visible(text: str) -> str:
    text = _LINE_END.sub("\n", text).replace("\t", "    ")
    return _UNSEEN.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    return chr(0x2400 + code) if code < 0x20 else _REPLACEMENT
