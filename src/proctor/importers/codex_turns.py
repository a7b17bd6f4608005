"""The lines of a Codex log before they are told: `thread_rolled_back` takes turns back.

A turn begins with the user's own words. What was taken back is told no more; what its models used,
and what is no part of the conversation, stays where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from proctor.importers.codex_words import ECHOES, ITEMS, said_in
from proctor.importers.shapes import count, mapping, text

ROLLED_BACK = "thread_rolled_back"


class Taken(NamedTuple):
    """A line by its number; if it took others back, those."""

    number: int
    value: Any
    back: list[Any] | None = None


class _Turn(NamedTuple):
    """Where a turn begins, and with which words; an item and its echo are one."""

    place: int
    forms: frozenset[str]
    is_echo: bool
    is_open: bool = True


class Turns:
    """The lines of a session, with the turns that they are.

    >>> turns = Turns()
    >>> for words in ("One?", "Two?"):
    ...     turns.take(1, {"type": "message", "role": "user", "content": words})
    >>> event = {"type": "thread_rolled_back", "num_turns": 1}
    >>> turns.take(3, {"type": "event_msg", "payload": event})
    >>> [len(line.back or ()) for line in turns.lines()]
    [0, 1]
    """

    def __init__(self) -> None:
        self._lines: list[Taken] = []
        self._turns: list[_Turn] = []
        self._gone: set[int] = set()
        # From where on a line has taken others back, by its own place.
        self._since: dict[int, int] = {}

    def lines(self) -> Iterator[Taken]:
        """The lines that count, in order."""
        return (line for place, line in enumerate(self._lines) if place not in self._gone)

    def take(self, number: int, value: Any) -> None:
        """One line more."""
        event, item = event_in(value), item_in(value)
        back = None
        if event.get("type") == ROLLED_BACK:
            back = self._back(count(event.get("num_turns")) or 0)
        elif event:
            self._repeated(event)
        elif item:
            self._said(item)
        self._lines.append(Taken(number, value, back))

    def _repeated(self, event: Mapping[str, Any]) -> None:
        words = (text(event.get("message")) or "").strip()
        if words and ECHOES.get(str(event.get("type"))) == "user":
            self._begin(frozenset((words,)), is_echo=True)

    def _said(self, item: Mapping[str, Any]) -> None:
        content, role = item.get("content"), item.get("role")
        if item.get("type") != "message" or role == "assistant":
            if self._turns and item.get("type") != "reasoning":
                self._turns[-1] = self._turns[-1]._replace(is_open=False)
        elif role == "user" and isinstance(content, str | list):
            said = said_in(content)
            if not said.is_context:
                self._begin(frozenset(said.forms), is_echo=False)

    def _begin(self, forms: frozenset[str], *, is_echo: bool) -> None:
        last = self._turns[-1] if self._turns else None
        # One that stands right beside the other is its echo, in whatever words.
        is_beside = last is not None and last.place == len(self._lines) - 1
        is_pair = last is not None and last.is_open and last.is_echo != is_echo
        if last and is_pair and (is_beside or last.forms & forms):
            self._turns[-1] = last._replace(is_open=False)
        else:
            self._turns.append(_Turn(len(self._lines), forms, is_echo))

    def _back(self, turns: int) -> list[Any] | None:
        """What is taken back with so many turns, or with all of them; None if there are none."""
        begun = self._turns[-turns:] if turns else []
        if not begun:
            return None
        del self._turns[-turns:]
        first, place, taken = begun[0].place, len(self._lines) - 1, []
        self._since[len(self._lines)] = first
        while place >= first:
            if place in self._since:
                # All from there to here was looked at before.
                place = self._since[place]
            elif _is_conversation(self._lines[place].value):
                self._gone.add(place)
                taken.append(self._lines[place].value)
            place -= 1
        return taken[::-1]


def _is_conversation(value: Any) -> bool:
    event = event_in(value)
    return bool(item_in(value)) or bool(event and event.get("type") != "token_count")


def event_in(value: Any) -> Mapping[str, Any]:
    """The event that a line holds, if it does."""
    found = mapping(value)
    return mapping(found.get("payload")) if found.get("type") == "event_msg" else {}


def item_in(value: Any) -> Mapping[str, Any]:
    """The item of the conversation that a line holds, or is; heads and others are none."""
    found = mapping(value)
    if found.get("type") == "response_item":
        return mapping(found.get("payload"))
    return found if found.get("type") in ITEMS and "payload" not in found else {}
