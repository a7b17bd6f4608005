"""Read untrusted JSON: each helper returns a value of one type, or an empty value; and the parts of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.records.numbers import token_count
from proctor.sessions.genai.values import BREAK, join_texts

_EMPTY: Mapping[str, Any] = {}

as_count = token_count


# Known types of content parts.
_PART_TYPES = frozenset((
    "text", "output_text", "input_text", "refusal", "document", "json", "search_result",
    "web_search_result", "web_fetch_result", "image", "image_url", "input_image", "image-data",
    "image-url", "media", "blob", "uri", "audio", "input_audio", "video", "video_url", "file",
    "input_file", "file-data",
))  # fmt: skip
_MEDIA_KEYS = frozenset(("text", "inlineData", "inline_data", "fileData", "file_data", "image_url"))


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, dict) else _EMPTY


def as_list(value: Any) -> Sequence[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else ()


def as_text(value: Any) -> str | None:
    """Return the value if it is a nonempty string."""
    return value if isinstance(value, str) and value else None


def as_number(value: Any) -> float | None:
    """Return the value if it is a finite number of 0 or more."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300:
        return float(value)
    return None


def first_count(fields: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of the named fields that is a count."""
    return next((n for name in names if (n := as_count(fields.get(name))) is not None), None)


def omit_keys(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return a copy of the mapping without some keys."""
    return {key: value for key, value in fields.items() if key not in names}


def take(fields: dict[str, Any], name: str, *types: type) -> Any:
    """Remove a field with a nonempty value of one of the types and return it; else return None and leave the field."""
    value = fields.get(name)
    return fields.pop(name) if value and type(value) in types else None


def remaining_fields(fields: Mapping[str, Any], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are missing from `parsed` or have a different value there."""
    return {key: value for key, value in fields.items() if key not in parsed or value != parsed[key]}


def plain_text(part: Any, types: Sequence[str] = ("text",)) -> str | None:
    """Return the text of a part that contains only text; with empty `types`, parts have no type."""
    fields = as_mapping(part)
    text = fields.get("text")
    is_plain = (len(fields) == 2 and fields.get("type") in types) if types else len(fields) == 1
    return text if is_plain and isinstance(text, str) else None


def join_parts(parts: Sequence[Any], role: str = "user", types: Sequence[str] = ("text",)) -> Any:
    """Return the content of a message: one string, or the list of parts if some are not text."""
    texts = [BREAK if part is BREAK else plain_text(part, types) for part in parts]
    if all(text is not None for text in texts):
        return join_texts(texts, role)
    return [part for part in parts if part is not BREAK]


def extract_text(content: Any, role: str = "user") -> str | None:
    """Return the text of the content of a message, or None."""
    if isinstance(content, str):
        return content or None
    texts = (as_text(as_mapping(part).get("text")) for part in as_list(content))
    return join_texts((text or BREAK for text in texts), role) or None


def find_unknown_parts(content: Any) -> list[Any]:
    """Return the parts of the content whose type is unknown."""
    return [part for part in as_list(content) if not _is_known_part(part)]


def _is_known_part(part: Any) -> bool:
    part_type = as_mapping(part).get("type")
    if part_type is None:
        return isinstance(part, str) or not _MEDIA_KEYS.isdisjoint(as_mapping(part))
    return isinstance(part_type, str) and part_type in _PART_TYPES
