"""A set of 64-bit numbers at some sixteen bytes each, to find ids that come twice."""

from __future__ import annotations

from array import array

# Segments grow one at a time, so that growing never holds the whole table twice.
SEGMENTS = 64
SEGMENT_BITS = 6
SMALLEST = 16
MASK_64 = (1 << 64) - 1


class IdTable:
    """Remembers hashes of ids: a million cost about 17 MB, where a set of strings costs 100.

    >>> table = IdTable()
    >>> table.add(hash("a")), table.add(hash("b")), table.add(hash("a"))
    (True, True, False)
    """

    def __init__(self) -> None:
        self._segments = [array("Q", bytes(8 * SMALLEST)) for _ in range(SEGMENTS)]
        self._free = [_room(SMALLEST)] * SEGMENTS
        # A slot that holds 0 is free, so the number 0 is remembered here.
        self._has_zero = False

    def add(self, number: int) -> bool:
        """Remember a number; False if it was there already."""
        number &= MASK_64
        if not number:
            new, self._has_zero = not self._has_zero, True
            return new
        which = number & (SEGMENTS - 1)
        segment = self._segments[which]
        slot = _slot(segment, number)
        if segment[slot]:
            return False
        segment[slot] = number
        self._free[which] -= 1
        if not self._free[which]:
            self._grow(which)
        return True

    @property
    def nbytes(self) -> int:
        """How much memory the table takes."""
        return sum(segment.itemsize * len(segment) for segment in self._segments)

    def _grow(self, which: int) -> None:
        old = self._segments[which]
        new = array("Q", bytes(2 * len(old) * old.itemsize))
        for number in old:
            if number:
                new[_slot(new, number)] = number
        self._segments[which] = new
        self._free[which] = _room(len(new)) - _room(len(old))


def _room(size: int) -> int:
    """How many numbers a segment holds before it grows: three quarters of its slots."""
    return size * 3 // 4


def _slot(segment: array[int], number: int) -> int:
    """Where the number is, or the free slot where it belongs."""
    mask = len(segment) - 1
    slot = (number >> SEGMENT_BITS) & mask
    while segment[slot] not in (0, number):
        slot = (slot + 1) & mask
    return slot
