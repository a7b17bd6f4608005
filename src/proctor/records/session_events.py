"""Interpret the events of a session for people and judges: failed calls, orphan results, callers."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import CustomEvent, Event, Message, ToolCall

# The kinds of the custom events in which importers store unanswered calls and orphan results.
UNANSWERED = "unanswered tool call"
ORPHAN_RESULT = "tool result without its call"


class UnansweredCall(NamedTuple):
    """A tool call without a recorded result."""

    call: ToolCall


class OrphanResult(NamedTuple):
    """A tool result without a recorded call."""

    name: str | None
    content: Any
    error: str | None


class UnknownRoleMessage(NamedTuple):
    """A message with a role other than the four known roles."""

    role: str
    content: Any


def interpret_event(event: CustomEvent) -> UnansweredCall | OrphanResult | UnknownRoleMessage | None:
    """Interpret a custom event as a call, result or message of the session; None for other events."""
    data = event.data
    if not isinstance(data, Mapping):
        return None
    if event.kind == UNANSWERED:
        arguments = data.get("arguments")
        arguments = arguments if isinstance(arguments, dict) else {}
        ids = {"error": data.get("error"), "call_id": data.get("call_id")}
        return UnansweredCall(ToolCall(str(data.get("tool_name")), arguments, **ids))
    if event.kind == ORPHAN_RESULT:
        return OrphanResult(data.get("of"), data.get("content"), data.get("failure"))
    role, content = data.get("role"), data.get("content")
    if isinstance(role, str) and content not in (None, "", []):
        return UnknownRoleMessage(role, content)
    return None


class RepeatedCalls:
    """Finds calls and results in messages that the session also has as events.

    Pass the messages in order: ids are reused, and each event matches one call.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        calls = [call for event in events if (call := find_call(event)) is not None]
        self._call_counts = Counter(map(call_key, calls))
        self._answered = [c for c in calls if c.result is not None or c.error is not None]
        self._by_id: defaultdict[str, deque[ToolCall]] = defaultdict(deque)
        for call in self._answered:
            self._by_id[call.call_id or ""].append(call)
        self._by_answer: dict[bytes, deque[ToolCall]] | None = None
        self._repeated: set[int] = set()

    def unrepeated_calls(self, message: Message) -> list[ToolCall]:
        """Return the calls of a message that no event of the session repeats."""
        return [call for call in message.tool_calls if not self._use(call_key(call))]

    def _use(self, key: tuple[str, str]) -> bool:
        self._call_counts[key] -= 1
        return self._call_counts[key] >= 0

    def repeats(self, message: Message) -> bool:
        """True for a tool message whose content is the result of a call event.

        The call is found by its id, or by the content if there is no id.
        """
        if message.role != "tool":
            return False
        if message.call_id:
            calls = self._by_id[message.call_id]
        else:
            calls = self._index_answers().get(_answer_key(message.content), deque())
        while calls and id(calls[0]) in self._repeated:
            calls.popleft()
        for call in calls:
            if id(call) not in self._repeated and _has_result(call, message.content):
                self._repeated.add(id(call))
                return True
        return False

    def _index_answers(self) -> dict[bytes, deque[ToolCall]]:
        """Index the calls by their results; needed only if messages have no ids."""
        if self._by_answer is None:
            self._by_answer = {}
            for call in self._answered:
                for key in {_answer_key(call.result), _answer_key(call.error)} - {b""}:
                    self._by_answer.setdefault(key, deque()).append(call)
        return self._by_answer


def _answer_key(answer: Any) -> bytes:
    """Return a key that is equal for equal answers; empty if there is no answer, or if it cannot be encoded."""
    if answer in (None, ""):
        return b""
    with contextlib.suppress(TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return msgspec.json.encode(_decode_text(answer), order="sorted")
    return b""


def _has_result(call: ToolCall, content: Any) -> bool:
    """True if the content is the result of a call, even if one is data and the other is JSON."""
    answers = [answer for answer in (call.result, call.error) if answer is not None]
    with contextlib.suppress(RecursionError):
        return content in answers or _decode_text(content) in map(_decode_text, answers)
    return False


def _decode_text(value: Any) -> Any:
    """Decode a JSON string, including in a list of text parts; return any other value unchanged."""
    if isinstance(value, list | tuple) and value:
        parts = [part.get("text") if isinstance(part, Mapping) else part for part in value]
        texts = [part for part in parts if isinstance(part, str)]
        value = "\n".join(texts) if len(texts) == len(parts) else value
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return msgspec.json.decode(value)
    return value


def find_call(event: Event) -> ToolCall | None:
    """Return the tool call of an event, answered or not."""
    if isinstance(event, CustomEvent):
        interpreted = interpret_event(event)
        return interpreted.call if isinstance(interpreted, UnansweredCall) else None
    return event if isinstance(event, ToolCall) else None


def call_key(call: ToolCall) -> tuple[str, str]:
    """Return a key that a call in a message shares with its event: by id, else by arguments."""
    if call.call_id is not None:
        return call.name, call.call_id
    with contextlib.suppress(RecursionError):
        return call.name, repr(call.arguments)
    return call.name, ""


class CallerIndex:
    """Finds the named agent that requested each call, from the messages before it."""

    def __init__(self) -> None:
        self._names: dict[str | tuple[str], str | None] = {}

    def add_message(self, message: Message) -> None:
        """Add the calls that a message requests; a reused id belongs to the later message."""
        for call in message.tool_calls:
            self._names[_caller_key(call)] = message.name

    def get_caller(self, call: ToolCall) -> str | None:
        """Return the name of the agent that requested a call; None if it has no name."""
        return self._names.get(_caller_key(call))


def _caller_key(call: ToolCall) -> str | tuple[str]:
    # The tuple distinguishes names from ids.
    return (call.name,) if call.call_id is None else call.call_id
