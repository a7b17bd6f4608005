"""Paths to fields: `usage.total_tokens`, `items.0.name`, `items.*.name`."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MemberDescriptorType
from typing import Any, NamedTuple, NoReturn

import msgspec

from proctor.errors import ConfigError, FieldMissing, suggest_name

EVERY = "*"
OUTPUT, RAW_OUTPUT = "output", "raw_output"
_MAX_KEYS_SHOWN = 20
_MAX_INDEX_LENGTH = 18
_BRACKETS = re.compile(r"\[(?:-?\w*|'[^']*'|\"[^\"]*\")\](?:$|\.)")
_DOT = re.compile(r"(?<!\\)\.")


class Path(NamedTuple):
    """A parsed path: its keys, and the keys before its start."""

    text: str
    keys: tuple[str, ...]
    start: tuple[str, ...] = ()

    def find(self, value: Any) -> Any:
        """Return the value at the path; a missing key raises `FieldMissing`.

        Mappings, lists, dataclasses, structs and models are all supported; null is a value. A `*` returns a
        list of the values in every item. If the output is the last answer of messages that a target returned,
        `output.…` reads the returned value.
        """
        if len(self.keys) > 1 and self.keys[0] == OUTPUT and _is_key(value, RAW_OUTPUT):
            value = {OUTPUT: value[RAW_OUTPUT]}
        for index, key in enumerate(self.keys):
            if type(value) is dict and key in value:
                value = value[key]
            elif key == EVERY and not _is_key(value, key):
                return self._find_in_items(value, index)
            else:
                value = self._step(value, key, index)
        return value

    def exists(self, value: Any) -> bool:
        """True if there is a value at the path, even if it is null."""
        try:
            self.find(value)
        except FieldMissing:
            return False
        return True

    def with_prefix(self, prefix: str, index: int) -> Path:
        """Return the path with a prefix added to one of its keys."""
        keys = list(self.keys)
        keys[index] = prefix + keys[index]
        return Path(".".join(map(_escape, keys)), tuple(keys))

    def _step(self, value: Any, key: str, index: int) -> Any:
        if isinstance(value, Mapping):
            if key in value:
                return value[key]
            if _is_index(key) and int(key) in value:
                return value[int(key)]
        elif _is_list(value) and _is_index(key):
            if -len(value) <= int(key) < len(value):
                return value[int(key)]
        elif key in _list_names(value):
            return getattr(value, key)
        raise self._make_error(value, key, index)

    def _find_in_items(self, value: Any, index: int) -> list[Any]:
        """Return the values at the rest of the path in every item, as one flat list."""
        items: Iterable[tuple[Any, Any]]
        if isinstance(value, Mapping):
            items = value.items()
        elif _is_list(value):
            items = enumerate(value)
        else:
            raise self._make_error(value, EVERY, index)
        rest = self.keys[index + 1 :]
        values: list[Any] = []
        for name, item in items:
            start = (*self.start, *self.keys[:index], str(name))
            inner = Path(".".join((*start, *rest)), rest, start).find(item)
            # A second `*` returns a list, unless `*` is a key.
            values += inner if EVERY in rest and isinstance(inner, list) else [inner]
        return values

    def _make_error(self, value: Any, key: str, index: int) -> FieldMissing:
        parent = ".".join((*self.start, *self.keys[:index]))
        missing = "items" if key == EVERY else f"item {key}" if _is_index(key) else f"field {key!r}"
        return FieldMissing(
            f"{_describe_parent(parent, value)} has no {missing}",
            where=self.text,
            fix=_suggest(value, key, self.keys[index:]),
        )


def parse_path(path: str) -> Path:
    r"""Parse a path, or raise `ConfigError`. Write a dot inside a key as `\.`."""
    # A value of another type may be unhashable.
    return _parse(path) if isinstance(path, str) else _reject(path)


@functools.lru_cache(maxsize=4096)
def _parse(path: str) -> Path:
    if _find_problem(path):
        _reject(path)
    return Path(path, tuple(key.replace("\\.", ".") for key in _DOT.split(path)))


def _reject(path: Any) -> NoReturn:
    raise ConfigError(
        f"{path!r} is not a path to a field: {_find_problem(path)}",
        fix="write keys with dots between them, such as usage.total_tokens or items.*.name",
    )


def _find_problem(text: Any) -> str:
    if not isinstance(text, str):
        return f"must be a string, got {type(text).__name__}"
    keys = _DOT.split(text)
    if not text.strip():
        return "the path is empty"
    if any(not key for key in keys):
        return f"it has an extra dot; write {'.'.join(filter(None, keys))}"
    if any(key != key.strip() for key in keys):
        return "a key starts or ends with a space"
    brackets = _BRACKETS.search(text)
    if brackets is None:
        return ""
    is_key = brackets[0][1] in "'\""
    return "write items.key for a key" if is_key else "write items.0 for a list index"


def _is_key(value: Any, key: str) -> bool:
    return isinstance(value, Mapping) and key in value


def _is_index(key: str) -> bool:
    return key.removeprefix("-").isdecimal() and len(key) <= _MAX_INDEX_LENGTH


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _list_names(value: Any) -> Sequence[str]:
    """List the public fields and properties of an object."""
    if isinstance(value, Sequence):
        return getattr(value, "_fields", ())
    if value is None or isinstance(value, bool | int | float | Mapping):
        return ()
    attributes = {**getattr(value, "__dict__", {}), **(getattr(value, "__pydantic_extra__", None) or {})}
    type_: Any = type(value)
    names = (*_list_type_names(type_), *(name for name in attributes if not name.startswith("_")))
    return tuple(dict.fromkeys(names))


@functools.lru_cache(maxsize=1024)
def _list_type_names(type_: Any) -> tuple[str, ...]:
    names: list[str] = []
    if issubclass(type_, msgspec.Struct):
        names += type_.__struct_fields__
    elif dataclasses.is_dataclass(type_):
        names += [field.name for field in dataclasses.fields(type_)]
    else:
        names += getattr(type_, "model_fields", None) or ()
    names += [
        name
        for parent in type_.__mro__
        for name, member in vars(parent).items()
        if not name.startswith(("_", "model_"))
        and isinstance(member, property | functools.cached_property | MemberDescriptorType)
    ]
    return tuple(dict.fromkeys(names))


def _escape(key: str) -> str:
    return key.replace(".", "\\.")


def _describe_parent(parent: str, value: Any) -> str:
    if not parent:
        return "the result"
    if value is None:
        return f"{parent!r} is null and"
    if isinstance(value, str | bytes | bool | int | float):
        return f"{parent!r} is of type {type(value).__name__} and"
    return f"{parent!r} is an empty list and" if value == [] else repr(parent)


def _suggest(value: Any, key: str, rest: Sequence[str]) -> str:
    dotted = ".".join(rest)
    if len(rest) > 1 and _is_key(value, dotted):
        return f"there is a key with dots in it; write {_escape(dotted)}"
    if _is_list(value):
        if not value:
            return ""
        indexes = "index 0" if len(value) == 1 else f"an index from 0 to {len(value) - 1}"
        return f"use {indexes}, or * for all items"
    names = [str(name) for name in (value if isinstance(value, Mapping) else _list_names(value))]
    if not names:
        return ""
    name_list = ", ".join(names[:_MAX_KEYS_SHOWN]) + (", …" if len(names) > _MAX_KEYS_SHOWN else "")
    close = suggest_name(key, names)
    return f"{close} Fields: {name_list}" if "did you mean" in close else f"choose one of: {name_list}"
