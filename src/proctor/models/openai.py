"""OpenAI, and any server that uses its wire format, chat completions."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import msgspec

from proctor.errors import ModelError
from proctor.models import wire
from proctor.models.answer_format import schema_instructions
from proctor.models.http.access import ModelOptions, Provider, ServerAccess, model_name, split_server_address
from proctor.models.http.adapter import HttpAdapter, list_provider_models
from proctor.models.http.endpoint import HttpCall, UnexpectedBody, decode_body
from proctor.models.http.errors import ErrorBody
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs
from proctor.records.session import Message, Usage
from proctor.sessions.current import check_usage

BASE_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
OPENAI = Provider(
    "openai",
    BASE_URL,
    "OPENAI_BASE_URL",
    (KEY_VARIABLE,),
    path="/chat/completions",
    models_path="/models",
    key_header=("Authorization", "Bearer {}"),
)
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


class OpenAIOptions(ModelOptions, total=False):
    """The options of a model at OpenAI."""

    organization: str | None


class OpenAIAdapter(HttpAdapter):
    """A model at OpenAI, or at a compatible server that is set with `base_url`.

    `retries` and `retry_delay` apply to transient failures: 408, 409, 425, 429, most of 5xx, lost connections and
    timeouts. `timeout` limits one request, and one pause that the server requests. Without a model name the adapter
    asks the server for its only model. A setting that the model rejects as unsupported is left out of later requests; a
    schema is replaced with instructions. `prices` is a table or a file, `name` is the name in reports, and
    `supports_json_schema=False` is for models without structured outputs. The key comes from `api_key`, from the
    environment variable `api_key_env`, or from OPENAI_API_KEY, and is never stored. OPENAI_API_KEY is never sent to a
    server that is set with `base_url`; set the key of that server in PROCTOR_API_KEY.

    >>> OpenAIAdapter("gpt-4o-mini", api_key="sk-0123456789")
    OpenAIAdapter('openai:gpt-4o-mini')
    """

    _provider = OPENAI
    _options = OpenAIOptions

    def __init__(self, model: str | None, **options: Unpack[OpenAIOptions]) -> None:
        super().__init__(model, **options)  # type: ignore[misc]

    def _address(self, access: ServerAccess, model: str | None) -> str:
        if access.is_official or (model and not access.is_explicit):
            return f"openai:{model}"
        return access.base + (f"#{model}" if model else "")

    def _make_wire(self, access: ServerAccess) -> OpenAIWire:
        return OpenAIWire(is_official=access.is_official)

    def _headers(self, access: ServerAccess, options: Any) -> dict[str, str]:
        organization = options.get("organization")
        header = {"OpenAI-Organization": organization} if organization else {}
        return super()._headers(access, options) | header

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Send one request and return the response; `timeout` covers all attempts."""
        if self._name is None:
            self._name = await self._find_only_model(timeout)
        return await super().complete(request, timeout=timeout)

    def limit_concurrency(self, concurrency: int) -> None:
        """Send at most this many requests at a time; further calls wait here."""
        self.endpoint.limiter.set_max_window(concurrency)

    async def _find_only_model(self, timeout: float | None) -> str:
        call = HttpCall(self.model, f"{self._base}/models", None)
        models, _ = (await self.endpoint.send(call, read_models, self.policy, timeout)).value
        if len(models) != 1:
            raise ModelError(
                f"the server has {len(models)} models, not one: {', '.join(sorted(models)) or 'none'}",
                where=self.model,
                fix=f"name one after a #, as in {self.model}#{(models or ['NAME'])[0]}",
            )
        return models[0]


def connect(address: str, **options: Unpack[OpenAIOptions]) -> OpenAIAdapter:
    """Connect `openai:NAME`, or `http://host/v1#NAME` for a compatible server."""
    if address.startswith("openai:"):
        return OpenAIAdapter(model_name(address), **options)
    base, name = split_server_address(address, options)
    return OpenAIAdapter(name or None, base_url=base, **options)  # type: ignore[misc]


class OpenAIWire:
    """Encodes requests and decodes responses, for OpenAI (`is_official`) or for a compatible server."""

    def __init__(self, *, is_official: bool) -> None:
        self._is_official = is_official
        self._encode_format = wire.cache_schemas(_response_format)

    def write(self, model: str, request: ModelRequest, omitted_settings: frozenset[str]) -> bytes:
        ids = wire.CallIds()
        messages = [_write_message(message, ids) for message in request.messages]
        body: dict[str, Any] = {"model": model, "messages": messages}
        if request.tools:
            body["tools"] = [
                {"type": "function", "function": wire.write_tool(tool, "parameters")} for tool in request.tools
            ]
        if request.schema is not None and "schema" in omitted_settings:
            _add_instructions(messages, schema_instructions(request.schema))
        elif request.schema is not None:
            body["response_format"] = self._encode_format(request.schema)
        if request.temperature is not None and "temperature" not in omitted_settings:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            # A server that rejects one of the two names gets the other.
            is_modern = self._is_official != ("max_tokens" in omitted_settings)
            body["max_completion_tokens" if is_modern else "max_tokens"] = request.max_tokens
        if request.seed is not None and "seed" not in omitted_settings:
            body["seed"] = request.seed
        if request.top_logprobs is not None and "top_logprobs" not in omitted_settings:
            body["logprobs"] = True
            body["top_logprobs"] = request.top_logprobs
        return codec.encode(body)

    def read(self, body: bytes, request: ModelRequest) -> ModelResponse:
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
            text=wire.unwrap_answer(text, request.schema),
            model=completion.model or "",
            tool_calls=calls,
            usage=_read_usage(completion.usage),
            finish_reason="refusal" if refusal else _FINISH_REASONS.get(finish_reason or "", finish_reason),
            refusal=refusal or None,
            logprobs=_read_logprobs(choice.logprobs),
            raw=raw,
        )

    def rejected_field(self, error: ErrorBody, request: ModelRequest) -> str | None:
        """Return the setting that the server names as unsupported, if the request has it; or "schema", for
        which compatible servers have no common code.
        """
        if wire.rejects_schema(f"{error.parameter} {error.message}", request, _SCHEMA_NAMES):
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
    content = wire.text_or_parts(message.content)
    data: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        data["tool_call_id"] = ids.next_result(message)
        return data
    if message.name:
        data["name"] = message.name
    if message.tool_calls:
        data["content"] = content or None
        data["tool_calls"] = [
            {
                "id": ids.next_call(call),
                "type": "function",
                "function": {"name": call.name, "arguments": wire.content_text(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return data


def _response_format(schema: dict[str, Any]) -> dict[str, Any]:
    wrapped = wire.wrap_schema(schema)
    strict = wire.fit_schema(wrapped, wire.OPENAI)
    json_schema = {"name": "answer", "strict": strict is not None, "schema": strict or wrapped}
    return {"type": "json_schema", "json_schema": json_schema}


class _Function(msgspec.Struct):
    name: str = ""
    # A string according to the specification; some compatible servers send an object.
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
    # Untyped, because servers differ here, and that must not make a response fail.
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
        TokenLogprobs(token.token, value(token), {other.token: value(other) for other in token.top_logprobs or ()})
        for token in logprobs.content or ()
    )


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def read_models(body: bytes) -> tuple[list[str], None]:
    """Return the names in a list of models, in the OpenAI and Anthropic format, which is not paginated."""
    return [model.id for model in decode_body(_Models, body)[0].data], None


list_models = partial(list_provider_models, OPENAI, read_models)
