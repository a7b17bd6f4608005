"""Read model and tool calls from finished spans, according to OpenTelemetry's GenAI conventions.

Also supports the spans of OpenInference, OpenLLMetry, LangSmith and the Vercel AI SDK.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.numbers import MAX_COST, token_count
from proctor.records.session import Message, ModelCall, ToolCall, Usage
from proctor.sessions.genai import values as conventions
from proctor.sessions.genai.messages import SpanEvent, read_call_messages
from proctor.sessions.genai.values import CallType, decode_json, parse_arguments, text_or_none

# More digits than any token count.
_MAX_DIGITS = 15


class SpanData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A finished span as plain data; `error` is the message of its status, if it failed."""

    name: str
    attributes: dict[str, Any] = {}
    events: tuple[SpanEvent, ...] = ()
    duration_ms: float | None = None
    error: str | None = None


class SpanCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The call that a span describes, with the messages that a model received and returned.

    The inputs repeat the conversation so far; see `Transcript`. `sources` are the attributes that
    were read; see `CallMessages`.
    """

    call_type: CallType
    call: ModelCall | ToolCall
    inputs: tuple[Message, ...] = ()
    outputs: tuple[Message, ...] = ()
    thoughts: tuple[Any, ...] = ()
    sources: tuple[str, ...] = ()


def read_span(span: SpanData) -> SpanCall | None:
    """Read the model or tool call of a span; None for any other span."""
    call_type = classify_span(span.attributes)
    if call_type is None:
        return None
    if call_type == "tool":
        attributes = (_find_name(span.attributes, names) for names in (conventions.ARGUMENTS, conventions.RESULT))
        return SpanCall("tool", _read_tool_call(span), sources=tuple(filter(None, attributes)))
    if call_type == "embeddings":
        return SpanCall(call_type, _read_model_call(span, details={"operation": "embeddings"}))
    messages = read_call_messages(span.attributes, span.events)
    details = {"unreadable": list(messages.unreadable)} if messages.unreadable else {}
    call = _read_model_call(span, messages.finish_reason, details)
    sources = (*messages.input_sources, *messages.output_sources)
    inputs, outputs = tuple(messages.inputs), tuple(messages.outputs)
    return SpanCall(call_type, call, inputs, outputs, messages.thoughts, sources)


def classify_span(attributes: Mapping[str, Any]) -> CallType | None:
    """Return the type of call that a span describes, or None."""
    operation = get_operation(attributes)
    if operation is not None:
        return conventions.OPERATIONS.get(operation)
    if "gen_ai.tool.name" in attributes:
        return "tool"
    # Early conventions had no operation names.
    return "model" if {"gen_ai.system", "gen_ai.request.model"} <= attributes.keys() else None


def get_operation(attributes: Mapping[str, Any]) -> str | None:
    """Return the operation name of a span in lower case, or None."""
    values = (attributes.get(name) for name in conventions.OPERATION_ATTRIBUTES)
    return next((item.casefold() for item in values if isinstance(item, str) and item), None)


def is_container_span(attributes: Mapping[str, Any]) -> bool:
    """Return True for spans of agents, chains and similar operations, which contain calls."""
    return get_operation(attributes) in conventions.CONTAINER_OPERATIONS


def get_exception_message(events: Iterable[SpanEvent]) -> str:
    """Return the message of the exception that a span recorded, or an empty string."""
    messages = (e.attributes.get("exception.message") for e in events if e.name == "exception")
    return next((str(message) for message in messages if message), "")


def _read_model_call(
    span: SpanData, finish_reason: str | None = None, details: dict[str, Any] | None = None
) -> ModelCall:
    attributes = span.attributes
    model = str(_find_value(attributes, conventions.MODEL) or "unknown")
    details = dict(details or {})
    response_model = _find_value(attributes, conventions.RESPONSE_MODEL)
    if isinstance(response_model, str) and response_model != model:
        details["response_model"] = response_model
    if (error := read_span_error(span)) is not None:
        details["error"] = error
    reasons = decode_json(_find_value(attributes, conventions.FINISH_REASONS))
    if isinstance(reasons, str):
        finish_reason = reasons or finish_reason
    elif isinstance(reasons, Sequence) and reasons:
        finish_reason = str(reasons[0])
    cost = _find_value(attributes, conventions.COST)
    is_cost = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= MAX_COST
    usage = Usage(
        _read_count(attributes, conventions.INPUT_TOKENS),
        _read_count(attributes, conventions.OUTPUT_TOKENS),
        _read_count(attributes, conventions.CACHED_TOKENS),
        float(cost) if is_cost else None,
        _read_count(attributes, conventions.CACHE_WRITE_TOKENS),
    )
    if finish_reason is not None:
        finish_reason = conventions.FINISH_REASON_ALIASES.get(finish_reason, finish_reason)
    return ModelCall(model, usage, span.duration_ms, finish_reason, details)


def _read_tool_call(span: SpanData) -> ToolCall:
    attributes = span.attributes
    span_name = span.name.removeprefix("execute_tool ").removeprefix("running tool: ")
    return ToolCall(
        str(_find_value(attributes, conventions.TOOL_NAME) or span_name),
        parse_arguments(_find_value(attributes, conventions.ARGUMENTS)),
        decode_json(_find_value(attributes, conventions.RESULT)),
        read_span_error(span),
        span.duration_ms,
        text_or_none(_find_value(attributes, conventions.CALL_ID)),
    )


def read_span_error(span: SpanData) -> str | None:
    """Return the error of a span: its type and message; None for a span that did not fail."""
    error_type = span.attributes.get("error.type")
    if span.error is None and error_type is None:
        return None
    return ": ".join(str(item) for item in (error_type, span.error) if item) or "unknown error"


def _find_value(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    name = _find_name(attributes, names)
    return None if name is None else attributes[name]


def _find_name(attributes: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if attributes.get(name) is not None), None)


def _read_count(attributes: Mapping[str, Any], names: Sequence[str]) -> int | None:
    value = _find_value(attributes, names)
    if isinstance(value, str) and value.isdecimal() and len(value) <= _MAX_DIGITS:
        # OTLP/JSON writes integers as text, and some exports do not convert them.
        value = int(value)
    return token_count(value)
