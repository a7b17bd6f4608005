"""A session: the typed events of one run of a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

import msgspec

from proctor.errors import InvalidRecord
from proctor.records.numbers import MAX_COST, is_number, token_count

EventT = TypeVar("EventT")
Role = Literal["system", "user", "assistant", "tool"]


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True): ...


class Usage(_Record, frozen=True):
    """Tokens and cost; None means unknown.

    `cached_tokens` were read from a provider's cache, `cache_write_tokens` were written to it.

    >>> (Usage(input_tokens=10, output_tokens=5) + Usage(input_tokens=1)).total_tokens
    16
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    cache_write_tokens: int | None = None

    @property
    def total_tokens(self) -> int | None:
        """The sum of input and output tokens, or None if neither is known."""
        return _sum(self.input_tokens, self.output_tokens)

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(_sum, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


def find_impossible_counts(usage: Usage) -> dict[str, Any]:
    """Return the impossible values of a usage by name: negative, too large, or not numbers."""
    reported = {name: value for name, value in msgspec.structs.asdict(usage).items() if value is not None}
    return {name: value for name, value in reported.items() if not _is_plausible(name, value)}


def _is_plausible(name: str, value: Any) -> bool:
    if name == "cost":
        return is_number(value) and 0 <= value <= MAX_COST
    return token_count(value) is not None


def drop_impossible_counts(usage: Usage) -> Usage:
    """Return the usage without impossible values.

    If the input or output tokens are impossible, all token counts are dropped: a total would be too small.
    """
    impossible = find_impossible_counts(usage)
    counts = {name: getattr(usage, name) for name in _COUNTS}
    if not impossible and all(type(value) in (int, type(None)) for value in counts.values()):
        return usage
    if "input_tokens" in impossible or "output_tokens" in impossible:
        counts = dict.fromkeys(counts)
    counts = {name: token_count(value) for name, value in counts.items()}
    return Usage(cost=None if "cost" in impossible else usage.cost, **counts)


_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
NumberT = TypeVar("NumberT", int, float)


def _sum(left: NumberT | None, right: NumberT | None) -> NumberT | None:
    if left is None:
        return right
    return left if right is None else left + right


class ToolCall(_Record, frozen=True, tag="tool_call"):
    """A tool call with its arguments, result or error, and duration.

    Some providers require the `signature` to be sent back with the call.
    """

    name: str
    arguments: dict[str, Any] = {}
    result: Any = None
    error: str | None = None
    duration_ms: float | None = None
    call_id: str | None = None
    signature: str | None = None

    @property
    def success(self) -> bool:
        """True if the call has no error."""
        return self.error is None


class Message(_Record, frozen=True, tag="message"):
    """A message of the system, the user, the assistant or a tool.

    `tool_calls` are requested by an assistant; `call_id` is the id of the call that a tool answers.
    """

    role: Role
    content: Any
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


class ModelCall(_Record, frozen=True, tag="model_call"):
    """A model call with its usage and latency."""

    model: str
    usage: Usage = Usage()
    latency_ms: float | None = None
    finish_reason: str | None = None
    details: dict[str, Any] = {}


class CustomEvent(_Record, frozen=True, tag="custom"):
    """Any other object, with the name of its type."""

    kind: str
    data: Any


Event = Message | ToolCall | ModelCall | CustomEvent


class SessionView(_Record, frozen=True):
    """A read-only session for evaluators: events in order or by type.

    `reported_usage` is the usage that the target reported, if any. `recorded` is False if the trial has no session: an
    evaluator must not treat that as a session without events.

    >>> view = Session([ToolCall("search"), Message("assistant", "Paris")]).view()
    >>> [call.name for call in view[ToolCall]], len(view)
    (['search'], 2)
    """

    events: tuple[Event, ...] = ()
    reported_usage: Usage | None = None
    recorded: bool = True

    def __getitem__(self, kind: type[EventT]) -> tuple[EventT, ...]:
        return tuple(_select_type(self.events, kind))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    @property
    def usage(self) -> Usage:
        """The usage that the target reported, or else the sum of all model calls."""
        return _sum_usage(self.events) if self.reported_usage is None else self.reported_usage


class Session(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename={"_events": "events"}):
    """The events of one trial in order: append events, read them by type.

    >>> session = Session()
    >>> session.append(ToolCall("search", {"q": "capital of France"}, result="Paris"))
    >>> [call.name for call in session[ToolCall]]
    ['search']
    >>> Session([{"step": 1}]).events
    (CustomEvent(kind='dict', data={'step': 1}),)
    """

    _events: list[Event] = []

    def __post_init__(self) -> None:
        events: Any = self._events
        if not events and type(events) is list:
            # Every trial starts with an empty session, so this path must be fast.
            self._events = []
            return
        if type(events) is not list and (isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable)):
            raise InvalidRecord(
                f"a Session takes a list of events, got {type(events).__name__}",
                fix="pass a list, as in Session([event])",
            )
        self._events = [as_event(event) for event in events]

    @property
    def events(self) -> tuple[Event, ...]:
        """All events so far, in order."""
        return tuple(self._events)

    def append(self, event: Any) -> None:
        """Add an event at the end. Any object is accepted."""
        self._events.append(as_event(event))

    def view(self, reported_usage: Usage | None = None) -> SessionView:
        """Return a read-only view; `reported_usage` comes from the target."""
        return SessionView(self.events, reported_usage)

    def __getitem__(self, kind: type[EventT]) -> tuple[EventT, ...]:
        return tuple(_select_type(self.events, kind))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"Session({self._events!r})"

    @property
    def usage(self) -> Usage:
        """The sum of all model calls."""
        return _sum_usage(self.events)

    def known_usage(self) -> Usage | None:
        """Return the sum of all model calls, or None if no usage is known."""
        total = self.usage
        return None if total == Usage() else total


def as_event(event: Any) -> Event:
    """Return an event of a known type unchanged; wrap any other object in a `CustomEvent`."""
    if isinstance(event, Message | ToolCall | ModelCall | CustomEvent):
        return event
    return CustomEvent(type(event).__name__, event)


def _sum_usage(events: Iterable[Event]) -> Usage:
    calls = (event.usage for event in events if isinstance(event, ModelCall))
    return sum(map(drop_impossible_counts, calls), Usage())


def _select_type(events: Iterable[Event], kind: type[EventT]) -> Iterator[EventT]:
    """Yield the events of a type, and the custom objects of that type."""
    for event in events:
        if isinstance(event, kind):
            yield event
        if isinstance(event, CustomEvent):
            if isinstance(event.data, kind):
                yield event.data
            elif event.kind == getattr(kind, "__name__", None):
                yield from _rebuild(event.data, kind)


def _rebuild(data: Any, kind: Any) -> Iterator[Any]:
    """Rebuild a custom object that was read from a file, so that stored and live sessions are equivalent."""
    validate = getattr(kind, "model_validate", None)
    try:
        yield validate(data) if callable(validate) else msgspec.convert(data, kind)
    except (TypeError, ValueError, msgspec.MsgspecError):
        # The data is of another type, or the type cannot be built from data.
        return
