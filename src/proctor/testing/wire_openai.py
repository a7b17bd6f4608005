"""The wire format of OpenAI and of the servers that are compatible with it."""

from __future__ import annotations

import base64
import re
from array import array
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from proctor.records.model import TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall
from proctor.testing.exchange import Asked, Received, Refused, Said, body_of, counted, given, joined
from proctor.testing.fitting import objects_in

EMBEDDINGS = "/embeddings"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FINISH = {"refusal": "stop"}
_TYPES = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    403: "permission_error",
    404: "invalid_request_error",
    429: "rate_limit_error",
}
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


class _Function(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool | None = None


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["function"]
    function: _Function


class _Called(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct):
    id: str
    type: Literal["function"]
    function: _Called


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


class _Chat(msgspec.Struct, forbid_unknown_fields=True):
    """Everything that a request may hold; what the server does not need is not looked into."""

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
    frequency_penalty: Any = None
    logit_bias: Any = None
    metadata: Any = None
    parallel_tool_calls: Any = None
    presence_penalty: Any = None
    prompt_cache_key: Any = None
    reasoning_effort: Any = None
    safety_identifier: Any = None
    service_tier: Any = None
    stop: Any = None
    store: Any = None
    top_p: Any = None
    user: Any = None
    verbosity: Any = None


class _Embeddings(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None


def key(headers: dict[str, str]) -> str:
    """The key that was sent, or nothing."""
    return headers.get("authorization", "").removeprefix("Bearer ")


def read(received: Received) -> Asked:
    """A request for a chat completion or for embeddings."""
    if received.path.endswith(EMBEDDINGS):
        return _read_embeddings(received)
    body, chat = body_of(received, _Chat)
    _check(chat)
    form = chat.response_format
    tools = tuple(
        ToolSpec(tool.function.name, tool.function.description, tool.function.parameters)
        for tool in chat.tools
    )
    limit = chat.max_completion_tokens or chat.max_tokens
    return Asked(
        wire="openai",
        path=received.path,
        model=chat.model,
        messages=tuple(_message(message) for message in chat.messages),
        schema=form.json_schema.schema if form is not None and form.json_schema else None,
        tools=tools,
        must_call=_must_call(chat.tool_choice, tools),
        settings=given(
            temperature=chat.temperature,
            max_tokens=limit,
            seed=chat.seed,
            top_logprobs=(chat.top_logprobs or 0) if chat.logprobs else None,
        ),
        headers=received.headers,
        body=body,
        number=received.number,
    )


def _read_embeddings(received: Received) -> Asked:
    body, wanted = body_of(received, _Embeddings)
    texts = (wanted.input,) if isinstance(wanted.input, str) else tuple(wanted.input)
    if not texts or "" in texts:
        raise Refused(400, "'$.input' is invalid: neither it nor a text in it may be empty")
    return Asked(
        wire="openai",
        path=received.path,
        model=wanted.model,
        settings=given(dimensions=wanted.dimensions),
        texts=texts,
        headers=received.headers,
        body=body,
        number=received.number,
    )


def _check(chat: _Chat) -> None:
    """Refuse what the real server refuses."""
    if not chat.messages:
        raise Refused(400, "[] is too short - 'messages'")
    if chat.stream or (chat.n or 1) > 1:
        raise Refused(400, "this server neither streams nor gives several choices")
    if chat.temperature is not None and not 0 <= chat.temperature <= 2:
        raise Refused(400, "'temperature' must be between 0 and 2")
    if chat.max_tokens is not None and chat.max_completion_tokens is not None:
        raise Refused(400, "'max_tokens' and 'max_completion_tokens' exclude each other")
    if chat.top_logprobs is not None and not (chat.logprobs and 0 <= chat.top_logprobs <= 20):
        raise Refused(400, "'top_logprobs' must be 0 to 20 and needs 'logprobs'")
    _check_calls(chat.messages)
    form = chat.response_format
    if form is not None and form.type == "json_schema":
        _check_schema(form.json_schema)


def _check_calls(messages: list[_Message]) -> None:
    waiting: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                raise Refused(400, "a message with role 'tool' must answer a preceding tool call")
            waiting.discard(message.tool_call_id)
        elif waiting:
            raise Refused(400, f"tool calls were not answered: {', '.join(sorted(waiting))}")
        waiting |= {call.id for call in message.tool_calls or ()}


def _check_schema(wanted: _Schema | None) -> None:
    if wanted is None or not _NAME.fullmatch(wanted.name):
        raise Refused(400, "'response_format.json_schema' needs a name of letters, digits, _ and -")
    if not wanted.strict:
        return
    for inner in objects_in(wanted.schema):
        if inner.get("type") != "object" and "properties" not in inner:
            continue
        if inner.get("additionalProperties") is not False:
            raise Refused(400, "Invalid schema: 'additionalProperties' must be false")
        if set(inner.get("required", ())) != set(inner.get("properties", {})):
            raise Refused(400, "Invalid schema: 'required' must name every key in properties")


def _message(message: _Message) -> Message:
    content = message.content
    calls = tuple(_tool_call(call) for call in message.tool_calls or ())
    return Message(
        "system" if message.role == "developer" else message.role,
        joined(content) if isinstance(content, list) else content or "",
        name=message.name,
        tool_calls=calls,
        call_id=message.tool_call_id,
    )


def _tool_call(call: _Call) -> ToolCall:
    try:
        arguments = msgspec.json.decode(call.function.arguments, type=dict[str, Any])
    except msgspec.DecodeError:
        raise Refused(400, f"the arguments of {call.function.name!r} are not JSON") from None
    return ToolCall(call.function.name, arguments, call_id=call.id)


def _must_call(choice: str | dict[str, Any], tools: tuple[ToolSpec, ...]) -> str | None:
    if isinstance(choice, dict):
        return str(choice.get("function", {}).get("name"))
    return tools[0].name if choice == "required" and tools else None


def answer(asked: Asked, said: Said) -> dict[str, Any]:
    """A chat completion."""
    silent = said.refusal is not None or (said.tool_calls and not said.text)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if silent else said.text,
        "refusal": said.refusal,
    }
    if said.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.call_id or f"call_{asked.number}_{place}",
                "type": "function",
                "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
            }
            for place, call in enumerate(said.tool_calls)
        ]
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": _logprobs(asked, said.logprobs),
                "finish_reason": _FINISH.get(said.reason, said.reason),
            }
        ],
        **_usage(asked, said),
    }


