"""Turn the spans of another tool's trace into a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from proctor.records.session import CustomEvent, Session
from proctor.sessions.genai.spans import SpanData, get_operation, read_span
from proctor.sessions.importers.trace import Step, assemble_trace

KIND, INPUT, OUTPUT = "openinference.span.kind", "input.value", "output.value"


class Span(NamedTuple):
    """One span; the names of its attributes are those of OpenInference or OpenTelemetry."""

    id: str
    parent: str | None
    name: str
    attributes: Mapping[str, Any]
    start: datetime | None = None
    end: datetime | None = None
    error: str | None = None


def find_root(spans: Sequence[Span]) -> Span | None:
    """Return the first span whose parent is not in the trace."""
    ids = {span.id for span in spans}
    return next((span for span in spans if span.parent not in ids), None)


def make_session(spans: Sequence[Span]) -> Session:
    """Return a session with each call once; spans that are no calls of models or tools become custom events."""
    steps = [_make_step(span) for span in spans]
    assembled = assemble_trace(steps)
    events = list(assembled.events)
    for index, span, step in zip(assembled.indexes, spans, steps, strict=True):
        if step.span_call is None:
            data = {"input": span.attributes.get(INPUT), "output": span.attributes.get(OUTPUT), "error": span.error}
            values = {name: value for name, value in data.items() if value is not None}
            events[index] = CustomEvent(step.label, {"name": span.name, **values})
    return Session(events)


def _make_step(span: Span) -> Step:
    duration = None
    if span.start and span.end and span.end >= span.start:
        duration = 1000 * (span.end - span.start).total_seconds()
    call = read_span(SpanData(span.name, dict(span.attributes), duration_ms=duration, error=span.error))
    operation = get_operation(span.attributes)
    label = f"span: {operation[:60]}" if operation else "span"
    return Step(span.id, span.parent, span.start.timestamp() if span.start else None, label, call)


def make_attributes(
    kind: str, name: Any, input_value: Any, output_value: Any, *, model: Any, tokens: tuple[Any, Any]
) -> dict[str, Any]:
    """Return the attributes of a span with the names of OpenInference; unknown values are left out."""
    attributes = {
        KIND: kind,
        INPUT: input_value,
        OUTPUT: output_value,
        "llm.model_name": model,
        "llm.token_count.prompt": tokens[0],
        "llm.token_count.completion": tokens[1],
        "tool.name": name if kind == "TOOL" else None,
    }
    return {key: value for key, value in attributes.items() if value is not None}


def flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a nested value under dotted names; empty values are left out.

    >>> dict(flatten("llm.input_messages", [{"message.role": "user"}]))
    {'llm.input_messages.0.message.role': 'user'}
    """
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flatten(f"{name}.{key}", item)
    elif value is not None:
        yield name, value
