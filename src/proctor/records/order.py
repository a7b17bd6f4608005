"""The order of samples: finished positions of a plan, and the keys of a shuffle."""

from __future__ import annotations

import hashlib

SPARE_BYTES = 4096


class Positions:
    """A set of positions of a plan; a million positions fit into 125 kB."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, position: int) -> bool:
        """Add a position; return False if it was there already."""
        byte, bit = position >> 3, 1 << (position & 7)
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits) + SPARE_BYTES))
        if self._bits[byte] & bit:
            return False
        self._bits[byte] |= bit
        return True

    def __contains__(self, position: int) -> bool:
        byte = position >> 3
        return byte < len(self._bits) and bool(self._bits[byte] & (1 << (position & 7)))


def shuffle_key(seed: int, sample_id: str) -> bytes:
    """Return the sort key of a sample in the shuffled order of a seed; it depends only on the id."""
    return hashlib.blake2b(f"{seed} {sample_id}".encode(), digest_size=16).digest()
