"""Encode records and custom objects as JSON, and decode them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from math import isfinite
from typing import Any, TypeVar

import msgspec

from proctor.errors import UsageError
from proctor.records.lossless import is_plain
from proctor.records.objects import ENCODE_ERRORS, describe_object, encode_key, encode_unknown, to_builtins
from proctor.records.validation import explain

T = TypeVar("T")

_encoder = msgspec.json.Encoder(enc_hook=encode_unknown)
_sorted_encoder = msgspec.json.Encoder(enc_hook=encode_unknown, order="sorted")


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
        return describe_object(value)


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
    built = msgspec.to_builtins(value, enc_hook=encode_unknown, str_keys=True, builtin_types=_BYTES)
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
        return _encoder.encode(_make_encodable(to_builtins(value)))


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
        return to_builtins(value)
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
        return {encode_key(key): _sort_content(item) for key, item in value.items()}
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
