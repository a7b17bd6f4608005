"""Objects to JSON and back: one place that knows how records, and users' own types, are written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Set
from math import isfinite
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

from proctor.core import optional as extras
from proctor.errors import UsageError
from proctor.records.lossless import is_plain

T = TypeVar("T")

# What is raised for what JSON cannot hold.
UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


def _foreign(value: Any) -> Any:
    """What stands in JSON for an object that msgspec does not know, or for an odd key."""
    if isinstance(value, bool | list | tuple | dict | None):
        # As a value msgspec writes it itself, so here it is the key of a mapping.
        return _key(value)
    pydantic = extras.loaded("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return _dumped(value)
    for kind, bare in _BARE.items():
        if isinstance(value, kind):
            return bare(value)
    if callable(getattr(type(value), "tolist", None)):
        # Numbers and arrays of numpy and its kin.
        return value.tolist()
    if isinstance(value, Mapping):
        return {_key(key): item for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(value, key=repr)
    if isinstance(value, PurePath):
        return str(value)
    return {"$repr": _described(value), "$type": type(value).__qualname__}


# msgspec takes these types themselves, but not what is derived from them.
_BARE: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    BaseException: lambda error: f"{type(error).__name__}: {_described(error, str)}",
}


def _dumped(model: Any) -> Any:
    """A pydantic model as data; fields of types that it cannot write are left for us."""
    try:
        return model.model_dump(mode="json")
    except ValueError:
        return model.model_dump()


def _described(value: Any, describe: Callable[[Any], str] = repr) -> str:
    """What an object says of itself; the words are the user's own code and may fail."""
    try:
        return describe(value)
    except Exception as error:
        return f"<{type(value).__qualname__}, which cannot be shown: {type(error).__name__}>"


def _key(key: Any) -> str:
    """A mapping's key as text: JSON knows no others."""
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, dict) and "$repr" in key:
        return str(key["$repr"])
    if isinstance(key, Set):
        return _described(sorted(key, key=repr))
    return str(key) if isinstance(key, int | float | PurePath) else _described(key)


_encoder = msgspec.json.Encoder(enc_hook=_foreign)
_sorted_encoder = msgspec.json.Encoder(enc_hook=_foreign, order="sorted")


def encode(value: Any) -> bytes:
    """Write a record, or any object, as JSON.

    >>> encode({"a": (1, 2)})
    b'{"a":[1,2]}'
    """
    return _encoder.encode(value)


def in_text(value: Any) -> str:
    """A value as text for people and judges: JSON, in which NaN is NaN and bytes are described.

    A value that JSON cannot hold is shown as Python shows it.

    >>> in_text({"a": 1}), in_text({1: "x", "1": "y"})
    ('{"a":1}', '{"1":"x","1":"y"}')
    >>> in_text({"loss": float("nan")}), in_text(b"\\x00\\xff")
    ('{"loss":NaN}', "2 bytes: b'\\\\x00\\\\xff'")
    """
    if isinstance(value, _BYTES):
        return _describe_bytes(value)
    try:
        return encode(value if is_plain(value) else _readable(value)).decode()
    except UNWRITABLE:
        return _described(value)


_BYTES = (bytes, bytearray, memoryview)
_BYTES_SHOWN = 40


def _describe_bytes(value: bytes | bytearray | memoryview) -> str:
    size = value.nbytes if isinstance(value, memoryview) else len(value)
    start = bytes(value[:_BYTES_SHOWN])
    cut = "…" if size > len(start) else ""
    return f"{size:,} byte{'' if size == 1 else 's'}: {start!r}{cut}"


def _readable(value: Any) -> Any:
    """The value with words for what JSON would write as null or as base64."""
    if isinstance(value, float):
        number = float(value)
        return value if isfinite(number) else msgspec.Raw(_NOT_FINITE[repr(number)])
    if isinstance(value, _BYTES):
        return _describe_bytes(value)
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    if isinstance(value, Set):
        return [_readable(item) for item in sorted(value, key=repr)]
    built = msgspec.to_builtins(value, enc_hook=_foreign, str_keys=True, builtin_types=_BYTES)
    return _readable(built) if isinstance(built, dict | list | float) else built


_NOT_FINITE = {"nan": b"NaN", "inf": b"Infinity", "-inf": b"-Infinity"}


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
        kind = getattr(as_type, "__name__", str(as_type))
        raise UsageError(f"not a valid {kind}: {error}", where=where) from None


def plain(value: Any) -> Any:
    """A value in the words of JSON: mappings, lists or tuples, strings, numbers, booleans, None.

    >>> plain({1, 2})
    [1, 2]
    """
    try:
        return msgspec.to_builtins(value, enc_hook=_foreign, str_keys=True)
    except TypeError:
        # A key that msgspec does not take; written as JSON it goes through our hook.
        return msgspec.json.decode(encode(value))


def canonical(value: Any) -> bytes:
    """JSON that is the same for equal content, whatever the order of keys.

    >>> canonical({"b": {3, 1, 2}, "a": None})
    b'{"a":null,"b":[1,2,3]}'
    """
    try:
        return _sorted_encoder.encode(value)
    except TypeError:
        return _sorted_encoder.encode(_orderly(value))


def _orderly(value: Any) -> Any:
    """The same content with string keys and ordered sets, where msgspec cannot order it itself."""
    names = getattr(value, "__struct_fields__", getattr(value, "__dataclass_fields__", None))
    if names is not None and not isinstance(value, type):
        return {name: _orderly(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {_key(key): _orderly(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_orderly(item) for item in value]
    if isinstance(value, Set):
        return [msgspec.Raw(data) for data in sorted(map(canonical, value))]
    return value


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
