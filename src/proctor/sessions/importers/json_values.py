"""Read values of unknown JSON: each helper returns the value in one type, or an empty value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any

import msgspec

from proctor.records.numbers import token_count
from proctor.records.sample import type_name
from proctor.records.session import CustomEvent, Session, Usage
from proctor.sessions.genai.values import BREAK, join_texts


class ImportedSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One recorded session: its events, first input and last output.

    `id` is the id of the session in the log, `source` the file or file:line. `recorded` contains other
    data of the log: scores, model, title, times, tags. `unknown_parts` counts by type the elements
    that the importer does not understand; each is a `CustomEvent` of the session. `is_named` is True
    if the log names the session explicitly, so that it may be empty.
    """

    id: str
    session: Session
    format: str
    source: str
    input: Any = None
    output: Any = None
    recorded: dict[str, Any] = {}
    unknown_parts: dict[str, int] = {}
    is_named: bool = False


_EXTENSIONS = (".gz", ".jsonl", ".ndjson", ".json")
# Known types of content parts that are not plain text.
_PART_TYPES = frozenset((
    "text", "output_text", "input_text", "refusal", "document", "json", "search_result",
    "web_search_result", "web_fetch_result", "image", "image_url", "input_image", "image-data",
    "image-url", "media", "blob", "uri", "audio", "input_audio", "video", "video_url", "file",
    "input_file", "file-data",
))  # fmt: skip
_MEDIA_KEYS = frozenset(("text", "inlineData", "inline_data", "fileData", "file_data", "image_url"))
_EMPTY: Mapping[str, Any] = {}

as_count = token_count


def wrap_raw_event(kind: str, data: Any) -> CustomEvent:
    """Wrap log data so that no reader mistakes it for a call."""
    return CustomEvent(kind, {"found": data})


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else _EMPTY


def as_list(value: Any) -> Sequence[Any]:
    """Return the value if it is a list, else an empty one."""
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


def unread_fields(fields: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are missing from `read` or have another value there."""
    return {key: value for key, value in fields.items() if key not in read or value != read[key]}


def describe_type(value: Any) -> str:
    """Return a short name for a value of unknown shape: its `type`, or its keys."""
    if not isinstance(value, dict):
        return type_name(value)
    if (declared := as_text(value.get("type"))) is not None:
        return declared[:60]
    keys = [str(key)[:20] for key in list(value)[:4]]
    return f"mapping with {', '.join(keys)}" if keys else "an empty mapping"


def describe_value(value: Any) -> str:
    """Describe an unknown file for an error message: keys, roles, first items."""
    if value == []:
        return "an empty list"
    if not isinstance(value, dict):
        return _describe_list(value) or type_name(value)
    if not value:
        return "an empty object"
    lists = ((key, value[key], _describe_list(value[key])) for key in list(value)[:6])
    fields = (_describe_field(key, item) + (f" ({inner})" if inner else "") for key, item, inner in lists)
    return f"an object with the keys {', '.join(fields)}"


def _describe_list(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return ""
    first = value[0]
    if isinstance(first, dict) and first:
        fields = (_describe_field(key, first[key]) for key in list(first)[:6])
        description = f"an object with the keys {', '.join(fields)}"
    else:
        description = describe_type(first)
    return f"a list of {len(value):,}, first {description}"


def _describe_field(key: str, value: Any) -> str:
    is_type = key in ("role", "type", "from") and isinstance(value, str)
    return f'{key} "{value[:20]}"' if is_type else key[:20]


def plain_text(part: Any, types: Sequence[str] = ("text",)) -> str | None:
    """Return the text of a part that contains only text; with empty `types`, parts have no type."""
    fields = as_mapping(part)
    text = fields.get("text")
    is_plain = (len(fields) == 2 and fields.get("type") in types) if types else len(fields) == 1
    return text if is_plain and isinstance(text, str) else None


def join_parts(parts: Sequence[Any], role: str = "user", types: Sequence[str] = ("text",)) -> Any:
    """Return the content of a message: one text, or the list of parts if some are not text."""
    texts = [BREAK if part is BREAK else plain_text(part, types) for part in parts]
    if all(text is not None for text in texts):
        return join_texts(texts, role)
    return [part for part in parts if part is not BREAK]


def extract_text(content: Any, role: str = "user") -> str | None:
    """Return the text of a message content, or None."""
    if isinstance(content, str):
        return content or None
    texts = (as_text(as_mapping(part).get("text")) for part in as_list(content))
    return join_texts((text or BREAK for text in texts), role) or None


def find_unknown_parts(content: Any) -> list[Any]:
    """Return the parts of a message content whose type is unknown."""
    return [part for part in as_list(content) if not _is_known_part(part)]


def _is_known_part(part: Any) -> bool:
    part_type = as_mapping(part).get("type")
    if part_type is None:
        return isinstance(part, str) or not _MEDIA_KEYS.isdisjoint(as_mapping(part))
    return isinstance(part_type, str) and part_type in _PART_TYPES


def parse_time(value: Any) -> datetime | None:
    """Parse an ISO 8601 time with a time zone; return None for anything else."""
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo is not None else None


def default_session_id(source: str) -> str:
    """Return the file name without extensions, for a session without an id."""
    name, colon, line = source.rpartition(":")
    if not (colon and line.isdigit()):
        name, colon, line = source, "", ""
    name = PurePath(name).name
    for extension in _EXTENSIONS:
        name = name.removesuffix(extension)
    return f"{name or 'session'}{colon}{line}"


def read_gemini_usage(fields: Mapping[str, Any]) -> Usage:
    """Return the token usage in the format of the Gemini API.

    Gemini counts thoughts separately from the answer; compatible servers include them. The total
    shows which of the two it is.
    """
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")
    input_tokens, output_tokens, thoughts, total = (as_count(fields.get(name)) for name in names)
    if thoughts is not None and total != (input_tokens or 0) + (output_tokens or 0):
        output_tokens = (output_tokens or 0) + thoughts
    return Usage(input_tokens, output_tokens, as_count(fields.get("cachedContentTokenCount")))


def flatten_lists(values: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Yield the values of a file with their lines; a list yields its items."""
    for line, value in values:
        if isinstance(value, list) and value:
            for item in value:
                yield line, item
        else:
            yield line, value
