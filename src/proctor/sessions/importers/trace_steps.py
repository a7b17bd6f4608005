"""What spans around and inside a call tell of it, before the steps of a trace become a session.

Instructions may stand on the span of an agent only. And there are spans that are no calls but
moments of one: it starts, goes on, succeeds, finishes. BeeAI's instrumentation writes them with the
kind of the call itself: inside the span of the call, or, in older versions, beside each other with
nothing around them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import Event, Message, ModelCall, ToolCall, Usage
from proctor.sessions.genai.messages import instructions_of
from proctor.sessions.genai.values import TOOL, decoded
from proctor.sessions.importers.trace import Step

# How messages are put together, not what they say: a session has its own words for these.
_KEYS = frozenset(
    (
        *("role", "type", "index", "event.name", "content", "contents", "parts", "part", "text"),
        *("message", "messages", "choices", "candidates", "generations", "prompt", "system"),
        *("input", "output", "args", "arguments", "tool_call", "tool_calls", "toolCalls", ""),
        *("function", "function_call", "functionCall", "function_response", "functionResponse"),
        *("response", "result", "value", "additional_kwargs"),
        *("kwargs", "data", "instructions", "system_instruction", "systemInstruction", "config"),
        *("custom", "thinking", "reasoning"),
    )
)
# Who is meant: no words that were said, be they the same.
_NAMES = {"name": "name", "toolName": "name", "id": "id", "call_id": "id", "tool_call_id": "id"}
_NAMES |= {"tool_use_id": "id", "toolCallId": "id"}
_NAMES |= {"finish_reason": "finish_reason", "finishReason": "finish_reason"}
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


class Said(NamedTuple):
    """A line of something that was said, or a number, and the keys under which it stands."""

    path: tuple[str, ...]
    line: str


class _Places:
    """Where a line stands, in order; each place is given once."""

    __slots__ = ("_next", "_places")

    def __init__(self) -> None:
        self._places: list[int] = []
        # For each place the number of the next one that may be free, which is its own if it is.
        self._next = [0]

    def put(self, place: int) -> None:
        self._places.append(place)
        self._next.append(len(self._places))

    def first_after(self, place: int) -> int | None:
        """The number of the first free place after one."""
        number = bisect_right(self._places, place)
        while (after := self._next[number]) != number:
            self._next[number] = self._next[after]
            number = after
        return number if number < len(self._places) else None

    def __getitem__(self, number: int) -> int:
        return self._places[number]

    def use(self, number: int) -> None:
        self._next[number] = number + 1


class Held:
    """The texts, numbers, yes and no of some events, line by line; each is there once.

    A value is held if each line of it stands in the events under the same keys, and those under the
    same keys in the same order. What is taken is used up: where a word stands twice in a trace and
    once in the session, the second is not taken for the first. Who said it, and to which of several
    calls an argument belongs, is not looked at: ask of what was read from these events only.

    >>> held = Held([Message("user", "Hi")])
    >>> held.takes('[{"role": "user", "content": "Hi"}]'), held.takes("Hi")
    (True, False)
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._lines: defaultdict[Said, _Places] = defaultdict(_Places)
        for place, said in enumerate(said_in([_told_by(event) for event in events])):
            self._lines[said].put(place)

    def takes(self, value: Any) -> bool:
        """True if all that a value says stands in the events; then it is used up.

        Adjacent texts of an answer are one text in the events, and several in the value.
        """
        return self._takes(value) or ((fused := _fused(value)) != value and self._takes(fused))

    def _takes(self, value: Any) -> bool:
        last: dict[tuple[str, ...], int] = {}
        found: list[tuple[_Places, int]] = []
        for said in said_in(value):
            places = self._lines.get(said)
            number = None if places is None else places.first_after(last.get(said.path, -1))
            if places is None or number is None:
                return False
            last[said.path] = places[number]
            found.append((places, number))
        for places, number in found:
            places.use(number)
        return bool(found)

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
        return is_form(name, value) or self.takes({last: value} if last in _FORM or last in _NAMES else value)

    def rest(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a message that say more than the events hold."""
        # What was said is looked at first: an id of the same word is not to be taken for it.
        keys = sorted(message, key=lambda key: key not in _SAID)
        told = {key for key in keys if self._has_field(key, message[key])}
        return {key: value for key, value in message.items() if key not in told}

    def _has_field(self, key: str, value: Any) -> bool:
        if key in _KEYS or key in _NAMES:
            return value in _NOTHING or self.takes_as(key, value)
        return self.takes({key: value})


def _fused(value: Any) -> Any:
    """The value with adjacent text parts of each list joined to one; itself if there are none."""
    try:
        return _fuse(decoded(value))
    except RecursionError:
        return value


def _fuse(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fuse(decoded(item)) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    fused: list[Any] = []
    for item in value:
        item = _fuse(item)
        if _is_text(item) and fused and _is_text(fused[-1]):
            fused[-1] = {**fused[-1], "text": fused[-1]["text"] + item["text"]}
        else:
            fused.append(item)
    return fused


def _is_text(part: Any) -> bool:
    """True for a part that is nothing but a text."""
    if not isinstance(part, dict):
        return False
    is_text = part.get("type", "text") in ("text", "output_text")
    is_alone = part.keys() <= {"type", "text"}
    return is_text and is_alone and isinstance(part.get("text"), str)


def is_among(name: str, sources: Sequence[str]) -> bool:
    """True if a name is one of some; those that end with a dot stand for all that begin so.

    >>> is_among("gen_ai.prompt.0.role", ["gen_ai.prompt."]), is_among("input", ["input.value"])
    (True, False)
    """
    return any(name == one or (one.endswith(".") and name.startswith(one)) for one in sources)


def _told_by(event: Event) -> Any:
    """What an event says, without its own form."""
    if isinstance(event, Message):
        calls = [_told_by(call) for call in event.tool_calls]
        told = {"content": event.content, "name": event.name, "id": event.call_id}
        return {**told, "tool_calls": calls}
    if isinstance(event, ToolCall):
        given = {"name": event.name, "arguments": event.arguments}
        return {**given, "result": event.result, "id": event.call_id}
    if isinstance(event, ModelCall):
        return {"finish_reason": event.finish_reason}
    return event.data


def said_in(value: Any) -> Iterator[Said]:
    """The lines of something in their order, also in JSON that stands in texts; without its form.

    Under a key that is none of a message's own everything is data, and nothing is form.

    >>> [(".".join(path), line) for path, line in said_in({"role": "user", "content": "Hi\\nyou"})]
    [('', 'Hi'), ('', 'you')]
    >>> value = {"a": {"role": "user", "b": ['{"c": 2}']}}
    >>> [(".".join(path), line) for path, line in said_in(value)]
    [('a.role', 'user'), ('a.b.c', '2')]
    """
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        path, one = waiting.pop()
        one = decoded(one)
        if isinstance(one, dict):
            told = [(key, it) for key, it in one.items() if path or not is_form(key, it)]
            waiting.extend((_below(path, str(key)), it) for key, it in reversed(told))
        elif isinstance(one, list):
            waiting.extend((path, item) for item in reversed(one))
        yield from (Said(path, line) for line in _lines(one, path))


def _below(path: tuple[str, ...], key: str) -> tuple[str, ...]:
    if path:
        return (*path, key)
    return () if key in _KEYS - _FORM.keys() else (_NAMES.get(key, key),)


def _lines(one: Any, path: tuple[str, ...]) -> Sequence[str]:
    """Of a single value; of one that is empty only where it is data."""
    if one in _NOTHING:
        is_data = path and path[0] not in _FORM and path[0] not in _NAMES
        return (f"\0{one!r}",) if is_data else ()
    if isinstance(one, dict | list):
        return ()
    if isinstance(one, bool):
        return ("true",) if one else ("false",)
    if isinstance(one, float) and one.is_integer() and abs(one) < 1e15:
        return (str(int(one)),)
    # Parts of a message are joined line by line.
    return str(one).split("\n")


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


_MOMENTS = frozenset(
    ("start", "success", "finish", "error", "retry", "update", "partial_update", "new_token")
)
_START = "start"


def moment_in(name: str, attributes: Mapping[str, Any]) -> str:
    """Which moment of a call a span is, with what it is a moment of; empty if it is none.

    >>> moment_in("start", {"target": "tool.weather.start", "name": "start"})
    'tool.weather.start'
    >>> moment_in("start", {}), moment_in("start", {"tool.name": "start"})
    ('start', '')
    """
    target = attributes.get("target")
    if isinstance(target, str) and attributes.get("name") in _MOMENTS:
        return target
    return name if name in _MOMENTS and not any(attributes.get(it) for it in TOOL) else ""


def with_instructions(steps: Sequence[Step], attributes: Iterable[Mapping[str, Any]]) -> list[Step]:
    """The steps with the system message of an agent before its first question, if none has one."""
    found = list(steps)
    asking = [
        number
        for number, step in enumerate(found)
        if step.reading is not None and step.reading.kind == "model" and step.reading.asked
    ]
    asked = [message for number in asking for message in _asked(found[number])]
    if not asking or any(message.role == "system" for message in asked):
        return found
    system = next((it for about in attributes if (it := instructions_of(about))), None)
    if system is not None:
        first = min(asking, key=lambda number: (found[number].began or 0, number))
        reading = found[first].reading
        assert reading is not None
        reading = msgspec.structs.replace(reading, asked=(*system, *reading.asked))
        found[first] = found[first]._replace(reading=reading)
    return found


def _asked(step: Step) -> Sequence[Message]:
    return () if step.reading is None else step.reading.asked


def fold_moments(steps: Sequence[Step]) -> list[Step]:
    """The steps with one call for each that was made: its moments are no calls of their own."""
    if not any(step.moment and step.reading for step in steps):
        return list(steps)
    known = {step.id: number for number, step in reversed(list(enumerate(steps)))}
    folded = list(steps)
    beside: dict[tuple[Any, ...], list[int]] = {}
    for number, step in enumerate(steps):
        if not step.moment or step.reading is None:
            continue
        if _is_inside(steps, known, number):
            folded[number] = step._replace(reading=None)
        elif "." in step.moment:
            of = step.moment.rpartition(".")[0]
            beside.setdefault((step.parent, step.reading.kind, of), []).append(number)
    for numbers in beside.values():
        _fold_beside(folded, sorted(numbers, key=lambda number: (steps[number].began or 0, number)))
    return folded


def _is_inside(steps: Sequence[Step], known: Mapping[Any, int], number: int) -> bool:
    """True if the nearest span around that tells of a call is one of the same kind, and whole."""
    own, seen = steps[number].reading, {number}
    place = known.get(steps[number].parent or "")
    while place is not None and place not in seen:
        around = steps[place]
        if around.reading is not None and not around.moment:
            return own is not None and around.reading.kind == own.kind
        seen.add(place)
        place = known.get(around.parent or "")
    return False


def _fold_beside(folded: list[Step], numbers: Sequence[int]) -> None:
    """Make one call of each start and the moments up to the next."""
    call: int | None = None
    for number in numbers:
        is_start = folded[number].moment.endswith(f".{_START}")
        if call is None or is_start:
            call = number
            folded[number] = _named(folded[number])
            continue
        folded[call] = _together(folded[call], folded[number])
        folded[number] = folded[number]._replace(reading=None)


def _named(step: Step) -> Step:
    """The step of a tool with the tool's name, which stands in what the moment is of."""
    reading = step.reading
    if reading is None or not isinstance(reading.call, ToolCall):
        return step
    name = step.moment.rpartition(".")[0].rpartition(".")[2]
    call = msgspec.structs.replace(reading.call, name=name or reading.call.name)
    return step._replace(reading=msgspec.structs.replace(reading, call=call))


def _together(step: Step, later: Step) -> Step:
    """A call with what a later moment tells of it."""
    before, after = step.reading, later.reading
    assert before is not None
    assert after is not None
    call = before.call
    if isinstance(call, ToolCall) and isinstance(after.call, ToolCall):
        call = msgspec.structs.replace(
            call,
            arguments=call.arguments or after.call.arguments,
            result=after.call.result if call.result is None else call.result,
            error=call.error if after.call.error is None else after.call.error,
        )
    elif isinstance(call, ModelCall) and isinstance(after.call, ModelCall):
        call = msgspec.structs.replace(
            call,
            usage=after.call.usage if call.usage == Usage() else call.usage,
            finish_reason=call.finish_reason or after.call.finish_reason,
            details={**call.details, **after.call.details},
        )
    reading = msgspec.structs.replace(
        before,
        call=call,
        asked=before.asked or after.asked,
        said=before.said or after.said,
        thoughts=before.thoughts or after.thoughts,
    )
    return step._replace(reading=reading)
