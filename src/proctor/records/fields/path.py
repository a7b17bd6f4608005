"""Paths: `usage.total_tokens`, `items.0.name`, `items.*.name`, read once and then only followed."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MemberDescriptorType
from typing import Any, NamedTuple, NoReturn

import msgspec

from proctor.errors import ConfigError, FieldMissing, nearest

EVERY = "*"
OUTPUT, RAW_OUTPUT = "output", "raw_output"
_KEYS_SHOWN = 20
_LONGEST_INDEX = 18
_BRACKETS = re.compile(r"\[(?:-?\w*|'[^']*'|\"[^\"]*\")\](?:$|\.)")
_DOT = re.compile(r"(?<!\\)\.")


class Path(NamedTuple):
    """A path that was read: the keys, one after another, seen from where they start."""

    text: str
    keys: tuple[str, ...]
    start: tuple[str, ...] = ()

    def find(self, thing: Any) -> Any:
        """The value at the end of the path; `FieldMissing` says which key is not there.

        Mappings, lists, dataclasses, structs and models are all walked through alike; null is a
        value. A `*` gives a list of what is found in every item. Where the output is the last
        answer of the messages that a target returned, `output.…` looks into what it returned.

        >>> compiled("usage.total_tokens").find({"usage": {"total_tokens": 12}})
        12
        >>> compiled("items.*.name").find({"items": [{"name": "a"}, {"name": "b"}]})
        ['a', 'b']
        """
        if len(self.keys) > 1 and self.keys[0] == OUTPUT and _is_key(thing, RAW_OUTPUT):
            thing = {OUTPUT: thing[RAW_OUTPUT]}
        for place, key in enumerate(self.keys):
            if type(thing) is dict and key in thing:
                thing = thing[key]
            elif key == EVERY and not _is_key(thing, key):
                return self._in_every(thing, place)
            else:
                thing = self._step(thing, key, place)
        return thing

    def exists(self, thing: Any) -> bool:
        """True if there is a value, null included, at the end of the path."""
        try:
            self.find(thing)
        except FieldMissing:
            return False
        return True

    def with_prefix(self, prefix: str, place: int) -> Path:
        """The same path with something put before one of its keys."""
        keys = list(self.keys)
        keys[place] = prefix + keys[place]
        return Path(".".join(map(_escaped, keys)), tuple(keys))

    def _step(self, thing: Any, key: str, place: int) -> Any:
        if isinstance(thing, Mapping):
            if key in thing:
                return thing[key]
            if _is_index(key) and int(key) in thing:
                return thing[int(key)]
        elif _is_list(thing) and _is_index(key):
            if -len(thing) <= int(key) < len(thing):
                return thing[int(key)]
        elif key in _names_in(thing):
            return getattr(thing, key)
        raise self._missing(thing, key, place)

    def _in_every(self, thing: Any, place: int) -> list[Any]:
        """What the rest of the path finds in every item, in one flat list."""
        items: Iterable[tuple[Any, Any]]
        if isinstance(thing, Mapping):
            items = thing.items()
        elif _is_list(thing):
            items = enumerate(thing)
        else:
            raise self._missing(thing, EVERY, place)
        rest = self.keys[place + 1 :]
        found: list[Any] = []
        for name, item in items:
            here = (*self.start, *self.keys[:place], str(name))
            value = Path(".".join((*here, *rest)), rest, here).find(item)
            # A `*` further on has given a list, unless there was a key of that name.
            found += value if EVERY in rest and isinstance(value, list) else [value]
        return found

    def _missing(self, thing: Any, key: str, place: int) -> FieldMissing:
        parent = ".".join((*self.start, *self.keys[:place]))
        return FieldMissing(
            f"{_holder(parent, thing)} has no {_wanted(key)}",
            where=self.text,
            fix=_there_instead(thing, key, self.keys[place:]),
        )


def compiled(text: str) -> Path:
    r"""Read a path; what is not one is refused. A dot inside a key is written `\.`.

    >>> compiled("usage.total_tokens").keys
    ('usage', 'total_tokens')
    """
    # What is no text need not be hashable.
    given: Any = text
    return _read(text) if isinstance(given, str) else _refuse(given)


@functools.lru_cache(maxsize=4096)
def _read(text: str) -> Path:
    if _fault(text):
        _refuse(text)
    return Path(text, tuple(key.replace("\\.", ".") for key in _DOT.split(text)))


def _refuse(given: Any) -> NoReturn:
    raise ConfigError(
        f"{given!r} is not a path to a field: {_fault(given)}",
        fix="write keys with dots between them, such as usage.total_tokens or items.*.name",
    )


def _fault(text: Any) -> str:
    if not isinstance(text, str):
        return f"it is a {type(text).__name__}, not a text"
    keys = _DOT.split(text)
    if not text.strip():
        return "it is empty"
    if any(not key for key in keys):
        return "it has an empty key: a dot too many"
    if any(key != key.strip() for key in keys):
        return "it has a space at the end of a key"
    brackets = _BRACKETS.search(text)
    if brackets is None:
        return ""
    is_key = brackets[0][1] in "'\""
    return "a key is written items.key" if is_key else "a list index is written items.0"


def _is_key(thing: Any, key: str) -> bool:
    return isinstance(thing, Mapping) and key in thing


def _is_index(key: str) -> bool:
    return key.removeprefix("-").isdecimal() and len(key) <= _LONGEST_INDEX


def _is_list(thing: Any) -> bool:
    return isinstance(thing, Sequence) and not isinstance(thing, str | bytes)


def _names_in(thing: Any) -> Sequence[str]:
    """The names that an object offers: its fields and its properties, nothing private."""
    if isinstance(thing, Sequence):
        return getattr(thing, "_fields", ())
    if thing is None or isinstance(thing, bool | int | float | Mapping):
        return ()
    own = {**getattr(thing, "__dict__", {}), **(getattr(thing, "__pydantic_extra__", None) or {})}
    kind: Any = type(thing)
    names = (*_fields_of(kind), *(name for name in own if not name.startswith("_")))
    return tuple(dict.fromkeys(names))


@functools.lru_cache(maxsize=1024)
def _fields_of(kind: Any) -> tuple[str, ...]:
    names: list[str] = []
    if issubclass(kind, msgspec.Struct):
        names += kind.__struct_fields__
    elif dataclasses.is_dataclass(kind):
        names += [field.name for field in dataclasses.fields(kind)]
    else:
        names += getattr(kind, "model_fields", None) or ()
    names += [
        name
        for parent in kind.__mro__
        for name, part in vars(parent).items()
        if not name.startswith(("_", "model_")) and _is_offered(part)
    ]
    return tuple(dict.fromkeys(names))


def _is_offered(part: Any) -> bool:
    """True for a property, and for a field in a slot."""
    return isinstance(part, property | functools.cached_property | MemberDescriptorType)


def _escaped(key: str) -> str:
    return key.replace(".", "\\.")


def _holder(parent: str, thing: Any) -> str:
    if not parent:
        return "the result"
    if thing is None:
        return f"{parent!r} is null and"
    if isinstance(thing, str | bytes | bool | int | float):
        return f"{parent!r} is of type {type(thing).__name__} and"
    return f"{parent!r} is an empty list and" if thing == [] else repr(parent)


def _wanted(key: str) -> str:
    return "items" if key == EVERY else f"item {key}" if _is_index(key) else f"field {key!r}"


def _there_instead(thing: Any, key: str, rest: Sequence[str]) -> str:
    """What could have been meant: the keys that are there."""
    whole = ".".join(rest)
    if len(rest) > 1 and _is_key(thing, whole):
        return f"there is a key with dots in it; write {_escaped(whole)}"
    if isinstance(thing, Sequence) and not isinstance(thing, str | bytes):
        if not thing:
            return ""
        indexes = "index 0" if len(thing) == 1 else f"an index from 0 to {len(thing) - 1}"
        return f"it is a list of {len(thing)}; use {indexes}, or *"
    names = [str(name) for name in (thing if isinstance(thing, Mapping) else _names_in(thing))]
    if not names:
        return ""
    there = ", ".join(names[:_KEYS_SHOWN]) + (", …" if len(names) > _KEYS_SHOWN else "")
    close = nearest(key, names)
    return f"{close} (there are: {there})" if "did you mean" in close else f"there are: {there}"
