"""GitHub Copilot CLI: the events of a session, one per line (`~/.copilot/session-state/…/events.jsonl`).

Some executions have no request in a message; they are calls too. The tokens are those that `session.shutdown` states by
model; without it, only the output tokens of the messages are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import ToolCall, Usage
from proctor.sessions.genai.values import parse_arguments
from proctor.sessions.importers.imported_session import ImportedSession, flatten_lists, flatten_values
from proctor.sessions.importers.json_values import as_mapping, as_text, first_count, omit_keys, take
from proctor.sessions.importers.openai_messages import UNNAMED_CALL
from proctor.sessions.importers.session_builder import CALL_FAILED, SessionBuilder, merge_distinct

NAME = "copilot-cli"
_START, _SHUTDOWN = "session.start", "session.shutdown"
_SPEAKERS = {"system.message": "system", "user.message": "user", "assistant.message": "assistant"}
_CALL_START, _CALL_END = "tool.execution_start", "tool.execution_complete"
_MARKS = (_START, _SHUTDOWN, _CALL_START, _CALL_END, *_SPEAKERS)
# Prefixes of events that are neither messages nor calls.
_FAILURES = ("session.error", "abort")
_OTHER_EVENTS = ("session.", "assistant.", "tool.", "hook.", "subagent.", "skill.", "system.", "user.", "abort")


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for lines with the type of an event and its `data`."""
    return any(_get_type(item) in _MARKS for item in flatten_values(values))


def _get_type(value: Any) -> str | None:
    fields = as_mapping(value)
    return as_text(fields.get("type")) if isinstance(fields.get("data"), dict) else None


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file; each `session.start` starts a session."""
    lines: list[tuple[int, Any]] = []
    has_start = False
    for line, value in flatten_lists(values):
        is_start = _get_type(value) == _START
        if is_start and has_start:
            yield _SessionReader(lines).read(source)
            lines = []
        has_start = has_start or is_start
        lines.append((line, value))
    if lines:
        yield _SessionReader(lines).read(source)


def _find_last_error(values: Iterable[Any]) -> str | None:
    """Return the error that a session ended with; None if the agent continued after it."""
    error = None
    for value in values:
        event_type = _get_type(value)
        if event_type in _FAILURES:
            data = value["data"]
            error = as_text(data.get("message")) or as_text(data.get("reason")) or event_type
        elif event_type == "assistant.message":
            error = None
    return error


class _SessionReader:
    def __init__(self, lines: Sequence[tuple[int, Any]]) -> None:
        self._builder = SessionBuilder()
        self._lines = lines
        self._requested: set[str] = set()
        self._has_totals = any(_get_type(value) == _SHUTDOWN and _read_totals(value["data"]) for _, value in lines)

    def read(self, source: str) -> ImportedSession:
        for line, value in self._lines:
            self._read_event(line, value)
        session_id = as_text(self._builder.recorded.get("sessionId"))
        error = _find_last_error(value for _, value in self._lines)
        return msgspec.structs.replace(self._builder.build(session_id, NAME, source), error=error)

    def _read_event(self, line: int, value: Any) -> None:
        builder, event_type = self._builder, _get_type(value)
        if event_type is None:
            builder.add_unknown(None, value)
            return
        rest = omit_keys(value, "type", "data")
        data = dict(value["data"])
        builder.add_time(rest.get("timestamp"))
        if event_type in _SPEAKERS and isinstance(data.get("content"), str):
            self._add_message(line, event_type, data)
        elif event_type == _START:
            builder.recorded = merge_distinct(builder.recorded, data)
            data = {}
        elif event_type == _CALL_START and as_text(data.get("toolName")):
            self._start_call(data)
        elif event_type == _CALL_END and as_text(data.get("toolCallId")):
            self._end_call(data)
        elif event_type.startswith(_OTHER_EVENTS):
            if event_type == _SHUTDOWN:
                for model, usage in _read_totals(data).items():
                    builder.add_model_call((line, model), model, usage)
            builder.add_event(event_type, data)
            data = {}
        else:
            builder.add_unknown(event_type[:60], value)
            return
        builder.add_note(line, merge_distinct(rest, {"data": data} if data else {}))

    def _add_message(self, line: int, event_type: str, data: dict[str, Any]) -> None:
        builder, content = self._builder, data.pop("content")
        name = "sub-agent" if as_text(data.get("parentToolCallId")) else None
        if event_type == "user.message":
            if not content and (added := take(data, "transformedContent", str)) is not None:
                # The program wrote this message, for example to continue a task.
                content, name = added, name or "meta"
            builder.add_message("user", content, name=name)
        elif event_type == "system.message":
            if data.get("role") == "system":
                del data["role"]
            builder.add_message("system", content)
        else:
            if (thought := take(data, "reasoningText", str)) is not None:
                builder.add_event("thinking", thought)
            builder.add_message("assistant", content, name=name, calls=self._take_requests(line, data))
            usage = Usage(output_tokens=first_count(data, "outputTokens"))
            if usage != Usage() and not self._has_totals:
                builder.add_model_call((line,), as_text(data.get("model")), usage)

    def _take_requests(self, line: int, data: dict[str, Any]) -> list[ToolCall]:
        calls: list[ToolCall] = []
        for item in take(data, "toolRequests", list) or ():
            fields = dict(as_mapping(item))
            name = take(fields, "name", str)
            if name is None:
                self._builder.add_unknown(UNNAMED_CALL, item)
                continue
            call_id = take(fields, "toolCallId", str)
            self._requested |= {call_id} if call_id else set()
            calls.append(ToolCall(name, parse_arguments(fields.pop("arguments", None)), call_id=call_id))
            if fields and fields != {"type": "function"}:
                self._builder.add_note(line, {"of": call_id, **fields})
        return calls

    def _start_call(self, data: dict[str, Any]) -> None:
        """Add a call that no message requested; the start of any other call repeats its request."""
        call_id = as_text(data.get("toolCallId"))
        if call_id is None or call_id not in self._requested:
            name = data.pop("toolName")
            take(data, "toolCallId", str)
            self._builder.add_call(ToolCall(name, parse_arguments(data.pop("arguments", None)), call_id=call_id))

    def _end_call(self, data: dict[str, Any]) -> None:
        call_id, result, error = data.pop("toolCallId"), data.pop("result", None), None
        content = as_mapping(result).get("content")
        if content is not None and (details := omit_keys(result, "content")):
            data["result"] = details
        if data.get("success") is False or data.get("error"):
            failure = data.get("error")
            error = as_text(as_mapping(failure).get("message")) or as_text(failure) or CALL_FAILED
        self._builder.add_result(call_id, result if content is None else content, error=error)


def _read_totals(data: Mapping[str, Any]) -> dict[str, Usage]:
    """Return the usage of a session by model; the input includes cached tokens."""
    totals = {}
    for model, metrics in as_mapping(data.get("modelMetrics")).items():
        counts = as_mapping(as_mapping(metrics).get("usage"))
        names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        inputs, outputs, cached, cache_write = (first_count(counts, name) for name in names)
        usage = Usage(inputs, outputs, cached, cache_write_tokens=cache_write)
        if usage != Usage():
            totals[model] = usage
    return totals
