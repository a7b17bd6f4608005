"""Changing a log as chance will have it: its values, keys, types and order, or its bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from fuzz.documents import Document, Inside, Spot, copied, put_together, spots, taken_apart

_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 2**31, 2**63, -(2**63), 2**64, 10**400, 1e308, float("nan"),
    float("inf"), "", " ", "\n", "null", "[]", "{}", '{"a":', "\ud800", "\u0000", "\u2028", "é",
    "#0", "0", "2026-01-02T10:00:00Z", "9999-12-31T23:59:59+00:00", [], {}, [[]], [None],
    {"": None}, {"type": None}, {"type": []}, {"id": {}}, {"text": 1}, [[{}]],
)  # fmt: skip


class Mutator:
    """Changes files; `words` and `pieces` are keys, texts and parts that mean something somewhere.

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
        """A file with one to four changes; one in ten times its bytes are changed."""
        document = taken_apart(data)
        if document is None or random.random() < 0.1:
            return _bytes_changed(data, random)
        is_lines = document.is_lines != (random.random() < 0.03)
        try:
            values = copied(document.values)
            for _ in range(random.choice((1, 1, 2, 4))):
                self.change(values, random)
            return put_together(Document(values, is_lines))
        except RecursionError:
            # It became deeper than Python goes.
            return _bytes_changed(data, random)

    def change(self, values: list[Any], random: Random) -> None:
        """Change some place in the values."""
        places = list(spots(values))
        if not places:
            values.append(copied(random.choice(self._pieces or _ODD)))
            return
        random.choice(self._changes)(random, random.choice(places))

    def _replace(self, random: Random, spot: Spot) -> None:
        spot.holder[spot.key] = copied(random.choice(_ODD))

    def _put_word(self, random: Random, spot: Spot) -> None:
        spot.holder[spot.key] = random.choice(self._words)

    def _put_piece(self, random: Random, spot: Spot) -> None:
        spot.holder[spot.key] = copied(random.choice(self._pieces))

    def _rename(self, random: Random, spot: Spot) -> None:
        if isinstance(spot.holder, dict):
            spot.holder[random.choice(self._words)] = spot.holder.pop(spot.key)

    def _add(self, random: Random, spot: Spot) -> None:
        what = copied(random.choice(self._pieces if random.random() < 0.5 else _ODD))
        if isinstance(spot.holder, dict):
            spot.holder[random.choice(self._words)] = what
        else:
            spot.holder.insert(spot.key, what)


def _delete(random: Random, spot: Spot) -> None:  # noqa: ARG001
    del spot.holder[spot.key]


def _double(random: Random, spot: Spot) -> None:
    if isinstance(spot.holder, list):
        place = random.randrange(len(spot.holder) + 1)
        spot.holder.insert(place, copied(spot.value))


def _swap(random: Random, spot: Spot) -> None:
    if isinstance(spot.holder, list):
        other = random.randrange(len(spot.holder))
        spot.holder[spot.key], spot.holder[other] = spot.holder[other], spot.value


def _wrap(random: Random, spot: Spot) -> None:
    value = spot.value
    wrapped = ([value], {"content": value}, {"data": value}, Inside(value), [value, copied(value)])
    spot.holder[spot.key] = random.choice(wrapped)


def _retype(random: Random, spot: Spot) -> None:
    value = spot.value
    if isinstance(value, dict | list | Inside):
        inside = value.values if isinstance(value, Inside) else value
        items = list(inside.values() if isinstance(inside, dict) else inside)
        spot.holder[spot.key] = random.choice([*items, str(len(items))])
    else:
        spot.holder[spot.key] = len(value) if isinstance(value, str) else str(value)


def _copy_over(random: Random, spot: Spot) -> None:
    """What stands in one place stands in another too."""
    around = list(spots(spot.holder))
    spot.holder[spot.key] = copied(random.choice(around).value)


def _nest(random: Random, spot: Spot) -> None:
    value = spot.value
    for _ in range(random.choice((2, 20, 120, 300)) if random.random() < 0.2 else 2):
        value = [value] if random.random() < 0.5 else {"content": value}
    spot.holder[spot.key] = value


def _bytes_changed(data: bytes, random: Random) -> bytes:
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
