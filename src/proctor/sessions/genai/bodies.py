"""Parse request and response bodies of model APIs into messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.sessions.genai.message_parser import ParsedMessages, is_bare_message, is_message, parse_messages
from proctor.sessions.genai.values import decode_json, to_plain

_SYSTEM = ("system", "instructions", "system_instruction", "systemInstruction")
_INPUTS = ("messages", "contents", "input", "prompt", "new_message")
_CHOICES = ("choices", "candidates")
_GENERATIONS = "generations"
_OUTPUTS = (*_CHOICES, _GENERATIONS, "output", "messages", "message")
# The content keys of a Gemini part, and its other keys.
_PART_CONTENT: dict[str, Any] = {
    "text": str,
    **dict.fromkeys(("functionCall", "function_call", "functionResponse"), Mapping),
    **dict.fromkeys(("function_response", "inlineData", "inline_data", "fileData"), Mapping),
}
_PART_KEYS = frozenset((
    *_PART_CONTENT, "type", "$type", "thought", "thoughtSignature", "thought_signature", "file_data",
    "videoMetadata", "video_metadata", "executableCode", "codeExecutionResult",
))  # fmt: skip
_PASCAL_CASE = frozenset(("Role", "Parts", "Candidates", "Contents", "Choices", "Messages", "Text"))
_TOOL_DATA = ("args", "arguments", "response", "result")


def parse_request(body: Any) -> ParsedMessages | None:
    """Parse the messages of a request; return None if its format is unknown."""
    value = _wrap_parts(to_camel_case(decode_json(body)), "user")
    if is_message(value):
        return parse_messages([value])
    system: list[Any] = []
    if isinstance(value, Mapping):
        system = _find_system(value)
        value = decode_json(next((value[key] for key in _INPUTS if value.get(key)), None))
        if isinstance(value, str) or is_message(value):
            return parse_messages([*system, value])
    items = _flatten(value)
    return None if items is None else parse_messages([*system, *items])


def _find_system(body: Mapping[str, Any]) -> list[Any]:
    """Return the instructions that a request has outside its messages."""
    config = body.get("config")
    for fields in (body, config if isinstance(config, Mapping) else {}):
        for key in _SYSTEM:
            content = fields.get(key)
            if isinstance(content, Mapping) and "parts" in content:
                content = content["parts"]
            if isinstance(content, str | list | tuple) and content:
                return [{"role": "system", "content": content}]
    return []


def parse_response(body: Any) -> ParsedMessages | None:
    """Parse the messages of a response; return None if its format is unknown."""
    value = _wrap_parts(to_camel_case(decode_json(body)), "assistant")
    if is_message(value):
        return parse_messages([value], "assistant")
    alternatives: list[Any] = []
    if isinstance(value, Mapping):
        if _has_content_parts(value):
            return parse_messages([value], "assistant")
        key = next((key for key in _OUTPUTS if value.get(key)), "")
        value, alternatives = _split_choices(decode_json(value.get(key)), key)
        value = [value] if isinstance(value, Mapping) else value
    items = _flatten(value)
    if items is None:
        return None
    parsed = parse_messages(items, "assistant")
    parsed.alternatives.extend(map(to_plain, alternatives))
    return parsed


def _split_choices(value: Any, key: str) -> tuple[Any, list[Any]]:
    if not isinstance(value, list | tuple) or key not in (*_CHOICES, _GENERATIONS):
        return value, []
    if key in _CHOICES:
        return _split_first(value)
    # One list of choices per prompt.
    pairs = [_split_first(item) if isinstance(item, list | tuple) else (item, []) for item in value]
    return [first for first, _ in pairs], [other for _, others in pairs for other in others]


def _split_first(choices: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the pieces of the first choice, which some servers split, and the other choices."""
    pieces: list[Any] = list(choices[:1])
    others: list[Any] = []
    indexes = [choice.get("index") if isinstance(choice, Mapping) else None for choice in choices]
    for choice, index in zip(choices[1:], indexes[1:], strict=True):
        (pieces if index is not None and index == indexes[0] else others).append(choice)
    return pieces, others


def parse_response_instructions(body: Any) -> list[Any]:
    """Parse the instructions that OpenAI's responses repeat."""
    value = decode_json(body)
    is_response = isinstance(value, Mapping) and value.get("object") == "response"
    return parse_messages(_find_system(value)).messages if is_response else []


def _wrap_parts(value: Any, role: str) -> Any:
    """Make a message of Gemini parts that have no role."""
    if isinstance(value, Mapping) and isinstance(value.get("parts"), list | tuple):
        return value if "role" in value else {**value, "role": role}
    if isinstance(value, list) and value and all(map(_is_gemini_part, value)):
        return {"role": role, "parts": value}
    return value


def _is_gemini_part(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    fields = {key: value for key, value in part.items() if value is not None}
    has_content = any(isinstance(fields.get(key), item) for key, item in _PART_CONTENT.items())
    return has_content and fields.keys() <= _PART_KEYS


def to_camel_case(value: Any) -> Any:
    """Lowercase the first letter of keys that C# clients capitalize."""
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, Mapping) or _PASCAL_CASE.isdisjoint(first):
        return value
    return _lower_keys(value)


def _lower_keys(value: Any) -> Any:
    if isinstance(value, list):
        return [_lower_keys(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    # The keys of tool arguments and results are not converted.
    return {
        (name := f"{key[:1].lower()}{key[1:]}"): entry if name in _TOOL_DATA else _lower_keys(entry)
        for key, entry in value.items()
        if isinstance(key, str)
    }


def _has_content_parts(fields: Mapping[str, Any]) -> bool:
    """Return True for a response of ADK: content with parts, without a role."""
    content = fields.get("content")
    return isinstance(content, Mapping) and isinstance(content.get("parts"), list | tuple)


def _flatten(value: Any) -> Sequence[Any] | None:
    """Flatten lists of messages; return None if they contain anything else."""
    if not isinstance(value, list | tuple) or not value:
        return None
    items: list[Any] = []
    for item in value:
        items.extend(item if isinstance(item, list | tuple) else [item])
    is_known = [is_message(item) or _is_wrapped(item) for item in items]
    is_complete = all(
        is_known_message or is_bare_message(entry) for is_known_message, entry in zip(is_known, items, strict=True)
    )
    return items if any(is_known) and is_complete else None


def _is_wrapped(value: Any) -> bool:
    """Return True for a choice, candidate or generation with its message inside."""
    return isinstance(value, Mapping) and (isinstance(value.get("message"), Mapping) or _has_content_parts(value))
