"""Parse a JSON or JSONL file, including JSON inside of texts, and serialize it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from proctor.sessions.genai.values import decode_json


class Document(NamedTuple):
    """The values of a file; `is_lines` if each is on its own line."""

    values: list[Any]
    is_lines: bool


class EmbeddedJson:
    """JSON inside of a text, parsed so that it can be changed too."""

    def __init__(self, *values: Any) -> None:
        # One value, or none after a deletion.
        self.values = [*values]

    def __repr__(self) -> str:
        return f"EmbeddedJson({self.values!r})"


def parse_document(data: bytes) -> Document | None:
    """Return the values of a file, or None if it is not JSON.

    >>> parse_document(b'{"a": 1}').values, parse_document(b'{"a": ')
    ([{'a': 1}], None)
    """
    for is_lines in (True, False):
        pieces = [line for line in data.split(b"\n") if line.strip()] if is_lines else [data]
        try:
            values = [json.loads(piece) for piece in pieces]
        except (ValueError, RecursionError):
            continue
        try:
            return Document([parse_embedded(value) for value in values], is_lines) if values else None
        except RecursionError:
            return None
    return None


def serialize_document(document: Document) -> bytes:
    """Write the values as a file.

    >>> serialize_document(parse_document(b'{"a": "[1]"}'))
    b'{"a": "[1]"}'
    """
    values = [serialize_embedded(value) for value in document.values]
    if not document.is_lines and len(values) != 1:
        values = [values]
    text = "\n".join(json.dumps(value, ensure_ascii=False) for value in values)
    # A lone surrogate is escaped, because UTF-8 cannot encode it.
    return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text).encode()


def parse_embedded(value: Any) -> Any:
    """Parse the texts in a value that are JSON."""
    if isinstance(value, dict):
        return {key: parse_embedded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [parse_embedded(item) for item in value]
    try:
        result = decode_json(value)
    except UnicodeEncodeError:
        return value  # a lone surrogate is not valid in JSON
    return value if result is value else EmbeddedJson(parse_embedded(result))


def serialize_embedded(value: Any) -> Any:
    """Turn embedded JSON back into texts."""
    if isinstance(value, EmbeddedJson):
        return json.dumps(serialize_embedded(value.values[0]), ensure_ascii=False) if value.values else ""
    if isinstance(value, dict):
        return {key: serialize_embedded(item) for key, item in value.items()}
    return [serialize_embedded(item) for item in value] if isinstance(value, list) else value


class Spot(NamedTuple):
    """A place in a value that can be written to."""

    holder: Any
    key: Any
    path: tuple[Any, ...]

    @property
    def value(self) -> Any:
        """The current value."""
        return self.holder[self.key]

    @property
    def is_single(self) -> bool:
        """True for a number or a text that is not empty."""
        value = self.value
        if isinstance(value, str):
            return value.strip() not in ("", "null")
        return isinstance(value, int | float) and not isinstance(value, bool)


def find_spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[Spot]:
    """Yield every place in a value, including embedded JSON."""
    if isinstance(value, EmbeddedJson):
        if not value.values:
            return
        if not isinstance(value.values[0], dict | list):
            yield Spot(value.values, 0, path)
        yield from find_spots(value.values[0], path)
    elif isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield Spot(value, key, (*path, key))
            yield from find_spots(value[key], (*path, key))


def copy_value(value: Any) -> Any:
    """Return a copy that can be changed."""
    if isinstance(value, EmbeddedJson):
        return EmbeddedJson(*map(copy_value, value.values[:1]))
    if isinstance(value, dict):
        return {key: copy_value(item) for key, item in value.items()}
    return [copy_value(item) for item in value] if isinstance(value, list) else value
