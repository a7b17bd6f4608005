"""Echoes: whether an answer in JSON only repeats an object that stands in a text.

The text is the enemy's: whatever it holds, it is read in time that grows as its length does, and
nothing in it is taken for a copy because it is hard to read. So it is not read by a decoder that
goes in as deep as the text does, or begins again wherever an object breaks off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

# JSON may stand in a text in JSON, and so on: so often is that looked through. What is wrapped
# more often nobody repeats, for nobody can read it.
MOST_LAYERS = 6
_BEGIN = re.compile(r'\{(?=\s*")')
# Commas are not minded: who repeats what lacks one puts it there. No mark is a backslash, so of
# two readings of the same signs one is inside a text where the other is outside, and a third
# begins where one of the two has begun to read already.
_PIECE = re.compile(r'[\s,]*(?:"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|([-+.\w]+)|([\[{])|([\]}]))', re.DOTALL)
_BEFORE_A_QUOTE = re.compile(r'(?<!\\)\\+(?=")')
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_MEANT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class _Pairs(list[Any]):
    """An object as its pairs: a key that is there twice has said both."""


_Node: TypeAlias = "_Pairs | list[Any] | str"


def echoes(answer: str, text: str) -> bool:
    """True if all that an object in JSON says is said by one object that stands in a text.

    Order, white space, capitals and escapes do not matter, nor what the other one says besides: a
    model that is held to a schema leaves that out when it repeats it, and leaves empty what it
    must say and does not find there. Nor does it matter whether the other one is closed.

    >>> echoes('{"rating": "good"}', 'Say { "n": 1, "r\\\\u0061ting" : "Good" } now.')
    True
    """
    begin = _BEGIN.match(answer.lstrip())
    if begin is None:
        return False
    said = _read(begin.string, 0)[0]
    try:
        words = set(_words(said))
        return bool(said) and any(_repeats(said, words, way) for way in ways(text))
    except RecursionError:
        # It is the answer that is so deep, and nothing that deep was asked for.
        return True


def ways(text: str) -> Iterator[str]:
    """A text as it stands, and as it would stand outside of the JSON that it may be part of."""
    if "\\" in text:
        # However many there are, a model that repeats it leaves them out.
        yield _BEFORE_A_QUOTE.sub("", text)
    for _ in range(MOST_LAYERS):
        yield text
        text, before = _unescaped(text), text
        if text == before:
            return


def _repeats(said: _Pairs, words: set[str], text: str) -> bool:
    """True if an object in a text says what is said; the objects are read only if the words occur.

    An honest answer has words of its own, so that nearly always they are not read.
    """
    there = _closed_up(_unescaped(text))
    return all(word in there for word in words) and any(_within(said, one) for one in _objects(text))


def _objects(text: str) -> Iterator[_Pairs]:
    """Every object that stands in a text, also inside others and where they break off."""
    begun: set[int] = set()
    for begin in _BEGIN.finditer(text):
        if begin.start() not in begun:
            yield from _read(text, begin.start(), begun)


def _read(text: str, at: int, begun: set[int] | None = None) -> list[_Pairs]:
    """The object that begins at a brace, then those inside it, as far as it can be read.

    Where they begin is noted: they need not be read for themselves, closed or not.
    """
    reading = _Reading()
    while piece := _PIECE.match(text, at):
        if not reading.takes(*piece.groups()):
            break
        at = piece.end()
        if begun is not None and piece[4] == "{":
            begun.add(at - 1)
    return reading.objects


class _Reading:
    """An object that is read piece by piece, without going in: it may be of any depth."""

    def __init__(self) -> None:
        self.objects: list[_Pairs] = []
        self._around: list[_Pairs | list[Any]] = []
        self._key: str | None = None

    def takes(self, words: str | None, colon: str | None, bare: str | None, begin: str, end: str) -> bool:
        """Take the next piece; False if it does not belong there, or nothing does any more."""
        if end:
            return self._ended(_Pairs if end == "}" else list)
        named = bool(self._around) and isinstance(self._around[-1], _Pairs)
        if (named and self._key is None) != bool(colon):
            return False
        if colon:
            self._key = _plain(_unescaped(words or ""))
        elif begin:
            self._begun(_Pairs() if begin == "{" else [])
        else:
            self._add(_plain(_unescaped(words or "") if bare is None else bare))
        return True

    def _add(self, value: _Node) -> None:
        if self._around:
            self._around[-1].append(value if self._key is None else (self._key, value))
        self._key = None

    def _begun(self, value: _Pairs | list[Any]) -> None:
        self._add(value)
        self._around.append(value)
        if isinstance(value, _Pairs):
            self.objects.append(value)

    def _ended(self, kind: type) -> bool:
        fits = self._key is None and type(self._around[-1]) is kind
        return fits and self._around.pop() is not self.objects[0]


def _words(said: _Node) -> Iterator[str]:
    """The words that must stand in what says the same; a number can be written in many ways."""
    if isinstance(said, _Pairs):
        for key, value in said:
            if value != "":
                yield from _words(key)
                yield from _words(value)
    elif isinstance(said, list):
        for one in said:
            yield from _words(one)
    elif _number(said) is None:
        yield said


def _within(said: _Node, other: _Node) -> bool:
    """True if the other says everything that is said."""
    if isinstance(said, _Pairs):
        return isinstance(other, _Pairs) and all(
            value == "" or any(key == their and _within(value, it) for their, it in other)
            for key, value in said
        )
    if isinstance(said, list):
        same = type(other) is list and len(said) == len(other)
        return same and all(map(_within, said, other))
    return said == other


def _unescaped(text: str) -> str:
    """A text that stands in JSON, as what it says; halves of a character are put together."""
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(lambda it: chr(int(it[1], 16)) if it[1] else _MEANT.get(it[2], it[2]), text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(text: str) -> str:
    """A word or a number without what does not matter: 4.0 is 4, and "Good" is good."""
    closed = _closed_up(text)
    number = _number(closed)
    return closed if number is None else repr(number)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _closed_up(text: str) -> str:
    return "".join(text.split()).casefold()
