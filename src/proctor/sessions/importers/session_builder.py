"""Build a session from the lines of a log: match results to calls and keep everything unknown."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from proctor.records.session import CustomEvent, Event, Message, ModelCall, Role, Session, ToolCall, Usage
from proctor.records.session_events import ORPHAN_RESULT, UNANSWERED
from proctor.sessions.importers.json_values import (
    ImportedSession,
    describe_type,
    extract_text,
    parse_time,
    wrap_raw_event,
)

UNKNOWN_MODEL = "unknown"


class SessionBuilder:
    """Collects the events of one session in log order.

    Results are put into their calls. Calls of one message that share an id are answered in order;
    a later message that reuses an id gets its own results. Lines with the same `key` form one
    message with one model call, but text after a tool result starts a new message.

    >>> builder = SessionBuilder()
    >>> builder.add_message("assistant", "", calls=[ToolCall("search", {"q": "France"}, call_id="1")])
    >>> _ = builder.add_result("1", "Paris")
    >>> builder.build("s1", "openai", "chat.json").session[ToolCall][0].result
    'Paris'
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        # By call id: the message number, and the indexes of its calls without a result.
        self._pending: dict[str, tuple[int, deque[int]]] = {}
        self._finished: dict[str, int] = {}
        self._without_id: deque[int] = deque()
        self._without_id_by_name: defaultdict[str, deque[int]] = defaultdict(deque)
        self._open: set[int] = set()
        self._message_count = 0
        self._inserted: defaultdict[int, list[Message]] = defaultdict(list)
        self._model_calls: dict[Hashable, int] = {}
        self._current: tuple[Hashable, int] | None = None
        self._has_result = False
        # Later lines of a message, merged in `build`.
        self._continuations: defaultdict[int, list[tuple[Any, list[ToolCall]]]] = defaultdict(list)
        self._unknown: Counter[str] = Counter()
        self._notes: list[dict[str, Any]] = []
        self._times: list[str] = []
        self.recorded: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._events)

    def add_message(
        self,
        role: Role,
        content: Any,
        *,
        name: str | None = None,
        calls: list[ToolCall] | None = None,
        key: Hashable = None,
    ) -> None:
        """Add a message with its tool calls; the same key continues the previous message."""
        calls = calls or []
        current = self._current
        is_same = key is not None and current is not None and current[0] == key
        if current is not None and is_same and not (self._has_result and content):
            self._continuations[current[1]].append((content, calls))
        else:
            self._events.append(Message(role, content, name, tuple(calls)))
            self._message_count += 1
            self._current = None if key is None else (key, len(self._events) - 1)
            self._has_result = False
        for call in calls:
            self.add_call(call)

    def insert_message(self, index: int, role: Role, content: str) -> None:
        """Insert a message before the event with this index."""
        self._inserted[index].append(Message(role, content))

    def add_call(self, call: ToolCall) -> None:
        """Add a tool call that waits for its result."""
        index = len(self._events)
        self._events.append(unanswered_event(call))
        self._open.add(index)
        if call.call_id is None:
            self._without_id.append(index)
            self._without_id_by_name[call.name].append(index)
            return
        number, pending = self._pending.get(call.call_id, (-1, deque()))
        if number != self._message_count:
            self._pending[call.call_id] = self._message_count, (pending := deque())
        pending.append(index)
        self._finished.pop(call.call_id, None)

    def add_finished_call(self, call: ToolCall) -> None:
        """Add a tool call that contains its own result."""
        self._events.append(call)
        self._has_result = True

    def add_result(
        self,
        call_id: str | None,
        result: Any,
        *,
        error: str | None = None,
        duration_ms: float | None = None,
        name: str | None = None,
    ) -> str | None:
        """Put a result into its call and return the tool name.

        Without a call id, the result belongs to the first open call of that name, or of any name.
        """
        index = self._find_open_call(call_id, name)
        self._has_result = True
        if index is None:
            data = {"call_id": call_id, "of": name, "content": result, "failure": error}
            self._unknown[ORPHAN_RESULT] += 1
            self.add_event(ORPHAN_RESULT, {key: value for key, value in data.items() if value is not None})
            return name
        self._open.discard(index)
        if call_id is not None:
            self._finished[call_id] = index
        event = self._events[index]
        assert isinstance(event, CustomEvent)
        call = event.data
        self._events[index] = ToolCall(
            call["tool_name"], call["arguments"], result, error, duration_ms, call.get("call_id")
        )
        return str(call["tool_name"])

    def set_call_outcome(self, call_id: str, error: str | None, duration_ms: float | None) -> bool:
        """Add error and duration to a call that has its result.

        Returns False if no call of that id has a result, or a later one still waits for it.
        """
        index = self._finished.get(call_id)
        if index is None:
            return False
        call = self._events[index]
        assert isinstance(call, ToolCall)
        self._events[index] = msgspec.structs.replace(
            call,
            error=error if call.error is None else call.error,
            duration_ms=duration_ms if call.duration_ms is None else call.duration_ms,
        )
        return True

    def _find_open_call(self, call_id: str | None, name: str | None) -> int | None:
        if call_id is not None:
            _, pending = self._pending.get(call_id, (0, deque()))
        else:
            pending = self._without_id if name is None else self._without_id_by_name[name]
        while pending:
            if (index := pending.popleft()) in self._open:
                return index
        return None

    def add_model_call(
        self, key: Hashable, model: str | None, usage: Usage, *, finish_reason: str | None = None
    ) -> None:
        """Add a model call; the same key updates it.

        Use an id of the log or a value that is not a string as the key, so that they cannot collide.
        """
        index = self._model_calls.get(key)
        if index is None:
            self._model_calls[key] = len(self._events)
            self._events.append(ModelCall(model or UNKNOWN_MODEL, usage, finish_reason=finish_reason))
            return
        previous = self._events[index]
        assert isinstance(previous, ModelCall)
        self._events[index] = ModelCall(
            previous.model if model is None else model,
            previous.usage if usage == Usage() else usage,
            finish_reason=finish_reason or previous.finish_reason,
        )

    def add_event(self, kind: str, data: Any) -> None:
        """Add a known event that is neither a message nor a call."""
        self._events.append(CustomEvent(kind, data))

    def add_unknown(self, kind: str | None, data: Any) -> None:
        """Add something the importer does not understand, and count it."""
        kind = kind or describe_type(data)
        self._unknown[kind] += 1
        self._events.append(wrap_raw_event(kind, data))

    def add_foreign_message(self, role: str, content: Any, extra: Mapping[str, Any]) -> None:
        """Add a message whose role is not one of the four that sessions have."""
        kind = f"message: {role[:60]}"
        self._unknown[kind] += 1
        data = {"role": role, "content": content, **({"found": extra} if extra else {})}
        self._events.append(CustomEvent(kind, data))

    def add_note(self, line: int, fields: Mapping[str, Any]) -> None:
        """Record fields of a line that no event contains, such as ids and times."""
        if fields:
            self._notes.append({"line": line, **fields})

    def add_time(self, time: Any) -> None:
        """Record when something happened; ignore values that are not times."""
        if parse_time(time) is not None:
            self._times.append(time)

    def build(self, name: str, format_name: str, source: str) -> ImportedSession:
        """Return the session with its first user text and last assistant text."""
        times = sorted(self._times, key=_to_timestamp)
        extra: dict[str, Any] = {"started_at": times[0], "ended_at": times[-1]} if times else {}
        if self._notes:
            extra["log"] = self._notes
        events = [*self._ordered_events()]
        return ImportedSession(
            name,
            Session(events),
            format_name,
            source,
            _first_text(events, "user"),
            _first_text(events[::-1], "assistant"),
            merge_distinct(self.recorded, extra),
            dict(self._unknown),
        )

    def _ordered_events(self) -> Iterator[Event]:
        for index, event in enumerate(self._events):
            yield from self._inserted.get(index, ())
            continuations = self._continuations.get(index)
            yield event if continuations is None else _merge_message(event, continuations)
        yield from self._inserted.get(len(self._events), ())


