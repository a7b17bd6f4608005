"""The chat completions format of OpenAI and compatible servers."""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.models.answer_format import schema_instructions
from proctor.models.http.endpoint import UnexpectedBody, decode_body
from proctor.models.http.errors import ErrorBody
from proctor.models.wire import messages as wire
from proctor.models.wire import schemas
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs, ToolSpec
from proctor.records.session import Message, Usage
from proctor.sessions.current import check_usage

# OpenAI's log probability of a token that was too unlikely to report.
UNLIKELY = -9999.0
_FINISH_REASONS = {"function_call": "tool_calls", "content_filter": "refusal"}
_UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value"})
_SCHEMA_NAMES = ("response_format", "json_schema")
# Optional settings: their names on the wire, and the fields of the request.
_SETTINGS = {
    "temperature": "temperature",
    "seed": "seed",
    "logprobs": "top_logprobs",
    "top_logprobs": "top_logprobs",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
}


class OpenAIWire:
    """The format, in OpenAI's form or, unless `is_official`, in that of compatible servers."""

    def __init__(self, *, is_official: bool) -> None:
        self._is_official = is_official
        self._formats = schemas.SchemaCache(_response_format)

    def write(self, model: str, request: ModelRequest, without: frozenset[str]) -> bytes:
        """Write the body of a request."""
        ids = wire.CallIds()
        messages = [_write_message(message, ids) for message in request.messages]
        body: dict[str, Any] = {"model": model, "messages": messages}
        if request.tools:
            body["tools"] = [_write_tool(tool) for tool in request.tools]
        if request.schema is not None and "schema" in without:
            _add_instructions(messages, schema_instructions(request.schema))
        elif request.schema is not None:
            body["response_format"] = self._formats.get(request.schema)
        if request.temperature is not None and "temperature" not in without:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            # A server that rejects one of the two names gets the other.
            is_modern = self._is_official != ("max_tokens" in without)
            body["max_completion_tokens" if is_modern else "max_tokens"] = request.max_tokens
        if request.seed is not None and "seed" not in without:
            body["seed"] = request.seed
        if request.top_logprobs is not None and "top_logprobs" not in without:
            body["logprobs"] = True
            body["top_logprobs"] = request.top_logprobs
        return codec.encode(body)

    def read(self, body: bytes, request: ModelRequest) -> ModelResponse:
        """Read the response in a body."""
        completion, raw = decode_body(_Completion, body)
        if not completion.choices:
            raise UnexpectedBody("`choices` is empty")
        choice = completion.choices[0]
        message = choice.message
        text = _read_text(message.content)
        calls = tuple(
            wire.parse_tool_call(call.function.name, call.function.arguments, call.id)
            for call in message.tool_calls or ()
            if call.function
        )
        refusal, finish_reason = message.refusal, choice.finish_reason
        if finish_reason == "content_filter" and refusal is None:
            refusal = text or "the provider's content filter stopped the answer"
        elif finish_reason == "stop" and calls:
            finish_reason = "tool_calls"
        return ModelResponse(
            text=schemas.unwrap_answer(text, request.schema),
            model=completion.model or "",
            tool_calls=calls,
            usage=_read_usage(completion.usage),
            finish_reason="refusal" if refusal else _FINISH_REASONS.get(finish_reason or "", finish_reason),
            refusal=refusal or None,
            logprobs=_read_logprobs(choice.logprobs),
            raw=raw,
        )

    def rejected_field(self, error: ErrorBody, request: ModelRequest) -> str | None:
        """Return the setting that the server names as unsupported, if the request has it; or
        "schema", for which compatible servers have no common code.
        """
        if schemas.rejects_schema(f"{error.parameter} {error.message}", request, _SCHEMA_NAMES):
            return "schema"
        if error.code not in _UNSUPPORTED:
            return None
        field = _SETTINGS.get(error.parameter)
        return field if field and getattr(request, field) is not None else None


def _add_instructions(messages: list[dict[str, Any]], instructions: str) -> None:
    """Append to the last user message: some servers require roles to alternate."""
    last = messages[-1]
    if last["role"] == "user" and isinstance(last["content"], str):
        last["content"] = f"{last['content']}\n\n{instructions}"
    else:
        messages.append({"role": "user", "content": instructions})


def _write_message(message: Message, ids: wire.CallIds) -> dict[str, Any]:
    content = (
        message.content if wire.is_content_parts(message.content) else wire.content_text(message.content)
    )
    written: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        written["tool_call_id"] = ids.next_result(message)
        return written
    if message.name:
        written["name"] = message.name
    if message.tool_calls:
        written["content"] = content or None
        written["tool_calls"] = [
            {
                "id": ids.next_call(call),
                "type": "function",
                "function": {"name": call.name, "arguments": wire.content_text(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return written


def _write_tool(tool: ToolSpec) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    function = {"name": tool.name, "parameters": tool.parameters or wire.NO_PARAMETERS, **described}
    return {"type": "function", "function": function}


def _response_format(schema: dict[str, Any]) -> dict[str, Any]:
    wrapped = schemas.wrap_schema(schema)
    strict = schemas.fit_schema(wrapped, schemas.OPENAI)
    json_schema = {"name": "answer", "strict": strict is not None, "schema": strict or wrapped}
    return {"type": "json_schema", "json_schema": json_schema}


class _Function(msgspec.Struct):
    name: str = ""
    # A text by specification; some compatible servers send the object.
    arguments: Any = None


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None


class _Message(msgspec.Struct):
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Alternative(msgspec.Struct):
    token: str
    logprob: float | None = None


class _Token(msgspec.Struct):
    token: str
    logprob: float | None = None
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    # Untyped: servers differ here, and a response must not fail because of it.
    usage: Any = None


def _read_text(content: str | list[Any] | None) -> str:
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content or ""


def _read_usage(reported: Any) -> Usage:
    usage = wire.as_mapping(reported)
    cached = wire.as_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
    counts = Usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached or None)
    return check_usage(counts, "the model server")


def _read_logprobs(logprobs: _Logprobs | None) -> tuple[TokenLogprobs, ...]:
    if logprobs is None:
        return ()

    def value(entry: _Token | _Alternative) -> float:
        return UNLIKELY if entry.logprob is None else entry.logprob

    return tuple(
        TokenLogprobs(
            token.token, value(token), {other.token: value(other) for other in token.top_logprobs or ()}
        )
        for token in logprobs.content or ()
    )


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def read_models(body: bytes) -> list[str]:
    """Return the names in a list of models, in the format of OpenAI and Anthropic."""
    return [model.id for model in decode_body(_Models, body)[0].data]
