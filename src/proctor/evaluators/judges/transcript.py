"""Render a session for a judge: turns, tool calls and results, shortened if they are too long.

No content can imitate a turn: headings start a line, and all content of the session is indented.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from proctor.evaluators.judges.fence import Fence
from proctor.records import codec
from proctor.records.model import render_content, render_value, summarize_data
from proctor.records.session import CustomEvent, Event, Message, SessionView, ToolCall
from proctor.records.session_events import (
    CallerIndex,
    OrphanResult,
    RepeatedCalls,
    UnansweredCall,
    UnknownRoleMessage,
    interpret_event,
)

CHAT_SESSION = "chat_session"
MAX_CONTENT = 4_000
MAX_SESSION = 100_000
MAX_CACHED = 64
MAX_NAME = 200
_MAX_INLINE_ARGUMENTS = 200
_INDENT = "    "


def render_transcript(
    session: Iterable[Event], *, max_content: int = MAX_CONTENT, max_session: int = MAX_SESSION
) -> str:
    """Render the turns of a session; a note replaces the middle of long content."""
    events = tuple(session)
    renderer = _TurnRenderer(events, max_content)
    turns = [turn for event in events for turn in renderer.render(event)]
    numbered_turns = [f"[{number}] {turn}" for number, turn in enumerate(turns, start=1)]
    return "\n".join(_drop_middle_turns(numbered_turns, max_session))


class TranscriptCache:
    """A cache of fenced transcripts, because several rubrics judge the same session."""

    __slots__ = ("_cache", "_max_content", "_max_session")
    __proctor_identity__: ClassVar[tuple[str, ...]] = ("_max_content", "_max_session")

    def __init__(self, max_content: int, max_session: int) -> None:
        self._max_content = max_content
        self._max_session = max_session
        self._cache: dict[tuple[int, int], tuple[tuple[Any, ...], Fence | None]] = {}

    def get(self, session: SessionView, input_value: Any, output: Any) -> Fence | None:
        """Return the fenced transcript of a session, or None if nothing happened in it."""
        content = (input_value, output, *session.events)
        key = (len(content), id(content[-1]))
        cached = self._cache.get(key)
        # Compares the objects, not their ids: the id of a freed object may be reused.
        if cached is not None and all(map(operator.is_, cached[0], content)):
            return cached[1]
        events = add_missing_ends(session, input_value, output)
        text = render_transcript(events, max_content=self._max_content, max_session=self._max_session)
        if len(self._cache) >= MAX_CACHED:
            del self._cache[next(iter(self._cache))]
        fence = Fence({CHAT_SESSION: text}) if any(map(_has_content, events)) else None
        self._cache[key] = (content, fence)
        return fence


def add_missing_ends(session: SessionView, input_value: Any, output: Any) -> tuple[Event, ...]:
    """Return the events of a session, with the input and the output if no message contains them."""
    roles = {message.role for message in session[Message]}
    has_input = "user" in roles or input_value in (None, "")
    has_output = "assistant" in roles or output in (None, "")
    first = () if has_input else (Message("user", input_value),)
    last = () if has_output else (Message("assistant", output),)
    return (*first, *session.events, *last)


def _has_content(event: Event) -> bool:
    if isinstance(event, Message):
        return bool(event.tool_calls or _to_text(event.content).strip())
    return isinstance(event, ToolCall) or (isinstance(event, CustomEvent) and interpret_event(event) is not None)


def shorten(text: str, max_length: int) -> str:
    """Return about `max_length` characters of a text: its beginning, a note, and its end."""
    left_out = len(text) - max_length
    if left_out <= 0:
        return text
    head = (max_length + 1) // 2
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[head + left_out :]}"


class _TurnRenderer:
    """Renders the events of one session, each call and each result once."""

    def __init__(self, events: tuple[Event, ...], max_content: int) -> None:
        self._max_content = max_content
        self._callers = CallerIndex()
        self._repeated = RepeatedCalls(events)

    def render(self, event: Event) -> Iterator[str]:
        if isinstance(event, Message):
            self._callers.add_message(event)
            if not self._repeated.repeats(event):
                yield from self._render_message(event)
        elif isinstance(event, ToolCall):
            yield self._render_tool(event)
        elif isinstance(event, CustomEvent):
            yield from self._render_custom(event)

    def _render_message(self, message: Message) -> Iterator[str]:
        text = _to_text(message.content)
        name = f" {_to_line(message.name)}" if message.name else ""
        if text.strip() or not message.tool_calls:
            role = "tool result" if message.role == "tool" else message.role
            yield f"{role}{name}:\n{self._indent(text or '(nothing)')}"
        for call in self._repeated.unrepeated_calls(message):
            yield f"{message.role}{name} called {self._render_call(call)}"

    def _render_tool(self, call: ToolCall) -> str:
        heading = self._heading(call)
        if call.error is not None:
            return f"{heading} failed:\n{self._indent(_join_error(call.error, call.result))}"
        if call.result is None:
            return f"{heading}: nothing came back"
        return f"{heading} returned:\n{self._indent(_to_text(call.result) or '(nothing)')}"

    def _render_custom(self, event: CustomEvent) -> Iterator[str]:
        match interpret_event(event):
            case UnansweredCall() as unanswered:
                yield f"{self._heading(unanswered.call)}: no answer is recorded"
            case OrphanResult() as result:
                name = f" {_to_line(result.name)}" if result.name else ""
                text = _join_error(result.error or "", result.content).strip("\n") or "(nothing)"
                yield f"tool result{name}, whose call is not recorded:\n{self._indent(text)}"
            case UnknownRoleMessage() as other:
                yield f'other "{_to_line(other.role)}":\n{self._indent(_to_text(other.content))}'

    def _heading(self, call: ToolCall) -> str:
        caller = self._callers.get_caller(call)
        return f"tool {self._render_call(call)}" + (f", called by {_to_line(caller)}," if caller else "")

    def _render_call(self, call: ToolCall) -> str:
        arguments = render_value(call.arguments, codec.to_text)
        if len(arguments) <= min(_MAX_INLINE_ARGUMENTS, self._max_content):
            return f"{_to_line(call.name)}({_to_line(arguments)})"
        return f"{_to_line(call.name)}(\n{self._indent(arguments)}\n)"

    def _indent(self, text: str) -> str:
        lines = shorten(summarize_data(text), self._max_content).splitlines()
        return "\n".join(_INDENT + line for line in lines)


def _to_text(content: Any) -> str:
    return render_content(content, codec.to_text)


def _join_error(error: str, result: Any) -> str:
    """Join the error and the result of a call; a log may have the same text for both, which is then used once."""
    text = _to_text(result)
    return error if text.strip() in ("", error.strip()) else f"{error}\n{text}"


def _to_line(text: str) -> str:
    line = " ".join(text.splitlines())
    return line if len(line) <= MAX_NAME else f"{line[: MAX_NAME - 1]}…"


def _drop_middle_turns(turns: list[str], max_length: int) -> list[str]:
    sizes = [len(turn) + 1 for turn in turns]
    if sum(sizes) <= max_length:
        return turns
    head, tail, remaining = 0, len(turns), max_length
    # Adds turns from both ends, starting at the beginning: the request matters as much as the result.
    while head < tail:
        is_head = head <= len(turns) - tail
        index = head if is_head else tail - 1
        if sizes[index] > remaining:
            break
        remaining -= sizes[index]
        head, tail = (head + 1, tail) if is_head else (head, tail - 1)
    note = f"[… {tail - head:,} of {len(turns):,} turns left out …]"
    return [*turns[:head], note, *turns[tail:]]
