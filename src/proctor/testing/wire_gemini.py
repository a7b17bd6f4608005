"""The wire format of Google's Gemini API."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from proctor.records.model import TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall
from proctor.testing.exchange import Asked, Received, Refused, Said, body_of, counted, given, joined

METHOD = ":generateContent"
_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "refusal": "SAFETY"}
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


class _Calling(msgspec.Struct, rename="camel"):
    mode: Literal["AUTO", "ANY", "NONE", "VALIDATED"] = "AUTO"
    allowed_function_names: list[str] = []


class _ToolConfig(msgspec.Struct, rename="camel"):
    function_calling_config: _Calling = msgspec.field(default_factory=_Calling)


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


class _Ask(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Everything that a request may hold; what the server does not need is not looked into."""

    contents: list[_Content]
    system_instruction: _Content | None = None
    tools: list[_Tool] = []
    tool_config: _ToolConfig = msgspec.field(default_factory=_ToolConfig)
    generation_config: _Generation = msgspec.field(default_factory=_Generation)
    safety_settings: Any = None
    cached_content: Any = None


def key(headers: dict[str, str]) -> str:
    """The key that was sent, or nothing."""
    return headers.get("x-goog-api-key", "")


def read(received: Received) -> Asked:
    """A request to generate content."""
    body, ask = body_of(received, _Ask)
    _check(ask)
    wanted = ask.generation_config
    tools = tuple(
        ToolSpec(found.name, found.description, found.parameters_json_schema or found.parameters)
        for tool in ask.tools
        for found in tool.function_declarations
    )
    messages = []
    if ask.system_instruction is not None:
        messages.append(Message("system", joined(ask.system_instruction.parts)))
    for content in ask.contents:
        messages += _messages(content)
    return Asked(
        wire="gemini",
        path=received.path,
        model=unquote(received.path.rpartition("/")[2].removesuffix(METHOD)),
        messages=tuple(messages),
        schema=_schema(wanted),
        tools=tools,
        must_call=_must_call(ask.tool_config.function_calling_config, tools),
        settings=given(
            temperature=wanted.temperature,
            max_tokens=wanted.max_output_tokens,
            seed=wanted.seed,
            top_logprobs=(wanted.logprobs or 0) if wanted.response_logprobs else None,
        ),
        headers=received.headers,
        body=body,
        number=received.number,
    )


def _schema(wanted: _Generation) -> dict[str, Any] | None:
    theirs = wanted.response_schema
    return wanted.response_json_schema if theirs is None else theirs


def _check(ask: _Ask) -> None:
    """Refuse what the real server refuses."""
    wanted = ask.generation_config
    if not ask.contents:
        raise Refused(400, "* GenerateContentRequest.contents: contents is not specified")
    if any(not content.parts for content in ask.contents):
        raise Refused(400, "* GenerateContentRequest.contents: parts must not be empty")
    if wanted.temperature is not None and not 0 <= wanted.temperature <= 2:
        raise Refused(400, "* temperature must be in the range [0.0, 2.0]")
    if wanted.response_schema is not None and wanted.response_json_schema is not None:
        raise Refused(400, "responseSchema and responseJsonSchema exclude each other")
    if _schema(wanted) is not None and wanted.response_mime_type != "application/json":
        raise Refused(400, "a response schema needs the response MIME type application/json")
    if wanted.logprobs is not None and not (wanted.response_logprobs and wanted.logprobs <= 20):
        raise Refused(400, "logprobs must be at most 20 and needs responseLogprobs")


def _messages(content: _Content) -> list[Message]:
    """One content of theirs holds the results of functions beside what the user says."""
    told = []
    for part in content.parts:
        if "functionResponse" in part:
            found = part["functionResponse"]
            result = found.get("response", {})
            if len(result) == 1:
                result = result.get("output", result.get("result", result))
            told.append(Message("tool", result, name=found["name"], call_id=found.get("id")))
    calls = tuple(
        ToolCall(call["name"], call.get("args", {}), call_id=call.get("id"))
        for part in content.parts
        if (call := part.get("functionCall")) is not None
    )
    rest = [part for part in content.parts if not {"functionResponse", "functionCall"} & set(part)]
    if rest or calls:
        role: Literal["user", "assistant"] = "assistant" if content.role == "model" else "user"
        told.append(Message(role, joined(rest), tool_calls=calls))
    return told


def _must_call(calling: _Calling, tools: tuple[ToolSpec, ...]) -> str | None:
    if calling.mode != "ANY" or not tools:
        return None
    return (calling.allowed_function_names or [tools[0].name])[0]


def answer(asked: Asked, said: Said) -> dict[str, Any]:
    """Candidates; a refusal is feedback on the prompt, and no candidate."""
    told: dict[str, Any] = {"modelVersion": asked.model, "responseId": str(asked.number)}
    if said.refusal is not None:
        told["promptFeedback"] = {"blockReason": "SAFETY"}
        return {**told, **_usage(asked, said)}
    parts: list[dict[str, Any]] = [{"text": said.text}] if said.text else []
    parts += [
        {
            "functionCall": {
                "id": call.call_id or f"{asked.number}_{place}",
                "name": call.name,
                "args": call.arguments,
            }
        }
        for place, call in enumerate(said.tool_calls)
    ]
    candidate: dict[str, Any] = {
        "content": {"parts": parts, "role": "model"} if parts else {"role": "model"},
        "finishReason": _FINISH.get(said.reason, said.reason),
        "index": 0,
        **_logprobs(asked, said.logprobs),
    }
    return {"candidates": [candidate], **told, **_usage(asked, said)}


def _logprobs(asked: Asked, chances: tuple[TokenLogprobs, ...]) -> dict[str, Any]:
    most = asked.settings.get("top_logprobs")
    if most is None or not chances:
        return {}
    top = [
        {
            "candidates": [
                {"token": token, "logProbability": chance}
                for token, chance in sorted(found.others.items(), key=lambda pair: -pair[1])[:most]
            ]
        }
        for found in chances
    ]
    chosen = [{"token": found.token, "logProbability": found.logprob} for found in chances]
    average = sum(found.logprob for found in chances) / len(chances)
    result = {"chosenCandidates": chosen, **({"topCandidates": top} if most else {})}
    return {"logprobsResult": result, "avgLogprobs": average}


def _usage(asked: Asked, said: Said) -> dict[str, Any]:
    used = counted(asked, said)
    if used.total_tokens is None:
        return {}
    return {
        "usageMetadata": {
            "promptTokenCount": used.input_tokens or 0,
            "candidatesTokenCount": used.output_tokens or 0,
            "totalTokenCount": used.total_tokens,
            **({"cachedContentTokenCount": used.cached_tokens} if used.cached_tokens else {}),
        }
    }


def models(names: tuple[str, ...]) -> dict[str, Any]:
    """The list of models."""
    listed = [
        {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": ["generateContent"]}
        for name in names
    ]
    return {"models": listed}


def error(code: int, message: str) -> dict[str, Any]:
    """An error as the real server words it."""
    return {"error": {"code": code, "message": message, "status": _STATUS.get(code, "UNKNOWN")}}
