"""A file of JSON that can be taken apart and put together: lines or one document, texts opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from proctor.sessions.genai.values import decode_json


class Document(NamedTuple):
    """The values of a file; `is_lines` if each stands on a line of its own."""

    values: list[Any]
    is_lines: bool


class Inside:
    """JSON that stands in a text: what is in it can be changed too."""

    def __init__(self, *values: Any) -> None:
        # One, unless it was taken out.
        self.values = [*values]

    def __repr__(self) -> str:
        return f"Inside({self.values!r})"


def taken_apart(data: bytes) -> Document | None:
    """The values of a file, or None if not all of it is JSON that is worth a look.

    >>> taken_apart(b'{"a": 1}').values, taken_apart(b'{"a": ')
    ([{'a': 1}], None)
    """
    for is_lines in (True, False):
        pieces = [line for line in data.split(b"\n") if line.strip()] if is_lines else [data]
        try:
            values = [json.loads(piece) for piece in pieces]
        except (ValueError, RecursionError):
            continue
        try:
            return Document([opened(value) for value in values], is_lines) if values else None
        except RecursionError:
            return None
    return None


def put_together(document: Document) -> bytes:
    """A file again.

    >>> put_together(taken_apart(b'{"a": "[1]"}'))
    b'{"a": "[1]"}'
    """
    values = [closed(value) for value in document.values]
    if not document.is_lines and len(values) != 1:
        values = [values]
    text = "\n".join(json.dumps(value, ensure_ascii=False) for value in values)
    # Half a character is written as JSON can hold it, and read as what no text can hold.
    return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text).encode()


def opened(value: Any) -> Any:
    """A value whose texts, where they are JSON, are opened."""
    if isinstance(value, dict):
        return {key: opened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [opened(item) for item in value]
    try:
        found = decode_json(value)
    except UnicodeEncodeError:
        return value  # half a character: no reader of JSON takes it
    return value if found is value else Inside(opened(found))


def closed(value: Any) -> Any:
    """The same with its texts closed again."""
    if isinstance(value, Inside):
        return json.dumps(closed(value.values[0]), ensure_ascii=False) if value.values else ""
    if isinstance(value, dict):
        return {key: closed(item) for key, item in value.items()}
    return [closed(item) for item in value] if isinstance(value, list) else value


class Spot(NamedTuple):
    """A place in a value that can be written to."""

    holder: Any
    key: Any
    path: tuple[Any, ...]

    @property
    def value(self) -> Any:
        """What stands there."""
        return self.holder[self.key]

    @property
    def is_single(self) -> bool:
        """True if what stands there is a text or a number that tells something."""
        value = self.value
        if isinstance(value, str):
            # Nothing at all, written as JSON in a text.
            return value.strip() not in ("", "null")
        return isinstance(value, int | float) and not isinstance(value, bool)


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[Spot]:
    """Every place in a value, also in its opened texts."""
    if isinstance(value, Inside):
        if not value.values:
            return
        if not isinstance(value.values[0], dict | list):
            yield Spot(value.values, 0, path)
        yield from spots(value.values[0], path)
    elif isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield Spot(value, key, (*path, key))
            yield from spots(value[key], (*path, key))


def copied(value: Any) -> Any:
    """A value of its own, to be changed."""
    if isinstance(value, Inside):
        return Inside(*map(copied, value.values[:1]))
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value
