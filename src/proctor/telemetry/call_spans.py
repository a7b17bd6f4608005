"""The calls that a session tells of, as spans with the GenAI attributes of OpenTelemetry.

A session keeps how long a call took, not when it began: calls are laid end to end from the start,
or all begin with it where together they took longer than there was time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from proctor import codec
from proctor.records.session import Event, Message, ModelCall, ToolCall

Cut = Callable[[str], str]


class CallSpan(NamedTuple):
    """One call, ready to be emitted; times are in nanoseconds since 1970."""

    name: str
    attributes: dict[str, Any]
    began: int
    ended: int
    error: str | None
    is_remote: bool


def emit_calls(
    events: Sequence[Event], began: int, ended: int, cut: Cut | None
) -> Iterator[CallSpan]:
    """A span for each call among the events; `cut` shortens contents, None leaves them out."""
    calls = [event for event in events if isinstance(event, ModelCall | ToolCall)]
    in_turn = sum(map(_took, calls)) <= ended - began
    messages: list[Message] = []
    at = began
    for event in events:
        if isinstance(event, Message):
            messages.append(event)
            continue
        if not isinstance(event, ModelCall | ToolCall):
            continue
        if isinstance(event, ModelCall):
            name, attributes, error = _model(event, messages, cut)
            messages = []
        else:
            name, attributes, error = _tool(event, cut)
        yield CallSpan(name, attributes, at, at + _took(event), error, isinstance(event, ModelCall))
        if in_turn:
            at += _took(event)


def _took(call: ModelCall | ToolCall) -> int:
    lasted = call.latency_ms if isinstance(call, ModelCall) else call.duration_ms
    return max(0, int((lasted or 0.0) * 1e6))


def _model(
    call: ModelCall, messages: Sequence[Message], cut: Cut | None
) -> tuple[str, dict[str, Any], str | None]:
    error = call.details.get("error")
    usage = call.usage
    operation = str(call.details.get("operation", "chat"))
    about = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": call.model,
        "gen_ai.provider.name": _provider(call.model),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cost": usage.cost,
        "gen_ai.response.finish_reasons": [call.finish_reason] if call.finish_reason else None,
        "openinference.span.kind": "LLM" if operation == "chat" else "EMBEDDING",
        "error.type": "call_failed" if error is not None else None,
    }
    if cut is not None:
        asked = [message for message in messages if message.role != "assistant"]
        said = [message for message in messages if message.role == "assistant"]
        about["gen_ai.input.messages"] = _written(asked, cut)
        about["gen_ai.output.messages"] = _written(said, cut)
    return f"{operation} {call.model}", _known(about), None if error is None else str(error)


def _provider(model: str) -> str | None:
    """Who answers to the address of a model, where the address tells it."""
    name, colon, _ = model.partition(":")
    return name if colon and name not in ("http", "https") else None


def _tool(call: ToolCall, cut: Cut | None) -> tuple[str, dict[str, Any], str | None]:
    about: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.call_id,
        "openinference.span.kind": "TOOL",
        "error.type": None if call.error is None else "tool_failed",
    }
    if cut is not None:
        about["gen_ai.tool.call.arguments"] = cut(_json(call.arguments))
        if call.error is None:
            about["gen_ai.tool.call.result"] = cut(_json(call.result))
    return f"execute_tool {call.name}", _known(about), call.error


def _written(messages: Sequence[Message], cut: Cut) -> str | None:
    """Messages as the conventions want them; long texts are cut, so that the JSON stays whole."""
    return _json([_message(message, cut) for message in messages]) if messages else None


def _message(message: Message, cut: Cut) -> dict[str, Any]:
    content = message.content if isinstance(message.content, str) else _json(message.content)
    parts: list[dict[str, Any]] = []
    if message.role == "tool":
        parts.append(
            {"type": "tool_call_response", "id": message.call_id, "response": cut(content)}
        )
    elif message.content:
        parts.append({"type": "text", "content": cut(content)})
    for call in message.tool_calls:
        asked = {"type": "tool_call", "id": call.call_id, "name": call.name}
        parts.append({**asked, "arguments": call.arguments})
    return {"role": message.role, "parts": parts}


def _json(value: Any) -> str:
    try:
        return codec.encode(value).decode()
    except codec.UNWRITABLE:
        return f'"({type(value).__name__}, which cannot be written)"'


def _known(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
