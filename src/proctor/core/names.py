"""Names that are each given once: those that come again get a number."""

from __future__ import annotations

from collections.abc import Callable


class NamesApart:
    """Gives every name once; `between` stands before the number of one that comes again.

    Names are alike if `key` makes the same of them.

    >>> names = NamesApart()
    >>> [names.of(name) for name in ("chat", "chat", "chat-2", "chat")]
    ['chat', 'chat-2', 'chat-2-2', 'chat-3']
    >>> capitals = NamesApart("_", key=str.casefold)
    >>> [capitals.of(name) for name in ("Chat", "chat")]
    ['Chat', 'chat_2']
    """

    def __init__(self, between: str = "-", *, key: Callable[[str], str] = str) -> None:
        self._between = between
        self._key = key
        self._taken: set[str] = set()
        # Where to go on counting: many that are called alike are not counted from the beginning.
        self._turns: dict[str, int] = {}

    def of(self, wanted: str) -> str:
        """The name itself, or with the next number that is free."""
        whose = self._key(wanted)
        name, turn = wanted, self._turns.get(whose, 1)
        while self._key(name) in self._taken:
            turn += 1
            name = f"{wanted}{self._between}{turn}"
        self._turns[whose] = turn
        self._taken.add(self._key(name))
        return name
