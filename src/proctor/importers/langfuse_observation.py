"""One observation of Langfuse: what it tells of a model or a tool, and what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.genai.bodies import asked_in, instructions_in, said_in
from proctor.genai.messages import Spoken, instructions_of, spoken_in
from proctor.genai.names import Kind
from proctor.genai.spans import Reading, SpanData, kind_of, reading_of
from proctor.genai.values import arguments_in, decoded, plain, text_or_none
from proctor.importers.langfuse_usage import usage_of
from proctor.importers.shapes import amount, mapping, moment, text
from proctor.records.session import Message, ModelCall, ToolCall

_KINDS: dict[str, Kind] = {"GENERATION": "model", "EMBEDDING": "embeddings", "TOOL": "tool"}
_OPERATIONS: dict[Kind, str] = {"model": "chat", "embeddings": "embeddings", "tool": "execute_tool"}


class Told(NamedTuple):
    """What an observation tells; `is_plain` if what was said is known as a text only."""

    reading: Reading | None
    is_plain: bool = False


def told_by(observation: Mapping[str, Any]) -> Told:
    """Read an observation: a call of a model or a tool, or neither.

    >>> told_by({"type": "GENERATION", "model": "small", "input": "Hi"}).reading.call.model
    'small'
    """
    attributes = attributes_of(observation)
    kind = _kind(observation, attributes)
    if kind is None:
        return Told(None)
    span = SpanData(
        text(observation.get("name")) or "",
        {**attributes, "gen_ai.operation.name": _OPERATIONS[kind]},
        duration_ms=took(observation),
        error=_error(observation),
    )
    reading = reading_of(span)
    assert reading is not None
    if isinstance(reading.call, ToolCall):
        call = _tool_call(reading.call, observation, attributes)
        return Told(Reading("tool", call, sources=("input", "output", *reading.sources)))
    asking = _model_call(reading.call, observation)
    if kind == "embeddings":
        return Told(Reading(kind, asking))
    spoken, is_plain = _said(observation, attributes)
    if spoken.finish is not None and asking.finish_reason is None:
        asking = msgspec.structs.replace(asking, finish_reason=spoken.finish)
    asked, said = tuple(spoken.asked), tuple(spoken.said)
    sources = (*spoken.asked_from, *spoken.said_from)
    return Told(Reading(kind, asking, asked, said, spoken.thoughts, sources), is_plain)


def spoken_of(observation: Mapping[str, Any]) -> Spoken:
    """The messages that went into an observation and came out of it.

    They are looked for in its input and output, then in the attributes of the span that it was.

    >>> spoken_of({"input": [{"role": "user", "content": "Hi"}], "output": "Hello"}).asked
    [Message(role='user', content='Hi')]
    """
    return _said(observation, attributes_of(observation))[0]


def _said(observation: Mapping[str, Any], attributes: Mapping[str, Any]) -> tuple[Spoken, bool]:
    given, answer = observation.get("input"), observation.get("output")
    asked, said = asked_in(given), said_in(answer)
    other = spoken_in(attributes) if asked is None or said is None else Spoken([], [])
    inputs = other.asked if asked is None else asked.messages
    outputs = other.said if said is None else said.messages
    is_plain = not (inputs or outputs)
    if not inputs:
        inputs = _as_text(given, "user")
    asked_from = other.asked_from if asked is None and other.asked else ("input",)
    if not any(message.role == "system" for message in inputs):
        beside = instructions_of(attributes)
        inputs = [*(beside or instructions_in(answer)), *inputs]
        asked_from = (*asked_from, "gen_ai.system_instructions") if beside else asked_from
    endings = [] if said is None else said.endings
    thoughts = [*(asked.thoughts if asked else ()), *(said.thoughts if said else ())]
    return (
        Spoken(
            inputs,
            outputs or _as_text(answer, "assistant"),
            next(iter(endings), other.finish),
            thoughts=tuple(thoughts) or other.thoughts,
            asked_from=asked_from,
            said_from=other.said_from if said is None and other.said else ("output",),
        ),
        is_plain,
    )


def _as_text(given: Any, role: Any) -> list[Message]:
    """A text that is no messages is what was said."""
    words = decoded(given)
    return [Message(role, words)] if isinstance(words, str) and words else []


def attributes_of(observation: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of the span that an observation was, where it was one."""
    return mapping(decoded(mapping(decoded(observation.get("metadata"))).get("attributes")))


def _kind(observation: Mapping[str, Any], attributes: Mapping[str, Any]) -> Kind | None:
    known = _KINDS.get(str(observation.get("type")).upper())
    if known is None:
        known = kind_of(attributes)
    return "tool" if known is None and _gives_tool_message(observation) else known


def _gives_tool_message(observation: Mapping[str, Any]) -> bool:
    """LangChain's tools give back a message of the tool's own."""
    output = mapping(decoded(observation.get("output")))
    return output.get("type") == "tool" and text(output.get("tool_call_id")) is not None


def _tool_call(
    call: ToolCall, observation: Mapping[str, Any], attributes: Mapping[str, Any]
) -> ToolCall:
    given, answer = decoded(observation.get("input")), decoded(observation.get("output"))
    inner = mapping(given).get("input")
    if "langsmith.span.kind" in attributes and isinstance(inner, dict) and len(given) == 1:
        # LangSmith puts the arguments of a tool under this name.
        given = inner
    if not isinstance(given, dict):
        # LangChain writes them as Python, and beside them as they are.
        given = mapping(decoded(observation.get("metadata"))).get("inputs") or given
    result = call.result
    call_id, error = call.call_id, call.error
    if _gives_tool_message(observation):
        message = mapping(answer)
        answer = message.get("content")
        call_id = call_id or text_or_none(message.get("tool_call_id"))
        if message.get("status") == "error" and error is None:
            error = str(answer)
    return ToolCall(
        call.name,
        call.arguments or arguments_in(given),
        plain(answer) if result is None else result,
        error,
        call.duration_ms,
        call_id,
    )


def _model_call(call: ModelCall, observation: Mapping[str, Any]) -> ModelCall:
    usage = usage_of(observation)
    return msgspec.structs.replace(
        call,
        model=text(observation.get("model")) or call.model,
        usage=call.usage if usage is None else usage,
    )


def took(row: Mapping[str, Any]) -> float | None:
    """How many milliseconds something took: by its times, or as it says, in seconds.

    >>> took({"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-01T00:00:01.5Z"})
    1500.0
    """
    began, ended = moment(row.get("startTime")), moment(row.get("endTime"))
    if began is not None and ended is not None and ended >= began:
        return (ended - began).total_seconds() * 1e3
    lasted = amount(row.get("latency"))
    return None if lasted is None else lasted * 1e3


def _error(observation: Mapping[str, Any]) -> str | None:
    if observation.get("level") != "ERROR":
        return None
    said = observation.get("statusMessage")
    return "" if said is None else str(said)


def is_blank(value: Any) -> bool:
    """True for what tells nothing."""
    return value is None or (isinstance(value, str | Sequence | Mapping) and not value)
