"""LangChain chat models, and other runnables that answer messages, as models."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.core import optional as extras
from proctor.errors import CallFailed
from proctor.models.answer_format import schema_instructions
from proctor.models.clients.sdk import call_user_code
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Message, ToolCall, Usage
from proctor.sessions.current import check_usage

# Settings of a request that apply if the chat model has a field of the same name.
SETTINGS = ("temperature", "max_tokens", "seed")
# The raw message contains the usage.
_INCLUDE_RAW: dict[str, Any] = {"include_raw": True}
_FINISH_REASONS = {"end_turn": "stop", "STOP": "stop", "max_tokens": "length", "MAX_TOKENS": "length",
                   "tool_use": "tool_calls"}  # fmt: skip


def is_chat_model(model: Any) -> bool:
    """Return True for a LangChain runnable; this never imports LangChain."""
    runnables = extras.loaded_module("langchain_core.runnables")
    return runnables is not None and isinstance(model, runnables.Runnable)


class LangChainAdapter:
    """A LangChain chat model as a model.

    Tools are bound for each call. Temperature, max_tokens and seed are set if the chat model has a field of that name.
    Schemas use `with_structured_output` if the chat model has it; after a failure with it, and with
    `supports_json_schema=False`, the adapter adds instructions instead.
    """

    def __init__(self, chat: Any, *, name: str | None = None, supports_json_schema: bool | None = None) -> None:
        self._chat = chat
        self.supports_json_schema = (
            _has_structured_output(chat) if supports_json_schema is None else supports_json_schema
        )
        label = name or getattr(chat, "model_name", None) or getattr(chat, "model", None)
        class_name = type(chat).__name__
        self.model = f"langchain:{class_name}/{label}" if isinstance(label, str) else f"langchain:{class_name}"
        # LangChain's own cache uses these parameters as the identity.
        self.identity = codec.digest(class_name, getattr(chat, "_identifying_params", None))[:16]

    def __repr__(self) -> str:
        return f"LangChainAdapter({self.model!r})"

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Invoke the chat model once; its exceptions become `CallFailed`."""
        if request.schema is None:
            return await self._invoke(request, request.messages, timeout)
        started = time.monotonic()
        if self.supports_json_schema:
            try:
                return await self._invoke_structured(request, request.schema, timeout)
            except CallFailed as error:
                # A transient error says nothing about schemas.
                if error.retryable:
                    raise
                self.supports_json_schema = False
        left = None if timeout is None else max(0.0, started + timeout - time.monotonic())
        instructions = Message("user", schema_instructions(request.schema))
        return await self._invoke(request, (*request.messages, instructions), left)

    async def _invoke(self, request: ModelRequest, messages: Sequence[Message], timeout: float | None) -> ModelResponse:
        converted = [_to_langchain(message) for message in messages]
        invoke = self._configure(request).ainvoke
        return self._read_response(await call_user_code(self.model, invoke, converted, timeout=timeout))

    async def _invoke_structured(
        self, request: ModelRequest, schema: dict[str, Any], timeout: float | None
    ) -> ModelResponse:
        converted = [_to_langchain(message) for message in request.messages]
        try:
            structured = self._configure(request).with_structured_output(_add_title(schema), **_INCLUDE_RAW)
        except Exception as error:
            raise CallFailed(f"{self.model} does not support schemas: {error}") from error
        result = await call_user_code(self.model, structured.ainvoke, converted, timeout=timeout)
        response = self._read_response(result["raw"])
        parsed = result.get("parsed")
        if parsed is None:
            # The text may still contain a readable answer.
            return response
        text = codec.encode(parsed).decode()
        finish_reason = "stop" if response.finish_reason == "tool_calls" else response.finish_reason
        return msgspec.structs.replace(response, text=text, tool_calls=(), finish_reason=finish_reason)

    def _configure(self, request: ModelRequest) -> Any:
        """Return the chat model with the request's settings and tools."""
        chat = self._chat
        fields = getattr(type(chat), "model_fields", {})
        settings = {name: getattr(request, name) for name in SETTINGS if name in fields}
        settings = {name: value for name, value in settings.items() if value is not None}
        if settings:
            chat = chat.model_copy(update=settings)
        if request.tools:
            tools = [{"type": "function", "function": msgspec.structs.asdict(tool)} for tool in request.tools]
            try:
                return chat.bind_tools(tools)
            except (AttributeError, NotImplementedError):
                raise CallFailed(f"{self.model} does not support tools") from None
        return chat

    def _read_response(self, result: Any) -> ModelResponse:
        if isinstance(result, str):
            return ModelResponse(result, self.model, finish_reason="stop")
        messages = extras.require("langchain_core.messages", extra="langchain", why="a LangChain chat model")
        if not isinstance(result, messages.BaseMessage):
            raise CallFailed(f"{self.model} returned {type(result).__name__!r}; expected a message or a text")
        calls = tuple(
            ToolCall(call["name"], dict(call["args"]), call_id=call.get("id"))
            for call in getattr(result, "tool_calls", ())
        )
        metadata = getattr(result, "response_metadata", None) or {}
        refusal = result.additional_kwargs.get("refusal")
        return ModelResponse(
            _content_text(result.content),
            str(metadata.get("model_name") or metadata.get("model") or self.model),
            calls,
            _read_usage(getattr(result, "usage_metadata", None)),
            "refusal" if refusal else _finish_reason(metadata, calls),
            refusal if isinstance(refusal, str) else None,
        )


def _has_structured_output(chat: Any) -> bool:
    make = getattr(chat, "with_structured_output", None)
    if make is None or extras.loaded_module("langchain_core.language_models") is None:
        return False
    try:
        # This sends nothing; models without tools or schemas raise here.
        make(_add_title({"type": "object", "properties": {}}), **_INCLUDE_RAW)
    except Exception:
        return False
    return True


def _add_title(schema: dict[str, Any]) -> dict[str, Any]:
    return {"title": "answer", "description": "The answer.", **schema}


def _to_langchain(message: Message) -> Any:
    classes = extras.require("langchain_core.messages", extra="langchain", why="a chat model")
    content = message.content
    if not isinstance(content, str | list):
        content = codec.encode(content).decode()
    if message.role == "assistant":
        calls = [
            {"name": call.name, "args": call.arguments, "id": call.call_id or f"call_{number}"}
            for number, call in enumerate(message.tool_calls)
        ]
        return classes.AIMessage(content, tool_calls=calls)
    if message.role == "tool":
        return classes.ToolMessage(content, tool_call_id=message.call_id or "call_0")
    message_class = classes.SystemMessage if message.role == "system" else classes.HumanMessage
    return message_class(content)


def _content_text(content: str | Sequence[Any]) -> str:
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, str) else part.get("text", "") for part in content]
    return "".join(part for part in parts if isinstance(part, str))


def _finish_reason(metadata: Mapping[str, Any], calls: Sequence[ToolCall]) -> str | None:
    reason = metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason")
    if reason is None:
        return "tool_calls" if calls else None
    return _FINISH_REASONS.get(str(reason), str(reason))


def _read_usage(reported: Mapping[str, Any] | None) -> Usage:
    if not reported:
        return Usage()
    details = reported.get("input_token_details") or {}
    counts = Usage(reported.get("input_tokens"), reported.get("output_tokens"), details.get("cache_read"))
    return check_usage(counts, "the LangChain model")
