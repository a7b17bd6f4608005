"""A finished span becomes events of a session, by the GenAI conventions of OpenTelemetry.

Understood are the conventions themselves, old and new, and what OpenInference, OpenLLMetry,
LangSmith and the Vercel AI SDK write instead. Everything here is a function of plain data, wherever
the span came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.numbers import MOST_COST, token_count
from proctor.records.session import Event, Message, ModelCall, ToolCall, Usage
from proctor.sessions.genai import values as names
from proctor.sessions.genai.messages import spoken_in
from proctor.sessions.genai.values import Kind, arguments_in, decoded, text_or_none

# More digits than any number of tokens has.
_MOST_DIGITS = 15


class SpanEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that a span noted on its way."""

    name: str
    attributes: dict[str, Any] = {}


class SpanData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A finished span as plain data; `error` is what its status says, if it failed."""

    name: str
    attributes: dict[str, Any] = {}
    events: tuple[SpanEvent, ...] = ()
    duration_ms: float | None = None
    error: str | None = None


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a span tells: `call` was made; a model was `asked` the messages and has `said` others.

    The messages of a call repeat the conversation so far; see `Transcript`. `thoughts` are what it
    thought and did not say. `sources` name the attributes that this was read from; see `Spoken`.
    """

    kind: Kind
    call: ModelCall | ToolCall
    asked: tuple[Message, ...] = ()
    said: tuple[Message, ...] = ()
    thoughts: tuple[Any, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def events(self) -> list[Event]:
        """All of it as events of a session, in order."""
        return [*self.asked, *self.said, self.call]


def reading_of(span: SpanData) -> Reading | None:
    """What a span tells of a model or a tool; None for any other span.

    >>> span = SpanData("chat", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"})
    >>> reading_of(span).call.model
    'small'
    """
    kind = kind_of(span.attributes)
    if kind is None:
        return None
    if kind == "tool":
        read = (_first_name(span.attributes, given) for given in (names.ARGUMENTS, names.RESULT))
        return Reading("tool", _tool_call(span), sources=tuple(name for name in read if name))
    if kind == "embeddings":
        return Reading(kind, _model_call(span, details={"operation": "embeddings"}))
    spoken = spoken_in(span.attributes, [(e.name, e.attributes) for e in span.events])
    details = {"unreadable": list(spoken.unreadable)} if spoken.unreadable else {}
    call = _model_call(span, spoken.finish, details)
    sources = (*spoken.asked_from, *spoken.said_from)
    return Reading(kind, call, tuple(spoken.asked), tuple(spoken.said), spoken.thoughts, sources)


def kind_of(attributes: Mapping[str, Any]) -> Kind | None:
    """Whether a span is a call of a model or of a tool, or neither.

    >>> kind_of({"openinference.span.kind": "LLM"}), kind_of({"http.request.method": "POST"})
    ('model', None)
    """
    told = operation_of(attributes)
    if told is not None:
        return names.OPERATIONS.get(told)
    if "gen_ai.tool.name" in attributes:
        return "tool"
    # Before operations had names, the system and the model that was asked for were all there was.
    return "model" if {"gen_ai.system", "gen_ai.request.model"} <= attributes.keys() else None


def operation_of(attributes: Mapping[str, Any]) -> str | None:
    """What a span says that it does, in small letters; None if it does not say.

    >>> operation_of({"openinference.span.kind": "CHAIN"})
    'chain'
    """
    told = (attributes.get(name) for name in names.TELL_KIND)
    return next((one.casefold() for one in told if isinstance(one, str) and one), None)


def stands_around(attributes: Mapping[str, Any]) -> bool:
    """True for spans of agents, chains and the like, which are made of calls.

    >>> stands_around({"gen_ai.operation.name": "invoke_agent"})
    True
    """
    return operation_of(attributes) in names.AROUND


def _model_call(
    span: SpanData, finish: str | None = None, details: dict[str, Any] | None = None
) -> ModelCall:
    attributes = span.attributes
    model = str(_first(attributes, names.MODEL) or "unknown")
    told = dict(details or {})
    answered = _first(attributes, names.ANSWERED)
    if isinstance(answered, str) and answered != model:
        told["response_model"] = answered
    error = _error(span)
    if error is not None:
        told["error"] = error
    reasons = decoded(_first(attributes, names.FINISHED))
    if isinstance(reasons, str):
        finish = reasons or finish
    elif isinstance(reasons, Sequence) and reasons:
        finish = str(reasons[0])
    usage = Usage(
        _count(attributes, names.INPUT),
        _count(attributes, names.OUTPUT),
        _count(attributes, names.CACHED),
        _amount(attributes),
        _count(attributes, names.CACHE_WRITTEN),
    )
    if finish is not None:
        finish = names.FINISH.get(finish, finish)
    return ModelCall(model, usage, span.duration_ms, finish, told)


def _tool_call(span: SpanData) -> ToolCall:
    attributes = span.attributes
    bare = span.name.removeprefix("execute_tool ").removeprefix("running tool: ")
    return ToolCall(
        str(_first(attributes, names.TOOL) or bare),
        arguments_in(_first(attributes, names.ARGUMENTS)),
        decoded(_first(attributes, names.RESULT)),
        _error(span),
        span.duration_ms,
        text_or_none(_first(attributes, names.CALL_ID)),
    )


def _error(span: SpanData) -> str | None:
    """Why it failed: what its status says, with the kind of error where one is told."""
    kind = span.attributes.get("error.type")
    if span.error is None and kind is None:
        return None
    words = [str(word) for word in (kind, span.error) if word]
    return ": ".join(words) or "it failed, and nothing tells why"


def _first(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    name = _first_name(attributes, names)
    return None if name is None else attributes[name]


def _first_name(attributes: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if attributes.get(name) is not None), None)


def _count(attributes: Mapping[str, Any], names: Sequence[str]) -> int | None:
    found = _first(attributes, names)
    if isinstance(found, str) and found.isdecimal() and len(found) <= _MOST_DIGITS:
        # OTLP writes whole numbers as text in JSON, and some exports leave them so.
        found = int(found)
    return token_count(found)


def _amount(attributes: Mapping[str, Any]) -> float | None:
    found = _first(attributes, names.COST)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found <= MOST_COST else None
