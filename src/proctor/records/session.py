"""What happened while a target ran: a session of typed events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeVar

import msgspec

EventT = TypeVar("EventT")
Role = Literal["system", "user", "assistant", "tool"]


class Usage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Tokens and money. None means unknown, which is not zero.

    >>> (Usage(input_tokens=10, output_tokens=5) + Usage(input_tokens=1)).total_tokens
    16
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None

    @property
    def total_tokens(self) -> int | None:
        """Input and output together, or None if neither is known."""
        return _sum(self.input_tokens, self.output_tokens)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            _sum(self.cost, other.cost),
        )


NumberT = TypeVar("NumberT", int, float)


def _sum(left: NumberT | None, right: NumberT | None) -> NumberT | None:
    if left is None:
        return right
    return left if right is None else left + right


class ToolCall(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="tool_call"
):
    """A tool that was called: with what, what came back or went wrong, and how long it took."""

    name: str
    arguments: dict[str, Any] = {}
    result: Any = None
    error: str | None = None
    duration_ms: float | None = None
    call_id: str | None = None

    @property
    def success(self) -> bool:
        """True if the tool did not fail."""
        return self.error is None


class Message(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="message"
):
    """Something said: by the system, the user, the assistant or a tool.

    `tool_calls` are what an assistant asked for; `call_id` is which of them a tool answers.
    """

    role: Role
    content: Any
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


class ModelCall(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="model_call"
):
    """A model that was asked: which one, what it used and how long it took."""

    model: str
    usage: Usage = Usage()
    latency_ms: float | None = None
    finish_reason: str | None = None
    details: dict[str, Any] = {}


class CustomEvent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="custom"
):
    """Any object of the user's, kept with the name of its type."""

    kind: str
    data: Any


Event = Message | ToolCall | ModelCall | CustomEvent


class Session(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The ordered record of one trial: append events, read them back by type.

    >>> session = Session()
    >>> session.append(ToolCall("search", {"q": "capital of France"}, result="Paris"))
    >>> [call.name for call in session[ToolCall]]
    ['search']
    """

    events: list[Event] = []

    def append(self, event: Any) -> None:
        """Add an event at the end. Objects of the user's own types are kept as they are."""
        if not isinstance(event, Message | ToolCall | ModelCall | CustomEvent):
            event = CustomEvent(type(event).__name__, event)
        self.events.append(event)

    def __getitem__(self, kind: type[EventT]) -> tuple[EventT, ...]:
        return tuple(
            found
            for event in self
            for found in ((event, event.data) if isinstance(event, CustomEvent) else (event,))
            if isinstance(found, kind)
        )

    def __iter__(self) -> Iterator[Event]:
        return iter(tuple(self.events))

    def __len__(self) -> int:
        return len(self.events)

    @property
    def usage(self) -> Usage:
        """What all model calls used together."""
        total = Usage()
        for event in self.events:
            if isinstance(event, ModelCall):
                total = total + event.usage
        return total

    def known_usage(self) -> Usage | None:
        """The same, or None if no model call told anything."""
        total = self.usage
        return None if total == Usage() else total
