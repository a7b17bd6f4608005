"""One message of a log, told as the common reader of messages reads it; what it leaves is noted."""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.genai.turns import Turns, turns_in
from proctor.importers.chronicle import Chronicle
from proctor.importers.held import Held
from proctor.importers.shapes import named, odd_parts
from proctor.importers.trace import THINKING
from proctor.records.session import CustomEvent, Event, Message, ToolCall

NAMELESS = "tool call without a name"


def tell_turn(told: Chronicle, message: Any) -> Held:
    """Tell a message: what is said, thought, asked of tools, and what those gave back.

    Gives what stands in the session now, by which to tell what is left of the message.

    >>> chronicle = Chronicle()
    >>> call = {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": 1}}
    >>> held = tell_turn(chronicle, {"role": "assistant", "content": [call]})
    >>> held.rest({"role": "assistant", "content": [call], "stop_reason": "tool_use"})
    {'stop_reason': 'tool_use'}
    """
    return tell_turns(told, turns_in([message]))


def tell_turns(told: Chronicle, turns: Turns) -> Held:
    """Tell messages that are read already; gives what stands in the session now."""
    own: list[Event] = [CustomEvent(THINKING, thought) for thought in turns.thoughts]
    own += [CustomEvent("tool on offer", tool) for tool in turns.tools]
    for event in own:
        assert isinstance(event, CustomEvent)
        told.keep(event.kind, event.data)
    for place, read in enumerate(turns.messages):
        if read.role == "tool":
            own.append(_answer(told, read, has_failed=place in turns.failed))
        else:
            own.append(read)
            _say(told, read)
    for other in turns.alternatives:
        told.pass_over("alternative answer", other)
    return Held(own)


def _say(told: Chronicle, read: Message) -> None:
    calls = [call for call in read.tool_calls if call.name]
    told.say(read.role, read.content, name=read.name, calls=calls)
    for call in read.tool_calls:
        if not call.name:
            told.pass_over(NAMELESS, _without_name(call))
    for part in odd_parts(read.content):
        told.pass_over(f"part: {named(part)}", part)


def _without_name(call: ToolCall) -> dict[str, Any]:
    return {"id": call.call_id, "arguments": call.arguments}


def _answer(told: Chronicle, read: Message, *, has_failed: bool) -> Message:
    """The answer as the session has it: with the name of the tool that was called.

    A tool asks for no tools; what looks like that is left to be noted.
    """
    said = read.content
    error = (said if isinstance(said, str) and said else "it failed") if has_failed else None
    name = told.answer(read.call_id, said, error=error, name=read.name)
    return msgspec.structs.replace(read, name=name, tool_calls=())
