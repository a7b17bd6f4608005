"""Messages out of the attributes and events of a span, whichever convention wrote them.

These ways are in use: JSON in `gen_ai.input.messages` and its kin, span events such as
`gen_ai.user.message`, numbered attributes (`gen_ai.prompt.0.content`), the numbered attributes
of OpenInference (`llm.input_messages.0.message.content`), those of the Vercel AI SDK
(`ai.prompt.messages`), and whole bodies (`input.value`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from proctor.records.session import Message
from proctor.sessions.genai.bodies import asked_in, said_in
from proctor.sessions.genai.turns import Turns, turns_in
from proctor.sessions.genai.values import decoded

# OpenInference puts every part of a message into a mapping of one key.
_WRAPPINGS = ("message", "message_content", "tool_call")
_NUMBERED = (("gen_ai.prompt", "gen_ai.completion"), ("llm.input_messages", "llm.output_messages"))
_BODIES = (("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"), ("input.value", "output.value"))
_VERCEL_SAID = ("ai.response.text", "ai.response.object", "ai.response.toolCalls")
# No name has more dots than this, and no list that is meant is longer.
_MOST_STEPS = 16
_MOST_DIGITS = 6

_INSTRUCTIONS = "gen_ai.system_instructions"

# Where messages come from that stand in events, beside the names of attributes.
EVENTS = "events"

Body = Callable[[Any], Turns | None]


class Spoken(NamedTuple):
    """What went into a model call and what came out; `finish` is why the answer ended.

    `unreadable` names the attributes that hold no messages although they should. `thoughts` are
    parts of messages that nobody said: they are left out of these, for no later call repeats them.
    `asked_from` and `said_from` name the attributes that were read; a name that ends with a dot
    stands for all that begin with it.
    """

    asked: list[Message]
    said: list[Message]
    finish: str | None = None
    unreadable: tuple[str, ...] = ()
    thoughts: tuple[Any, ...] = ()
    asked_from: tuple[str, ...] = ()
    said_from: tuple[str, ...] = ()


def spoken_in(attributes: Mapping[str, Any], events: Iterable[tuple[str, Mapping[str, Any]]] = ()) -> Spoken:
    """The messages of a model call, each direction by the first convention that has it.

    >>> spoken_in({"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi"}).asked
    [Message(role='user', content='Hi')]
    """
    spoken = _in_json(attributes)
    noted = [*events, *_events_in(attributes)]
    if not (spoken.asked and spoken.said):
        spoken = _both(spoken, _in_events(noted))
    for read in _others(attributes):
        if (spoken.asked and spoken.said) or spoken.unreadable:
            break
        spoken = _both(spoken, read())
    return _with_instructions(spoken, attributes, noted)


def instructions_of(attributes: Mapping[str, Any]) -> list[Message]:
    """The system message of a span that has it beside the messages.

    >>> instructions_of({"gen_ai.system_instructions": '[{"content": "Be brief."}]'})
    [Message(role='system', content='Be brief.')]
    """
    parts = decoded(attributes.get(_INSTRUCTIONS))
    if not parts:
        return []
    parts = parts if isinstance(parts, list | tuple) else [parts]
    return turns_in([{"role": "system", "parts": parts}]).messages


def _with_instructions(
    spoken: Spoken, attributes: Mapping[str, Any], events: Iterable[tuple[str, Mapping[str, Any]]]
) -> Spoken:
    """The messages after the system message that stands beside them, unless it is among them."""
    system = instructions_of(attributes)
    source = [_INSTRUCTIONS] if system else []
    for name, data in events if not system else ():
        if name.startswith("gen_ai.") and (system := instructions_of(data)):
            source = [EVENTS]
            break
    if not system or all(message in spoken.asked for message in system):
        return spoken
    asked_from = spoken.asked_from if spoken.asked else ()
    return spoken._replace(
        asked=[*system, *spoken.asked], asked_from=tuple(dict.fromkeys((*source, *asked_from)))
    )


def _others(attributes: Mapping[str, Any]) -> Iterator[Callable[[], Spoken]]:
    """The ways that come after JSON and events, none of which is gone unless it must be."""
    for before, after in _NUMBERED:
        yield partial(_numbered, attributes, before, after)
    yield partial(_of_vercel, attributes)
    for before, after in _BODIES:
        yield partial(_in_bodies, attributes, before, after)


def _both(first: Spoken, second: Spoken) -> Spoken:
    """What the first lacks is taken from the second."""
    return Spoken(
        first.asked or second.asked,
        first.said or second.said,
        first.finish or second.finish,
        (*first.unreadable, *second.unreadable),
        first.thoughts or second.thoughts,
        first.asked_from if first.asked else second.asked_from,
        first.said_from if first.said else second.said_from,
    )


def _spoken(
    asked: Turns | None, said: Turns | None, asked_from: Sequence[str], said_from: Sequence[str]
) -> Spoken:
    asked, said = asked or turns_in(()), said or turns_in(())
    return Spoken(
        asked.messages,
        said.messages,
        next(iter(said.endings), None),
        thoughts=(*asked.thoughts, *said.thoughts),
        asked_from=tuple(asked_from),
        said_from=tuple(said_from),
    )


def _in_json(attributes: Mapping[str, Any]) -> Spoken:
    """JSON in one attribute for each direction."""
    bad: list[str] = []

    def read(name: str, older: str, body: Body, speaker: str) -> Turns | None:
        found = decoded(attributes.get(name))
        if isinstance(found, list | tuple):
            return turns_in(found, speaker)
        if found is None:
            found = decoded(attributes.get(older))
        elif not isinstance(found, Mapping):
            # Cut off, most likely, for these are always lists.
            bad.append(name)
            return None
        if found is None or found == "":
            return None
        listed = found if isinstance(found, list | tuple) else [found]
        return body(found) or turns_in(listed, speaker)

    asked = read("gen_ai.input.messages", "gen_ai.prompt", asked_in, "user")
    said = read("gen_ai.output.messages", "gen_ai.completion", said_in, "assistant")
    asked_from = _present(attributes, "gen_ai.input.messages", "gen_ai.prompt")
    said_from = _present(attributes, "gen_ai.output.messages", "gen_ai.completion")
    return _spoken(asked, said, asked_from, said_from)._replace(unreadable=tuple(bad))


def _present(attributes: Mapping[str, Any], *given: str) -> list[str]:
    return [name for name in given if decoded(attributes.get(name)) is not None][:1]


def _events_in(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Events that stand as JSON in an attribute, each with its name."""
    found = decoded(attributes.get("events"))
    for event in found if isinstance(found, list) else ():
        if isinstance(event, Mapping):
            yield str(event.get("event.name", "")), event


