"""The Messages format of Anthropic."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from proctor.models.answer_format import schema_instructions
from proctor.models.http.endpoint import decode_body
from proctor.models.http.errors import ErrorBody
from proctor.models.wire import messages as wire
from proctor.models.wire import schemas
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, ToolSpec
from proctor.records.numbers import total_tokens
from proctor.records.session import Message, Usage
from proctor.sessions.current import check_usage

# The API requires a limit; this one leaves room for a model that thinks before it answers.
MAX_TOKENS = 8192
_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
_SCHEMA_NAMES = ("output_config", "output_format", "json_schema")
_TEMPERATURE = re.compile(r"\btemperature\b")


class AnthropicWire:
    """The format. It has no seeds and no token probabilities, so these are not sent."""

    def __init__(self) -> None:
        self._outputs = schemas.SchemaCache(_output_config)

    def write(self, model: str, request: ModelRequest, without: frozenset[str]) -> bytes:
        """Write the body of a request."""
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": request.max_tokens or MAX_TOKENS,
            "messages": _write_messages(request.messages),
        }
        system = wire.system_text(request.messages)
        if request.schema is not None:
            output = self._outputs.get(request.schema)
            if "schema" in without or bytes(output) == b"null":
                system = f"{system}\n\n{schema_instructions(request.schema)}".strip()
            else:
                body["output_config"] = output
        if system:
            body["system"] = system
        if request.tools:
            body["tools"] = [_write_tool(tool) for tool in request.tools]
        if request.temperature is not None and "temperature" not in without:
            body["temperature"] = request.temperature
        return codec.encode(body)

    def read(self, body: bytes, request: ModelRequest) -> ModelResponse:
        """Read the response in a body."""
        message, raw = decode_body(_Response, body)
        text = "".join(block.text or "" for block in message.content if block.type == "text")
        calls = tuple(
            wire.parse_tool_call(block.name, block.input, block.id)
            for block in message.content
            if block.type == "tool_use"
        )
        refusal = None
        if message.stop_reason == "refusal":
            why = message.stop_details.explanation if message.stop_details else None
            refusal = why or text or "the model refused to answer"
        return ModelResponse(
            text=schemas.unwrap_answer(text, request.schema),
            model=message.model or "",
            tool_calls=calls,
            usage=_read_usage(message.usage),
            finish_reason=_FINISH_REASONS.get(message.stop_reason or "", message.stop_reason),
            refusal=refusal,
            raw=raw,
        )

    def rejected_field(self, error: ErrorBody, request: ModelRequest) -> str | None:
        """Return "schema", or "temperature" where the model takes none.

        The API has no code for either, so the name in the message decides. A temperature above 1
        is the caller's mistake.
        """
        if schemas.rejects_schema(error.message, request, _SCHEMA_NAMES):
            return "schema"
        is_valid = request.temperature is not None and request.temperature <= 1
        is_named = error.type == "invalid_request_error" and _TEMPERATURE.search(error.message)
        return "temperature" if is_valid and is_named else None


def _write_messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Alternate user and assistant turns; tool results belong to the user's turn."""
    ids = wire.CallIds()
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        content = _write_content(message, ids)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] = _to_blocks(turns[-1]["content"]) + _to_blocks(content)
        else:
            turns.append({"role": role, "content": content})
    return turns


def _write_content(message: Message, ids: wire.CallIds) -> str | list[Any]:
    content = (
        message.content if wire.is_content_parts(message.content) else wire.content_text(message.content)
    )
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": ids.next_result(message), "content": content}]
    if not message.tool_calls:
        return content
    return _to_blocks(content) + [
        {
            "type": "tool_use",
            "id": ids.next_call(call),
            "name": call.name,
            "input": codec.plain(call.arguments),
        }
        for call in message.tool_calls
    ]


def _to_blocks(content: str | list[Any]) -> list[Any]:
    if isinstance(content, list):
        return content
    # The API rejects empty texts.
    return [{"type": "text", "text": content}] if content else []


def _write_tool(tool: ToolSpec) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, "input_schema": tool.parameters or wire.NO_PARAMETERS, **described}


def _output_config(schema: dict[str, Any]) -> dict[str, Any] | None:
    fitted = schemas.fit_schema(schemas.wrap_schema(schema), schemas.ANTHROPIC)
    return None if fitted is None else {"format": {"type": "json_schema", "schema": fitted}}


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    id: str | None = None
    name: str = ""
    input: Any = None


class _StopDetails(msgspec.Struct):
    explanation: str | None = None


class _Response(msgspec.Struct):
    content: list[_Block]
    model: str | None = None
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    # Untyped: servers differ here, and a response must not fail because of it.
    usage: Any = None


def _read_usage(reported: Any) -> Usage:
    """Read the tokens; tokens read from the cache or written to it count as input."""
    usage = wire.as_mapping(reported)
    prompt, cached = usage.get("input_tokens"), usage.get("cache_read_input_tokens")
    if prompt is None:
        return Usage()
    prompt = total_tokens(prompt, cached, usage.get("cache_creation_input_tokens"))
    return check_usage(Usage(prompt, usage.get("output_tokens"), cached or None), "the model server")
