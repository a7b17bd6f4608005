"""LangChain chat models, and other runnables that answer messages, as models."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.core import optional as extras
from proctor.errors import CallFailed
from proctor.models.answer_forms import in_words
from proctor.models.clients.sdk import called
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Message, ToolCall, Usage
from proctor.sessions.current import checked_usage

# What a request may set, if the chat model has a field of that name.
SETTINGS = ("temperature", "max_tokens", "seed")
# The message itself is wanted as well, for what it cost.
_RAW: dict[str, Any] = {"include_raw": True}
_FINISHED = {"end_turn": "stop", "STOP": "stop", "max_tokens": "length", "MAX_TOKENS": "length",
             "tool_use": "tool_calls"}  # fmt: skip


def is_chat_model(thing: Any) -> bool:
    """True if a thing is a LangChain runnable; LangChain itself is never imported for the look.

    >>> is_chat_model(len)
    False
    """
    runnables = extras.loaded("langchain_core.runnables")
    return runnables is not None and isinstance(thing, runnables.Runnable)


class LangChainAdapter:
    """A LangChain chat model as a model.

    Tools are bound to it for the call. Temperature, the number of tokens and the seed are set if
    the chat model has a field of that name; else they are left to it. An answer that must fit a
    schema comes by `with_structured_output` where the chat model has it; one that fails with it is
    asked in words from then on. `fits_schema=False` asks in words from the start.
    """

    def __init__(self, chat: Any, *, name: str | None = None, fits_schema: bool | None = None) -> None:
        self._chat = chat
        self.fits_schema = _has_structured_output(chat) if fits_schema is None else fits_schema
        told = name or getattr(chat, "model_name", None) or getattr(chat, "model", None)
        kind = type(chat).__name__
        self.model = f"langchain:{kind}/{told}" if isinstance(told, str) else f"langchain:{kind}"
        # LangChain's own cache tells models apart by these parameters.
        self.identity = codec.digest(kind, getattr(chat, "_identifying_params", None))[:16]

    def __repr__(self) -> str:
        return f"LangChainAdapter({self.model!r})"

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Invoke the chat model once; what it raises is told as `CallFailed`."""
        if request.schema is None:
            return await self._ask(request, request.messages, timeout)
        began = time.monotonic()
        if self.fits_schema:
            try:
                return await self._ask_structured(request, request.schema, timeout)
            except CallFailed as error:
                # Trouble that may pass says nothing about schemas.
                if error.retryable:
                    raise
                self.fits_schema = False
        left = None if timeout is None else max(0.0, began + timeout - time.monotonic())
        told = Message("user", in_words(request.schema))
        return await self._ask(request, (*request.messages, told), left)

    async def _ask(
        self, request: ModelRequest, messages: Sequence[Message], timeout: float | None
    ) -> ModelResponse:
        asked = [_to_langchain(message) for message in messages]
        invoke = self._set(request).ainvoke
        return self._response(await called(self.model, invoke, asked, timeout=timeout))

    async def _ask_structured(
        self, request: ModelRequest, schema: dict[str, Any], timeout: float | None
    ) -> ModelResponse:
        """Ask for an answer that fits a schema; the text of the response is its JSON."""
        asked = [_to_langchain(message) for message in request.messages]
        try:
            structured = self._set(request).with_structured_output(_titled(schema), **_RAW)
        except Exception as error:
            raise CallFailed(f"{self.model} takes no schema: {error}") from error
        said = await called(self.model, structured.ainvoke, asked, timeout=timeout)
        response = self._response(said["raw"])
        parsed = said.get("parsed")
        if parsed is None:
            # It answered in words, which may be readable all the same.
            return response
        text = codec.encode(parsed).decode()
        finish = "stop" if response.finish_reason == "tool_calls" else response.finish_reason
        return msgspec.structs.replace(response, text=text, tool_calls=(), finish_reason=finish)

    def _set(self, request: ModelRequest) -> Any:
        """The chat model with the request's settings and tools."""
        chat = self._chat
        fields = getattr(type(chat), "model_fields", {})
        wanted = {name: getattr(request, name) for name in SETTINGS if name in fields}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        if wanted:
            chat = chat.model_copy(update=wanted)
        if request.tools:
            try:
                return chat.bind_tools([_tool(tool) for tool in request.tools])
            except (AttributeError, NotImplementedError):
                raise CallFailed(f"{self.model} takes no tools") from None
        return chat

    def _response(self, said: Any) -> ModelResponse:
        if isinstance(said, str):
            return ModelResponse(said, self.model, finish_reason="stop")
        messages = extras.require("langchain_core.messages", extra="langchain", why="a LangChain chat model")
        if not isinstance(said, messages.BaseMessage):
            raise CallFailed(f"{self.model} gave {type(said).__name__!r}; expected a message or a text")
        calls = tuple(
            ToolCall(call["name"], dict(call["args"]), call_id=call.get("id"))
            for call in getattr(said, "tool_calls", ())
        )
        about = getattr(said, "response_metadata", None) or {}
        refusal = said.additional_kwargs.get("refusal")
        return ModelResponse(
            _text(said.content),
            str(about.get("model_name") or about.get("model") or self.model),
            calls,
            _usage(getattr(said, "usage_metadata", None)),
            "refusal" if refusal else _finish_reason(about, calls),
            refusal if isinstance(refusal, str) else None,
        )


def _has_structured_output(chat: Any) -> bool:
    """True if a chat model can be asked for an answer that fits a schema."""
    make = getattr(chat, "with_structured_output", None)
    if make is None or extras.loaded("langchain_core.language_models") is None:
        return False
    try:
        # Nothing is asked yet: models without tools or schemas refuse here.
        make(_titled({"type": "object", "properties": {}}), **_RAW)
    except Exception:
        return False
    return True


def _titled(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema under a name, which LangChain needs."""
    return {"title": "answer", "description": "The answer.", **schema}


def _to_langchain(message: Message) -> Any:
    made = extras.require("langchain_core.messages", extra="langchain", why="a chat model")
    content = message.content
    if not isinstance(content, str | list):
        content = codec.encode(content).decode()
    if message.role == "assistant":
        calls = [
            {"name": call.name, "args": call.arguments, "id": call.call_id or f"call_{number}"}
            for number, call in enumerate(message.tool_calls)
        ]
        return made.AIMessage(content, tool_calls=calls)
    if message.role == "tool":
        return made.ToolMessage(content, tool_call_id=message.call_id or "call_0")
    kind = made.SystemMessage if message.role == "system" else made.HumanMessage
    return kind(content)


def _tool(tool: Any) -> dict[str, Any]:
    return {"type": "function", "function": msgspec.structs.asdict(tool)}


def _text(content: str | Sequence[Any]) -> str:
    """The text of a message; of one in parts, that of its text parts."""
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, str) else part.get("text", "") for part in content]
    return "".join(part for part in parts if isinstance(part, str))


def _finish_reason(about: Mapping[str, Any], calls: Sequence[ToolCall]) -> str | None:
    told = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    if told is None:
        return "tool_calls" if calls else None
    return _FINISHED.get(str(told), str(told))


def _usage(told: Mapping[str, Any] | None) -> Usage:
    if not told:
        return Usage()
    details = told.get("input_token_details") or {}
    counts = Usage(told.get("input_tokens"), told.get("output_tokens"), details.get("cache_read"))
    return checked_usage(counts, "the LangChain model")
