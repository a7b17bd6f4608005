"""Check JSON according to RFC 8259, at any depth, and explain errors in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, NamedTuple
from uuid import UUID

from proctor.evaluators.formats.format_error import FormatError, make_error_at
from proctor.evaluators.score_conversion import preview
from proctor.records import codec
from proctor.records.objects import convert_array, is_array
from proctor.records.sample import type_name

SURROGATE = re.compile("[\ud800-\udfff]")
LONE_SURROGATE = "a lone surrogate is not a character"
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_PLAIN = re.compile(rf"{_STRING.pattern}|true|false|null|-?(?:0(?![0-9])|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING_START = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*', re.DOTALL)
_MISTAKES = (
    (re.compile(r"[-+]?(?:NaN|Infinity|inf\b|nan\b)"), "JSON has no {0}"),
    (re.compile(r"True\b|False\b|None\b"), "{0} is Python, not JSON"),
    (re.compile(r"'"), "strings need double quotes, not single quotes"),
    (re.compile(r"//|/\*|#"), "JSON has no comments"),
    (re.compile(r"\+[0-9]"), "a number must not start with a plus sign"),
    (re.compile(r"-?\.[0-9]"), "a number needs a digit before its decimal point"),
    (re.compile(r"-?0[0-9]"), "a number must not start with a zero"),
    (re.compile(r"\ufeff"), "JSON does not allow a byte order mark"),
    (re.compile(r"```"), "JSON does not allow a Markdown fence"),
)
_MAX_DUPLICATES = 20
# Values that are not replaced by what a codec would write for them.
_LEAVES = (str, int, float, Set, bytes, bytearray, memoryview, type(None))
# JSON has no such values; the codec of an object with fields writes them as strings.
_PYTHON_VALUES = (date, time, timedelta, Decimal, UUID, Enum)
_FIELDS = ("__struct_fields__", "__dataclass_fields__", "model_fields")
_ODD_KEYS = (tuple, bytes, Set)


class JsonCheck(NamedTuple):
    """The first error in JSON text, and duplicate keys, which RFC 8259 allows."""

    error: FormatError | None
    duplicates: list[str]


def check_json(data: str | bytes) -> JsonCheck:
    """Check JSON text; duplicate keys are listed with their positions."""
    if isinstance(data, str):
        text = data
    else:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            before = data[: error.start].decode("utf-8")
            return JsonCheck(make_error_at(before, len(before), "the bytes are not UTF-8"), [])
    if (broken := SURROGATE.search(text)) is not None:
        return JsonCheck(make_error_at(text, broken.start(), LONE_SURROGATE), [])
    duplicates: list[str] = []
    return JsonCheck(_find_error(text, duplicates), duplicates)


def _find_error(text: str, duplicates: list[str]) -> FormatError | None:
    """Read one value and return the first error, without recursion."""
    # The closing bracket of every open object and list, with the keys of an object.
    parents: list[tuple[str, set[str] | None]] = []
    position, state = _skip_space(text, 0), "value"
    while state != "after" or parents:
        sign = text[position : position + 1]
        closing_bracket, keys = parents[-1] if parents else ("", None)
        if state in ("first", "after") and sign == closing_bracket:
            parents.pop()
            position, state = position + 1, "after"
        elif state == "after":
            if sign != ",":
                return _expect_token(text, position, f"',' or '{closing_bracket}'")
            position, state = position + 1, "next"
        elif state == "next" and sign == closing_bracket:
            return make_error_at(text, position, f"trailing comma before '{closing_bracket}'")
        elif state != "value" and keys is not None:
            colon = _read_key(text, position, keys, duplicates)
            if isinstance(colon, FormatError):
                return colon
            position, state = colon + 1, "value"
        elif sign in ("{", "["):
            parents.append(("}", set()) if sign == "{" else ("]", None))
            position, state = position + 1, "first"
        else:
            match = _PLAIN.match(text, position)
            if match is None:
                return _explain_error(text, position, "a value")
            position, state = match.end(), "after"
        position = _skip_space(text, position)
    rest = text[position : position + 1]
    return make_error_at(text, position, f"unexpected {preview(rest)} after the end of the JSON") if rest else None


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _read_key(text: str, position: int, keys: set[str], duplicates: list[str]) -> int | FormatError:
    """Add a key to the keys of its object; return the position of its colon."""
    match = _STRING.match(text, position)
    if match is None:
        return _explain_error(text, position, "a key in double quotes")
    key = json.loads(match[0]) if "\\" in match[0] else match[0][1:-1]
    if key in keys and len(duplicates) < _MAX_DUPLICATES:
        repeated = make_error_at(text, position, "")
        duplicates.append(f"{key} (line {repeated.line}, column {repeated.column})")
    keys.add(key)
    colon = _skip_space(text, match.end())
    return colon if text.startswith(":", colon) else _expect_token(text, colon, "':'")


def _explain_error(text: str, position: int, expected: str) -> FormatError:
    """Explain why there is no value or key at a position."""
    if start := _STRING_START.match(text, position):
        end = start.end()
        if end == len(text):
            return make_error_at(text, position, "the string is not closed")
        if text[end] == "\\":
            return make_error_at(text, end, f"{text[end : end + 2]!r} is not an escape")
        return make_error_at(text, end, f"{text[end]!r} in a string must be escaped")
    for pattern, what in _MISTAKES:
        if (mistake := pattern.match(text, position)) is not None:
            return make_error_at(text, position, what.format(mistake[0]))
    return _expect_token(text, position, expected)


def _expect_token(text: str, position: int, expected: str) -> FormatError:
    actual = preview(text[position]) if position < len(text) else "the end of the text"
    return make_error_at(text, position, f"expected {expected}, got {actual}")


def explain_unserializable(value: Any) -> str:
    """Return why data cannot be serialized as JSON; "" if it can."""
    try:
        codec.to_plain(value)
    except codec.ENCODE_ERRORS as error:
        return f"{type_name(value)} cannot be written as JSON ({type(error).__name__})"
    problems = ((path, _explain_leaf(item)) for path, item in _list_leaves(value))
    return next((f"{path}: {problem}" if path else problem for path, problem in problems if problem), "")


class _OddKey(NamedTuple):
    """A key that JSON cannot have."""

    type_name: str


def _explain_leaf(item: Any) -> str:
    if isinstance(item, _OddKey):
        return f"JSON has no keys of type {item.type_name}"
    if isinstance(item, float) and not isfinite(item):
        return f"JSON has no {item}"
    if isinstance(item, (Set, bytes, bytearray, memoryview, *_PYTHON_VALUES)) and not isinstance(
        item, str | int | float
    ):
        return f"JSON has no {type(item).__name__}"
    if isinstance(item, str) and SURROGATE.search(item):
        return LONE_SURROGATE
    if isinstance(item, dict):
        return f"an object of type {item['$type']} cannot be written as JSON"
    return ""


def _get_fields(item: Any) -> dict[str, Any]:
    """Return the values of the fields of a dataclass, Struct or model."""
    names = next((getattr(type(item), key) for key in _FIELDS if hasattr(type(item), key)), ())
    return {name: getattr(item, name, None) for name in names}


def _list_leaves(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield every value without children, with its path; an object that JSON can only describe counts as one value.

    Other types that a codec writes as JSON are replaced by their JSON; dates and the like only in objects with fields.
    """
    pending: list[tuple[str, Any, bool]] = [("", data, False)]
    while pending:
        path, item, has_codec = pending.pop()
        if not isinstance(item, (dict, list, tuple, *_LEAVES)) and (has_codec or not isinstance(item, _PYTHON_VALUES)):
            fields = _get_fields(item)
            has_codec = has_codec or bool(fields)
            item = fields or (convert_array(item) if is_array(item) else codec.to_plain(item))
        if isinstance(item, dict) and item.keys() != {"$repr", "$type"}:
            yield from ((path, _OddKey(type(key).__name__)) for key in item if isinstance(key, _ODD_KEYS))
            children = item.items()
        elif isinstance(item, list | tuple):
            children = dict(enumerate(item)).items()
        else:
            yield path, item
            continue
        pending += [(f"{path}.{key}" if path else str(key), child, has_codec) for key, child in children]
