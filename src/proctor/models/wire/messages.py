"""Helpers for conversations that all wire formats share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from proctor.records import codec
from proctor.records.session import Message, ToolCall

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def content_text(content: Any) -> str:
    """Return the content of a message as text; data becomes JSON.

    >>> content_text("Paris"), content_text({"city": "Paris"}), content_text(None)
    ('Paris', '{"city":"Paris"}', '')
    """
    if isinstance(content, str):
        return content
    return "" if content is None else codec.encode(content).decode()


def is_content_parts(content: Any) -> bool:
    """Return True for content parts in a provider's own format, which are sent unchanged.

    >>> is_content_parts([{"type": "text", "text": "Describe it."}]), is_content_parts([1, 2])
    (True, False)
    """
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(part, dict) and "type" in part for part in content)
    )


def system_text(messages: Iterable[Message]) -> str:
    """Join all system messages, for providers that take them separately."""
    return "\n\n".join(content_text(message.content) for message in messages if message.role == "system")


class CallIds:
    """Matches tool results to tool calls; calls without ids are matched by order."""

    def __init__(self) -> None:
        self._calls = 0
        self._results = 0
        self._names: dict[str, str] = {}

    def next_call(self, call: ToolCall) -> str:
        """Return the id of the next call that the assistant made."""
        call_id = call.call_id or f"call_{self._calls}"
        self._calls += 1
        self._names[call_id] = call.name
        return call_id

    def next_result(self, message: Message) -> str:
        """Return the id of the call that the next tool message answers."""
        call_id = message.call_id or f"call_{self._results}"
        self._results += 1
        return call_id

    def tool_name(self, call_id: str) -> str:
        """Return the name of the tool that a call used, or an empty text."""
        return self._names.get(call_id, "")


def parse_tool_call(name: str, arguments: Any, call_id: str | None) -> ToolCall:
    """Read a tool call; arguments that are not a JSON object become its error.

    >>> parse_tool_call("search", '{"q": "Paris"}', "c1").arguments
    {'q': 'Paris'}
    >>> parse_tool_call("search", "{q", "c1").error
    "the model's arguments are not a JSON object: '{q'"
    """
    parsed = {} if arguments is None else arguments
    if isinstance(arguments, str):
        try:
            parsed = msgspec.json.decode(arguments) if arguments.strip() else {}
        except msgspec.DecodeError:
            parsed = None
    if isinstance(parsed, dict):
        return ToolCall(name, parsed, call_id=call_id)
    error = f"the model's arguments are not a JSON object: {arguments!r}"
    return ToolCall(name, error=error, call_id=call_id)


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty mapping."""
    return value if isinstance(value, dict) else {}
