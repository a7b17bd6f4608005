"""Prepare the steps of a trace: match their contents to events, add instructions, fold phases.

Some instrumentations (BeeAI) write a span for each phase of a call (start, success, …), inside the
span of the call or, in older versions, without a span for the call.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import Event, Message, ModelCall, ToolCall, Usage
from proctor.sessions.genai.messages import read_instructions
from proctor.sessions.genai.values import TOOL_NAME, decode_json
from proctor.sessions.importers.trace import Step

# Keys of message formats; sessions use other names for these.
_STRUCTURE_KEYS = frozenset((
    "role", "type", "index", "event.name", "content", "contents", "parts", "part", "text", "message",
    "messages", "choices", "candidates", "generations", "prompt", "system", "input", "output", "args",
    "arguments", "tool_call", "tool_calls", "toolCalls", "", "function", "function_call",
    "functionCall", "function_response", "functionResponse", "response", "result", "value",
    "additional_kwargs", "kwargs", "data", "instructions", "system_instruction", "systemInstruction",
    "config", "custom", "thinking", "reasoning",
))  # fmt: skip
# Names and ids never match content, even if the strings are equal.
_NAME_KEYS = {
    **dict.fromkeys(("name", "toolName"), "name"),
    **dict.fromkeys(("id", "call_id", "tool_call_id", "tool_use_id", "toolCallId"), "id"),
    **dict.fromkeys(("finish_reason", "finishReason"), "finish_reason"),
}
_ROLES = frozenset(("user", "assistant", "system", "tool", "model", "human", "ai"))
_TYPES = frozenset((
    "human", "ai", "system", "tool", "text", "tool_call", "tool_use", "tool_call_response",
    "tool_result", "function_call", "function_call_output", "tool-call", "tool-result", "output_text",
    "input_text", "json", "message", "reasoning", "thinking", "function",
))  # fmt: skip
_CONTENT_KEYS = ("content", "parts", "contents", "tool_calls")
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_STRUCTURE_VALUES = {"role": _ROLES, "type": _TYPES}
_PHASES = frozenset(("start", "success", "finish", "error", "retry", "update", "partial_update", "new_token"))


class ContentLine(NamedTuple):
    """A line of text or a number, and the path of keys to it."""

    path: tuple[str, ...]
    line: str


class _Positions:
    """The sorted positions of a line; each is used once."""

    __slots__ = ("_next", "_positions")

    def __init__(self) -> None:
        self._positions: list[int] = []
        # Maps each index to the next unused index; an unused index maps to itself.
        self._next = [0]

    def add(self, position: int) -> None:
        self._positions.append(position)
        self._next.append(len(self._positions))

    def first_after(self, position: int) -> int | None:
        """Return the index of the first unused position after `position`."""
        number = bisect_right(self._positions, position)
        while (next_number := self._next[number]) != number:
            self._next[number] = self._next[next_number]
            number = next_number
        return number if number < len(self._positions) else None

    def __getitem__(self, number: int) -> int:
        return self._positions[number]

    def use(self, number: int) -> None:
        self._next[number] = number + 1


class ContentMatcher:
    """Matches values to the strings, numbers and booleans of events, line by line.

    A value matches if the events have each of its lines under the same keys, in the same order. Each line of the events
    matches once. Speakers and calls are not compared, so pass only values that these events were read from.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._lines: defaultdict[ContentLine, _Positions] = defaultdict(_Positions)
        contents = [_get_event_content(event) for event in events]
        for position, line in enumerate(iterate_content(contents)):
            self._lines[line].add(position)

    def consume(self, value: Any) -> bool:
        """Return True if the events contain the whole value; its lines do not match again.

        The events join adjacent text parts of an answer; the value may still have them separate.
        """
        return self._consume(value) or ((joined := _join_texts(value)) != value and self._consume(joined))

    def _consume(self, value: Any) -> bool:
        last: dict[tuple[str, ...], int] = {}
        matches: list[tuple[_Positions, int]] = []
        for line in iterate_content(value):
            positions = self._lines.get(line)
            number = None if positions is None else positions.first_after(last.get(line.path, -1))
            if positions is None or number is None:
                return False
            last[line.path] = positions[number]
            matches.append((positions, number))
        for positions, number in matches:
            positions.use(number)
        return bool(matches)

    def strip_content(self, attributes: Mapping[str, Any], sources: Sequence[str]) -> dict[str, Any]:
        """Return the attributes, minus the `sources` whose content is already in the events."""
        prefixes = tuple(source for source in sources if source.endswith("."))
        return {
            name: value
            for name, value in attributes.items()
            if not ((name in sources or name.startswith(prefixes)) and self.consume_field(name, value))
        }

    def consume_field(self, name: str, value: Any) -> bool:
        """Like `consume` for a named field: known roles and types always match."""
        key = name.rpartition(".")[2]
        is_named = key in _STRUCTURE_VALUES or key in _NAME_KEYS
        return is_structural(name, value) or self.consume({key: value} if is_named else value)

    def unmatched_fields(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a message with content that the events lack."""
        # Content first, because an id with the same string must not match its line.
        keys = sorted(message, key=lambda key: key not in _CONTENT_KEYS)
        matched = {key for key in keys if self._has_field(key, message[key])}
        return {key: value for key, value in message.items() if key not in matched}

    def _has_field(self, key: str, value: Any) -> bool:
        if key in _STRUCTURE_KEYS or key in _NAME_KEYS:
            return value in _EMPTY or self.consume_field(key, value)
        return self.consume({key: value})


def _join_texts(value: Any) -> Any:
    try:
        return _join_adjacent(decode_json(value))
    except RecursionError:
        return value


def _join_adjacent(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _join_adjacent(decode_json(item)) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    joined: list[Any] = []
    for item in value:
        item = _join_adjacent(item)
        if _is_text(item) and joined and _is_text(joined[-1]):
            joined[-1] = {**joined[-1], "text": joined[-1]["text"] + item["text"]}
        else:
            joined.append(item)
    return joined


def _is_text(part: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("text"), str):
        return False
    return part.get("type", "text") in ("text", "output_text") and part.keys() <= {"type", "text"}


def _get_event_content(event: Event) -> Any:
    if isinstance(event, Message):
        calls = [_get_event_content(call) for call in event.tool_calls]
        return {"content": event.content, "name": event.name, "id": event.call_id, "tool_calls": calls}
    if isinstance(event, ToolCall):
        call = {"name": event.name, "arguments": event.arguments}
        return {**call, "result": event.result, "id": event.call_id}
    if isinstance(event, ModelCall):
        return {"finish_reason": event.finish_reason}
    return event.data


def iterate_content(value: Any) -> Iterator[ContentLine]:
    """Return the content lines of a value in order, including JSON inside strings, without message structure.

    Everything below a key that is not part of a message format is content.
    """
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        item = decode_json(item)
        if isinstance(item, dict):
            fields = [(key, entry) for key, entry in item.items() if path or not is_structural(key, entry)]
            stack.extend((_extend_path(path, str(key)), entry) for key, entry in reversed(fields))
        elif isinstance(item, list):
            stack.extend((path, entry) for entry in reversed(item))
        yield from (ContentLine(path, line) for line in _split_lines(item, path))


def _extend_path(path: tuple[str, ...], key: str) -> tuple[str, ...]:
    if path:
        return (*path, key)
    return () if key in _STRUCTURE_KEYS - _STRUCTURE_VALUES.keys() else (_NAME_KEYS.get(key, key),)


def _split_lines(value: Any, path: tuple[str, ...]) -> Sequence[str]:
    """Return the lines of a value; an empty value is a line only below a key that is not structural."""
    if value in _EMPTY:
        is_data = path and path[0] not in _STRUCTURE_VALUES and path[0] not in _NAME_KEYS
        return (f"\0{value!r}",) if is_data else ()
    if isinstance(value, dict | list):
        return ()
    if isinstance(value, bool):
        return ("true",) if value else ("false",)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return (str(int(value)),)
    return str(value).split("\n")


def is_structural(name: Any, value: Any) -> bool:
    """Return True for a field that describes the structure of a message, such as its role."""
    key = str(name).rpartition(".")[2]
    if key == "index":
        return value == 0 and isinstance(value, int)
    if name == "event.name":
        return isinstance(value, str) and value.startswith("gen_ai.")
    return isinstance(value, str) and value.casefold() in _STRUCTURE_VALUES.get(key, ())


def read_phase(name: str, attributes: Mapping[str, Any]) -> str:
    """Return the phase of a call that a span describes, with its target; an empty string for other spans."""
    target = attributes.get("target")
    if isinstance(target, str) and attributes.get("name") in _PHASES:
        return target
    return name if name in _PHASES and not any(attributes.get(item) for item in TOOL_NAME) else ""


def add_instructions(steps: Sequence[Step], attributes: Iterable[Mapping[str, Any]]) -> list[Step]:
    """Put the system message of an agent span before the first request, if no request has one."""
    completed = list(steps)
    requests = [
        (step.start or 0, number, step.span_call)
        for number, step in enumerate(completed)
        if step.span_call is not None and step.span_call.call_type == "model" and step.span_call.inputs
    ]
    if not requests or any(item.role == "system" for _, _, call in requests for item in call.inputs):
        return completed
    system = next((item for fields in attributes if (item := read_instructions(fields))), None)
    if system is not None:
        _, first, span_call = min(requests, key=lambda request: request[:2])
        span_call = msgspec.structs.replace(span_call, inputs=(*system, *span_call.inputs))
        completed[first] = completed[first]._replace(span_call=span_call)
    return completed


def fold_phases(steps: Sequence[Step]) -> list[Step]:
    """Fold the phases of each call into one call."""
    folded = list(steps)
    if not any(step.phase and step.span_call for step in steps):
        return folded
    by_id = {step.id: number for number, step in reversed(list(enumerate(steps)))}
    siblings: dict[tuple[Any, ...], list[int]] = {}
    for number, step in enumerate(steps):
        if not step.phase or step.span_call is None:
            continue
        if _is_inside_call(steps, by_id, number):
            folded[number] = step._replace(span_call=None)
        elif "." in step.phase:
            key = step.parent, step.span_call.call_type, step.phase.rpartition(".")[0]
            siblings.setdefault(key, []).append(number)
    for numbers in siblings.values():
        _fold_siblings(folded, sorted(numbers, key=lambda number: (steps[number].start or 0, number)))
    return folded


def _is_inside_call(steps: Sequence[Step], by_id: Mapping[Any, int], number: int) -> bool:
    """Return True if the nearest enclosing complete call of a phase has the same type."""
    span_call, visited_numbers = steps[number].span_call, {number}
    index = by_id.get(steps[number].parent or "")
    while index is not None and index not in visited_numbers:
        parent = steps[index]
        if parent.span_call is not None and not parent.phase:
            return span_call is not None and parent.span_call.call_type == span_call.call_type
        visited_numbers.add(index)
        index = by_id.get(parent.parent or "")
    return False


def _fold_siblings(folded: list[Step], numbers: Sequence[int]) -> None:
    """Merge each start with the phases up to the next start into one call."""
    call: int | None = None
    for number in numbers:
        if call is None or folded[number].phase.endswith(".start"):
            call = number
            folded[number] = _set_tool_name(folded[number])
            continue
        folded[call] = _merge_phase(folded[call], folded[number])
        folded[number] = folded[number]._replace(span_call=None)


def _set_tool_name(step: Step) -> Step:
    """Name a tool call after the target of its phase."""
    span_call = step.span_call
    if span_call is None or not isinstance(span_call.call, ToolCall):
        return step
    name = step.phase.rpartition(".")[0].rpartition(".")[2]
    call = msgspec.structs.replace(span_call.call, name=name or span_call.call.name)
    return step._replace(span_call=msgspec.structs.replace(span_call, call=call))


def _merge_phase(step: Step, later: Step) -> Step:
    first, second = step.span_call, later.span_call
    assert first is not None
    assert second is not None
    call = first.call
    if isinstance(call, ToolCall) and isinstance(second.call, ToolCall):
        call = msgspec.structs.replace(
            call,
            arguments=call.arguments or second.call.arguments,
            result=second.call.result if call.result is None else call.result,
            error=call.error if second.call.error is None else second.call.error,
        )
    elif isinstance(call, ModelCall) and isinstance(second.call, ModelCall):
        call = msgspec.structs.replace(
            call,
            usage=second.call.usage if call.usage == Usage() else call.usage,
            finish_reason=call.finish_reason or second.call.finish_reason,
            details={**call.details, **second.call.details},
        )
    merged = msgspec.structs.replace(
        first,
        call=call,
        inputs=first.inputs or second.inputs,
        outputs=first.outputs or second.outputs,
        thoughts=first.thoughts or second.thoughts,
    )
    return step._replace(span_call=merged)
