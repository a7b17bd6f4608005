"""Encode objects that JSON does not have: models, NumPy values, subclasses of built-in types, anything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from pathlib import PurePath
from typing import Any

import msgspec

from proctor.core import optional as extras

# Errors from encoding values that JSON cannot represent.
ENCODE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


_DOUBLE_BYTES = 8


def to_builtins(value: Any) -> Any:
    """Convert an object to dicts, lists, strings and numbers; not-a-number and infinity stay."""
    return msgspec.to_builtins(value, enc_hook=encode_unknown, str_keys=True)


def encode_unknown(value: Any) -> Any:
    """Encode an object, or a key, that msgspec does not support."""
    if isinstance(value, bool | list | tuple | dict | None):
        # msgspec encodes these as values, so here it is the key of a mapping.
        return encode_key(value)
    pydantic = extras.loaded_module("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return _dump_model(value)
    for base, convert in _SUBCLASS_ENCODERS.items():
        if isinstance(value, base):
            return convert(value)
    if is_array(value):
        # A date that is missing (NaT) would become null.
        converted = convert_array(value)
        return _make_description(value) if converted is None else converted
    if isinstance(value, Mapping):
        return {encode_key(key): item for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(value, key=repr)
    if isinstance(value, PurePath):
        return str(value)
    return _make_description(value)


def is_array(value: Any) -> bool:
    """True for the numbers and arrays of NumPy, and similar types."""
    return callable(getattr(type(value), "tolist", None))


def convert_array(value: Any) -> Any:
    """Convert a number or an array of NumPy to Python; numbers of 32 bits keep the digits that they show: 0.1."""
    dtype = getattr(value, "dtype", None)
    if getattr(dtype, "kind", "") == "f" and getattr(dtype, "itemsize", _DOUBLE_BYTES) < _DOUBLE_BYTES:
        value = value.astype(str).astype(float)
    return value.tolist()


def _make_description(value: Any) -> dict[str, str]:
    return {"$repr": describe_object(value), "$type": type(value).__qualname__}


# msgspec encodes these types, but not their subclasses.
_SUBCLASS_ENCODERS: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    BaseException: lambda error: f"{type(error).__name__}: {describe_object(error, str)}",
}


def _dump_model(model: Any) -> Any:
    """Convert a pydantic model to data; fields that it cannot serialize stay unchanged."""
    try:
        return model.model_dump(mode="json")
    except ValueError:
        return model.model_dump()


def describe_object(value: Any, describe: Callable[[Any], str] = repr) -> str:
    """Describe an object, even if its own code fails."""
    try:
        return describe(value)
    except Exception as error:
        return f"<{type(value).__qualname__}, which cannot be shown: {type(error).__name__}>"


def encode_key(key: Any) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, dict) and "$repr" in key:
        return str(key["$repr"])
    if isinstance(key, Set):
        return describe_object(sorted(key, key=repr))
    return str(key) if isinstance(key, int | float | PurePath) else describe_object(key)
