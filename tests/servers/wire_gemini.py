"""The wire format of Google's Gemini API."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from proctor.records.model import TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.testing import wire_format as wire
from proctor.testing.wire_format import RecordedRequest, ScriptedReply, WireFormat

METHOD = ":generateContent"
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    parts: list[dict[str, Any]]
    role: Literal["user", "model"] = "user"


class _Declaration(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    parameters_json_schema: dict[str, Any] = {}


class _Tool(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    function_declarations: list[_Declaration] = []


class _FunctionCalling(msgspec.Struct, rename="camel"):
    mode: Literal["AUTO", "ANY", "NONE", "VALIDATED"] = "AUTO"
    allowed_function_names: list[str] = []


class _ToolConfig(msgspec.Struct, rename="camel"):
    function_calling_config: _FunctionCalling = msgspec.field(default_factory=_FunctionCalling)


class _Generation(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    temperature: float | None = None
    max_output_tokens: int | None = None
    seed: int | None = None
    response_mime_type: str | None = None
    response_schema: dict[str, Any] | None = None
    response_json_schema: dict[str, Any] | None = None
    response_logprobs: bool | None = None
    logprobs: int | None = None
    candidate_count: int | None = None
    stop_sequences: Any = None
    thinking_config: Any = None
    top_k: Any = None
    top_p: Any = None


class _GenerateRequest(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    contents: list[_Content]
    system_instruction: _Content | None = None
    tools: list[_Tool] = []
    tool_config: _ToolConfig = msgspec.field(default_factory=_ToolConfig)
    generation_config: _Generation = msgspec.field(default_factory=_Generation)


_IGNORED = frozenset({"safetySettings", "cachedContent"})


def _convert_request(request: _GenerateRequest, recorded: RecordedRequest) -> RecordedRequest:
    config = request.generation_config
    schema = config.response_json_schema if config.response_schema is None else config.response_schema
    _check(request, schema)
    tools = tuple(
        ToolSpec(function.name, function.description, function.parameters_json_schema or function.parameters)
        for tool in request.tools
        for function in tool.function_declarations
    )
    messages = []
    if request.system_instruction is not None:
        messages.append(Message("system", wire.join_text(request.system_instruction.parts)))
    for content in request.contents:
        messages += _convert_content(content)
    calling = request.tool_config.function_calling_config
    must_call = calling.mode == "ANY" and bool(tools)
    return msgspec.structs.replace(
        recorded,
        model=unquote(recorded.path.rpartition("/")[2].removesuffix(METHOD)),
        messages=tuple(messages),
        schema=schema,
        tools=tools,
        must_call=(calling.allowed_function_names or [tools[0].name])[0] if must_call else None,
        settings=wire.drop_unset(
            temperature=config.temperature,
            max_tokens=config.max_output_tokens,
            seed=config.seed,
            top_logprobs=(config.logprobs or 0) if config.response_logprobs else None,
        ),
    )


def _check(request: _GenerateRequest, schema: dict[str, Any] | None) -> None:
    config, path = request.generation_config, "* GenerateContentRequest.contents"
    temperature, logprobs = config.temperature, config.logprobs
    wire.reject_if(not request.contents, f"{path}: contents is not specified")
    wire.reject_if(not all(content.parts for content in request.contents), f"{path}: parts must not be empty")
    is_out_of_range = temperature is not None and not 0 <= temperature <= 2
    wire.reject_if(is_out_of_range, "* temperature must be in the range [0.0, 2.0]")
    has_two_schemas = config.response_schema is not None and config.response_json_schema is not None
    wire.reject_if(has_two_schemas, "responseSchema and responseJsonSchema exclude each other")
    is_text = schema is not None and config.response_mime_type != "application/json"
    wire.reject_if(is_text, "a response schema needs the response MIME type application/json")
    has_bad_logprobs = logprobs is not None and not (config.response_logprobs and logprobs <= 20)
    wire.reject_if(has_bad_logprobs, "logprobs must be at most 20 and needs responseLogprobs")


def _convert_content(content: _Content) -> list[Message]:
    """Split a content into function results, which Gemini puts into user contents, and the rest."""
    messages = []
    for part in content.parts:
        if "functionResponse" in part:
            response = part["functionResponse"]
            result = response.get("response", {})
            if len(result) == 1:
                result = result.get("output", result.get("result", result))
            messages.append(Message("tool", result, name=response["name"], call_id=response.get("id")))
    calls = tuple(
        ToolCall(call["name"], call.get("args", {}), call_id=call.get("id"))
        for part in content.parts
        if (call := part.get("functionCall")) is not None
    )
    rest = [part for part in content.parts if not {"functionResponse", "functionCall"} & set(part)]
    if rest or calls:
        role: Literal["user", "assistant"] = "assistant" if content.role == "model" else "user"
        messages.append(Message(role, wire.join_text(rest), tool_calls=calls))
    return messages


def _render_message(request: RecordedRequest, reply: ScriptedReply, finish_reason: str) -> dict[str, Any]:
    """Render candidates; a refusal becomes feedback on the prompt without a candidate."""
    response: dict[str, Any] = {"modelVersion": request.model, "responseId": str(request.number)}
    if reply.refusal is not None:
        return response | {"promptFeedback": {"blockReason": "SAFETY"}}
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [
        {"functionCall": {"id": call_id, "name": call.name, "args": call.arguments}}
        for call_id, call in wire.number_calls(reply.tool_calls, f"{request.number}_")
    ]
    candidate: dict[str, Any] = {
        "content": {"parts": parts, "role": "model"} if parts else {"role": "model"},
        "finishReason": finish_reason,
        "index": 0,
        **_logprobs(request, reply.logprobs),
    }
    return {"candidates": [candidate], **response}


def _logprobs(request: RecordedRequest, chances: tuple[TokenLogprobs, ...]) -> dict[str, Any]:
    if "top_logprobs" not in request.settings or not chances:
        return {}
    ranked = [wire.top_alternatives(request, chance) for chance in chances]
    top = [{"candidates": [_token(*alternative) for alternative in each]} for each in ranked]
    chosen = [_token(chance.token, chance.logprob) for chance in chances]
    average = sum(chance.logprob for chance in chances) / len(chances)
    result = {"chosenCandidates": chosen}
    if request.settings["top_logprobs"]:
        result["topCandidates"] = top
    return {"logprobsResult": result, "avgLogprobs": average}


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logProbability": logprob}


def _render_usage(usage: Usage) -> dict[str, Any]:
    return {
        "usageMetadata": {
            "promptTokenCount": usage.input_tokens or 0,
            "candidatesTokenCount": usage.output_tokens or 0,
            "totalTokenCount": usage.total_tokens,
            **({"cachedContentTokenCount": usage.cached_tokens} if usage.cached_tokens else {}),
        }
    }


def _render_models(names: tuple[str, ...]) -> dict[str, Any]:
    models = [
        {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": ["generateContent"]}
        for name in names
    ]
    return {"models": models}


def _render_error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": _STATUS.get(code, "UNKNOWN")}}


GEMINI = WireFormat(
    "gemini",
    lambda http: (
        (http.method, http.path) == ("GET", "/v1beta/models")
        or (http.method == "POST" and http.path.startswith("/v1beta/models/") and http.path.endswith(METHOD))
    ),
    _GenerateRequest,
    _IGNORED,
    "x-goog-api-key",
    {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "refusal": "SAFETY"},
    _convert_request,
    _render_message,
    _render_usage,
    _render_models,
    _render_error,
)
