"""Contents as Gemini writes them."""

from __future__ import annotations

from typing import Any, Unpack
from urllib.parse import quote

import msgspec

from proctor.models.answer_forms import in_words
from proctor.models.http import addresses, keys
from proctor.models.http.endpoint import Errand, Misfit, decoded, endpoint
from proctor.models.http.errors import Complaint
from proctor.models.http.keys import Options, Provider, Server, access
from proctor.models.http.line import line
from proctor.models.http.retries import Patience
from proctor.models.wire import schemas, turns
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, TokenChances, ToolSpec
from proctor.records.numbers import total_tokens
from proctor.records.session import Message, Usage
from proctor.sessions.current import checked_usage

_FINISHED = {"STOP": "stop", "MAX_TOKENS": "length"}
_WITHHELD = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"})
_LOGPROBS = "logprobs"
_SCHEMA = ("responseJsonSchema", "response_json_schema", "responseSchema", "response_schema",
           "responseMimeType", "response_mime_type")  # fmt: skip


class GeminiWire:
    """The format."""

    def __init__(self) -> None:
        self._schemas = schemas.Written(lambda schema: schemas.fitted(schema, schemas.GEMINI))

    def write(self, model: str, request: ModelRequest, without: frozenset[str]) -> bytes:  # noqa: ARG002 - it stands in the address
        """The body of a request."""
        body: dict[str, Any] = {"contents": _contents(request.messages)}
        system = turns.system_text(request.messages)
        if request.schema is not None and "schema" in without:
            system = f"{system}\n\n{in_words(request.schema)}".strip()
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]
        settings = self._settings(request, without)
        if settings:
            body["generationConfig"] = settings
        return codec.encode(body)

    def _settings(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
        chances = None if "top_logprobs" in without else request.top_logprobs
        settings: dict[str, Any] = {
            "temperature": request.temperature,
            "maxOutputTokens": request.max_tokens,
            "seed": request.seed,
            "responseLogprobs": True if chances else None,
            "logprobs": chances,
        }
        found = {name: value for name, value in settings.items() if value is not None}
        if request.schema is not None and "schema" not in without:
            found["responseMimeType"] = "application/json"
            found["responseJsonSchema"] = self._schemas.of(request.schema)
        return found

    def read(self, body: bytes, request: ModelRequest) -> ModelResponse:  # noqa: ARG002 - as in all wires
        """The answer in a body."""
        said, raw = decoded(_Answer, body)
        usage = _usage(said.usage)
        told = {"model": said.model or "", "usage": usage, "raw": raw}
        blocked = said.feedback and said.feedback.block_reason
        if blocked:
            why = f"the prompt was blocked: {blocked}"
            return ModelResponse(finish_reason="refusal", refusal=why, **told)
        if not said.candidates:
            raise Misfit("`candidates` is missing or empty")
        candidate = said.candidates[0]
        parts = (candidate.content and candidate.content.parts) or []
        text = "".join(part.text or "" for part in parts if not part.thought)
        calls = tuple(
            msgspec.structs.replace(
                turns.tool_call(part.call.name, part.call.args, part.call.id),
                signature=part.thought_signature,
            )
            for part in parts
            if part.call is not None
        )
        reason = candidate.finish_reason or ""
        withheld = reason in _WITHHELD
        finished = _FINISHED.get(reason, reason.lower() or None)
        if withheld:
            finished = "refusal"
        elif calls and finished == "stop":
            finished = "tool_calls"
        return ModelResponse(
            text=text,
            tool_calls=calls,
            finish_reason=finished,
            refusal=_why(candidate, text) if withheld else None,
            logprobs=_chances(candidate.logprobs),
            **told,
        )

    def objection(self, complaint: Complaint, request: ModelRequest) -> str | None:
        """The schema, or probabilities of tokens, which only some models give."""
        if schemas.objected(complaint.message, request, _SCHEMA):
            return "schema"
        named = _LOGPROBS in complaint.message.lower()
        return "top_logprobs" if named and request.top_logprobs is not None else None


def _contents(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    ids = turns.CallIds()
    found: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "model" if message.role == "assistant" else "user"
        parts = _parts(message, ids)
        if found and found[-1]["role"] == role:
            found[-1]["parts"] += parts
        else:
            found.append({"role": role, "parts": parts})
    return found


def _parts(message: Message, ids: turns.CallIds) -> list[dict[str, Any]]:
    content = message.content
    if message.role == "tool":
        name = message.name or ids.name_of(ids.of_answer(message))
        given = codec.plain(content)
        answer = given if isinstance(given, dict) else {"result": given}
        return [{"functionResponse": {"name": name, "response": answer}}]
    if turns.is_parts(content):
        parts = [{"text": part["text"]} if part["type"] == "text" else part for part in content]
    else:
        text = turns.text_of(content)
        parts = [{"text": text}] if text or not message.tool_calls else []
    for call in message.tool_calls:
        ids.of_call(call)
        part: dict[str, Any] = {"functionCall": {"name": call.name, "args": codec.plain(call.arguments)}}
        if call.signature is not None:
            part["thoughtSignature"] = call.signature
        parts.append(part)
    return parts


def _tool(tool: ToolSpec) -> dict[str, Any]:
    written: dict[str, Any] = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    if tool.parameters:
        written["parametersJsonSchema"] = tool.parameters
    return written


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


class _Chance(msgspec.Struct, rename="camel"):
    token: str = ""
    log_probability: float = 0.0


class _Place(msgspec.Struct):
    candidates: list[_Chance] = []


class _Logprobs(msgspec.Struct, rename="camel"):
    chosen_candidates: list[_Chance] = []
    top_candidates: list[_Place] = []


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    logprobs: _Logprobs | None = msgspec.field(default=None, name="logprobsResult")


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Answer(msgspec.Struct):
    candidates: list[_Candidate] | None = None
    feedback: _Feedback | None = msgspec.field(default=None, name="promptFeedback")
    # Servers report all sorts of things here; an answer is not refused for that.
    usage: Any = msgspec.field(default=None, name="usageMetadata")
    model: str | None = msgspec.field(default=None, name="modelVersion")


def _why(candidate: _Candidate, text: str) -> str:
    reason = f"the answer was withheld: {candidate.finish_reason}"
    return candidate.finish_message or text or reason


def _usage(usage: Any) -> Usage:
    usage = turns.mapping(usage)
    asked = usage.get("promptTokenCount")
    if asked is None:
        return Usage()
    # What a model thinks is charged as output; a blocked prompt has no output.
    spoken = total_tokens(0, usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount"))
    counts = Usage(asked, spoken, usage.get("cachedContentTokenCount") or None)
    return checked_usage(counts, "the model server")


def _chances(logprobs: _Logprobs | None) -> tuple[TokenChances, ...]:
    if logprobs is None:
        return ()
    places = logprobs.top_candidates + [_Place()] * len(logprobs.chosen_candidates)
    return tuple(
        TokenChances(
            chosen.token,
            chosen.log_probability,
            {other.token: other.log_probability for other in place.candidates},
        )
        for chosen, place in zip(logprobs.chosen_candidates, places, strict=False)
    )


class _Model(msgspec.Struct, rename="camel"):
    name: str
    supported_generation_methods: list[str] = []


class _Models(msgspec.Struct, rename="camel"):
    models: list[_Model] = []
    next_page_token: str | None = None


def read_models(body: bytes) -> tuple[list[str], str | None]:
    """The names of models that can be asked, and where the list goes on."""
    said, _ = decoded(_Models, body)
    found = [
        model.name.removeprefix("models/")
        for model in said.models
        if "generateContent" in model.supported_generation_methods
    ]
    return found, said.next_page_token or None


BASE_URL = "https://generativelanguage.googleapis.com"
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
VERSION = "/v1beta"
GEMINI = Provider("gemini", BASE_URL, "GEMINI_BASE_URL", KEYS, VERSION)
# A list of models that goes on and on is not followed for ever.
MOST_PAGES = 20


class GeminiAdapter:
    """A Gemini model. The options are those of `OpenAIAdapter`.

    GEMINI_API_KEY and GOOGLE_API_KEY are for Google and for the gateway that GEMINI_BASE_URL
    names; a server that `base_url` names does not get them.

    >>> GeminiAdapter("gemini-2.5-flash", api_key="key-0123456789")
    GeminiAdapter('gemini:gemini-2.5-flash')
    """

    def __init__(self, model: str, **options: Unpack[Options]) -> None:
        address = f"gemini:{model}"
        found = access(GEMINI, options, Options, options.get("name") or address)
        self._name = model.removeprefix("models/")
        self._url = f"{found.base}{VERSION}/models/{quote(self._name, safe='')}:generateContent"
        self._line = line(found, GeminiWire(), _headers(found.key), address, options)
        self.model = self._line.who
        self.identity = found.identity(self.model, address)

    def __repr__(self) -> str:
        return f"GeminiAdapter({self.model!r})"

    @property
    def fits_schema(self) -> bool:
        """False from the moment when the server says that it knows no schemas."""
        return self._line.fits_schema

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Ask once, retries of what is worth it included, within `timeout` seconds in all."""
        return await self._line.complete(self._url, self._name, request, timeout)


def connect(address: str, **options: Unpack[Options]) -> GeminiAdapter:
    """The model at `gemini:NAME`.

    >>> connect("gemini:gemini-2.5-flash", api_key="key-0123456789").model
    'gemini:gemini-2.5-flash'
    """
    return GeminiAdapter(addresses.name_in(address, "gemini"), **options)


async def available(*, timeout: float = 10.0, **options: Unpack[Server]) -> list[str]:
    """The names of the models that the server offers with this key."""
    access_ = access(GEMINI, options, Server, "gemini")
    server = endpoint(access_.origin, access_.key, _headers(access_.key))
    found: list[str] = []
    page: str | None = ""
    for _ in range(MOST_PAGES):
        after = f"&pageToken={quote(page, safe='')}" if page else ""
        errand = Errand("gemini", f"{access_.base}{VERSION}/models?pageSize=1000{after}", None)
        names, page = (await server.ask(errand, read_models, Patience(retries=1), timeout)).value
        found += names
        if page is None:
            break
    return sorted(found)


def _headers(key: keys.Key) -> dict[str, str]:
    return {"x-goog-api-key": key.sent_as("{}")} if key else {}
