"""Detect whether an answer in JSON only repeats an object that occurs in a text.

The text may be hostile: reading takes linear time for any content, at any depth, and also finds incomplete objects. A
JSON decoder recurses, and would have to restart at every incomplete object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

# JSON may be embedded in JSON strings; text that is escaped more often is never repeated.
MAX_LAYERS = 6
_OBJECT_START = re.compile(r'\{(?=\s*")')
# Commas are optional, because a copy may add a missing comma. No token starts with a backslash, so if the same
# characters are read twice, one reading is inside a string and the other outside.
_TOKEN = re.compile(r'[\s,]*(?:"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|([-+.\w]+)|([\[{])|([\]}]))', re.DOTALL)
_BACKSLASHES_BEFORE_QUOTE = re.compile(r'(?<!\\)\\+(?=")')
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class _Pairs(list[Any]):
    """An object as a list of pairs, which may contain duplicate keys."""


_Node: TypeAlias = "_Pairs | list[Any] | str"


def repeats_object(answer: str, text: str) -> bool:
    """Return whether one object in a text contains all members of a JSON object.

    Order, whitespace, capitals, escapes, additional members and a missing end do not matter. Empty values do not count:
    a model with structured output leaves required fields empty if the text does not contain them.
    """
    start = _OBJECT_START.match(answer.lstrip())
    if start is None:
        return False
    answer_object = _read_objects(start.string, 0)[0]
    try:
        words = set(_words(answer_object))
        return bool(answer_object) and any(_repeats(answer_object, words, layer) for layer in unescape_layers(text))
    except RecursionError:
        # Only the answer can be this deeply nested, and no schema requires that.
        return True


def unescape_layers(text: str) -> Iterator[str]:
    """Yield a text, and the text unescaped as part of a JSON string, layer by layer."""
    if "\\" in text:
        # A model that repeats the text omits backslashes.
        yield _BACKSLASHES_BEFORE_QUOTE.sub("", text)
    for _ in range(MAX_LAYERS):
        yield text
        unescaped = _unescape(text)
        if unescaped == text:
            return
        text = unescaped


def _repeats(answer_object: _Pairs, words: set[str], text: str) -> bool:
    # A genuine answer has different words, so the objects are rarely read.
    folded = _fold(_unescape(text))
    return all(word in folded for word in words) and any(_contains(item, answer_object) for item in _find_objects(text))


def _find_objects(text: str) -> Iterator[_Pairs]:
    # This includes nested and incomplete objects.
    starts: set[int] = set()
    for match in _OBJECT_START.finditer(text):
        if match.start() not in starts:
            yield from _read_objects(text, match.start(), starts)


def _read_objects(text: str, position: int, starts: set[int] | None = None) -> list[_Pairs]:
    """Return the object that starts at a brace and the objects inside it, as far as they are readable.

    Adds their positions to `starts`, so that they are not read a second time.
    """
    reader = _Reader()
    while token := _TOKEN.match(text, position):
        if not reader.accept(*token.groups()):
            break
        position = token.end()
        if starts is not None and token[4] == "{":
            starts.add(position - 1)
    return reader.objects


class _Reader:
    """Builds an object token by token, without recursion."""

    def __init__(self) -> None:
        self.objects: list[_Pairs] = []
        self._open: list[_Pairs | list[Any]] = []
        self._key: str | None = None

    def accept(self, string: str | None, colon: str | None, bare: str | None, start: str, end: str) -> bool:
        """Add the next token; return False if it is not allowed here, or if the object is complete."""
        if end:
            is_allowed = self._key is None and type(self._open[-1]) is (_Pairs if end == "}" else list)
            return is_allowed and self._open.pop() is not self.objects[0]
        is_in_object = bool(self._open) and isinstance(self._open[-1], _Pairs)
        if (is_in_object and self._key is None) != bool(colon):
            return False
        if colon:
            self._key = _normalize(_unescape(string or ""))
        elif start:
            container: _Pairs | list[Any] = _Pairs() if start == "{" else []
            self._add(container)
            self._open.append(container)
            if isinstance(container, _Pairs):
                self.objects.append(container)
        else:
            self._add(_normalize(_unescape(string or "") if bare is None else bare))
        return True

    def _add(self, value: _Node) -> None:
        if self._open:
            self._open[-1].append(value if self._key is None else (self._key, value))
        self._key = None


def _words(node: _Node) -> Iterator[str]:
    """Yield the words that a copy must contain, without numbers, which have too many notations."""
    if isinstance(node, _Pairs):
        for key, value in node:
            if value != "":
                yield from _words(key)
                yield from _words(value)
    elif isinstance(node, list):
        for item in node:
            yield from _words(item)
    elif _to_number(node) is None:
        yield node


def _contains(node: _Node, answer_node: _Node) -> bool:
    if isinstance(answer_node, _Pairs):
        return isinstance(node, _Pairs) and all(
            value == "" or any(key == other and _contains(item, value) for other, item in node)
            for key, value in answer_node
        )
    if isinstance(answer_node, list):
        has_same_length = type(node) is list and len(answer_node) == len(node)
        return has_same_length and all(map(_contains, node, answer_node))
    return answer_node == node


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2]), text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _normalize(text: str) -> str:
    """Normalize a word or a number: 4.0 equals 4, and "Good" equals "good"."""
    folded = _fold(text)
    number = _to_number(folded)
    return folded if number is None else repr(number)


def _to_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _fold(text: str) -> str:
    return "".join(text.split()).casefold()
