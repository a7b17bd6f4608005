"""What spans around and inside a call tell of it, before the steps of a trace become a session.

Instructions may stand on the span of an agent only. And there are spans that are no calls but
moments of one: it starts, goes on, succeeds, finishes. BeeAI's instrumentation writes them with the
kind of the call itself: inside the span of the call, or, in older versions, beside each other with
nothing around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.genai.messages import instructions_of
from proctor.genai.names import TOOL
from proctor.importers.trace import Step
from proctor.records.session import Message, ModelCall, ToolCall, Usage

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
