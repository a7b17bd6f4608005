"""Tokens in Claude Code's logs: each line of a message repeats those of the whole message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from proctor.importers.shapes import count, mapping
from proctor.records.session import Usage

COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class Tokens:
    """The tokens of a log as they are written: once for a message, and once for every line.

    >>> tokens = Tokens()
    >>> for said in (1, 5):
    ...     line = {"usage": {"output_tokens": said}}
    ...     tokens.add(line)
    ...     tokens.hold("m1", line)
    >>> tokens.recorded()
    {'once_a_message': {'output_tokens': 5}, 'of_all_lines': {'output_tokens': 6}}
    """

    def __init__(self) -> None:
        self._once: dict[Hashable, dict[str, int]] = {}
        self._of_all_lines: Counter[str] = Counter()

    def add(self, message: Mapping[str, Any]) -> None:
        """What a line tells of a message."""
        self._of_all_lines.update(_counts(message))

    def hold(self, key: Hashable, message: Mapping[str, Any]) -> None:
        """The message of a key used so much, as far as is known yet."""
        if told := _counts(message):
            self._once[key] = told

    def recorded(self) -> dict[str, dict[str, int]]:
        """Both sums; empty if no line told of tokens."""
        if not self._of_all_lines:
            return {}
        once: Counter[str] = Counter()
        for usage in self._once.values():
            once.update(usage)
        return {"once_a_message": dict(once), "of_all_lines": dict(self._of_all_lines)}


def usage_of(found: Mapping[str, Any]) -> Usage:
    """Tokens as everywhere here: what was read from the cache, or put into it, is input too.

    >>> usage_of({"input_tokens": 10, "cache_read_input_tokens": 40, "output_tokens": 2})
    Usage(input_tokens=50, output_tokens=2, cached_tokens=40)
    """
    fresh, said, read_, written = (count(found.get(name)) for name in COUNTS)
    if fresh is None and read_ is None and written is None:
        return Usage(None, said)
    asked = (fresh or 0) + (read_ or 0) + (written or 0)
    return Usage(asked, said, read_, cache_write_tokens=written)


def _counts(message: Mapping[str, Any]) -> dict[str, int]:
    usage = mapping(message.get("usage"))
    return {name: n for name in COUNTS if (n := count(usage.get(name))) is not None}
