"""The wire format of OpenAI and compatible servers."""

from __future__ import annotations

import base64
import dataclasses
import re
from array import array
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from proctor.records.model import TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.testing import wire_format as wire
from proctor.testing.schema_instance import iter_subschemas
from proctor.testing.wire_format import HttpError, RecordedRequest, ScriptedReply, WireFormat

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ERROR_TYPES = {403: "permission_error", 429: "rate_limit_error"}
_ERROR_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


class _Function(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool | None = None


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["function"]
    function: _Function


class _CalledFunction(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct):
    id: str
    type: Literal["function"]
    function: _CalledFunction


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _Schema(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    schema: dict[str, Any]
    strict: bool | None = None
    description: str | None = None


class _Format(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _Schema | None = None


class _ChatRequest(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    messages: list[_Message]
    tools: list[_Tool] = []
    tool_choice: str | dict[str, Any] = "auto"
    response_format: _Format | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    seed: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    n: int | None = None
    stream: bool | None = None


_IGNORED = frozenset(
    {"frequency_penalty", "logit_bias", "metadata", "parallel_tool_calls", "presence_penalty"}
    | {"prompt_cache_key", "reasoning_effort", "safety_identifier", "service_tier", "stop", "store"}
    | {"top_p", "user", "verbosity"}
)


class _EmbeddingsRequest(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None


def _convert_chat(chat: _ChatRequest, recorded: RecordedRequest) -> RecordedRequest:
    _check(chat)
    schema = chat.response_format.json_schema if chat.response_format is not None else None
    functions = [tool.function for tool in chat.tools]
    tools = tuple(ToolSpec(function.name, function.description, function.parameters) for function in functions)
    return msgspec.structs.replace(
        recorded,
        model=chat.model,
        messages=tuple(_convert_message(message) for message in chat.messages),
        schema=None if schema is None else schema.schema,
        tools=tools,
        must_call=_find_required_tool(chat.tool_choice, tools),
        settings=wire.drop_unset(
            temperature=chat.temperature,
            max_tokens=chat.max_completion_tokens or chat.max_tokens,
            seed=chat.seed,
            top_logprobs=(chat.top_logprobs or 0) if chat.logprobs else None,
        ),
    )


def _convert_embeddings(request: _EmbeddingsRequest, recorded: RecordedRequest) -> RecordedRequest:
    texts = (request.input,) if isinstance(request.input, str) else tuple(request.input)
    is_empty = not texts or "" in texts
    wire.reject_if(is_empty, "'$.input' is invalid: neither it nor a text in it may be empty")
    settings = wire.drop_unset(dimensions=request.dimensions)
    return msgspec.structs.replace(recorded, model=request.model, settings=settings, texts=texts)


def _check(chat: _ChatRequest) -> None:
    temperature, top_logprobs, response_format = chat.temperature, chat.top_logprobs, chat.response_format
    wire.reject_if(not chat.messages, "[] is too short - 'messages'")
    wire.reject_if(chat.stream or (chat.n or 1) > 1, "this server neither streams nor gives several choices")
    is_out_of_range = temperature is not None and not 0 <= temperature <= 2
    wire.reject_if(is_out_of_range, "'temperature' must be between 0 and 2")
    has_two_limits = chat.max_tokens is not None and chat.max_completion_tokens is not None
    wire.reject_if(has_two_limits, "'max_tokens' and 'max_completion_tokens' exclude each other")
    has_bad_logprobs = top_logprobs is not None and not (chat.logprobs and 0 <= top_logprobs <= 20)
    wire.reject_if(has_bad_logprobs, "'top_logprobs' must be 0 to 20 and needs 'logprobs'")
    pending: set[str | None] = set()
    for message in chat.messages:
        if message.role == "tool":
            is_unknown = message.tool_call_id not in pending
            wire.reject_if(is_unknown, "a message with role 'tool' must answer a preceding tool call")
            pending.discard(message.tool_call_id)
        else:
            wire.reject_if(pending, f"tool calls were not answered: {', '.join(sorted(map(str, pending)))}")
        pending |= {call.id for call in message.tool_calls or ()}
    if response_format is not None and response_format.type == "json_schema":
        _check_schema(response_format.json_schema)


def _check_schema(schema: _Schema | None) -> None:
    if schema is None or not _NAME.fullmatch(schema.name):
        raise HttpError(400, "'response_format.json_schema' needs a name of letters, digits, _ and -")
    for inner in iter_subschemas(schema.schema) if schema.strict else ():
        if inner.get("type") == "object" or "properties" in inner:
            is_open = inner.get("additionalProperties") is not False
            wire.reject_if(is_open, "Invalid schema: 'additionalProperties' must be false")
            is_partial = set(inner.get("required", ())) != set(inner.get("properties", {}))
            wire.reject_if(is_partial, "Invalid schema: 'required' must name every key in properties")


def _convert_message(message: _Message) -> Message:
    return Message(
        "system" if message.role == "developer" else message.role,
        wire.join_text(message.content) if message.content is not None else "",
        name=message.name,
        tool_calls=tuple(_convert_call(call) for call in message.tool_calls or ()),
        call_id=message.tool_call_id,
    )


def _convert_call(call: _Call) -> ToolCall:
    try:
        arguments = msgspec.json.decode(call.function.arguments, type=dict[str, Any])
    except msgspec.DecodeError:
        raise HttpError(400, f"the arguments of {call.function.name!r} are not JSON") from None
    return ToolCall(call.function.name, arguments, call_id=call.id)


def _find_required_tool(choice: str | dict[str, Any], tools: tuple[ToolSpec, ...]) -> str | None:
    if isinstance(choice, dict):
        return str(choice.get("function", {}).get("name"))
    return tools[0].name if choice == "required" and tools else None


def _render_message(request: RecordedRequest, reply: ScriptedReply, finish_reason: str) -> dict[str, Any]:
    has_no_text = reply.refusal is not None or (reply.tool_calls and not reply.text)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if has_no_text else reply.text,
        "refusal": reply.refusal,
    }
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
            }
            for call_id, call in wire.number_calls(reply.tool_calls, f"call_{request.number}_")
        ]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": _render_logprobs(request, reply.logprobs),
        "finish_reason": finish_reason,
    }
    return {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [choice],
    }


def _render_logprobs(request: RecordedRequest, logprobs: tuple[TokenLogprobs, ...]) -> dict[str, Any] | None:
    if "top_logprobs" not in request.settings or not logprobs:
        return None
    tokens = []
    for logprob in logprobs:
        alternatives = [_render_token(*alternative) for alternative in wire.top_alternatives(request, logprob)]
        tokens.append({**_render_token(logprob.token, logprob.logprob), "top_logprobs": alternatives})
    return {"content": tokens, "refusal": None}


def _render_token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def _render_usage(usage: Usage) -> dict[str, Any]:
    return {
        "usage": {
            "prompt_tokens": usage.input_tokens or 0,
            "completion_tokens": usage.output_tokens or 0,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        }
    }


def render_embeddings(request: RecordedRequest, vectors: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Render a list of embeddings, as numbers or in base64 as the official client requests them."""
    encode = _to_base64 if request.body.get("encoding_format") == "base64" else list
    words = sum(len(text.split()) for text in request.texts)
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": encode(vector)} for index, vector in enumerate(vectors)
        ],
        "model": request.model,
        "usage": {"prompt_tokens": words, "total_tokens": words},
    }


def _to_base64(vector: Sequence[float]) -> str:
    return base64.b64encode(array("f", vector).tobytes()).decode()


def _render_models(names: tuple[str, ...]) -> dict[str, Any]:
    models = [{"id": name, "object": "model", "created": 0, "owned_by": "loopback"} for name in names]
    return {"object": "list", "data": models}


def _render_error(code: int, message: str) -> dict[str, Any]:
    error_type = _ERROR_TYPES.get(code, "server_error" if code >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": error_type, "param": None, "code": _ERROR_CODES.get(code)}}


OPENAI = WireFormat(
    "openai",
    lambda http: (http.method, http.path) in (("GET", "/v1/models"), ("POST", "/v1/chat/completions")),
    _ChatRequest,
    _IGNORED,
    "authorization",
    {"refusal": "stop"},
    _convert_chat,
    _render_message,
    _render_usage,
    _render_models,
    _render_error,
)
EMBEDDINGS = dataclasses.replace(
    OPENAI,
    serves=lambda http: (http.method, http.path) == ("POST", "/v1/embeddings"),
    request_type=_EmbeddingsRequest,
    ignored=frozenset(),
    convert=_convert_embeddings,
)
