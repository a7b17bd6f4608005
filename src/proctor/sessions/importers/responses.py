"""What a model answered and used, where a log has requests with their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import CustomEvent, Event, Message, ToolCall, Usage
from proctor.sessions.genai.bodies import said_in
from proctor.sessions.genai.turns import Turns, is_message, role_of, turns_in
from proctor.sessions.genai.values import decoded
from proctor.sessions.importers.chronicle import Chronicle
from proctor.sessions.importers.shapes import (
    amount,
    count,
    gemini_usage,
    items,
    mapping,
    named,
    number_at,
    odd_parts,
    text,
    without,
)
from proctor.sessions.importers.trace import THINKING
from proctor.sessions.importers.trace_steps import Held

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
            own.append(_answer_of_turn(told, read, has_failed=place in turns.failed))
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


def _answer_of_turn(told: Chronicle, read: Message, *, has_failed: bool) -> Message:
    """The answer as the session has it: with the name of the tool that was called.

    A tool asks for no tools; what looks like that is left to be noted.
    """
    said = read.content
    error = (said if isinstance(said, str) and said else "it failed") if has_failed else None
    name = told.answer(read.call_id, said, error=error, name=read.name)
    return msgspec.structs.replace(read, name=name, tool_calls=())


# What stands around an answer.
_AROUND = ("id", "object", "created", "model", "usage", "usageMetadata")


def is_response(found: Mapping[str, Any]) -> bool:
    """True for what OpenAI's Responses API was asked and answered, in one object."""
    is_one = found.get("object") == "response" or isinstance(found.get("input"), str | list)
    return is_one and _has_items(found)


def is_batched(found: Mapping[str, Any]) -> bool:
    """True for a line that OpenAI's Batch API gives back: an answer, or why there is none."""
    if not isinstance(found.get("custom_id"), str):
        return False
    has_body = isinstance(mapping(found.get("response")).get("body"), dict)
    return has_body or (found.get("response", 0) is None and bool(mapping(found.get("error"))))


def body_of(found: Mapping[str, Any]) -> Any:
    """The response of a request that was logged with it; a batch has the status around it."""
    given = decoded(found.get("response"))
    inside = mapping(given).get("body")
    return inside if is_batched(found) and isinstance(inside, dict) else given


def _has_items(found: Mapping[str, Any]) -> bool:
    return any(map(is_message, items(found.get("output"))))


def tell_response(told: Chronicle, found: Mapping[str, Any], messages: Sequence[Any]) -> None:
    """Tell the response to a request; what is no answer of any API that is known is passed over.

    An answer with which the messages end already is not told again. Tokens that the messages
    themselves tell are not counted again.
    """
    given = body_of(found)
    # Some logs have the answer's own fields beside the request's.
    body = mapping(given) or found
    beside = {"output": found["output"]} if is_response(found) else {"choices": found.get("choices")}
    answer = _answer(told, given or beside)
    is_repeated = answer is not None and _ends_with(messages, answer)
    if answer is None:
        if given and any(without(given, *_AROUND).values() if isinstance(given, dict) else [given]):
            told.pass_over("response", given)
    elif not is_repeated:
        tell_turns(told, answer)
    if is_batched(found) and found.get("error"):
        told.pass_over("error", found["error"])
    counted = messages[-1:] if is_repeated else () if body is given else messages
    if not any(map(has_usage, counted)):
        model = text(body.get("model")) or text(found.get("model"))
        _count(told, body, model, answer)


def _answer(told: Chronicle, given: Any) -> Turns | None:
    if isinstance(given, str):
        return turns_in([given], "assistant")
    found = mapping(given)
    if not _has_items(found):
        return said_in(given)
    for item in found["output"]:
        if not is_message(item):
            told.pass_over(f"message: {named(item)}", item)
    return turns_in(list(filter(is_message, found["output"])), "assistant")


def _ends_with(messages: Sequence[Any], answer: Turns) -> bool:
    said = answer.messages
    return bool(said) and turns_in(messages[-len(said) :]).messages[-len(said) :] == said


def _count(told: Chronicle, body: Mapping[str, Any], model: str | None, answer: Turns | None) -> None:
    usage = usage_of(mapping(body.get("usage")))
    if usage == Usage():
        usage = gemini_usage(mapping(body.get("usageMetadata")))
    if usage != Usage() or (model and answer is not None):
        endings = () if answer is None else answer.endings
        ended = next(iter(endings), None) or text(body.get("stop_reason"))
        ended = ended or text(mapping(body.get("incomplete_details")).get("reason"))
        told.used("response", model, usage, finish_reason=ended)


def has_usage(message: Any) -> bool:
    """True if a message itself tells what the model used for it."""
    found = mapping(message)
    role = text(found.get("role"))
    is_answer = role is not None and role_of(role) == "assistant"
    return is_answer and usage_of(mapping(found.get("usage"))) != Usage()


def usage_of(found: Mapping[str, Any]) -> Usage:
    """Tokens as OpenAI's API tells them, in its older or its newer part, or as Anthropic's does.

    Anthropic's stand beside each other: what went through the cache is not in the input.

    >>> usage_of({"prompt_tokens": 9, "completion_tokens": 2}).total_tokens
    11
    >>> usage_of({"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 2})
    Usage(input_tokens=105, output_tokens=2, cached_tokens=100)
    """
    inside = mapping(found.get("prompt_tokens_details")) or mapping(found.get("input_tokens_details"))
    asked = number_at(found, "prompt_tokens", "input_tokens")
    read = number_at(found, "cache_read_input_tokens")
    written = number_at(found, "cache_creation_input_tokens")
    if "prompt_tokens" not in found and (read or written):
        asked = count((asked or 0) + (read or 0) + (written or 0))
    return Usage(
        asked,
        number_at(found, "completion_tokens", "output_tokens"),
        number_at(inside, "cached_tokens") if read is None else read,
        amount(found.get("cost")),
        written,
    )