def _logprobs(asked: Asked, chances: tuple[TokenLogprobs, ...]) -> dict[str, Any] | None:
    most = asked.settings.get("top_logprobs")
    if most is None or not chances:
        return None
    return {
        "content": [
            {
                **_token(chance.token, chance.logprob),
                "top_logprobs": [
                    _token(*other)
                    for other in sorted(chance.others.items(), key=lambda pair: -pair[1])[:most]
                ],
            }
            for chance in chances
        ],
        "refusal": None,
    }


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def _usage(asked: Asked, said: Said) -> dict[str, Any]:
    used = counted(asked, said)
    if used.total_tokens is None:
        return {}
    return {
        "usage": {
            "prompt_tokens": used.input_tokens or 0,
            "completion_tokens": used.output_tokens or 0,
            "total_tokens": used.total_tokens,
            "prompt_tokens_details": {"cached_tokens": used.cached_tokens or 0},
        }
    }


def embeddings(asked: Asked, vectors: Sequence[Sequence[float]]) -> dict[str, Any]:
    """A list of embeddings, as numbers or in base64 as the official client likes them."""
    packed = asked.body.get("encoding_format") == "base64"
    words = sum(len(text.split()) for text in asked.texts)
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": place, "embedding": _packed(vector) if packed else list(vector)}
            for place, vector in enumerate(vectors)
        ],
        "model": asked.model,
        "usage": {"prompt_tokens": words, "total_tokens": words},
    }


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(array("f", vector).tobytes()).decode()


def models(names: tuple[str, ...]) -> dict[str, Any]:
    """The list of models."""
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "loopback"} for name in names]
    return {"object": "list", "data": listed}


def error(code: int, message: str) -> dict[str, Any]:
    """An error as the real server words it."""
    kind = _TYPES.get(code, "server_error" if code >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": _CODES.get(code)}}
