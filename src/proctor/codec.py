"""Objects to JSON and back: one place that knows how records, and users' own types, are written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

from proctor import extras
from proctor.errors import UsageError

T = TypeVar("T")


def _foreign(value: Any) -> Any:
    """What stands in JSON for an object that msgspec does not know."""
    pydantic = extras.loaded("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value, key=repr)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return {"$repr": repr(value), "$type": type(value).__qualname__}


_encoder = msgspec.json.Encoder(enc_hook=_foreign)
_sorted_encoder = msgspec.json.Encoder(enc_hook=_foreign, order="sorted")


def encode(value: Any) -> bytes:
    """Write a record, or any object, as JSON.

    >>> encode({"a": (1, 2)})
    b'{"a":[1,2]}'
    """
    return _encoder.encode(value)


def encode_pretty(value: Any, indent: int = 2) -> bytes:
    """Write JSON for people."""
    return msgspec.json.format(_encoder.encode(value), indent=indent)


def decode(data: bytes | str, as_type: type[T], *, where: str = "") -> T:
    """Read JSON into a type, or say what does not fit.

    >>> decode('{"a": 1}', dict)
    {'a': 1}
    """
    try:
        return msgspec.json.decode(data, type=as_type)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"not a valid {as_type.__name__}: {error}", where=where) from None


def plain(value: Any) -> Any:
    """The same as JSON would give back: mappings, lists, strings, numbers, booleans and None.

    >>> plain({1, 2})
    [1, 2]
    """
    return msgspec.to_builtins(value, enc_hook=_foreign, str_keys=True)


def canonical(value: Any) -> bytes:
    """JSON that is the same for equal content, whatever the order of keys."""
    return _sorted_encoder.encode(value)


def digest(*values: Any) -> str:
    """A short content hash of any values.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    state = hashlib.sha256()
    for value in values:
        state.update(canonical(value))
        state.update(b"\n")
    return state.hexdigest()[:32]
