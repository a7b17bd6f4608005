"""What a session holds of a span already, so that it need not be kept a second time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.genai.values import decoded
from proctor.records.session import Event, Message, ModelCall, ToolCall

# How messages are put together, not what they say: a session has its own words for these.
_KEYS = frozenset(
    (
        *("role", "type", "index", "event.name", "content", "contents", "parts", "part", "text"),
        *("message", "messages", "choices", "candidates", "generations", "prompt", "system"),
        *("input", "output", "args", "arguments", "name", "id", "call_id", "tool_call_id"),
        *("tool_use_id", "toolCallId", "toolName", "tool_call", "tool_calls", "toolCalls"),
        *("function", "function_call", "functionCall", "function_response", "functionResponse"),
        *("response", "result", "value", "finish_reason", "finishReason", "additional_kwargs"),
        *("kwargs", "data", "instructions", "system_instruction", "systemInstruction", "config"),
        *("custom", "thinking", "reasoning"),
    )
)
_ROLES = frozenset(("user", "assistant", "system", "tool", "model", "human", "ai"))
_TYPES = frozenset(
    (
        *("human", "ai", "system", "tool"),
        *("text", "tool_call", "tool_use", "tool_call_response", "tool_result", "function_call"),
        *("function_call_output", "tool-call", "tool-result", "output_text", "input_text", "json"),
        *("message", "reasoning", "thinking", "function"),
    )
)
_SAID = ("content", "parts", "contents", "tool_calls")
_NOTHING: tuple[Any, ...] = (None, "", [], {})
_FORM = {"role": _ROLES, "type": _TYPES}


class Held:
    """The texts, numbers, yes and no of some events, line by line; each is there once.

    What is taken is used up: where a word stands twice in a trace and once in the session, the
    second is not taken for the first. In which order lines stood is not looked at.

    >>> held = Held([Message("user", "Hi")])
    >>> held.takes('[{"role": "user", "content": "Hi"}]'), held.takes("Hi")
    (True, False)
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._left: Counter[str] = Counter()
        for event in events:
            self._left.update(_lines(_said_by(event)))

    def takes(self, value: Any) -> bool:
        """True if all that a value says stands in the events; then it is used up."""
        needed = Counter(_lines(value))
        if not needed or any(self._left[line] < count for line, count in needed.items()):
            return False
        self._left.subtract(needed)
        return True

    def lean(self, attributes: Mapping[str, Any], sources: Sequence[str]) -> dict[str, Any]:
        """Attributes without those of the sources whose contents the events hold."""
        names = {name for name in attributes if is_among(name, sources)}
        return {
            name: value
            for name, value in attributes.items()
            if name not in names or not self.takes_as(name, value)
        }

    def takes_as(self, name: str, value: Any) -> bool:
        """The same for what stands under a name: an odd role is nothing that was said."""
        last = name.rpartition(".")[2]
        return is_form(name, value) or self.takes({last: value} if last in _FORM else value)

    def rest(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a message that say more than the events hold."""
        # What was said is looked at first: an id of the same word is not to be taken for it.
        keys = sorted(message, key=lambda key: key not in _SAID)
        told = {key for key in keys if self._has_field(key, message[key])}
        return {key: value for key, value in message.items() if key not in told}

    def _has_field(self, key: str, value: Any) -> bool:
        if key in _KEYS:
            return value in _NOTHING or self.takes_as(key, value)
        return self.takes({key: value})


def is_among(name: str, sources: Sequence[str]) -> bool:
    """True if a name is one of some; those that end with a dot stand for all that begin so.

    >>> is_among("gen_ai.prompt.0.role", ["gen_ai.prompt."]), is_among("input", ["input.value"])
    (True, False)
    """
    return any(name == one or (one.endswith(".") and name.startswith(one)) for one in sources)


def _said_by(event: Event) -> Any:
    """What an event says, without its own form."""
    if isinstance(event, Message):
        return [event.content, event.name, event.call_id, [_said_by(c) for c in event.tool_calls]]
    if isinstance(event, ToolCall):
        return [event.name, event.arguments, event.result, event.call_id]
    return event.finish_reason if isinstance(event, ModelCall) else event.data


def _lines(value: Any) -> Iterator[str]:
    """Parts of a message are joined line by line."""
    return (line for leaf in leaves(value) for line in leaf.split("\n") if line)


def leaves(value: Any) -> Iterator[str]:
    """The single values in something, also in JSON that stands in texts; without its form.

    >>> sorted(leaves({"a": [1, True, "x"], "content": '{"c": 2.0}', "role": "user", "id": None}))
    ['1', '2', 'a', 'c', 'true', 'x']
    """
    waiting = [value]
    while waiting:
        one = decoded(waiting.pop())
        if isinstance(one, dict):
            yield from (str(key) for key in one if key not in _KEYS)
            told = [(key, item) for key, item in one.items() if not is_form(key, item)]
            waiting.extend(item for key, item in told if key not in _FORM)
            # A role or a kind is none of the words that were said, be it the same.
            yield from (f"{k}: {it!r}" for k, it in told if k in _FORM and it not in _NOTHING)
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, bool):
            yield "true" if one else "false"
        elif isinstance(one, float) and one.is_integer() and abs(one) < 1e15:
            yield str(int(one))
        elif one is not None and one != "":
            yield str(one)


def is_form(name: Any, value: Any) -> bool:
    """True for what tells how a message is put together, under a name that may have dots.

    >>> is_form("gen_ai.prompt.0.role", "user"), is_form("gen_ai.prompt.0.content", "user")
    (True, False)
    """
    last = str(name).rpartition(".")[2]
    if last == "index":
        return value == 0 and isinstance(value, int)
    if name == "event.name":
        return isinstance(value, str) and value.startswith("gen_ai.")
    return isinstance(value, str) and value.casefold() in _FORM.get(last, ())
