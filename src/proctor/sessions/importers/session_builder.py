"""Build a session from the lines of a log: match results to calls, and store unknown data."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import CustomEvent, Event, Message, ModelCall, Role, Session, ToolCall, Usage
from proctor.records.session_events import ORPHAN_RESULT, UNANSWERED
from proctor.sessions.importers.imported_session import (
    ImportedSession,
    default_session_id,
    describe_type,
    parse_time,
    wrap_raw_event,
)
from proctor.sessions.importers.json_values import as_list, extract_text

UNKNOWN_MODEL = "unknown"
# The error of a call that failed without a message.
CALL_FAILED = "the call failed"


class KeyedQueue:
    """Queues of numbers by key; a number that is taken from one queue is removed from all of them."""

    def __init__(self) -> None:
        self._queues: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        self._taken: set[int] = set()

    def put(self, number: int, *keys: Hashable) -> None:
        for key in keys:
            self._queues[key].append(number)

    def take(self, *keys: Hashable) -> int | None:
        """Take the first number, trying the keys in order."""
        for key in keys:
            queue = self._queues.get(key, ())
            while queue:
                number = queue.popleft()
                if number not in self._taken:
                    self._taken.add(number)
                    return number
        return None


class SessionBuilder:
    """Collects the events of one session in log order.

    Results are added to their calls. Calls of one message that share an id are answered in order;
    a later message that reuses an id gets its own results. Lines with the same `key` form one
    message with one model call, but text after a tool result starts a new message.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._open_calls = KeyedQueue()
        # Maps a call id to the number of the last message with that call.
        self._last_message: dict[str, int] = {}
        self._finished_calls: dict[str, int] = {}
        self._message_count = 0
        self._inserted_messages: defaultdict[int, list[Message]] = defaultdict(list)
        self._model_calls: dict[Hashable, int] = {}
        self._current: tuple[Hashable, int] | None = None
        self._has_result = False
        # Later lines of a message, which `build` merges.
        self._continuations: defaultdict[int, list[tuple[Any, list[ToolCall]]]] = defaultdict(list)
        self._unknown_counts: Counter[str] = Counter()
        self._notes: list[dict[str, Any]] = []
        self._times: list[tuple[datetime, str]] = []
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
        self._inserted_messages[index].append(Message(role, content))

    def add_call(self, call: ToolCall) -> None:
        """Add a tool call that waits for its result."""
        index = len(self._events)
        self._events.append(unanswered_event(call))
        if call.call_id is None:
            self._open_calls.put(index, ("name", None), ("name", call.name))
            return
        self._last_message[call.call_id] = self._message_count
        self._open_calls.put(index, ("id", call.call_id, self._message_count))
        self._finished_calls.pop(call.call_id, None)

    def add_finished_call(self, call: ToolCall) -> None:
        """Add a tool call that contains its result."""
        self._events.append(call)
        self._has_result = True

    def add_result(
        self,
        call_id: str | None,
        result: Any,
        *,
        error: str | None = None,
        has_failed: bool = False,
        duration_ms: float | None = None,
        name: str | None = None,
    ) -> str | None:
        """Add a result to its call and return the tool name.

        Without a call id, the result belongs to the first open call of that name, or of any name.
        The result of a call that has failed is its error, if it is a string.
        """
        if has_failed:
            error = result if isinstance(result, str) and result else CALL_FAILED
        if call_id is None:
            index = self._open_calls.take(("name", name))
        else:
            index = self._open_calls.take(("id", call_id, self._last_message.get(call_id)))
        self._has_result = True
        if index is None:
            data = {"call_id": call_id, "of": name, "content": result, "failure": error}
            self._unknown_counts[ORPHAN_RESULT] += 1
            self.add_event(ORPHAN_RESULT, {key: value for key, value in data.items() if value is not None})
            return name
        if call_id is not None:
            self._finished_calls[call_id] = index
        event = self._events[index]
        assert isinstance(event, CustomEvent)
        call = event.data
        self._events[index] = ToolCall(
            call["tool_name"], call["arguments"], result, error or call.get("error"), duration_ms, call.get("call_id")
        )
        return str(call["tool_name"])

    def set_call_outcome(self, call_id: str, error: str | None, duration_ms: float | None) -> bool:
        """Add error and duration to a call that has its result.

        Return False if no call with that id has a result, or if a later call with that id waits for its result.
        """
        index = self._finished_calls.get(call_id)
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

    def add_model_call(
        self, key: Hashable, model: str | None, usage: Usage, *, finish_reason: str | None = None
    ) -> None:
        """Add a model call; the same key updates it.

        As the key, use an id of the log or a value that is not a string, so that keys cannot collide.
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
        """Add data that the importer does not understand, and count it."""
        kind = kind or describe_type(data)
        self._unknown_counts[kind] += 1
        self._events.append(wrap_raw_event(kind, data))

    def add_unknown_role(self, role: str, content: Any, extra: Mapping[str, Any]) -> None:
        """Add a message with a role that sessions do not support."""
        kind = f"message: {role[:60]}"
        self._unknown_counts[kind] += 1
        data = {"role": role, "content": content, **({"found": extra} if extra else {})}
        self._events.append(CustomEvent(kind, data))

    def add_note(self, line: int, fields: Mapping[str, Any]) -> None:
        """Record fields of a line that no event contains, such as ids and times."""
        if fields:
            self._notes.append({"line": line, **fields})

    def add_time(self, time: Any) -> None:
        """Record the time of a line; ignore values that are not times."""
        if (parsed := parse_time(time)) is not None:
            self._times.append((parsed, time))

    def build(self, name: str | None, format_name: str, source: str, strays: Iterable[Any] = ()) -> ImportedSession:
        """Return the session with its first user text and last assistant text; strays become unknown parts.

        A session without a name gets the name of its source.
        """
        for stray in strays:
            self.add_unknown(None, stray)
        times = [text for _, text in sorted(self._times, key=itemgetter(0))]
        extra: dict[str, Any] = {"started_at": times[0], "ended_at": times[-1]} if times else {}
        if self._notes:
            extra["log"] = self._notes
        events: list[Event] = []
        for index, event in enumerate(self._events):
            continuations = self._continuations.get(index)
            merged = event if continuations is None else _merge_message(event, continuations)
            events += [*self._inserted_messages.get(index, ()), merged]
        events += self._inserted_messages.get(len(self._events), ())
        return ImportedSession(
            name or default_session_id(source),
            Session(events),
            format_name,
            source,
            find_first_text(events, "user"),
            find_first_text(events[::-1], "assistant"),
            merge_distinct(self.recorded, extra),
            dict(self._unknown_counts),
        )


class PendingSession(NamedTuple):
    """The value that contains a session, its location, and stray values to store with it."""

    value: Any
    location: str
    strays: Sequence[Any]


def group_items(
    items: Iterable[tuple[Any, str | None]], source: str, is_message: Callable[[Any], bool]
) -> Iterator[PendingSession]:
    """Yield the sessions of a file; only items that are sessions have a location.

    Messages outside sessions form one session. Other items go to the next or previous session. A single session gets
    the name of its file.
    """
    strays: list[Any] = []
    messages: list[Any] = []
    pending: PendingSession | None = None
    is_only = True
    for item, location in items:
        if location is None:
            (messages if is_message(item) else strays).append(item)
            continue
        if pending is not None:
            is_only = False
            yield pending
        pending, strays = PendingSession(item, location, strays), []
    if pending is not None:
        location = source if is_only and not messages else pending.location
        yield PendingSession(pending.value, location, [*pending.strays, *strays])
        strays = []
    if messages or strays:
        yield PendingSession(messages, source, strays)


def split_sessions(
    values: Iterable[tuple[int, Any]],
    source: str,
    is_message: Callable[[Any], bool] = lambda _: False,
    is_document: Callable[[Any], bool] = lambda _: False,
) -> Iterator[PendingSession]:
    """Yield the sessions of a file: documents, lists of messages, lists of either, or one message per line."""

    def is_session(value: Any) -> bool:
        return any(map(is_message, as_list(value))) or is_document(value)

    def split_values() -> Iterator[tuple[Any, str | None]]:
        for line, value in values:
            items = value if isinstance(value, list) and value and not is_session(value) else [value]
            for number, item in enumerate(items, start=1):
                location = f"{source}:{number if len(items) > 1 else line}"
                yield item, location if is_session(item) else None

    return group_items(split_values(), source, is_message)


def find_first_text(events: Sequence[Event], role: Role) -> str | None:
    """Return the first text of a role; named messages, which come from programs, are searched last."""
    messages = [event for event in events if isinstance(event, Message) and event.role == role]
    unnamed = (message for message in messages if message.name is None)
    texts = (extract_text(message.content, role) for message in chain(unnamed, messages))
    return next((text for text in texts if text), None)


def merge_distinct(recorded: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings; rename duplicate keys of `extra`."""
    merged = dict(recorded)
    for name, value in extra.items():
        while name in merged:
            name = f"imported {name}"
        merged[name] = value
    return merged


def unanswered_event(call: ToolCall) -> CustomEvent:
    """Return the event of a call without a result: the log does not show whether it succeeded."""
    data: dict[str, Any] = {"tool_name": call.name, "arguments": call.arguments}
    if call.call_id is not None:
        data["call_id"] = call.call_id
    if call.error is not None:
        data["error"] = call.error
    return CustomEvent(UNANSWERED, data)


def _merge_message(event: Event, continuations: Sequence[tuple[Any, list[ToolCall]]]) -> Message:
    assert isinstance(event, Message)
    contents = [item for item in (event.content, *(content for content, _ in continuations)) if item]
    if all(isinstance(content, str) for content in contents):
        merged: Any = "\n".join(contents)
    else:
        lists = (item if isinstance(item, list) else [{"type": "text", "text": item}] for item in contents)
        merged = [*chain.from_iterable(lists)]
    calls = (call for _, calls in continuations for call in calls)
    return msgspec.structs.replace(event, content=merged, tool_calls=(*event.tool_calls, *calls))
