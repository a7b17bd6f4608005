"""Change a log randomly: its values, keys, types and order, or its bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from fuzz.documents import Document, EmbeddedJson, Spot, copy_value, find_spots, parse_document, serialize_document

_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 2**31, 2**63, -(2**63), 2**64, 10**400, 1e308, float("nan"),
    float("inf"), "", " ", "\n", "null", "[]", "{}", '{"a":', "\ud800", "\u0000", "\u2028", "é",
    "#0", "0", "2026-01-02T10:00:00Z", "9999-12-31T23:59:59+00:00", [], {}, [[]], [None],
    {"": None}, {"type": None}, {"type": []}, {"id": {}}, {"text": 1}, [[{}]],
)  # fmt: skip


class Mutator:
    """Changes files; `words` and `pieces` are keys, texts and values that some format uses.

    The same random numbers make the same changes.
    """

    def __init__(self, words: Sequence[str], pieces: Sequence[Any]) -> None:
        self._words = words
        self._pieces = pieces
        self._changes: tuple[Callable[[Random, Spot], None], ...] = (
            self._replace, self._replace, self._put_word, self._put_piece, self._rename,
            self._add, _delete, _double, _swap, _wrap, _retype, _copy_over, _nest,
        )  # fmt: skip

    def mutated(self, data: bytes, random: Random) -> bytes:
        """Return a file with one to four changes; in one of ten cases its bytes change."""
        document = parse_document(data)
        if document is None or random.random() < 0.1:
            return _change_bytes(data, random)
        is_lines = document.is_lines != (random.random() < 0.03)
        try:
            values = copy_value(document.values)
            for _ in range(random.choice((1, 1, 2, 4))):
                self.change(values, random)
            return serialize_document(Document(values, is_lines))
        except RecursionError:
            # It became deeper than Python goes.
            return _change_bytes(data, random)

    def change(self, values: list[Any], random: Random) -> None:
        """Change one place in the values."""
        places = list(find_spots(values))
        if not places:
            values.append(copy_value(random.choice(self._pieces or _ODD)))
            return
        random.choice(self._changes)(random, random.choice(places))

    def _replace(self, random: Random, spot: Spot) -> None:
        spot.holder[spot.key] = copy_value(random.choice(_ODD))

    def _put_word(self, random: Random, spot: Spot) -> None:
        spot.holder[spot.key] = random.choice(self._words)

    def _put_piece(self, random: Random, spot: Spot) -> None:
        spot.holder[spot.key] = copy_value(random.choice(self._pieces))

    def _rename(self, random: Random, spot: Spot) -> None:
        if isinstance(spot.holder, dict):
            spot.holder[random.choice(self._words)] = spot.holder.pop(spot.key)

    def _add(self, random: Random, spot: Spot) -> None:
        what = copy_value(random.choice(self._pieces if random.random() < 0.5 else _ODD))
        if isinstance(spot.holder, dict):
            spot.holder[random.choice(self._words)] = what
        else:
            spot.holder.insert(spot.key, what)


def _delete(random: Random, spot: Spot) -> None:  # noqa: ARG001
    del spot.holder[spot.key]


def _double(random: Random, spot: Spot) -> None:
    if isinstance(spot.holder, list):
        place = random.randrange(len(spot.holder) + 1)
        spot.holder.insert(place, copy_value(spot.value))


def _swap(random: Random, spot: Spot) -> None:
    if isinstance(spot.holder, list):
        other = random.randrange(len(spot.holder))
        spot.holder[spot.key], spot.holder[other] = spot.holder[other], spot.value


def _wrap(random: Random, spot: Spot) -> None:
    value = spot.value
    wrapped = ([value], {"content": value}, {"data": value}, EmbeddedJson(value), [value, copy_value(value)])
    spot.holder[spot.key] = random.choice(wrapped)


def _retype(random: Random, spot: Spot) -> None:
    value = spot.value
    if isinstance(value, dict | list | EmbeddedJson):
        inside = value.values if isinstance(value, EmbeddedJson) else value
        items = list(inside.values() if isinstance(inside, dict) else inside)
        spot.holder[spot.key] = random.choice([*items, str(len(items))])
    else:
        spot.holder[spot.key] = len(value) if isinstance(value, str) else str(value)


def _copy_over(random: Random, spot: Spot) -> None:
    """Copy the value of one place to another."""
    around = list(find_spots(spot.holder))
    spot.holder[spot.key] = copy_value(random.choice(around).value)


def _nest(random: Random, spot: Spot) -> None:
    value = spot.value
    for _ in range(random.choice((2, 20, 120, 300)) if random.random() < 0.2 else 2):
        value = [value] if random.random() < 0.5 else {"content": value}
    spot.holder[spot.key] = value


def _change_bytes(data: bytes, random: Random) -> bytes:
    raw = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(len(raw) + 1)
        what = random.randrange(4)
        if what == 0:
            raw[place:place] = bytes([random.choice(b'{}[]",:\\\n\r\t 019eE-.\x00\xc3\xff')])
        elif what == 1:
            del raw[place : place + random.choice((1, 2, 10))]
        elif what == 2 and place < len(raw):
            raw[place] = random.randrange(256)
        else:
            del raw[place:]
    return bytes(raw)
