"""Texts that are hard to read as JSON, for a reader that must be fast and never fail."""

from __future__ import annotations

from collections.abc import Callable


def _times(unit: str) -> Callable[[int], str]:
    return lambda size: unit * (size // len(unit))


def _around(before: str, unit: str, after: str = "") -> Callable[[int], str]:
    return lambda size: before + unit * (size // len(unit)) + after


def _nested(begin: str, inside: str, end: str) -> Callable[[int], str]:
    """As many that are open as are closed."""

    def made(size: int) -> str:
        deep = size // len(begin + end)
        return begin * deep + inside + end * deep

    return made


def _layers(size: int) -> str:
    """JSON in a text in JSON, and so on, in so few signs that each layer adds only its own."""
    text = '{"x": 1}'
    while len(text) < size:
        written = text.replace("\\", "\\u005c").replace('"', "\\u0022")
        text = f'{{"a":"{written}"}} \\"'
    return text


# Each makes a text of about so many signs.
TRAPS: dict[str, Callable[[int], str]] = {
    # Depth
    "never closed": _times('{"a":'),
    "lists never closed": _times('{"a":['),
    "flat and never closed": _times('{"a":1,'),
    "closed": _nested('{"":', "1", "}"),
    "closed, lists inside": lambda size: (
        '{"":' * (size // 16) + _nested("[", "", "]")(size * 3 // 4) + "}" * (size // 16)
    ),
    "closed, lists": _nested('{"a":[', "", "]}"),
    "closed the wrong way round": _nested('{"a":[', "", "}]"),
    "closed but one": lambda size: '{"b":' + _nested('{"a":', "1", "}")(size),
    # Quotes and backslashes
    "backslashes": _around("{", "\\"),
    "quotes": _times('"'),
    "keys without end": _times('{"'),
    "escaped quotes before what is no escape": _around('{"a":"', '\\"', "\\x"),
    "escaped quotes without end": _around('{"a":"', '\\"'),
    "escaped quotes for keys": _times('{"\\"'),
    "what is no escape": _times('{"a":"\\x\n'),
    "in a text, never closed": _times('{\\"a\\":'),
    "in texts without end": _layers,
    "backslashes of backslashes": _around('{"a":"\\u005c', "u005c", '"}'),
    "layers around what is never closed": _around("\\u005c" + "u005c" * 40, '{"":['),
    # What stands for something else in a text
    "braces in texts": _times('{"{":"}",'),
    "objects that begin in texts": _times('{"a":"{","b":['),
    "objects that begin in keys": _times('{"{":"{":'),
    "both ways": _times('{",{":[1,":{",":":"}",'),
    # Numbers, words, half characters
    "digits": _around('{"a":', "9", "}"),
    "digits after the point": _around('{"a":0.', "9", "}"),
    "digits of the exponent": _around('{"a":1e', "9", "}"),
    "many long numbers": _times('{"a":' + "9" * 400 + "}"),
    "no words of JSON": _times('{"a":x\n'),
    "half characters": _around('{"a":"', "\\ud83d", '"}'),
    "halves for keys": _times('{"\\ud83d":"\\ude00",'),
    # Nothing
    "braces": _times("{ "),
    "space": _around('{"a"', " ", ":1}"),
    "space before the key": _around("{", "\n", '"a"'),
    "commas": _around('{"a":1', ",", "}"),
    "the right words": _times('{"reason":"honest","rating":{"rating":"good"}}'),
}