def _first_text(events: Sequence[Event], role: Role) -> str | None:
    """The first text of a role; messages of programs have a name and come last."""
    messages = [event for event in events if isinstance(event, Message) and event.role == role]
    unnamed = (message for message in messages if message.name is None)
    texts = (extract_text(message.content, role) for message in chain(unnamed, messages))
    return next((text for text in texts if text), None)


def merge_distinct(recorded: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings; rename keys of `extra` that exist."""
    merged = dict(recorded)
    for name, value in extra.items():
        while name in merged:
            name = f"imported {name}"
        merged[name] = value
    return merged


def unanswered_event(call: ToolCall) -> CustomEvent:
    """The event of a call without a result: whether it succeeded is unknown."""
    data: dict[str, Any] = {"tool_name": call.name, "arguments": call.arguments}
    if call.call_id is not None:
        data["call_id"] = call.call_id
    return CustomEvent(UNANSWERED, data)


def _merge_message(event: Event, continuations: Sequence[tuple[Any, list[ToolCall]]]) -> Message:
    assert isinstance(event, Message)
    contents = [it for it in (event.content, *(content for content, _ in continuations)) if it]
    if all(isinstance(content, str) for content in contents):
        merged: Any = "\n".join(contents)
    else:
        lists = (it if isinstance(it, list) else [{"type": "text", "text": it}] for it in contents)
        merged = [*chain.from_iterable(lists)]
    calls = (call for _, calls in continuations for call in calls)
    return msgspec.structs.replace(event, content=merged, tool_calls=(*event.tool_calls, *calls))


def _to_timestamp(time: str) -> float:
    parsed = parse_time(time)
    return parsed.timestamp() if parsed is not None else 0.0
