"""A set of places in a plan, one bit each."""

from __future__ import annotations

import hashlib

ROOM_AHEAD = 4096


class Positions:
    """Which positions of a plan are taken; a million of them fit into 125 kB.

    >>> taken = Positions()
    >>> taken.add(3), taken.add(3), 3 in taken, 4 in taken
    (True, False, True, False)
    """

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, position: int) -> bool:
        """Take a position; False if it was taken already."""
        byte, bit = position >> 3, 1 << (position & 7)
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits) + ROOM_AHEAD))
        if self._bits[byte] & bit:
            return False
        self._bits[byte] |= bit
        return True

    def __contains__(self, position: int) -> bool:
        byte = position >> 3
        return byte < len(self._bits) and bool(self._bits[byte] & (1 << (position & 7)))


def drawn(seed: int, sample_id: str) -> bytes:
    """What samples are sorted by in the order that a seed draws: it takes nothing but their ids.

    >>> sorted(["a", "b", "c", "d"], key=lambda name: drawn(7, name))
    ['d', 'c', 'b', 'a']
    """
    return hashlib.blake2b(f"{seed} {sample_id}".encode(), digest_size=16).digest()
