"""Shrink a failing file while it still fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from fuzz.documents import Document, EmbeddedJson, Spot, copy_value, find_spots, parse_document, serialize_document

SequenceT = TypeVar("SequenceT", bytes, list[Any])


def shrink(data: bytes, fails: Callable[[bytes], bool], seconds: float = 10) -> bytes:
    """Return the smallest file found in this time for which `fails` holds.

    >>> shrink(b'{"a": [1, 2, {"b": "xyz"}], "c": 3}', lambda data: b'"b"' in data)
    b'{"b": 0}'
    """
    end = time.monotonic() + seconds
    best = data
    while time.monotonic() < end:
        for smaller in _smaller(best):
            if time.monotonic() > end:
                break
            if len(smaller) < len(best) and fails(smaller):
                best = smaller
                break
        else:
            break
    return best


def _smaller(data: bytes) -> Iterator[bytes]:
    document = parse_document(data)
    if document is None:
        yield from _halves(data)
        return
    for values in _halves(document.values):
        yield serialize_document(Document(copy_value(values), document.is_lines))
    places = list(find_spots(document.values))
    # The largest first: what stands in them goes with them.
    sizes = {number: len(repr(place.value)) for number, place in enumerate(places)}
    for number in sorted(sizes, key=sizes.__getitem__, reverse=True):
        for change in _CHANGES:
            values = copy_value(document.values)
            spot = next(spot for at, spot in enumerate(find_spots(values)) if at == number)
            if change(spot):
                yield serialize_document(Document(values, document.is_lines))


def _halves(whole: SequenceT) -> Iterator[SequenceT]:
    """Yield the value without a half, without a quarter, and so on."""
    size = len(whole) // 2
    while size:
        for start in range(0, len(whole), size):
            yield whole[:start] + whole[start + size :]
        size //= 2


def _delete(spot: Spot) -> bool:
    del spot.holder[spot.key]
    return True


def _lift(spot: Spot) -> bool:
    """Replace a mapping or list that has one value with that value."""
    value: Any = spot.value.values[0] if isinstance(spot.value, EmbeddedJson) else spot.value
    inside = list(value.values() if isinstance(value, dict) else value) if _holds(value) else []
    if len(inside) == 1:
        spot.holder[spot.key] = inside[0]
    return len(inside) == 1


def _shorten(spot: Spot) -> bool:
    is_long = isinstance(spot.value, str) and len(spot.value) > 3
    if is_long:
        spot.holder[spot.key] = spot.value[: len(spot.value) // 2]
    return is_long


def _zero(spot: Spot) -> bool:
    spot.holder[spot.key] = 0
    return True


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list)


_CHANGES = (_delete, _lift, _zero, _shorten)
