"""Keys of plain values that the declared type does not have, and that converting would drop."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from proctor.datasets.faults import Fault

# Validators that see a value before its fields are read may use other keys.
_EARLY = ("before", "wrap")


class _Attributes(NamedTuple):
    """The attribute that each key of a class becomes; `open` if the class takes other keys too."""

    by_key: Mapping[str, str]
    open: bool = False


def find_unknown_keys(value: Any, converted: Any, kind: Any, where: str) -> Iterator[Fault]:
    """A fault for every key of a plain value that is in no field of what it was converted to.

    >>> In = dataclasses.make_dataclass("In", [("km", float), ("unit", str, "km")])
    >>> [fault] = find_unknown_keys({"km": 3, "unti": "mi"}, In(3.0), In, "input")
    >>> fault.field, fault.what
    ('input.unti', "is not known; did you mean 'unit'?")
    """
    if isinstance(value, list | tuple) and isinstance(converted, list | tuple):
        for index, (item, part) in enumerate(zip(value, converted, strict=False)):
            yield from find_unknown_keys(item, part, kind, f"{where}[{index}]")
    elif isinstance(value, Mapping) and isinstance(converted, Mapping):
        yield from _in_mapping(value, converted, kind, where)
    elif isinstance(value, Mapping) and value is not converted:
        yield from _in_object(value, converted, where)


def _in_mapping(
    value: Mapping[Any, Any], converted: Mapping[Any, Any], kind: Any, where: str
) -> Iterator[Fault]:
    """A TypedDict becomes a mapping without the keys that it does not declare."""
    if len(converted) < len(value):
        dropped = [key for key in value if key not in converted]
        yield from _faults(dropped, _typed_dict_keys(kind), where)
    if len(converted) == len(value):
        # Keys may be converted too, such as "1" to 1; their order stays.
        pairs = zip(value.items(), converted.values(), strict=True)
        parts = [(key, item, part) for (key, item), part in pairs]
    else:
        parts = [(key, item, converted[key]) for key, item in value.items() if key in converted]
    hints = _hints(kind) if typing.is_typeddict(kind) else {}
    for key, item, part in parts:
        yield from find_unknown_keys(item, part, hints.get(key, kind), f"{where}.{key}")


def _in_object(value: Mapping[Any, Any], converted: Any, where: str) -> Iterator[Fault]:
    kind: Any = type(converted)
    attributes = _attributes(kind)
    if attributes is None:
        return
    if not attributes.open:
        unknown = [key for key in value if key not in attributes.by_key]
        yield from _faults(unknown, attributes.by_key, where)
    hints = _hints(kind)
    for key, item in value.items():
        attribute = attributes.by_key.get(key)
        if attribute is not None and isinstance(item, Mapping | list | tuple):
            part = getattr(converted, attribute, None)
            yield from find_unknown_keys(item, part, hints.get(attribute), f"{where}.{key}")


def _faults(unknown: Iterable[Any], known: Iterable[str], where: str) -> Iterator[Fault]:
    names = list(known)
    for key in unknown:
        close = difflib.get_close_matches(str(key), names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        fix = f"use one of: {', '.join(names)}" if names else "leave it out"
        yield Fault(f"{where}.{key}", f"is not known{hint}", fix)


@lru_cache(maxsize=256)
def _attributes(kind: Any) -> _Attributes | None:
    """The keys of a class that values are read into; None for any other class."""
    if hasattr(kind, "__pydantic_fields__"):
        return _pydantic_attributes(kind)
    if issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        names = {one.encode_name: one.name for one in msgspec.structs.fields(kind)}
        if config.tag_field is not None:
            names[config.tag_field] = ""
        return _Attributes(names)
    if dataclasses.is_dataclass(kind):
        return _Attributes({one.name: one.name for one in dataclasses.fields(kind) if one.init})
    attrs = getattr(kind, "__attrs_attrs__", None)
    return None if attrs is None else _Attributes({one.name: one.name for one in attrs})


def _pydantic_attributes(kind: Any) -> _Attributes:
    names: dict[str, str] = {}
    for name, field in kind.__pydantic_fields__.items():
        aliases = (field.alias, field.validation_alias)
        names.update({key: name for one in aliases for key in _alias_keys(one)})
        names.setdefault(name, name)
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}
    validators = kind.__pydantic_decorators__.model_validators.values()
    has_early = any(one.info.mode in _EARLY for one in validators)
    is_root = getattr(kind, "__pydantic_root_model__", False)
    # "forbid" refuses by itself; "allow" and "ignore" were chosen.
    return _Attributes(names, config.get("extra") is not None or has_early or is_root)


def _alias_keys(alias: Any) -> Iterator[str]:
    """The keys that an alias of pydantic reads: a text, a path, or a choice of both."""
    if isinstance(alias, str):
        yield alias
    for choice in getattr(alias, "choices", ()):
        yield from _alias_keys(choice)
    path = getattr(alias, "path", None)
    if path and isinstance(path[0], str):
        yield path[0]


def _typed_dict_keys(kind: Any) -> list[str]:
    """The keys of all TypedDicts in a type."""
    if typing.is_typeddict(kind):
        return list(_hints(kind))
    parts = (part for one in typing.get_args(kind) for part in _typed_dict_keys(one))
    return list(dict.fromkeys(parts))


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except Exception:  # a name that only type checkers know
        return {}
