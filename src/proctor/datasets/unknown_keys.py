"""Find keys of plain values that the declared type lacks and that conversion would drop."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from proctor.datasets.faults import Fault

# Validators that run before the fields are read may use other keys.
_EARLY_MODES = ("before", "wrap")


class _Attributes(NamedTuple):
    """The attribute for each key of a class."""

    by_key: Mapping[str, str]
    accepts_other_keys: bool = False


def find_unknown_keys(value: Any, converted: Any, kind: Any, where: str) -> Iterator[Fault]:
    """Yield a fault for every key of a plain value that the converted value does not have.

    >>> In = dataclasses.make_dataclass("In", [("km", float), ("unit", str, "km")])
    >>> [fault] = find_unknown_keys({"km": 3, "unti": "mi"}, In(3.0), In, "input")
    >>> fault.where, fault.what
    ('input.unti', "is not known; did you mean 'unit'?")
    """
    if isinstance(value, list | tuple) and isinstance(converted, list | tuple):
        for index, (item, converted_item) in enumerate(zip(value, converted, strict=False)):
            yield from find_unknown_keys(item, converted_item, kind, f"{where}[{index}]")
    elif isinstance(value, Mapping) and isinstance(converted, Mapping):
        yield from _check_mapping(value, converted, kind, where)
    elif isinstance(value, Mapping) and value is not converted:
        yield from _check_object(value, converted, where)


def _check_mapping(
    value: Mapping[Any, Any], converted: Mapping[Any, Any], kind: Any, where: str
) -> Iterator[Fault]:
    # Conversion to a TypedDict drops undeclared keys.
    if len(converted) < len(value):
        dropped = [key for key in value if key not in converted]
        yield from _faults(dropped, _typed_dict_keys(kind), where)
        items = [(key, item, converted[key]) for key, item in value.items() if key in converted]
    else:
        # Conversion may change keys, such as "1" to 1, but not their order.
        pairs = zip(value.items(), converted.values(), strict=True)
        items = [(key, item, converted_item) for (key, item), converted_item in pairs]
    hints = _hints(kind) if typing.is_typeddict(kind) else {}
    for key, item, converted_item in items:
        yield from find_unknown_keys(item, converted_item, hints.get(key, kind), f"{where}.{key}")


def _check_object(value: Mapping[Any, Any], converted: Any, where: str) -> Iterator[Fault]:
    kind: Any = type(converted)
    attributes = _attributes(kind)
    if attributes is None:
        return
    if not attributes.accepts_other_keys:
        unknown = [key for key in value if key not in attributes.by_key]
        yield from _faults(unknown, attributes.by_key, where)
    hints = _hints(kind)
    for key, item in value.items():
        attribute = attributes.by_key.get(key)
        if attribute is not None and isinstance(item, Mapping | list | tuple):
            converted_item = getattr(converted, attribute, None)
            yield from find_unknown_keys(item, converted_item, hints.get(attribute), f"{where}.{key}")


def _faults(unknown: Iterable[Any], declared: Iterable[str], where: str) -> Iterator[Fault]:
    names = list(declared)
    for key in unknown:
        close = difflib.get_close_matches(str(key), names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        fix = f"use one of: {', '.join(names)}" if names else "leave it out"
        yield Fault(f"{where}.{key}", f"is not known{hint}", fix)


@lru_cache(maxsize=256)
def _attributes(kind: Any) -> _Attributes | None:
    """Return the attributes of a class that values are converted to; None for any other class."""
    if hasattr(kind, "__pydantic_fields__"):
        return _pydantic_attributes(kind)
    if issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        names = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
        if config.tag_field is not None:
            names[config.tag_field] = ""
        return _Attributes(names)
    if dataclasses.is_dataclass(kind):
        return _Attributes({field.name: field.name for field in dataclasses.fields(kind) if field.init})
    attrs = getattr(kind, "__attrs_attrs__", None)
    return None if attrs is None else _Attributes({field.name: field.name for field in attrs})


def _pydantic_attributes(kind: Any) -> _Attributes:
    names: dict[str, str] = {}
    for name, field in kind.__pydantic_fields__.items():
        aliases = (field.alias, field.validation_alias)
        names.update({key: name for alias in aliases for key in _alias_keys(alias)})
        names.setdefault(name, name)
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}
    validators = kind.__pydantic_decorators__.model_validators.values()
    has_early_validator = any(validator.info.mode in _EARLY_MODES for validator in validators)
    is_root = getattr(kind, "__pydantic_root_model__", False)
    # pydantic itself enforces "forbid"; "allow" and "ignore" are the user's choice.
    return _Attributes(names, config.get("extra") is not None or has_early_validator or is_root)


def _alias_keys(alias: Any) -> Iterator[str]:
    if isinstance(alias, str):
        yield alias
    for choice in getattr(alias, "choices", ()):
        yield from _alias_keys(choice)
    path = getattr(alias, "path", None)
    if path and isinstance(path[0], str):
        yield path[0]


def _typed_dict_keys(kind: Any) -> list[str]:
    if typing.is_typeddict(kind):
        return list(_hints(kind))
    return list(
        dict.fromkeys(key for argument in typing.get_args(kind) for key in _typed_dict_keys(argument))
    )


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except Exception:  # a name that only type checkers know
        return {}
