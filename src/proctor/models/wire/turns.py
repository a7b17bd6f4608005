"""What all providers need to know of a conversation: texts, and which answer is to which call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from proctor.records import codec
from proctor.records.session import Message, ToolCall

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def text_of(content: Any) -> str:
    """What a message says, as text: whatever is not a text is written as JSON.

    >>> text_of("Paris"), text_of({"city": "Paris"}), text_of(None)
    ('Paris', '{"city":"Paris"}', '')
    """
    if isinstance(content, str):
        return content
    return "" if content is None else codec.encode(content).decode()


def is_parts(content: Any) -> bool:
    """True for the parts of a message in a provider's own format, which are sent as they are.

    >>> is_parts([{"type": "text", "text": "What is this?"}]), is_parts([1, 2])
    (True, False)
    """
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(part, dict) and "type" in part for part in content)
    )


def system_text(messages: Iterable[Message]) -> str:
    """All that the system says, for providers that take it apart from the conversation."""
    return "\n\n".join(text_of(each.content) for each in messages if each.role == "system")


class CallIds:
    """Which tool's answer is to which call, also where nobody gave them ids: then by order."""

    def __init__(self) -> None:
        self._asked = 0
        self._answered = 0
        self._names: dict[str, str] = {}

    def of_call(self, call: ToolCall) -> str:
        """The id of the next call that the assistant made."""
        found = call.call_id or f"call_{self._asked}"
        self._asked += 1
        self._names[found] = call.name
        return found

    def of_answer(self, message: Message) -> str:
        """The id of the call that the next message of a tool answers."""
        found = message.call_id or f"call_{self._answered}"
        self._answered += 1
        return found

    def name_of(self, call_id: str) -> str:
        """The tool that was called under an id, or nothing."""
        return self._names.get(call_id, "")


def tool_call(name: str, arguments: Any, call_id: str | None) -> ToolCall:
    """A call as the model made it; arguments that are no JSON object are told as its error.

    >>> tool_call("search", '{"q": "Paris"}', "c1").arguments
    {'q': 'Paris'}
    >>> tool_call("search", "{q", "c1").error
    "the model's arguments are not a JSON object: '{q'"
    """
    found = arguments
    if isinstance(arguments, str):
        try:
            found = msgspec.json.decode(arguments) if arguments.strip() else {}
        except msgspec.DecodeError:
            found = None
    elif arguments is None:
        found = {}
    if isinstance(found, dict):
        return ToolCall(name, found, call_id=call_id)
    error = f"the model's arguments are not a JSON object: {arguments!r}"
    return ToolCall(name, error=error, call_id=call_id)


def mapping(value: Any) -> Mapping[str, Any]:
    """A part of an answer if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