def _in_events(events: Sequence[tuple[str, Mapping[str, Any]]]) -> Spoken:
    """One event for each message, or one for each direction."""
    asked: list[Any] = []
    said: list[Any] = []
    whole = Spoken([], [])
    for name, data in events:
        speaker = name.removeprefix("gen_ai.").removesuffix(".message")
        if name == "gen_ai.choice":
            message = decoded(data.get("message"))
            said.append({**data, **message} if isinstance(message, Mapping) else data)
        elif name == f"gen_ai.{speaker}.message":
            asked.append({"role": speaker, **data})
        elif name.startswith("gen_ai.") and name != "gen_ai.evaluation.result":
            whole = _both(whole, _in_json(data))
    spoken = _both(whole, _spoken(turns_in(asked), turns_in(said, "assistant"), (), ()))
    return spoken._replace(asked_from=(EVENTS,), said_from=(EVENTS,))


def _in_bodies(attributes: Mapping[str, Any], before: str, after: str) -> Spoken:
    asked, said = asked_in(attributes.get(before)), said_in(attributes.get(after))
    return _spoken(asked, said, [before], [after])


def _of_vercel(attributes: Mapping[str, Any]) -> Spoken:
    """What the Vercel AI SDK writes around a call, and around the whole of several."""
    asked, read = asked_in(attributes.get("ai.prompt.messages")), "ai.prompt.messages"
    if asked is None:
        asked, read = asked_in(attributes.get("ai.prompt")), "ai.prompt"
    told = {
        "content": attributes.get("ai.response.text") or attributes.get("ai.response.object"),
        "tool_calls": attributes.get("ai.response.toolCalls"),
    }
    said = turns_in([told], "assistant") if any(told.values()) else None
    return _spoken(asked, said, [read], _VERCEL_SAID)


def _numbered(attributes: Mapping[str, Any], before: str, after: str) -> Spoken:
    """One attribute for each field of each message."""
    asked, said = _unfolded(attributes, before), _unfolded(attributes, after)
    return _spoken(turns_in(asked), turns_in(said, "assistant"), [before + "."], [after + "."])


def _unfolded(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """The list that attributes with dots and numbers stand for."""
    root: dict[str, Any] = {}
    start = prefix + "."
    for name, value in attributes.items():
        if not name.startswith(start) or name.count(".") > _MOST_STEPS:
            continue
        *path, last = name[len(start) :].split(".")
        place = root
        for step in path:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                inner = place[step] = {"": inner}
            place = inner
        place[last] = value
    found = _lists(root)
    return found if isinstance(found, list) else []


def _lists(tree: Any) -> Any:
    """The same with numbered mappings as lists, and without OpenInference's wrappings."""
    if not isinstance(tree, dict):
        return tree
    if len(tree) == 1 and (key := next(iter(tree))) in _WRAPPINGS:
        return _lists(tree[key])
    if tree and all(key.isdecimal() and len(key) <= _MOST_DIGITS for key in tree):
        return [_lists(tree[key]) for key in sorted(tree, key=int)]
    return {key: _lists(value) for key, value in tree.items()}
