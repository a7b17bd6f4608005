"""Plain values (what JSON holds) into declared types, strictly, and in words where they differ."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from proctor import codec, extras
from proctor.datasets.faults import Fault, Unfit, found
from proctor.errors import DatasetError

Read = Callable[[Any], Any]

WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "a boolean",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]+)`, got `(?P<got>[^`]+)`")
LENGTH = re.compile(r"Expected `array` of length (?P<wanted>.+), got (?P<got>\d+)")
FIELD = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<name>[^`]+)`")
AT = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`$")
STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|(?P<unknown>\[\.\.\.\])")


def reader_of(kind: Any, field: str) -> Read | None:
    """What reads a plain value into a type, or None where anything is welcome.

    Booleans are not numbers, and a whole number is taken where a number is wanted. The type may
    be a plain type, a list or mapping of them, optional, a union, a Literal, a dataclass, a
    TypedDict, a msgspec struct or a pydantic model.

    >>> read = reader_of(dict[str, int], "input")
    >>> read({"a": 1})
    {'a': 1}
    >>> reader_of(Any, "input") is None
    True
    """
    if kind is Any or kind is object:
        return None
    if _from_pydantic(kind):
        return _pydantic_reader(kind, field)
    try:
        msgspec.convert(None, kind, dec_hook=_foreign)
    except msgspec.ValidationError:
        return _plain_reader(kind, field)
    except (TypeError, NameError) as error:
        members = _members(kind)
        if members:
            return _union_reader(members, field)
        raise DatasetError(
            f"{field}_type={kind!r} is not a type that values can be read into: {error}",
            fix="use str, int, float, bool, list, dict, Optional, a union, a Literal, a dataclass, "
            "a TypedDict, a msgspec struct, a pydantic model, or Any",
        ) from None
    return _plain_reader(kind, field)


def part_type(kind: Any, key: str) -> Any:
    """The type that one field of a dataclass, struct, model or mapping is declared to have.

    >>> part_type(dict[str, int], "n")
    <class 'int'>
    """
    if typing.get_origin(kind) in (dict, Mapping):
        return typing.get_args(kind)[1]
    if not isinstance(kind, type):
        return Any
    return typing.get_type_hints(kind).get(key, Any)


def _plain_reader(kind: Any, field: str) -> Read:
    def read(value: Any) -> Any:
        try:
            return msgspec.convert(value, kind, dec_hook=_foreign)
        except msgspec.ValidationError as error:
            told = _mapping_faults(kind, value, field) or _explained(error, value, field)
            raise Unfit(told) from None

    return read


def _union_reader(members: Sequence[Any], field: str) -> Read:
    """For unions that msgspec does not take, such as two dataclasses: the first that fits."""
    readers = [reader_of(member, field) for member in members]

    def read(value: Any) -> Any:
        for reader in readers:
            try:
                return value if reader is None else reader(value)
            except Unfit:
                continue
        names = " or ".join(getattr(member, "__name__", str(member)) for member in members)
        raise Unfit([Fault(field, f"expected {names}, found {found(value)}")])

    return read


def _pydantic_reader(kind: Any, field: str) -> Read:
    pydantic = extras.require("pydantic", extra="pydantic", why="reading into a pydantic model")
    adapter = pydantic.TypeAdapter(kind)

    def read(value: Any) -> Any:
        if isinstance(kind, type) and isinstance(value, kind):
            return value
        try:
            # By way of JSON, where strict means: no guessing, but dates and enums from strings.
            return adapter.validate_json(codec.encode(value), strict=True)
        except pydantic.ValidationError as error:
            raise Unfit(_pydantic_faults(error, field)) from None

    return read


def _foreign(kind: Any, value: Any) -> Any:
    """Called for a type that msgspec does not know, somewhere inside one that it knows."""
    if isinstance(value, kind):
        return value
    if _from_pydantic(kind):
        return _pydantic_reader(kind, "")(value)
    raise TypeError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")


def _from_pydantic(kind: Any) -> bool:
    """True if a type is pydantic's, or is made of one that is."""
    parts = typing.get_args(kind)
    return hasattr(kind, "__pydantic_validator__") or any(_from_pydantic(part) for part in parts)


def _members(kind: Any) -> tuple[Any, ...]:
    """The members of a union; nothing for other types."""
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if union else ()


def _mapping_faults(kind: Any, value: Any, field: str) -> list[Fault]:
    """The faults in the values of a mapping by their keys, which msgspec does not tell."""
    if typing.get_origin(kind) not in (dict, Mapping) or not isinstance(value, Mapping):
        return []
    faults: list[Fault] = []
    for key, part in value.items():
        read = reader_of(part_type(kind, key), f"{field}.{key}")
        try:
            part if read is None else read(part)
        except Unfit as unfit:
            faults += unfit.faults
    return faults


def _explained(error: msgspec.ValidationError, value: Any, field: str) -> list[Fault]:
    """What msgspec found, in our words: path, expected, found."""
    text = str(error)
    at = AT.search(text)
    steps = at["path"] if at else ""
    where, message = field + steps, AT.sub("", text)
    if at and at["key"]:
        # The key itself is not told, so that there is no value to show.
        where, steps = f"a key of {where}", "[...]"
    if isinstance(error.__cause__, Unfit):
        inner = error.__cause__.faults
        return [Fault(where + fault.field, fault.what) for fault in inner]
    if match := FIELD.match(message):
        missing = match["how"] == "missing required"
        return [Fault(f"{where}.{match['name']}", "is missing" if missing else "is not known")]
    if match := LENGTH.match(message):
        return [Fault(where, f"expected a list of {match['wanted']}, found {match['got']}")]
    if match := EXPECTED.match(message):
        wanted = " or ".join(WORDS.get(kind, kind) for kind in match["kinds"].split(" | "))
        return [Fault(where, f"expected {wanted}, found {_found_at(steps, value, match['got'])}")]
    return [Fault(where, message[:1].lower() + message[1:])]


def _found_at(steps: str, value: Any, got: str) -> str:
    """The value at a path, in words; only its kind where the path does not lead there."""
    for step in STEP.finditer(steps):
        key, index = step["key"], step["index"]
        if key is not None and isinstance(value, Mapping) and key in value:
            value = value[key]
        elif index is not None and isinstance(value, Sequence):
            value = value[int(index)]
        else:
            return WORDS.get(got, got)
    return found(value)


def _pydantic_faults(error: Any, field: str) -> list[Fault]:
    """What pydantic found, in our words."""
    faults = []
    for part in error.errors(include_url=False):
        where = field + "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in part["loc"]
        )
        if part["type"] == "missing":
            faults.append(Fault(where, "is missing"))
        else:
            what = part["msg"].replace("Input should be", "expected")
            faults.append(Fault(where, f"{what}, found {found(part['input'])}"))
    return faults
