"""Traces of the OpenAI Agents SDK: a trace and its spans in order of their end, in `data`, a list, or lines.

Model calls are read from generation and response spans only, because spans of turns and tasks repeat their usage.
Items (`result.to_input_list()`) are messages, which the format `openai` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import Message, ToolCall, Usage
from proctor.sessions.genai.message_parser import parse_messages
from proctor.sessions.genai.transcript import Transcript
from proctor.sessions.genai.values import parse_arguments
from proctor.sessions.importers.imported_session import ImportedSession, flatten_lists, parse_time
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text, omit_keys
from proctor.sessions.importers.openai_messages import read_usage
from proctor.sessions.importers.session_builder import CALL_FAILED, SessionBuilder

NAME = "openai-agents"
_TRACE, _SPAN = "trace", "trace.span"
_MODEL_SPANS = ("generation", "response")
_EVENT_SPANS = ("handoff", "guardrail")


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for traces, or spans with `span_data`."""
    return any(_get_object(item) is not None for _, item in _flatten((0, value) for value in values))


def _get_object(value: Any) -> str | None:
    fields = as_mapping(value)
    if fields.get("object") == _SPAN and isinstance(fields.get("span_data"), dict):
        return _SPAN
    return _TRACE if fields.get("object") == _TRACE and as_text(fields.get("id")) else None


def _flatten(values: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Yield the objects of a file: those in lists and under `data` one by one."""
    for line, value in flatten_lists(values):
        data = as_list(as_mapping(value).get("data"))
        if not any(map(_get_object, data)):
            yield line, value
            continue
        yield from ((line, item) for item in data)
        if rest := omit_keys(value, "data"):
            yield line, rest


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the traces of a file, one session for each; other values belong to the trace before them."""
    groups: dict[str | None, list[tuple[int, Any]]] = {}
    current: str | None = None
    for line, value in _flatten(values):
        kind = _get_object(value)
        if kind is not None:
            current = as_text(value.get("id" if kind == _TRACE else "trace_id"))
        groups.setdefault(current, []).append((line, value))
    for trace_id, items in groups.items():
        yield _read_trace(trace_id, items, source)


def _read_trace(trace_id: str | None, items: Sequence[tuple[int, Any]], source: str) -> ImportedSession:
    builder, transcript = SessionBuilder(), Transcript()
    spans = [(line, item) for line, item in items if _get_object(item) == _SPAN]
    for line, item in items:
        if (kind := _get_object(item)) is None:
            builder.add_unknown(None, item)
        elif kind == _TRACE:
            builder.recorded |= {"trace": item} if "trace" not in builder.recorded else {}
            builder.add_note(line, {"trace": item} if builder.recorded["trace"] != item else {})
            if (title := as_text(item.get("workflow_name"))) is not None:
                builder.recorded["title"] = title
    # Inner spans end first, but the agent's messages are in order of their start.
    for line, span in sorted(spans, key=lambda entry: _start_time(entry[1])):
        _add_span(builder, transcript, line, span)
    error = next((error for _, span in spans if (error := _find_run_error(span)) is not None), None)
    return msgspec.structs.replace(builder.build(trace_id, NAME, source), is_named=trace_id is not None, error=error)


def _find_run_error(span: Mapping[str, Any]) -> str | None:
    """Return the error of an agent, a turn or the whole task: it ends the run, unlike errors of tools and handoffs."""
    data, error = span["span_data"], span.get("error")
    is_run = data.get("type") == "agent" or as_mapping(data.get("data")).get("sdk_span_type") in ("turn", "task")
    return (as_text(as_mapping(error).get("message")) or CALL_FAILED) if error and is_run else None


def _start_time(span: Mapping[str, Any]) -> str:
    started = span.get("started_at")
    return str(started) if parse_time(started) is not None else ""


def _add_span(builder: SessionBuilder, transcript: Transcript, line: int, span: Mapping[str, Any]) -> None:
    data, error = span["span_data"], span.get("error")
    kind = as_text(data.get("type"))
    for name in ("started_at", "ended_at"):
        builder.add_time(span.get(name))
    reason = as_text(as_mapping(error).get("message")) or (CALL_FAILED if error else None)
    if kind in _MODEL_SPANS:
        inputs, outputs = (_parse(data.get(name), role) for name, role in (("input", "user"), ("output", "assistant")))
        for message in transcript.add(inputs, outputs):
            if message.role != "tool":
                builder.add_message(message.role, message.content, name=message.name)
        usage, model = read_usage(as_mapping(data.get("usage"))), as_text(data.get("model"))
        if usage != Usage() or model:
            builder.add_model_call((line, len(builder)), model, usage)
    elif kind == "function" and as_text(data.get("name")):
        call = ToolCall(data["name"], parse_arguments(data.get("input")), data.get("output"), reason)
        builder.add_finished_call(call)
    elif kind in _EVENT_SPANS:
        builder.add_event(kind, omit_keys(data, "type"))
    if error and kind != "function":
        builder.add_event("error", error)
    builder.add_note(line, {"span": span})


def _parse(items: Any, role: str) -> list[Message]:
    return list(parse_messages([item for item in as_list(items) if isinstance(item, dict)], role).messages)
