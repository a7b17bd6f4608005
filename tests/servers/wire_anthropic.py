"""The wire format of Anthropic's Messages API."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from proctor.records.model import ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.testing import wire_format as wire
from proctor.testing.schema_instance import iter_subschemas
from proctor.testing.wire_format import RecordedRequest, ScriptedReply, WireFormat

_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
# Keywords that structured outputs do not support.
_UNSUPPORTED = frozenset(
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


class _MessagesRequest(msgspec.Struct, forbid_unknown_fields=True):
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


_IGNORED = frozenset({"cache_control", "metadata", "service_tier", "stop_sequences", "thinking", "top_k", "top_p"})


def _convert_request(request: _MessagesRequest, recorded: RecordedRequest) -> RecordedRequest:
    output_format = (request.output_config or _Output()).format or request.output_format
    schema = None if output_format is None else output_format.schema
    _check(request, schema, recorded.headers)
    tools = tuple(ToolSpec(tool.name, tool.description, tool.input_schema) for tool in request.tools)
    system = wire.join_text(request.system)
    messages = [Message("system", system)] if system else []
    for message in request.messages:
        messages += _convert_message(message)
    choice = request.tool_choice
    any_tool = tools[0].name if choice.type == "any" and tools else None
    return msgspec.structs.replace(
        recorded,
        model=request.model,
        messages=tuple(messages),
        schema=schema,
        tools=tools,
        must_call=choice.name if choice.type == "tool" else any_tool,
        settings=wire.drop_unset(temperature=request.temperature, max_tokens=request.max_tokens),
    )


def _check(request: _MessagesRequest, schema: dict[str, Any] | None, headers: dict[str, str]) -> None:
    messages, temperature = request.messages, request.temperature
    wire.reject_if("anthropic-version" not in headers, "anthropic-version: header is required")
    starts_with_user = messages and messages[0].role == "user"
    wire.reject_if(not starts_with_user, "messages: first message must use the 'user' role")
    wire.reject_if(request.max_tokens < 1, "max_tokens must be greater than or equal to 1")
    wire.reject_if(request.stream, "this server does not stream")
    is_out_of_range = temperature is not None and not 0 <= temperature <= 1
    wire.reject_if(is_out_of_range, "temperature must be between 0 and 1")
    pending: set[str] = set()
    for message in messages:
        answered = {block.get("tool_use_id") for block in _blocks(message, "tool_result")}
        wire.reject_if(answered != pending, "tool_use blocks and the tool_result blocks after them differ")
        pending = {str(block.get("id")) for block in _blocks(message, "tool_use")}
    path = "output_config.format.schema"
    for inner in iter_subschemas(schema):
        unsupported = sorted(_UNSUPPORTED & set(inner))
        wire.reject_if(unsupported, f"{path}: {unsupported} not supported")
        is_open = inner.get("type") == "object" and inner.get("additionalProperties") is not False
        wire.reject_if(is_open, f"{path}: 'additionalProperties' must be set to false")


def _blocks(message: _Message, block_type: str) -> list[dict[str, Any]]:
    if isinstance(message.content, str):
        return []
    return [block for block in message.content if block.get("type") == block_type]


def _convert_message(message: _Message) -> list[Message]:
    """Split a message into tool results, which Anthropic puts into user messages, and the rest."""
    if isinstance(message.content, str):
        return [Message(message.role, message.content)]
    messages = [
        Message("tool", wire.join_text(block.get("content", "")), call_id=block["tool_use_id"])
        for block in _blocks(message, "tool_result")
    ]
    calls = tuple(
        ToolCall(block["name"], block["input"], call_id=block["id"]) for block in _blocks(message, "tool_use")
    )
    rest = [block for block in message.content if block.get("type") not in ("tool_result", "tool_use")]
    if rest or calls:
        messages.append(Message(message.role, wire.join_text(rest), tool_calls=calls))
    return messages


def _render_message(request: RecordedRequest, reply: ScriptedReply, finish_reason: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if reply.text and reply.refusal is None:
        content.append({"type": "text", "text": reply.text, "citations": None})
    content += [
        {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments}
        for call_id, call in wire.number_calls(reply.tool_calls, f"toolu_{request.number}_")
    ]
    refusal = {"type": "refusal", "category": None, "explanation": reply.refusal}
    return {
        "id": f"msg_{request.number}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": finish_reason,
        "stop_sequence": None,
        "stop_details": None if reply.refusal is None else refusal,
    }


def _render_usage(usage: Usage) -> dict[str, Any]:
    cached = usage.cached_tokens or 0
    return {
        "usage": {
            # Anthropic does not count cached tokens as input tokens.
            "input_tokens": (usage.input_tokens or 0) - cached,
            "output_tokens": usage.output_tokens or 0,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
        }
    }


def _render_models(names: tuple[str, ...]) -> dict[str, Any]:
    models = [
        {"id": name, "type": "model", "display_name": name, "created_at": "2025-01-01T00:00:00Z", "lifecycle": "active"}
        for name in names
    ]
    ends = {"first_id": names[0], "last_id": names[-1]} if names else {}
    return {"data": models, "has_more": False, "first_id": None, "last_id": None, **ends}


def _render_error(code: int, message: str) -> dict[str, Any]:
    error_type = _ERROR_TYPES.get(code, "api_error" if code >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": error_type, "message": message}, "request_id": "req_loopback"}


ANTHROPIC = WireFormat(
    "anthropic",
    lambda http: (
        (http.method == "GET" and http.path == "/v1/models" and "anthropic-version" in http.headers)
        or (http.method, http.path) == ("POST", "/v1/messages")
    ),
    _MessagesRequest,
    _IGNORED,
    "x-api-key",
    {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"},
    _convert_request,
    _render_message,
    _render_usage,
    _render_models,
    _render_error,
)
