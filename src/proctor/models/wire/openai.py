"""Chat completions as OpenAI and compatible servers write them."""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.models.answer_forms import in_words
from proctor.models.http.endpoint import Misfit, decoded
from proctor.models.http.errors import Complaint
from proctor.models.wire import schemas, turns
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, TokenChances, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.sessions.current import checked_usage

# What OpenAI writes where a token was too unlikely to say how much.
UNLIKELY = -9999.0
_FINISHED = {"function_call": "tool_calls", "content_filter": "refusal"}
_UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value"})
_SCHEMA = ("response_format", "json_schema")
# Settings that an answer can do without, by the names they have on the wire.
_SETTINGS = {
    "temperature": "temperature",
    "seed": "seed",
    "logprobs": "top_logprobs",
    "top_logprobs": "top_logprobs",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
}


class OpenAIWire:
    """The format, in OpenAI's own form or, unless `official`, in that of compatible servers."""

    def __init__(self, *, official: bool) -> None:
        self._official = official
        self._formats = schemas.Written(_format)

    def write(self, model: str, request: ModelRequest, without: frozenset[str]) -> bytes:
        """The body of a request."""
        messages = _messages(request.messages)
        body: dict[str, Any] = {"model": model, "messages": messages}
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.schema is not None and "schema" in without:
            _add_words(messages, in_words(request.schema))
        elif request.schema is not None:
            body["response_format"] = self._formats.of(request.schema)
        if request.temperature is not None and "temperature" not in without:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            # A server that does not know the one is asked with the other.
            modern = self._official != ("max_tokens" in without)
            body["max_completion_tokens" if modern else "max_tokens"] = request.max_tokens
        if request.seed is not None and "seed" not in without:
            body["seed"] = request.seed
        if request.top_logprobs is not None and "top_logprobs" not in without:
            body["logprobs"] = True
            body["top_logprobs"] = request.top_logprobs
        return codec.encode(body)

    def read(self, body: bytes, request: ModelRequest) -> ModelResponse:
        """The answer in a body."""
        said, raw = decoded(_Completion, body)
        if not said.choices:
            raise Misfit("`choices` is empty")
        choice = said.choices[0]
        message = choice.message
        text = _text(message.content)
        calls = tuple(_call(call) for call in message.tool_calls or () if call.function)
        refusal, finished = message.refusal, choice.finish_reason
        if finished == "content_filter" and refusal is None:
            refusal = text or "the provider's content filter stopped the answer"
        elif finished == "stop" and calls:
            finished = "tool_calls"
        return ModelResponse(
            text=schemas.unwrapped(text, request.schema),
            model=said.model or "",
            tool_calls=calls,
            usage=_usage(said.usage),
            finish_reason="refusal" if refusal else _FINISHED.get(finished or "", finished),
            refusal=refusal or None,
            logprobs=_chances(choice.logprobs),
            raw=raw,
        )

    def objection(self, complaint: Complaint, request: ModelRequest) -> str | None:
        """The setting that the server names as unsupported, if it was sent; or the schema, which
        compatible servers refuse in words of their own.
        """
        told = f"{complaint.parameter} {complaint.message}"
        if schemas.objected(told, request, _SCHEMA):
            return "schema"
        if complaint.code not in _UNSUPPORTED:
            return None
        field = _SETTINGS.get(complaint.parameter)
        return field if field and getattr(request, field) is not None else None


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    ids = turns.CallIds()
    return [_message(message, ids) for message in messages]


def _add_words(messages: list[dict[str, Any]], words: str) -> None:
    """Under the last message, where it is the user's: some servers want roles to take turns."""
    last = messages[-1]
    if last["role"] == "user" and isinstance(last["content"], str):
        last["content"] = f"{last['content']}\n\n{words}"
    else:
        messages.append({"role": "user", "content": words})


def _message(message: Message, ids: turns.CallIds) -> dict[str, Any]:
    content = message.content if turns.is_parts(message.content) else turns.text_of(message.content)
    written: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        written["tool_call_id"] = ids.of_answer(message)
        return written
    if message.name:
        written["name"] = message.name
    if message.tool_calls:
        written["content"] = content or None
        written["tool_calls"] = [
            {
                "id": ids.of_call(call),
                "type": "function",
                "function": {"name": call.name, "arguments": turns.text_of(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return written


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "parameters": tool.parameters or turns.NO_PARAMETERS}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function}


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    whole = schemas.wrapped(schema)
    strict = schemas.fitted(whole, schemas.OPENAI)
    wanted = {"name": "answer", "strict": strict is not None, "schema": strict or whole}
    return {"type": "json_schema", "json_schema": wanted}


class _Function(msgspec.Struct):
    name: str = ""
    # Text by the book; some compatible servers send the object itself.
    arguments: Any = None


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None


class _Said(msgspec.Struct):
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Other(msgspec.Struct):
    token: str
    logprob: float | None = None


class _Token(msgspec.Struct):
    token: str
    logprob: float | None = None
    top_logprobs: list[_Other] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    # Servers report all sorts of things here; an answer is not refused for that.
    usage: Any = None


def _text(content: str | list[Any] | None) -> str:
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content or ""


def _call(call: _Call) -> ToolCall:
    assert call.function is not None
    return turns.tool_call(call.function.name, call.function.arguments, call.id)


def _usage(usage: Any) -> Usage:
    usage = turns.mapping(usage)
    cached = turns.mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
    counts = Usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached or None)
    return checked_usage(counts, "the model server")


def _chances(logprobs: _Logprobs | None) -> tuple[TokenChances, ...]:
    if logprobs is None:
        return ()
    return tuple(
        TokenChances(
            each.token,
            _logprob(each.logprob),
            {other.token: _logprob(other.logprob) for other in each.top_logprobs or ()},
        )
        for each in logprobs.content or ()
    )


def _logprob(value: float | None) -> float:
    return UNLIKELY if value is None else value


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def read_models(body: bytes) -> list[str]:
    """The names in a list of models, as OpenAI and Anthropic write it."""
    return [model.id for model in decoded(_Models, body)[0].data]
