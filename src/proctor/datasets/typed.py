"""Plain values (what JSON holds) into declared types, strictly, and in words where they differ."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from proctor import codec, extras
from proctor.datasets.faults import Fault, Unfit, found
from proctor.datasets.type_faults import explain, find_faults, is_union
from proctor.datasets.unknown_keys import find_unknown_keys
from proctor.errors import DatasetError

Read = Callable[[Any], Any]


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


def accepts_null(read: Read | None) -> bool:
    """True if a reader takes null: its type is optional, or anything."""
    if read is None:
        return True
    try:
        read(None)
    except Unfit:
        return False
    return True


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
            converted = msgspec.convert(value, kind, dec_hook=_foreign)
        except msgspec.ValidationError as error:
            faults = find_faults(kind, value, field, _convert) or explain(error, value, field)
            raise Unfit(faults) from None
        return _without_unknown_keys(value, converted, kind, field)

    return read


def _without_unknown_keys(value: Any, converted: Any, kind: Any, field: str) -> Any:
    """What a value was converted to, unless that dropped keys of the value."""
    if isinstance(value, Mapping | list | tuple):
        unknown = list(find_unknown_keys(value, converted, kind, field))
        if unknown:
            raise Unfit(unknown)
    return converted


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
            converted = adapter.validate_json(codec.encode(value), strict=True)
        except pydantic.ValidationError as error:
            raise Unfit(_pydantic_faults(error, field)) from None
        return _without_unknown_keys(value, converted, kind, field)

    return read


def _convert(value: Any, kind: Any) -> Any:
    """A value in a type, or msgspec's error; what a pydantic model refuses is `Unfit`."""
    if _from_pydantic(kind):
        return _pydantic_reader(kind, "")(value)
    return msgspec.convert(value, kind, dec_hook=_foreign)


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
    return typing.get_args(kind) if is_union(kind) else ()


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
