"""Gemini models and their wire format."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import msgspec

from proctor.models import wire
from proctor.models.http.access import ModelOptions, Provider, ServerAccess, model_name
from proctor.models.http.adapter import HttpAdapter, list_provider_models
from proctor.models.http.endpoint import UnexpectedBody, decode_body
from proctor.models.http.errors import ErrorBody
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs, ToolSpec
from proctor.records.numbers import total_tokens
from proctor.records.session import Message, Usage
from proctor.sessions.current import check_usage

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
GEMINI = Provider(
    "gemini",
    "https://generativelanguage.googleapis.com",
    "GEMINI_BASE_URL",
    KEYS,
    path="/v1beta/models/{model}:generateContent",
    models_path="/v1beta/models?pageSize=1000",
    key_header=("x-goog-api-key", "{}"),
    version="/v1beta",
)
_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
_BLOCKED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"})
_SCHEMA_NAMES = ("responseJsonSchema", "response_json_schema", "responseSchema", "response_schema",
                 "responseMimeType", "response_mime_type")  # fmt: skip


class GeminiAdapter(HttpAdapter):
    """A Gemini model. The options are the same as for `OpenAIAdapter`.

    GEMINI_API_KEY and GOOGLE_API_KEY are sent to Google, or to the gateway in GEMINI_BASE_URL, but never to a
    server that is set with `base_url`.

    >>> GeminiAdapter("gemini-2.5-flash", api_key="key-0123456789")
    GeminiAdapter('gemini:gemini-2.5-flash')
    """

    _provider = GEMINI

    def __init__(self, model: str, **options: Unpack[ModelOptions]) -> None:
        super().__init__(model, **options)
        self._name = model.removeprefix("models/")

    def _make_wire(self, access: ServerAccess) -> GeminiWire:  # noqa: ARG002
        return GeminiWire()


def connect(address: str, **options: Unpack[ModelOptions]) -> GeminiAdapter:
    """Connect `gemini:NAME`."""
    return GeminiAdapter(model_name(address), **options)


class GeminiWire:
    """The format of `generateContent`."""

    def __init__(self) -> None:
        self._encode_schema = wire.cache_schemas(lambda schema: wire.fit_schema(schema, wire.GEMINI))

    def write(self, model: str, request: ModelRequest, omitted_settings: frozenset[str]) -> bytes:  # noqa: ARG002 - the URL names it
        ids = wire.CallIds()
        contents = [
            {
                "role": "model" if is_assistant else "user",
                "parts": [part for message in turn for part in _write_parts(message, ids)],
            }
            for is_assistant, turn in wire.turns(request.messages)
        ]
        body: dict[str, Any] = {"contents": contents}
        if system := wire.system_text(request, with_instructions="schema" in omitted_settings):
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_write_tool(tool) for tool in request.tools]}]
        if config := self._write_config(request, omitted_settings):
            body["generationConfig"] = config
        return codec.encode(body)

    def _write_config(self, request: ModelRequest, omitted_settings: frozenset[str]) -> dict[str, Any]:
        top_logprobs = None if "top_logprobs" in omitted_settings else request.top_logprobs
        settings: dict[str, Any] = {
            "temperature": request.temperature,
            "maxOutputTokens": request.max_tokens,
            "seed": request.seed,
            "responseLogprobs": True if top_logprobs else None,
            "logprobs": top_logprobs,
        }
        if request.schema is not None and "schema" not in omitted_settings:
            settings["responseMimeType"] = "application/json"
            settings["responseJsonSchema"] = self._encode_schema(request.schema)
        return {name: value for name, value in settings.items() if value is not None}

    def read(self, body: bytes, request: ModelRequest) -> ModelResponse:  # noqa: ARG002 - same in all formats
        decoded, raw = decode_body(_Response, body)
        common = {"model": decoded.model or "", "usage": _read_usage(decoded.usage), "raw": raw}
        block_reason = decoded.feedback and decoded.feedback.block_reason
        if block_reason:
            return ModelResponse(finish_reason="refusal", refusal=f"the prompt was blocked: {block_reason}", **common)
        if not decoded.candidates:
            raise UnexpectedBody("`candidates` is missing or empty")
        candidate = decoded.candidates[0]
        parts = (candidate.content and candidate.content.parts) or []
        text = "".join(part.text or "" for part in parts if not part.thought)
        calls = tuple(
            wire.parse_tool_call(part.call.name, part.call.args, part.call.id, part.thought_signature)
            for part in parts
            if part.call is not None
        )
        reason = candidate.finish_reason or ""
        finish_reason = _FINISH_REASONS.get(reason, reason.lower() or None)
        refusal = None
        if reason in _BLOCKED:
            finish_reason = "refusal"
            refusal = candidate.finish_message or text or f"the answer was withheld: {reason}"
        elif calls and finish_reason == "stop":
            finish_reason = "tool_calls"
        return ModelResponse(
            text=text,
            tool_calls=calls,
            finish_reason=finish_reason,
            refusal=refusal,
            logprobs=_read_logprobs(candidate.logprobs),
            **common,
        )

    def rejected_field(self, error: ErrorBody, request: ModelRequest) -> str | None:
        """Return "schema", or "top_logprobs", which only some models support."""
        if wire.rejects_schema(error.message, request, _SCHEMA_NAMES):
            return "schema"
        is_named = "logprobs" in error.message.lower()
        return "top_logprobs" if is_named and request.top_logprobs is not None else None


def _write_parts(message: Message, ids: wire.CallIds) -> list[dict[str, Any]]:
    content = message.content
    if message.role == "tool":
        name = message.name or ids.tool_name(ids.next_result(message))
        result = codec.to_plain(content)
        response = result if isinstance(result, dict) else {"result": result}
        return [{"functionResponse": {"name": name, "response": response}}]
    if wire.is_content_parts(content):
        parts = [{"text": part["text"]} if part["type"] == "text" else part for part in content]
    else:
        text = wire.content_text(content)
        parts = [{"text": text}] if text or not message.tool_calls else []
    for call in message.tool_calls:
        ids.next_call(call)
        part: dict[str, Any] = {"functionCall": {"name": call.name, "args": codec.to_plain(call.arguments)}}
        if call.signature is not None:
            part["thoughtSignature"] = call.signature
        parts.append(part)
    return parts


def _write_tool(tool: ToolSpec) -> dict[str, Any]:
    fields = {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
    return {name: value for name, value in fields.items() if value}


class _Call(msgspec.Struct):
    name: str
    args: Any = None
    id: str | None = None


class _Part(msgspec.Struct):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = msgspec.field(default=None, name="thoughtSignature")
    call: _Call | None = msgspec.field(default=None, name="functionCall")


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Logprob(msgspec.Struct, rename="camel"):
    token: str = ""
    log_probability: float = 0.0


class _Alternatives(msgspec.Struct):
    candidates: list[_Logprob] = []


class _Logprobs(msgspec.Struct, rename="camel"):
    chosen_candidates: list[_Logprob] = []
    top_candidates: list[_Alternatives] = []


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    logprobs: _Logprobs | None = msgspec.field(default=None, name="logprobsResult")


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Response(msgspec.Struct):
    candidates: list[_Candidate] | None = None
    feedback: _Feedback | None = msgspec.field(default=None, name="promptFeedback")
    # Untyped, because servers differ here, and that must not make a response fail.
    usage: Any = msgspec.field(default=None, name="usageMetadata")
    model: str | None = msgspec.field(default=None, name="modelVersion")


def _read_usage(reported: Any) -> Usage:
    usage = wire.as_mapping(reported)
    prompt = usage.get("promptTokenCount")
    if prompt is None:
        return Usage()
    # Thoughts are charged as output; a blocked prompt has no output.
    output = total_tokens(0, usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount"))
    counts = Usage(prompt, output, usage.get("cachedContentTokenCount") or None)
    return check_usage(counts, "the model server")


def _read_logprobs(logprobs: _Logprobs | None) -> tuple[TokenLogprobs, ...]:
    if logprobs is None:
        return ()
    padded = logprobs.top_candidates + [_Alternatives()] * len(logprobs.chosen_candidates)
    return tuple(
        TokenLogprobs(
            chosen.token,
            chosen.log_probability,
            {other.token: other.log_probability for other in alternatives.candidates},
        )
        for chosen, alternatives in zip(logprobs.chosen_candidates, padded, strict=False)
    )


class _Model(msgspec.Struct, rename="camel"):
    name: str
    supported_generation_methods: list[str] = []


class _Models(msgspec.Struct, rename="camel"):
    models: list[_Model] = []
    next_page_token: str | None = None


def read_models(body: bytes) -> tuple[list[str], str | None]:
    """Return the names of the models that generate content, and the token of the next page."""
    page, _ = decode_body(_Models, body)
    names = [
        model.name.removeprefix("models/")
        for model in page.models
        if "generateContent" in model.supported_generation_methods
    ]
    return names, page.next_page_token or None


list_models = partial(list_provider_models, GEMINI, read_models)
