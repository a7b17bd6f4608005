"""A finished span becomes events of a session, by the GenAI conventions of OpenTelemetry.

Understood are the conventions themselves, old and new, and what OpenInference and OpenLLMetry
write instead. Everything here is a function of plain data, wherever the span came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from proctor.records.session import Event, Message, ModelCall, ToolCall, Usage
from proctor.telemetry.messages import arguments_in, decoded, spoken_in

Kind = Literal["model", "embeddings", "tool"]

# An operation that is not here, such as `invoke_agent`, is made of those that are.
_OPERATIONS: dict[str, Kind] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content", "completion"), "model"),
    **dict.fromkeys(("embeddings", "embedding"), "embeddings"),
    **dict.fromkeys(("execute_tool", "tool"), "tool"),
    "llm": "model",
}
_TELL_KIND = (
    "gen_ai.operation.name",
    "openinference.span.kind",
    "llm.request.type",
    "traceloop.span.kind",
)
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
)
_CACHED = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "llm.token_count.prompt_details.cache_read",
)
_COST = ("operation.cost", "gen_ai.usage.cost", "llm.cost.total")
_MODEL = ("gen_ai.request.model", "llm.model_name", "gen_ai.response.model")
# Our word for it, where another is in use.
_FINISH = dict.fromkeys(("tool_call", "tool-calls", "tool_use"), "tool_calls")
_TOOL = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "gcp.vertex.agent.tool_call_args",
    "input.value",
    "tool.parameters",
    "traceloop.entity.input",
)
_RESULT = (
    "gen_ai.tool.call.result",
    "tool_response",
    "gcp.vertex.agent.tool_response",
    "output.value",
    "traceloop.entity.output",
)


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

    The messages of a call repeat the conversation so far; see `Transcript`.
    """

    kind: Kind
    call: ModelCall | ToolCall
    asked: tuple[Message, ...] = ()
    said: tuple[Message, ...] = ()

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
        return Reading("tool", _tool_call(span))
    if kind == "embeddings":
        return Reading(kind, _model_call(span, details={"operation": "embeddings"}))
    spoken = spoken_in(span.attributes, [(e.name, e.attributes) for e in span.events])
    details = {"unreadable": list(spoken.unreadable)} if spoken.unreadable else {}
    call = _model_call(span, spoken.finish, details)
    return Reading(kind, call, tuple(spoken.asked), tuple(spoken.said))


def kind_of(attributes: Mapping[str, Any]) -> Kind | None:
    """Whether a span is a call of a model or of a tool, or neither.

    >>> kind_of({"openinference.span.kind": "LLM"}), kind_of({"http.request.method": "POST"})
    ('model', None)
    """
    for name in _TELL_KIND:
        told = attributes.get(name)
        if isinstance(told, str) and told:
            return _OPERATIONS.get(told.casefold())
    if "gen_ai.tool.name" in attributes:
        return "tool"
    # Before operations had names, the system and the model that was asked for were all there was.
    return "model" if {"gen_ai.system", "gen_ai.request.model"} <= attributes.keys() else None


def _model_call(
    span: SpanData, finish: str | None = None, details: dict[str, Any] | None = None
) -> ModelCall:
    attributes = span.attributes
    model = str(_first(attributes, _MODEL) or "unknown")
    told = dict(details or {})
    answered = attributes.get("gen_ai.response.model")
    if isinstance(answered, str) and answered != model:
        told["response_model"] = answered
    error = _error(span)
    if error is not None:
        told["error"] = error
    reasons = decoded(attributes.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, Sequence) and not isinstance(reasons, str) and reasons:
        finish = str(reasons[0])
    usage = Usage(
        _count(attributes, _INPUT),
        _count(attributes, _OUTPUT),
        _count(attributes, _CACHED),
        _amount(attributes),
    )
    if finish is not None:
        finish = _FINISH.get(finish, finish)
    return ModelCall(model, usage, span.duration_ms, finish, told)


def _tool_call(span: SpanData) -> ToolCall:
    attributes = span.attributes
    bare = span.name.removeprefix("execute_tool ").removeprefix("running tool: ")
    call_id = attributes.get("gen_ai.tool.call.id")
    return ToolCall(
        str(_first(attributes, _TOOL) or bare),
        arguments_in(_first(attributes, _ARGUMENTS)),
        decoded(_first(attributes, _RESULT)),
        _error(span),
        span.duration_ms,
        None if call_id is None else str(call_id),
    )


def _error(span: SpanData) -> str | None:
    """Why it failed: what its status says, with the kind of error where one is told."""
    kind = span.attributes.get("error.type")
    if span.error is None and kind is None:
        return None
    words = [str(word) for word in (kind, span.error) if word]
    return ": ".join(words) or "it failed, and nothing tells why"


def _first(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _count(attributes: Mapping[str, Any], names: Sequence[str]) -> int | None:
    found = _first(attributes, names)
    if isinstance(found, str) and found.isdecimal():
        # OTLP writes whole numbers as text in JSON, and some exports leave them so.
        return int(found)
    if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
        return None
    return int(found)


def _amount(attributes: Mapping[str, Any]) -> float | None:
    found = _first(attributes, _COST)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found)
