"""JSON to the letter of RFC 8259: a text is read without building it, at any depth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any, NamedTuple, NoReturn

from proctor.evaluators.formats.fault import Fault, at, found_at
from proctor.records import codec
from proctor.records.sample import type_name

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")
# As much of a string as is well formed: the fault is behind it.
_STRING_START = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*', re.DOTALL)
SURROGATE = re.compile("[\ud800-\udfff]")
HALF_A_PAIR = "half a surrogate pair is no character"
_MISTAKES = (
    (re.compile(r"[-+]?(?:NaN|Infinity|inf\b|nan\b)"), "JSON has no {0}"),
    (re.compile(r"True\b|False\b|None\b"), "{0} is written as Python does, not as JSON does"),
    (re.compile(r"'"), "strings stand in double quotes, not in single ones"),
    (re.compile(r"//|/\*|#"), "JSON has no comments"),
    (re.compile(r"\+[0-9]"), "a number has no plus sign"),
    (re.compile(r"-?\.[0-9]"), "a number has a digit before its point"),
    (re.compile(r"\ufeff"), "a byte order mark is no part of JSON"),
    (re.compile(r"```"), "a Markdown fence is no part of JSON"),
)
_NAMED_TWICE = 20


class Reading(NamedTuple):
    """What a reading of a JSON text found: a fault or none, and keys that an object has twice."""

    fault: Fault | None
    duplicates: list[str]


class _Malformed(Exception):
    def __init__(self, position: int, what: str) -> None:
        self.position = position
        self.what = what


def check_json(data: str | bytes) -> Reading:
    """Read a JSON text and say what is wrong with it; the standard allows keys to repeat."""
    if isinstance(data, str):
        text = data
    else:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            before = data[: error.start].decode("utf-8")
            return Reading(at(before, len(before), "the bytes are not UTF-8"), [])
    if (broken := SURROGATE.search(text)) is not None:
        return Reading(at(text, broken.start(), HALF_A_PAIR), [])
    scan = _Scan(text)
    try:
        scan.run()
    except _Malformed as error:
        return Reading(at(text, error.position, error.what), scan.duplicates)
    return Reading(None, scan.duplicates)


class _Scan:
    """One pass over a text. What is open is kept in a list, so that depth costs no stack."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.duplicates: list[str] = []
        # For every open object the keys that it has, for every open list None.
        self.open: list[set[str] | None] = []

    def run(self) -> None:
        """Read one value and nothing behind it."""
        self._skip()
        self._value()
        while self.open:
            self._skip()
            keys = self.open[-1]
            closing = "]" if keys is None else "}"
            if self._take(closing):
                self.open.pop()
            elif self._take(","):
                self._skip()
                self._refuse_trailing(closing)
                self._member(keys)
            else:
                self._expected(f"',' or '{closing}'")
        self._skip()
        if self.position < len(self.text):
            self._fail(f"the JSON ends before this, found {found_at(self.text, self.position)}")

    def _member(self, keys: set[str] | None) -> None:
        """What stands between two commas: a value, in an object with its key."""
        if keys is not None:
            self._label(keys)
        self._value()

    def _value(self) -> None:
        """A whole plain value, or the beginning of an object or a list and its first member."""
        while self.text.startswith(("{", "["), self.position):
            keys: set[str] | None = set() if self.text[self.position] == "{" else None
            self.position += 1
            closing = "]" if keys is None else "}"
            self.open.append(keys)
            self._skip()
            if self._take(closing):
                self.open.pop()
                return
            if keys is not None:
                self._label(keys)
        self._plain()

    def _plain(self) -> None:
        for pattern in (_STRING, _NUMBER, _WORD):
            found = pattern.match(self.text, self.position)
            if found is not None:
                self.position = found.end()
                self._refuse_more_digits(found)
                return
        if self.text.startswith('"', self.position):
            self._broken_string()
        self._mistaken("a value")

    def _label(self, keys: set[str]) -> None:
        """The key of a member and its colon."""
        found = _STRING.match(self.text, self.position)
        if found is None:
            if self.text.startswith('"', self.position):
                self._broken_string()
            self._mistaken("a key in double quotes")
        written = found[0]
        key = json.loads(written) if "\\" in written else written[1:-1]
        if key in keys and len(self.duplicates) < _NAMED_TWICE:
            place = at(self.text, self.position, "")
            self.duplicates.append(f"{key} (line {place.line}, column {place.column})")
        keys.add(key)
        self.position = found.end()
        self._skip()
        if not self._take(":"):
            self._expected("':'")
        self._skip()

    def _refuse_more_digits(self, found: re.Match[str]) -> None:
        if found.re is _NUMBER and found[0] in ("0", "-0"):
            following = self.text[self.position : self.position + 1]
            if "0" <= following <= "9":
                self._fail("a number does not begin with a zero", found.start())

    def _refuse_trailing(self, closing: str) -> None:
        if self.text.startswith(closing, self.position):
            self._fail(f"a comma stands before '{closing}'")

    def _broken_string(self) -> NoReturn:
        found = _STRING_START.match(self.text, self.position)
        end = found.end() if found else self.position
        if end == len(self.text):
            self._fail("the string is not closed")
        if self.text[end] == "\\":
            self._fail(f"there is no escape {self.text[end : end + 2]!r}", end)
        self._fail(f"{self.text[end]!r} in a string must be escaped", end)

    def _mistaken(self, wanted: str) -> NoReturn:
        for pattern, what in _MISTAKES:
            if (found := pattern.match(self.text, self.position)) is not None:
                self._fail(what.format(found[0]))
        self._expected(wanted)

    def _expected(self, wanted: str) -> NoReturn:
        self._fail(f"expected {wanted}, found {found_at(self.text, self.position)}")

    def _fail(self, what: str, position: int | None = None) -> NoReturn:
        raise _Malformed(self.position if position is None else position, what)

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.position)
        self.position = found.end() if found else self.position

    def _take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.position):
            self.position += 1
            return True
        return False


def explain_unwritable(value: Any) -> str:
    """Why data cannot be written as JSON, or ""."""
    try:
        written = codec.plain(value)
    except codec.UNWRITABLE as error:
        return f"{type_name(value)} cannot be written as JSON ({type(error).__name__})"
    for path, item in _leaves(written):
        place = f"{path}: " if path else ""
        if isinstance(item, float) and not isfinite(item):
            return f"{place}JSON has no {item}"
        if isinstance(item, str) and SURROGATE.search(item):
            return f"{place}{HALF_A_PAIR}"
        if isinstance(item, dict):
            return f"{place}an object of type {item['$type']} cannot be written as JSON"
    return ""


def _leaves(written: Any) -> Iterator[tuple[str, Any]]:
    """Every plain value with its path; an object that was only described counts as plain."""
    waiting: list[tuple[str, Any]] = [("", written)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict) and item.keys() != {"$repr", "$type"}:
            inner = item.items()
        elif isinstance(item, list | tuple):
            inner = dict(enumerate(item)).items()
        else:
            yield path, item
            continue
        waiting += [(f"{path}.{key}" if path else str(key), one) for key, one in inner]
