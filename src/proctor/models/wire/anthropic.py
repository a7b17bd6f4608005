"""Messages as Anthropic writes them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from proctor.models.answer_forms import in_words
from proctor.models.http.endpoint import decoded
from proctor.models.http.errors import Complaint
from proctor.models.wire import schemas, turns
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, ToolSpec
from proctor.records.numbers import total_tokens
from proctor.records.session import Message, Usage
from proctor.sessions.current import checked_usage

# The API wants a limit; this leaves room for a model that thinks before it answers.
MAX_TOKENS = 8192
_FINISHED = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
_SCHEMA = ("output_config", "output_format", "json_schema")
_TEMPERATURE = re.compile(r"\btemperature\b")


class AnthropicWire:
    """The format. It has neither seeds nor probabilities of tokens: these are not sent."""

    def __init__(self) -> None:
        self._outputs = schemas.Written(_output)

    def write(self, model: str, request: ModelRequest, without: frozenset[str]) -> bytes:
        """The body of a request."""
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": request.max_tokens or MAX_TOKENS,
            "messages": _messages(request.messages),
        }
        system = turns.system_text(request.messages)
        if request.schema is not None:
            output = self._outputs.of(request.schema)
            if "schema" in without or bytes(output) == b"null":
                system = f"{system}\n\n{in_words(request.schema)}".strip()
            else:
                body["output_config"] = output
        if system:
            body["system"] = system
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.temperature is not None and "temperature" not in without:
            body["temperature"] = request.temperature
        return codec.encode(body)

    def read(self, body: bytes, request: ModelRequest) -> ModelResponse:
        """The answer in a body."""
        said, raw = decoded(_Said, body)
        text = "".join(block.text or "" for block in said.content if block.type == "text")
        calls = tuple(
            turns.tool_call(block.name, block.input, block.id)
            for block in said.content
            if block.type == "tool_use"
        )
        refusal = None
        if said.stop_reason == "refusal":
            why = said.stop_details.explanation if said.stop_details else None
            refusal = why or text or "the model refused to answer"
        return ModelResponse(
            text=schemas.unwrapped(text, request.schema),
            model=said.model or "",
            tool_calls=calls,
            usage=_usage(said.usage),
            finish_reason=_FINISHED.get(said.stop_reason or "", said.stop_reason),
            refusal=refusal,
            raw=raw,
        )

    def objection(self, complaint: Complaint, request: ModelRequest) -> str | None:
        """The schema, or the temperature where the model takes none. There is no code for either,
        so the name in the message has to do; a temperature above 1 is the caller's mistake.
        """
        if schemas.objected(complaint.message, request, _SCHEMA):
            return "schema"
        sent = request.temperature is not None and request.temperature <= 1
        named = complaint.kind == "invalid_request_error" and _TEMPERATURE.search(complaint.message)
        return "temperature" if sent and named else None


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Turns of user and assistant by turns: what a tool answers is part of the user's."""
    ids = turns.CallIds()
    found: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        content = _content(message, ids)
        if found and found[-1]["role"] == role:
            found[-1]["content"] = _blocks(found[-1]["content"]) + _blocks(content)
        else:
            found.append({"role": role, "content": content})
    return found


def _content(message: Message, ids: turns.CallIds) -> str | list[Any]:
    said = message.content if turns.is_parts(message.content) else turns.text_of(message.content)
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": ids.of_answer(message), "content": said}]
    if not message.tool_calls:
        return said
    return _blocks(said) + [
        {"type": "tool_use", "id": ids.of_call(call), "name": call.name, "input": codec.plain(call.arguments)}
        for call in message.tool_calls
    ]


def _blocks(content: str | list[Any]) -> list[Any]:
    if isinstance(content, list):
        return content
    # Empty texts are refused.
    return [{"type": "text", "text": content}] if content else []


def _tool(tool: ToolSpec) -> dict[str, Any]:
    written: dict[str, Any] = {"name": tool.name, "input_schema": tool.parameters or turns.NO_PARAMETERS}
    if tool.description:
        written["description"] = tool.description
    return written


def _output(schema: dict[str, Any]) -> dict[str, Any] | None:
    fitted = schemas.fitted(schemas.wrapped(schema), schemas.ANTHROPIC)
    return None if fitted is None else {"format": {"type": "json_schema", "schema": fitted}}


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    id: str | None = None
    name: str = ""
    input: Any = None


class _StopDetails(msgspec.Struct):
    explanation: str | None = None


class _Said(msgspec.Struct):
    content: list[_Block]
    model: str | None = None
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    # Servers report all sorts of things here; an answer is not refused for that.
    usage: Any = None


def _usage(usage: Any) -> Usage:
    """Tokens as everywhere: what was read from the cache or put into it is input too."""
    usage = turns.mapping(usage)
    asked, cached = usage.get("input_tokens"), usage.get("cache_read_input_tokens")
    if asked is None:
        return Usage()
    asked = total_tokens(asked, cached, usage.get("cache_creation_input_tokens"))
    return checked_usage(Usage(asked, usage.get("output_tokens"), cached or None), "the model server")
