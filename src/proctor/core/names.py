"""Unique names: a duplicate name gets a numeric suffix."""

from __future__ import annotations

from collections.abc import Callable


class UniqueNames:
    """Make names unique by appending `separator` and a number to duplicates.

    Two names are equal if `key` returns the same string for both.
    """

    def __init__(self, separator: str = "-", *, key: Callable[[str], str] = str) -> None:
        self._separator = separator
        self._key = key
        self._taken: set[str] = set()
        # The last number used for each name, so that many repeats do not count from 1 again.
        self._numbers: dict[str, int] = {}

    def make_unique(self, name: str) -> str:
        """Return the name, with the next free number if it is taken."""
        key = self._key(name)
        unique, number = name, self._numbers.get(key, 1)
        while self._key(unique) in self._taken:
            number += 1
            unique = f"{name}{self._separator}{number}"
        self._numbers[key] = number
        self._taken.add(self._key(unique))
        return unique
