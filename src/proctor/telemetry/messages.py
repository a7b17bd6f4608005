"""Messages out of the attributes and events of a span, whichever convention wrote them.

Four ways are in use: JSON in `gen_ai.input.messages` and its kin, span events such as
`gen_ai.user.message`, numbered attributes (`gen_ai.prompt.0.content`), and the numbered attributes
of OpenInference (`llm.input_messages.0.message.content`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import Message, Role, ToolCall

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("assistant", "model", "ai"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
_ASKS_FOR_TOOL = ("tool_call", "tool_use", "function_call")
_TELLS_RESULT = ("tool_call_response", "tool_result", "function_call_output")
# OpenInference puts every part of a message into a mapping of one key.
_WRAPPINGS = ("message", "message_content", "tool_call")


class Spoken(NamedTuple):
    """What went into a model call and what came out; `finish` is why the answer ended.

    `unreadable` names the attributes that hold no messages although they should.
    """

    asked: list[Message]
    said: list[Message]
    finish: str | None = None
    unreadable: tuple[str, ...] = ()


def spoken_in(
    attributes: Mapping[str, Any], events: Iterable[tuple[str, Mapping[str, Any]]] = ()
) -> Spoken:
    """The messages of a model call, by the first convention that has some.

    >>> spoken_in({"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi"}).asked
    [Message(role='user', content='Hi')]
    """
    spoken = _in_json(attributes)
    if not (spoken.asked or spoken.said or spoken.unreadable):
        told = [*events, *_events_in(attributes)]
        spoken = _in_events(told)
    if not (spoken.asked or spoken.said or spoken.unreadable):
        spoken = _numbered(attributes)
    return spoken


def decoded(given: Any) -> Any:
    """What an attribute holds: structure out of JSON where it is some, else as it is.

    >>> decoded('{"city": "Paris"}'), decoded('"Paris"'), decoded("42"), decoded("[draft]")
    ({'city': 'Paris'}, 'Paris', '42', '[draft]')
    """
    if isinstance(given, str) and given[:1] in ("{", "[", '"'):
        try:
            return msgspec.json.decode(given)
        except msgspec.DecodeError:
            return given
    return given


def arguments_in(given: Any) -> dict[str, Any]:
    """The arguments of a tool as a mapping; what is none stands under an empty name.

    >>> arguments_in('{"q": "Paris"}'), arguments_in("Paris"), arguments_in(None)
    ({'q': 'Paris'}, {'': 'Paris'}, {})
    """
    found = decoded(given)
    if isinstance(found, Mapping):
        return {str(key): value for key, value in found.items()}
    return {} if found is None or found == "" else {"": _plain(found)}


def _in_json(attributes: Mapping[str, Any]) -> Spoken:
    """JSON in one attribute for each direction."""
    bad: list[str] = []

    def read(name: str, older: str) -> list[Any]:
        given = attributes.get(name)
        found = decoded(attributes.get(older) if given is None else given)
        if isinstance(found, Mapping):
            found = found.get("messages", [found])
        if isinstance(found, str) and given is not None:
            # Cut off, most likely, for these are always lists.
            bad.append(name)
            return []
        return [found] if isinstance(found, str) else list(found or ())

    parts = decoded(attributes.get("gen_ai.system_instructions"))
    parts = parts if isinstance(parts, list | tuple) else [parts] if parts else []
    system = _messages([{"role": "system", "parts": parts}]) if parts else []
    asked = read("gen_ai.input.messages", "gen_ai.prompt")
    said = read("gen_ai.output.messages", "gen_ai.completion")
    answers = _messages(said, "assistant")
    return Spoken([*system, *_messages(asked)], answers, _finish(said), tuple(bad))


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
    for name, data in events:
        speaker = name.removeprefix("gen_ai.").removesuffix(".message")
        if name == "gen_ai.choice":
            message = decoded(data.get("message"))
            said.append({**data, **message} if isinstance(message, Mapping) else data)
        elif name == f"gen_ai.{speaker}.message":
            asked.append({"role": speaker, **data})
        elif name.startswith("gen_ai.") and name != "gen_ai.evaluation.result":
            whole = _in_json(data)
            if whole.asked or whole.said:
                return whole
    return Spoken(_messages(asked), _messages(said, "assistant"), _finish(said))


def _numbered(attributes: Mapping[str, Any]) -> Spoken:
    """One attribute for each field of each message."""
    for before, after in (
        ("gen_ai.prompt", "gen_ai.completion"),
        ("llm.input_messages", "llm.output_messages"),
    ):
        asked, said = _unfolded(attributes, before), _unfolded(attributes, after)
        if asked or said:
            return Spoken(_messages(asked), _messages(said, "assistant"), _finish(said))
    return Spoken([], [])


def _unfolded(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """The list that attributes with dots and numbers stand for."""
    root: dict[str, Any] = {}
    start = prefix + "."
    for name, value in attributes.items():
        if not name.startswith(start):
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
    if tree and all(key.isdecimal() for key in tree):
        return [_lists(tree[key]) for key in sorted(tree, key=int)]
    return {key: _lists(value) for key, value in tree.items()}


def _finish(said: Sequence[Any]) -> str | None:
    reasons = (one.get("finish_reason") for one in said if isinstance(one, Mapping))
    return next((str(reason) for reason in reasons if reason), None)


def _messages(given: Sequence[Any], otherwise: str = "user") -> list[Message]:
    return [message for one in given for message in _read(one, otherwise)]


def _read(given: Any, otherwise: str) -> Iterator[Message]:
    """One message; results of tools that stand in it are messages of their own."""
    if not isinstance(given, Mapping):
        given = {"content": given}
    role = _role(given.get("role") or otherwise)
    calls = [_call(call) for call in _listed(given.get("tool_calls"))]
    results: list[Message] = []
    kept: list[Any] = []
    for part in _parts(given, role):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in _ASKS_FOR_TOOL:
            calls.append(_call(part))
        elif kind in _TELLS_RESULT:
            results.append(_result(part))
        else:
            kept.append(part)
    yield from results
    if kept or calls or not results:
        call_id = given.get("tool_call_id") or (given.get("id") if role == "tool" else None)
        name = given.get("name")
        yield Message(
            role,
            _content(kept),
            name if isinstance(name, str) else None,
            tuple(calls),
            None if call_id is None else str(call_id),
        )


def _parts(given: Mapping[str, Any], role: Role) -> Sequence[Any]:
    """The parts of a message; a text is one. What a tool gave is not looked into."""
    content = next((given[key] for key in ("parts", "contents", "content") if given.get(key)), None)
    if isinstance(content, list | tuple):
        return content
    found = decoded(content)
    if role != "tool" and isinstance(found, list) and found and all(map(_is_part, found)):
        return found
    return [] if content is None else [content]


def _is_part(thing: Any) -> bool:
    kinds = ("text", "reasoning", "thinking", *_ASKS_FOR_TOOL, *_TELLS_RESULT)
    return isinstance(thing, Mapping) and thing.get("type") in kinds


def _role(given: Any) -> Role:
    return _ROLES.get(str(given).casefold(), "user")


def _content(parts: Sequence[Any]) -> Any:
    """The text of a message; its parts where some are no text. What was only thought is left out,
    for no later call repeats it."""
    texts = [_text(part) for part in parts]
    spoken = [
        (part, text)
        for part, text in zip(parts, texts, strict=True)
        if not (isinstance(part, Mapping) and part.get("type") in ("reasoning", "thinking"))
    ]
    if all(text is not None for _, text in spoken):
        return "\n".join(text for _, text in spoken if text)
    return [_plain(part) for part, _ in spoken]


def _text(part: Any) -> str | None:
    """What a part says, or None if it is no text."""
    if isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text"):
        part = part.get("content", part.get("text"))
    return part if isinstance(part, str) else None


def _call(given: Any) -> ToolCall:
    """A tool that was asked for: flat, or with a `function` inside."""
    if not isinstance(given, Mapping):
        return ToolCall(str(given))
    inner = given.get("function")
    inside: Mapping[str, Any] = inner if isinstance(inner, Mapping) else given
    call_id = given.get("id") or given.get("call_id")
    return ToolCall(
        str(inside.get("name", "")),
        arguments_in(inside.get("arguments", inside.get("input"))),
        call_id=None if call_id is None else str(call_id),
    )


def _result(part: Any) -> Message:
    """What a tool gave back to the model."""
    keys = ("response", "result", "content", "output")
    given = next((part[key] for key in keys if key in part), "")
    if isinstance(given, list | tuple):
        given = _content(given)
    ids = (part.get(key) for key in ("id", "tool_use_id", "call_id"))
    call_id = next((str(found) for found in ids if found is not None), None)
    return Message("tool", _plain(given), call_id=call_id)


def _listed(given: Any) -> Sequence[Any]:
    found = decoded(given)
    return found if isinstance(found, list | tuple) else ()


def _plain(value: Any) -> Any:
    """Without the SDK's own kinds of mappings and sequences."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
