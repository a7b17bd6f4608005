"""The order of samples: finished positions of a plan, and the keys of a shuffle."""

from __future__ import annotations

import hashlib

SPARE_BYTES = 4096


class Positions:
    """A set of positions of a plan, one byte each."""

    def __init__(self) -> None:
        self._taken = bytearray()

    def add(self, position: int) -> bool:
        """Add a position; return False if it was there already."""
        taken = self._taken
        if position >= len(taken):
            taken.extend(bytes(position + 1 - len(taken) + SPARE_BYTES))
        is_new = not taken[position]
        taken[position] = 1
        return is_new

    def __contains__(self, position: int) -> bool:
        return position < len(self._taken) and self._taken[position] == 1


def shuffle_key(seed: int, sample_id: str) -> bytes:
    """Return the sort key of a sample in the shuffled order of a seed; it depends only on the id."""
    return hashlib.blake2b(f"{seed} {sample_id}".encode(), digest_size=16).digest()
