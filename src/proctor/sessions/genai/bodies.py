"""What was sent to a model and what came back, as whole bodies, become messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.sessions.genai.turns import Turns, is_bare, is_message, turns_in
from proctor.sessions.genai.values import decoded, plain

_SYSTEM = ("system", "instructions", "system_instruction", "systemInstruction")
_ASKED = ("messages", "contents", "input", "prompt", "new_message")
_CHOICES = ("choices", "candidates")
_GENERATIONS = "generations"
_SAID = (*_CHOICES, _GENERATIONS, "output", "messages", "message")


# Gemini's parts, and what else may stand in one.
_PART_SAYS: dict[str, Any] = {
    "text": str,
    **dict.fromkeys(("functionCall", "function_call", "functionResponse"), Mapping),
    **dict.fromkeys(("function_response", "inlineData", "inline_data", "fileData"), Mapping),
}
_PART_KEYS = frozenset(
    (
        *_PART_SAYS,
        *("type", "$type", "thought", "thoughtSignature", "thought_signature", "file_data"),
        *("videoMetadata", "video_metadata", "executableCode", "codeExecutionResult"),
    )
)
_CAPITALS = frozenset(("Role", "Parts", "Candidates", "Contents", "Choices", "Messages", "Text"))
_DATA = ("args", "arguments", "response", "result")


def asked_in(body: Any) -> Turns | None:
    """The messages of a request; None if it is none that is known.

    >>> asked_in('{"prompt": "Hello", "system": "Be brief."}').messages
    [Message(role='system', content='Be brief.'), Message(role='user', content='Hello')]
    """
    found = _as_message(in_camel_case(decoded(body)), "user")
    if is_message(found):
        return turns_in([found])
    if isinstance(found, Mapping):
        return _requested(found)
    listed = _listed(found)
    return None if listed is None else turns_in(listed)


def _requested(body: Mapping[str, Any]) -> Turns | None:
    given = next((body[key] for key in _ASKED if body.get(key)), None)
    given = decoded(given)
    if isinstance(given, str) or is_message(given):
        asked: Sequence[Any] | None = [given]
    else:
        asked = _listed(given)
    if asked is None:
        return None
    return turns_in([*_system_in(body), *asked])


def _system_in(body: Mapping[str, Any]) -> list[Any]:
    """The instructions that stand beside the messages of a request."""
    config = body.get("config")
    for place in (body, config if isinstance(config, Mapping) else {}):
        for key in _SYSTEM:
            given = place.get(key)
            if isinstance(given, Mapping) and "parts" in given:
                given = given["parts"]
            if isinstance(given, str | list | tuple) and given:
                return [{"role": "system", "content": given}]
    return []


def said_in(body: Any) -> Turns | None:
    """The messages of an answer; None if it is none that is known.

    >>> said_in({"choices": [{"message": {"role": "assistant", "content": "Hi"}}]}).messages
    [Message(role='assistant', content='Hi')]
    """
    found = _as_message(in_camel_case(decoded(body)), "assistant")
    if is_message(found):
        return turns_in([found], "assistant")
    if isinstance(found, Mapping):
        if _is_answer(found):
            return turns_in([found], "assistant")
        key = next((key for key in _SAID if found.get(key)), "")
        given, others = _first_choice(decoded(found.get(key)), key)
        found = [given] if isinstance(given, Mapping) else given
    else:
        others = []
    listed = _listed(found)
    if listed is None:
        return None
    turns = turns_in(listed, "assistant")
    turns.alternatives.extend(map(plain, others))
    return turns


def _first_choice(given: Any, key: str) -> tuple[Any, list[Any]]:
    """An answer without those that a model gave beside it to choose from, and those."""
    if not isinstance(given, list | tuple):
        return given, []
    if key in _CHOICES:
        return _apart(given)
    if key != _GENERATIONS:
        return given, []
    # A list for each question, of one answer or several.
    found = [_apart(one) if isinstance(one, list | tuple) else (one, []) for one in given]
    return [one for one, _ in found], [other for _, others in found for other in others]


def _apart(choices: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The first choice, and the others; some services tell one answer in parts of one index."""
    own = _index(choices[0]) if choices else None
    first = [one for n, one in enumerate(choices) if not n or _index(one) == own is not None]
    others = [one for n, one in enumerate(choices) if n and (own is None or _index(one) != own)]
    return first, others


def _index(choice: Any) -> Any:
    return choice.get("index") if isinstance(choice, Mapping) else None


def instructions_in(answer: Any) -> list[Any]:
    """The instructions that the responses of OpenAI repeat."""
    found = decoded(answer)
    is_response = isinstance(found, Mapping) and found.get("object") == "response"
    return turns_in(_system_in(found)).messages if is_response else []


def _as_message(found: Any, role: str) -> Any:
    """Parts without a message around them, as Gemini has them, as a message."""
    if isinstance(found, Mapping) and isinstance(found.get("parts"), list | tuple):
        return found if "role" in found else {**found, "role": role}
    if isinstance(found, list) and found and all(map(_is_bare_part, found)):
        return {"role": role, "parts": found}
    return found


def _is_bare_part(part: Any) -> bool:
    """True for a part of Gemini's, and not for any mapping that has a text in it."""
    if not isinstance(part, Mapping):
        return False
    told = {key: value for key, value in part.items() if value is not None}
    says = any(isinstance(told.get(key), kind) for key, kind in _PART_SAYS.items())
    return says and told.keys() <= _PART_KEYS


def in_camel_case(found: Any) -> Any:
    """Data with names as C# writes them, which begin with a capital, as the APIs have them.

    >>> in_camel_case({"Role": "model", "Parts": [{"Text": "Hi", "FunctionCall": None}]})
    {'role': 'model', 'parts': [{'text': 'Hi', 'functionCall': None}]}
    """
    first = found[0] if isinstance(found, list) and found else found
    if not isinstance(first, Mapping) or _CAPITALS.isdisjoint(first):
        return found
    return _lowered(found)


def _lowered(found: Any) -> Any:
    if isinstance(found, list):
        return [_lowered(one) for one in found]
    if not isinstance(found, Mapping):
        return found
    # What a tool is given and gives back has names of its own.
    return {
        (name := f"{key[:1].lower()}{key[1:]}"): it if name in _DATA else _lowered(it)
        for key, it in found.items()
        if isinstance(key, str)
    }


def _is_answer(found: Mapping[str, Any]) -> bool:
    """ADK's answers have a content with parts, and no role beside it."""
    content = found.get("content")
    return isinstance(content, Mapping) and isinstance(content.get("parts"), list | tuple)


def _listed(found: Any) -> Sequence[Any] | None:
    """A list of messages, or lists of them; None if something else is among them."""
    if not isinstance(found, list | tuple) or not found:
        return None
    flat: list[Any] = []
    for one in found:
        flat.extend(one if isinstance(one, list | tuple) else [one])
    known = [is_message(one) or _is_wrapped(one) for one in flat]
    is_all = all(told or is_bare(one) for told, one in zip(known, flat, strict=True))
    return flat if any(known) and is_all else None


def _is_wrapped(one: Any) -> bool:
    """A choice, a candidate or a generation, with its message inside."""
    if not isinstance(one, Mapping):
        return False
    return isinstance(one.get("message"), Mapping) or _is_answer(one)
