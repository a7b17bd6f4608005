"""Gemini models and their wire format."""

from __future__ import annotations

from typing import Any, Unpack
from urllib.parse import quote

import msgspec

from proctor.core.retry_policy import RetryPolicy
from proctor.models.answer_format import schema_instructions
from proctor.models.http.access import (
    ApiKey,
    ModelOptions,
    Provider,
    ServerOptions,
    model_name,
    resolve_access,
)
from proctor.models.http.endpoint import HttpCall, UnexpectedBody, decode_body, shared_endpoint
from proctor.models.http.errors import ErrorBody
from proctor.models.http.model_client import make_client
from proctor.models.wire import messages as wire
from proctor.models.wire import schemas
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs, ToolSpec
from proctor.records.numbers import total_tokens
from proctor.records.session import Message, Usage
from proctor.sessions.current import check_usage

VERSION = "/v1beta"
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
GEMINI = Provider("gemini", "https://generativelanguage.googleapis.com", "GEMINI_BASE_URL", KEYS, VERSION)
# A guard against a list of models that never ends.
MAX_PAGES = 20
_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
_BLOCKED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"})
_SCHEMA_NAMES = ("responseJsonSchema", "response_json_schema", "responseSchema", "response_schema",
                 "responseMimeType", "response_mime_type")  # fmt: skip


class GeminiWire:
    """The format of `generateContent`."""

    def __init__(self) -> None:
        self._schemas = schemas.SchemaCache(lambda schema: schemas.fit_schema(schema, schemas.GEMINI))

    def write(self, model: str, request: ModelRequest, without: frozenset[str]) -> bytes:  # noqa: ARG002 - the URL names it
        """Write the body of a request."""
        body: dict[str, Any] = {"contents": _write_contents(request.messages)}
        system = wire.system_text(request.messages)
        if request.schema is not None and "schema" in without:
            system = f"{system}\n\n{schema_instructions(request.schema)}".strip()
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_write_tool(tool) for tool in request.tools]}]
        if config := self._write_config(request, without):
            body["generationConfig"] = config
        return codec.encode(body)

    def _write_config(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
        top_logprobs = None if "top_logprobs" in without else request.top_logprobs
        settings: dict[str, Any] = {
            "temperature": request.temperature,
            "maxOutputTokens": request.max_tokens,
            "seed": request.seed,
            "responseLogprobs": True if top_logprobs else None,
            "logprobs": top_logprobs,
        }
        if request.schema is not None and "schema" not in without:
            settings["responseMimeType"] = "application/json"
            settings["responseJsonSchema"] = self._schemas.get(request.schema)
        return {name: value for name, value in settings.items() if value is not None}

    def read(self, body: bytes, request: ModelRequest) -> ModelResponse:  # noqa: ARG002 - same in all formats
        """Read the response in a body."""
        decoded, raw = decode_body(_Response, body)
        common = {"model": decoded.model or "", "usage": _read_usage(decoded.usage), "raw": raw}
        block_reason = decoded.feedback and decoded.feedback.block_reason
        if block_reason:
            return ModelResponse(
                finish_reason="refusal", refusal=f"the prompt was blocked: {block_reason}", **common
            )
        if not decoded.candidates:
            raise UnexpectedBody("`candidates` is missing or empty")
        candidate = decoded.candidates[0]
        parts = (candidate.content and candidate.content.parts) or []
        text = "".join(part.text or "" for part in parts if not part.thought)
        calls = tuple(
            msgspec.structs.replace(
                wire.parse_tool_call(part.call.name, part.call.args, part.call.id),
                signature=part.thought_signature,
            )
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
        if schemas.rejects_schema(error.message, request, _SCHEMA_NAMES):
            return "schema"
        is_named = "logprobs" in error.message.lower()
        return "top_logprobs" if is_named and request.top_logprobs is not None else None


def _write_contents(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    ids = wire.CallIds()
    contents: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "model" if message.role == "assistant" else "user"
        parts = _write_parts(message, ids)
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    return contents


def _write_parts(message: Message, ids: wire.CallIds) -> list[dict[str, Any]]:
    content = message.content
    if message.role == "tool":
        name = message.name or ids.tool_name(ids.next_result(message))
        result = codec.plain(content)
        response = result if isinstance(result, dict) else {"result": result}
        return [{"functionResponse": {"name": name, "response": response}}]
    if wire.is_content_parts(content):
        parts = [{"text": part["text"]} if part["type"] == "text" else part for part in content]
    else:
        text = wire.content_text(content)
        parts = [{"text": text}] if text or not message.tool_calls else []
    for call in message.tool_calls:
        ids.next_call(call)
        part: dict[str, Any] = {"functionCall": {"name": call.name, "args": codec.plain(call.arguments)}}
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
    # Untyped: servers differ here, and a response must not fail because of it.
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


class GeminiAdapter:
    """A Gemini model. The options are those of `OpenAIAdapter`.

    GEMINI_API_KEY and GOOGLE_API_KEY are for Google and for the gateway that GEMINI_BASE_URL
    names; a server that `base_url` names does not get them.

    >>> GeminiAdapter("gemini-2.5-flash", api_key="key-0123456789")
    GeminiAdapter('gemini:gemini-2.5-flash')
    """

    def __init__(self, model: str, **options: Unpack[ModelOptions]) -> None:
        address = f"gemini:{model}"
        access = resolve_access(GEMINI, options, ModelOptions, options.get("name") or address)
        self._name = model.removeprefix("models/")
        self._url = f"{access.base}{VERSION}/models/{quote(self._name, safe='')}:generateContent"
        self._client = make_client(access, GeminiWire(), _make_headers(access.key), address, options)
        self.model = self._client.name
        self.identity = access.identity(self.model, address)

    def __repr__(self) -> str:
        return f"GeminiAdapter({self.model!r})"

    @property
    def fits_schema(self) -> bool:
        """True until the server rejects a schema."""
        return self._client.fits_schema

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Send one request and return the response. Transient errors are retried; `timeout`
        covers all attempts.
        """
        return await self._client.complete(self._url, self._name, request, timeout)


def connect(address: str, **options: Unpack[ModelOptions]) -> GeminiAdapter:
    """Connect `gemini:NAME`.

    >>> connect("gemini:gemini-2.5-flash", api_key="key-0123456789").model
    'gemini:gemini-2.5-flash'
    """
    return GeminiAdapter(model_name(address, "gemini"), **options)


async def list_models(*, timeout: float = 10.0, **options: Unpack[ServerOptions]) -> list[str]:
    """Return the names of the models that the server offers with this key."""
    access = resolve_access(GEMINI, options, ServerOptions, "gemini")
    endpoint = shared_endpoint(access.origin, access.key, _make_headers(access.key))
    names: list[str] = []
    token: str | None = ""
    for _ in range(MAX_PAGES):
        query = f"pageSize=1000&pageToken={quote(token, safe='')}" if token else "pageSize=1000"
        call = HttpCall("gemini", f"{access.base}{VERSION}/models?{query}", None)
        page, token = (await endpoint.send(call, read_models, RetryPolicy(retries=1), timeout)).value
        names += page
        if token is None:
            break
    return sorted(names)


def _make_headers(key: ApiKey) -> dict[str, str]:
    return {"x-goog-api-key": key.format_header("{}")} if key else {}
