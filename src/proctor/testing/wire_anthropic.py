"""The wire format of Anthropic's Messages API."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from proctor.records.model import ToolSpec
from proctor.records.session import Message, ToolCall
from proctor.testing.exchange import Asked, Received, Refused, Said, body_of, counted, given, joined
from proctor.testing.fitting import objects_in

_FINISH = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
# Its structured outputs do not know these.
_UNKNOWN = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "maxItems"}
)


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: str | list[dict[str, Any]]


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    input_schema: dict[str, Any]
    description: str = ""
    type: str | None = None
    strict: bool | None = None
    cache_control: Any = None


class _Format(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["json_schema"]
    schema: dict[str, Any]


class _Output(msgspec.Struct, forbid_unknown_fields=True):
    format: _Format | None = None
    effort: str | None = None


class _Choice(msgspec.Struct):
    type: Literal["auto", "any", "tool", "none"] = "auto"
    name: str | None = None


class _Ask(msgspec.Struct, forbid_unknown_fields=True):
    """Everything that a request may hold; what the server does not need is not looked into."""

    model: str
    max_tokens: int
    messages: list[_Message]
    system: str | list[dict[str, Any]] = ""
    tools: list[_Tool] = []
    tool_choice: _Choice = msgspec.field(default_factory=_Choice)
    output_config: _Output | None = None
    output_format: _Format | None = None
    temperature: float | None = None
    stream: bool | None = None
    cache_control: Any = None
    metadata: Any = None
    service_tier: Any = None
    stop_sequences: Any = None
    thinking: Any = None
    top_k: Any = None
    top_p: Any = None


def key(headers: dict[str, str]) -> str:
    """The key that was sent, or nothing."""
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def read(received: Received) -> Asked:
    """A request for a message."""
    body, ask = body_of(received, _Ask)
    schema = _schema(ask)
    _check(ask, schema, received.headers)
    tools = tuple(ToolSpec(tool.name, tool.description, tool.input_schema) for tool in ask.tools)
    system = joined(ask.system) if isinstance(ask.system, list) else ask.system
    messages = [Message("system", system)] if system else []
    for message in ask.messages:
        messages += _messages(message)
    return Asked(
        wire="anthropic",
        path=received.path,
        model=ask.model,
        messages=tuple(messages),
        schema=schema,
        tools=tools,
        must_call=_must_call(ask.tool_choice, tools),
        settings=given(temperature=ask.temperature, max_tokens=ask.max_tokens),
        headers=received.headers,
        body=body,
        number=received.number,
    )


def _schema(ask: _Ask) -> dict[str, Any] | None:
    form = ask.output_config.format if ask.output_config is not None else None
    form = form or ask.output_format
    return None if form is None else form.schema


def _check(ask: _Ask, schema: dict[str, Any] | None, headers: dict[str, str]) -> None:
    """Refuse what the real server refuses."""
    if "anthropic-version" not in headers:
        raise Refused(400, "anthropic-version: header is required")
    if not ask.messages or ask.messages[0].role != "user":
        raise Refused(400, "messages: first message must use the 'user' role")
    if ask.max_tokens < 1:
        raise Refused(400, "max_tokens: must be greater than or equal to 1")
    if ask.stream:
        raise Refused(400, "this server does not stream")
    if ask.temperature is not None and not 0 <= ask.temperature <= 1:
        raise Refused(400, "temperature: must be between 0 and 1")
    _check_calls(ask.messages)
    for inner in objects_in(schema):
        unknown = _UNKNOWN & set(inner)
        if unknown:
            raise Refused(400, f"output_config.format.schema: {sorted(unknown)} not supported")
        if inner.get("type") == "object" and inner.get("additionalProperties") is not False:
            raise Refused(400, "output_config.format.schema: 'additionalProperties' must be set to false")


def _check_calls(messages: list[_Message]) -> None:
    waiting: set[str] = set()
    for message in messages:
        answered = {block.get("tool_use_id") for block in _blocks(message, "tool_result")}
        if answered != waiting:
            raise Refused(400, "tool_use blocks and the tool_result blocks after them differ")
        waiting = {str(block.get("id")) for block in _blocks(message, "tool_use")}


def _blocks(message: _Message, kind: str) -> list[dict[str, Any]]:
    if isinstance(message.content, str):
        return []
    return [block for block in message.content if block.get("type") == kind]


def _messages(message: _Message) -> list[Message]:
    """One message of theirs holds the results of tools beside what the user says."""
    if isinstance(message.content, str):
        return [Message(message.role, message.content)]
    told = [
        Message("tool", _result(block), call_id=block["tool_use_id"])
        for block in _blocks(message, "tool_result")
    ]
    calls = tuple(
        ToolCall(block["name"], block["input"], call_id=block["id"]) for block in _blocks(message, "tool_use")
    )
    rest = [block for block in message.content if block.get("type") not in ("tool_result", "tool_use")]
    if rest or calls:
        told.append(Message(message.role, joined(rest), tool_calls=calls))
    return told


def _result(block: dict[str, Any]) -> Any:
    content = block.get("content", "")
    return joined(content) if isinstance(content, list) else content


def _must_call(choice: _Choice, tools: tuple[ToolSpec, ...]) -> str | None:
    if choice.type == "tool":
        return choice.name
    return tools[0].name if choice.type == "any" and tools else None


def answer(asked: Asked, said: Said) -> dict[str, Any]:
    """A message of the assistant."""
    content: list[dict[str, Any]] = []
    if said.text and said.refusal is None:
        content.append({"type": "text", "text": said.text, "citations": None})
    content += [
        {
            "type": "tool_use",
            "id": call.call_id or f"toolu_{asked.number}_{place}",
            "name": call.name,
            "input": call.arguments,
        }
        for place, call in enumerate(said.tool_calls)
    ]
    refused = {"type": "refusal", "category": None, "explanation": said.refusal}
    return {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": _FINISH.get(said.reason, said.reason),
        "stop_sequence": None,
        "stop_details": None if said.refusal is None else refused,
        **_usage(asked, said),
    }


def _usage(asked: Asked, said: Said) -> dict[str, Any]:
    used = counted(asked, said)
    if used.total_tokens is None:
        return {}
    cached = used.cached_tokens or 0
    return {
        "usage": {
            # Theirs does not count again what was read from the cache.
            "input_tokens": (used.input_tokens or 0) - cached,
            "output_tokens": used.output_tokens or 0,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
        }
    }


def models(names: tuple[str, ...]) -> dict[str, Any]:
    """The list of models."""
    listed = [
        {
            "id": name,
            "type": "model",
            "display_name": name,
            "created_at": "2025-01-01T00:00:00Z",
            "lifecycle": "active",
        }
        for name in names
    ]
    ends = {"first_id": names[0], "last_id": names[-1]} if names else {}
    return {"data": listed, "has_more": False, "first_id": None, "last_id": None, **ends}


def error(code: int, message: str) -> dict[str, Any]:
    """An error as the real server words it."""
    kind = _TYPES.get(code, "api_error" if code >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_loopback"}
