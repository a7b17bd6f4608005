"""Encode records and custom objects as JSON, and decode them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from math import isfinite
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

from proctor.core import optional as extras
from proctor.errors import UsageError
from proctor.records.lossless import is_plain
from proctor.records.validation import explain

T = TypeVar("T")

# Errors from encoding values that JSON cannot represent.
ENCODE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


def _encode_unknown(value: Any) -> Any:
    """Encode an object, or a key, that msgspec does not support."""
    if isinstance(value, bool | list | tuple | dict | None):
        # msgspec encodes these as values, so here it is the key of a mapping.
        return _encode_key(value)
    pydantic = extras.loaded_module("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return _dump_model(value)
    for base, convert in _SUBCLASS_ENCODERS.items():
        if isinstance(value, base):
            return convert(value)
    if callable(getattr(type(value), "tolist", None)):
        # NumPy numbers and arrays, and similar types.
        return value.tolist()
    if isinstance(value, Mapping):
        return {_encode_key(key): item for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(value, key=repr)
    if isinstance(value, PurePath):
        return str(value)
    return {"$repr": _describe(value), "$type": type(value).__qualname__}


# msgspec encodes these types, but not their subclasses.
_SUBCLASS_ENCODERS: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    BaseException: lambda error: f"{type(error).__name__}: {_describe(error, str)}",
}


def _dump_model(model: Any) -> Any:
    """Convert a pydantic model to data; fields that it cannot serialize stay unchanged."""
    try:
        return model.model_dump(mode="json")
    except ValueError:
        return model.model_dump()


def _describe(value: Any, describe: Callable[[Any], str] = repr) -> str:
    """Describe an object, even if its own code fails."""
    try:
        return describe(value)
    except Exception as error:
        return f"<{type(value).__qualname__}, which cannot be shown: {type(error).__name__}>"


def _encode_key(key: Any) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, dict) and "$repr" in key:
        return str(key["$repr"])
    if isinstance(key, Set):
        return _describe(sorted(key, key=repr))
    return str(key) if isinstance(key, int | float | PurePath) else _describe(key)


_encoder = msgspec.json.Encoder(enc_hook=_encode_unknown)
_sorted_encoder = msgspec.json.Encoder(enc_hook=_encode_unknown, order="sorted")


def encode(value: Any) -> bytes:
    """Encode a record, or any object, as JSON."""
    return _encoder.encode(value)


def encode_each(values: Sequence[Any]) -> list[bytes]:
    """Encode records as one JSON text each."""
    return list(map(_encoder.encode, values))


def to_text(value: Any) -> str:
    """Render a value as text for people and judges: JSON with NaN and descriptions of bytes.

    A value that JSON cannot represent is rendered with `repr`.
    """
    if isinstance(value, _BYTES):
        return _describe_bytes(value)
    try:
        return encode(value if is_plain(value) else _make_readable(value)).decode()
    except ENCODE_ERRORS:
        return _describe(value)


_BYTES = (bytes, bytearray, memoryview)
_MAX_BYTES_SHOWN = 40


def _describe_bytes(value: bytes | bytearray | memoryview) -> str:
    size = value.nbytes if isinstance(value, memoryview) else len(value)
    start = bytes(value[:_MAX_BYTES_SHOWN])
    cut = "…" if size > len(start) else ""
    return f"{size:,} byte{'' if size == 1 else 's'}: {start!r}{cut}"


def _make_readable(value: Any) -> Any:
    """Replace values that JSON would write as null or base64."""
    if isinstance(value, float):
        number = float(value)
        return value if isfinite(number) else msgspec.Raw(_NOT_FINITE[repr(number)])
    if isinstance(value, _BYTES):
        return _describe_bytes(value)
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, dict):
        return {key: _make_readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_make_readable(item) for item in value]
    if isinstance(value, Set):
        return [_make_readable(item) for item in sorted(value, key=repr)]
    built = msgspec.to_builtins(value, enc_hook=_encode_unknown, str_keys=True, builtin_types=_BYTES)
    return _make_readable(built) if isinstance(built, dict | list | float) else built


# Python refuses to write more than 4,300 digits in decimal, because it takes quadratic time.
_MAX_BITS_IN_DECIMAL = 14_000
_NOT_FINITE = {"nan": b"NaN", "inf": b"Infinity", "-inf": b"-Infinity"}


def encode_any_text(value: Any) -> bytes:
    r"""Encode as JSON for people; half a surrogate pair, which UTF-8 cannot encode, becomes the text of its escape.

    A number with more digits than Python writes in decimal becomes a text in hexadecimal.

    >>> encode_any_text({"cut": "ok \ud83d"})
    b'{"cut":"ok \\\\ud83d"}'
    """
    try:
        return _encoder.encode(value)
    except ValueError:
        return _encoder.encode(_make_encodable(msgspec.to_builtins(value, enc_hook=_encode_unknown, str_keys=True)))


def escape_surrogates(text: str) -> str:
    """Write half a surrogate pair as the text of its escape: \\ud83d."""
    return text.encode("utf-8", "backslashreplace").decode()


def _make_encodable(value: Any) -> Any:
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, dict):
        return {_make_encodable(key): _make_encodable(item) for key, item in value.items()}
    if isinstance(value, int) and value.bit_length() > _MAX_BITS_IN_DECIMAL:
        return hex(value)
    return [_make_encodable(item) for item in value] if isinstance(value, list | tuple) else value


def encode_pretty(value: Any, indent: int = 2) -> bytes:
    """Encode as indented JSON."""
    return msgspec.json.format(encode_any_text(value), indent=indent)


def decode(data: bytes | str, as_type: type[T], *, where: str = "") -> T:
    """Decode JSON into a type, or raise an error that explains the mismatch."""
    try:
        return msgspec.json.decode(data, type=as_type)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        kind = getattr(as_type, "__name__", str(as_type))
        raise UsageError(f"not a valid {kind}: {explain(error)}", where=where) from None


def to_plain(value: Any) -> Any:
    """Convert a value to JSON types: mappings, lists or tuples, strings, numbers, booleans, None."""
    try:
        return msgspec.to_builtins(value, enc_hook=_encode_unknown, str_keys=True)
    except TypeError:
        # msgspec rejects the key; encoding as JSON uses the hook.
        return msgspec.json.decode(encode(value))


def encode_canonical(value: Any) -> bytes:
    """Encode as JSON that does not depend on the order of keys."""
    try:
        return _sorted_encoder.encode(value)
    except TypeError:
        return _sorted_encoder.encode(_sort_content(value))


def _sort_content(value: Any) -> Any:
    """Convert keys to strings and sort sets, for content that msgspec cannot sort."""
    names = getattr(value, "__struct_fields__", getattr(value, "__dataclass_fields__", None))
    if names is not None and not isinstance(value, type):
        return {name: _sort_content(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {_encode_key(key): _sort_content(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sort_content(item) for item in value]
    if isinstance(value, Set):
        return [msgspec.Raw(data) for data in sorted(map(encode_canonical, value))]
    return value


def digest(*values: Any) -> str:
    """Return a short content hash of any values."""
    state = hashlib.sha256()
    for value in values:
        state.update(encode_canonical(value))
        state.update(b"\n")
    return state.hexdigest()[:32]
