"""Convert plain JSON values to declared types strictly, and explain what does not fit or is unknown."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from proctor.core import optional as extras
from proctor.datasets.faults import Fault, InvalidRecord, describe_value
from proctor.errors import DatasetError
from proctor.records import codec

# A value with more faults has a different type.
MAX_FAULTS = 50
TYPE_NAMES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "a boolean",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]+)`, got `(?P<got>[^`]+)`")
BOUND = re.compile(r"Expected `(?P<kind>[^`]+)` (?P<bound>.+)")
LENGTH = re.compile(r"Expected `array` of length (?P<wanted>.+), got (?P<got>\d+)")
FIELD = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<name>[^`]+)`")
AT = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`$")
STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|(?P<unknown>\[\.\.\.\])")

_LISTS = (list, set, frozenset, Sequence, Collection, Set)
_MAPPINGS = (dict, Mapping, MutableMapping)
_QUALIFIERS = (typing.Required, typing.NotRequired)
# Validators that run before the fields are read may use other keys.
_EARLY_MODES = ("before", "wrap")


class _Key(NamedTuple):
    """A key that a type declares."""

    name: str
    kind: Any
    required: bool


def find_faults(kind: Any, value: Any, field: str) -> list[Fault]:
    """Return all faults of a value that cannot be converted; empty if no detail is known."""
    return list(islice(_walk(kind, value, field), MAX_FAULTS))


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def _walk(kind: Any, value: Any, where: str) -> Iterator[Fault]:
    try:
        _convert(value, kind)
        return
    except InvalidRecord as invalid:
        # A pydantic model inside another type reports all its faults.
        yield from (Fault(where + fault.where, fault.what, fault.fix) for fault in invalid.faults)
        return
    except msgspec.ValidationError as error:
        failure = error
    except (TypeError, NameError):
        # msgspec supports this type only inside another one, whose fault is reported.
        return
    yield from _inner_faults(kind, value, where) or explain_error(failure, value, where)


def _inner_faults(kind: Any, value: Any, where: str) -> list[Fault]:
    """Return the faults inside a value; empty if the value itself has the wrong type."""
    if choices := _choices(kind):
        hint = _suggest(value, choices)
        return [Fault(where, f"expected {_list_choices(choices)}, found {describe_value(value)}{hint}")]
    if _is_union(kind):
        members = [member for member in typing.get_args(kind) if member is not types.NoneType]
        if len(members) == 1 and value is not None:
            faults = list(_walk(members[0], value, where))
            is_inside = any(fault.where != where for fault in faults)
            return faults if is_inside or _choices(members[0]) else []
        return _union_faults(members, value, where)
    if isinstance(value, Mapping):
        return list(_key_faults(kind, value, where))
    if isinstance(value, list | tuple):
        pairs = zip(_item_types(kind, len(value)), value, strict=False)
        return [
            fault
            for index, (item_type, item) in enumerate(pairs)
            for fault in _walk(item_type, item, f"{where}[{index}]")
        ]
    return []


def _item_types(kind: Any, length: int) -> Sequence[Any]:
    """Return the type of each item of a list; empty if unknown or if the length is wrong."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and arguments:
        if len(arguments) == 2 and arguments[1] is ...:
            return [arguments[0]] * length
        return arguments if len(arguments) == length else ()
    if origin in _LISTS and arguments:
        return [arguments[0]] * length
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = _hints(kind)
        item_types = [hints[name] for name in kind._fields if name in hints]
        return item_types if len(item_types) == length else ()
    return ()


def _key_faults(kind: Any, value: Mapping[Any, Any], where: str) -> Iterator[Fault]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in _MAPPINGS and arguments:
        for key, item in value.items():
            for fault in _walk(arguments[0], key, where):
                yield Fault(f"a key of {where}", fault.what)
            yield from _walk(arguments[1], item, f"{where}.{key}")
        return
    declared, is_closed = _declared_keys(kind)
    for key in declared:
        if key.name in value:
            yield from _walk(key.kind, value[key.name], f"{where}.{key.name}")
        elif key.required:
            yield Fault(f"{where}.{key.name}", "is missing")
    names = [key.name for key in declared]
    for unknown in (key for key in value if is_closed and key not in names):
        yield Fault(f"{where}.{unknown}", "is not known" + _suggest(unknown, names))


def _declared_keys(kind: Any) -> tuple[list[_Key], bool]:
    """Return the keys that a class declares, and whether it rejects others."""
    if not isinstance(kind, type):
        return [], False
    if issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        if config.array_like or config.tag is not None:
            return [], False
        fields = msgspec.structs.fields(kind)
        return [_Key(field.encode_name, field.type, field.required) for field in fields], True
    hints = _hints(kind)
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        return [
            _Key(field.name, hints[field.name], field.default is field.default_factory is missing)
            for field in dataclasses.fields(kind)
            if field.init and field.name in hints
        ], True
    if typing.is_typeddict(kind):
        required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
        return [_Key(name, _unqualified(hint), name in required) for name, hint in hints.items()], True
    return [], False


def _hints(kind: Any, *, include_extras: bool = True) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=include_extras)
    except Exception:  # a name that only type checkers know
        return {}


def _unqualified(kind: Any) -> Any:
    return typing.get_args(kind)[0] if typing.get_origin(kind) in _QUALIFIERS else kind


def _choices(kind: Any) -> tuple[Any, ...]:
    """Return the values of a literal or enum, as a file writes them."""
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return tuple(member.value for member in kind)
    return ()


def _list_choices(choices: Sequence[Any]) -> str:
    return ("one of " if len(choices) > 1 else "") + ", ".join(map(repr, choices))


def _suggest(value: Any, choices: Collection[Any]) -> str:
    texts = [choice for choice in choices if isinstance(choice, str)]
    close = difflib.get_close_matches(value, texts, n=1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def _union_faults(members: Sequence[Any], value: Any, where: str) -> list[Fault]:
    """Return the fault of a value outside a union with choices; empty for other unions."""
    if not any(map(_choices, members)):
        return []
    names = [
        _list_choices(choices)
        if (choices := _choices(member))
        else TYPE_NAMES.get(getattr(member, "__name__", ""), getattr(member, "__name__", str(member)))
        for member in members
    ]
    hint = _suggest(value, [choice for member in members for choice in _choices(member)])
    return [Fault(where, f"expected {' or '.join(names)}, found {describe_value(value)}{hint}")]


def explain_error(error: msgspec.ValidationError, value: Any, field: str) -> list[Fault]:
    """Explain the first fault that msgspec reports: path, expected type, actual value."""
    text = str(error)
    at = AT.search(text)
    steps = at["path"] if at else ""
    where, message = field + steps, AT.sub("", text)
    if at and at["key"]:
        # msgspec does not name the key, so there is no value to show.
        where, steps = f"a key of {where}", "[...]"
    if isinstance(error.__cause__, InvalidRecord):
        return [Fault(where + fault.where, fault.what) for fault in error.__cause__.faults]
    if match := FIELD.match(message):
        is_missing = match["how"] == "missing required"
        return [Fault(f"{where}.{match['name']}", "is missing" if is_missing else "is not known")]
    if match := LENGTH.match(message):
        return [Fault(where, f"expected a list of {match['wanted']}, found {match['got']}")]
    if match := EXPECTED.match(message):
        names = " or ".join(TYPE_NAMES.get(kind, kind) for kind in match["kinds"].split(" | "))
        return [Fault(where, f"expected {names}, found {_describe_value_at(steps, value, match['got'])}")]
    if match := BOUND.match(message):
        bound = f"{TYPE_NAMES.get(match['kind'], match['kind'])} {match['bound']}"
        return [Fault(where, f"expected {bound}, found {_describe_value_at(steps, value, 'another')}")]
    return [Fault(where, message[:1].lower() + message[1:])]


def _describe_value_at(steps: str, value: Any, type_name: str) -> str:
    """Describe the value at a path; only its type if the path does not exist."""
    for step in STEP.finditer(steps):
        key, index = step["key"], step["index"]
        if key is not None and isinstance(value, Mapping) and key in value:
            value = value[key]
        elif index is not None and isinstance(value, Sequence):
            value = value[int(index)]
        else:
            return TYPE_NAMES.get(type_name, type_name)
    return describe_value(value)


Reader = Callable[[Any], Any]


def make_reader(kind: Any, field: str) -> Reader | None:
    """Return a function that converts a plain value to a type, or None if any value is allowed.

    A boolean is not a number; a whole number is accepted as a float. The type may be a plain type, a list or mapping of
    such types, optional, a union, a Literal, a dataclass, a TypedDict, a msgspec struct or a pydantic model.
    """
    if kind is Any or kind is object:
        return None
    if _uses_pydantic(kind):
        return _pydantic_reader(kind, field)
    try:
        msgspec.convert(None, kind, dec_hook=_decode_other)
    except msgspec.ValidationError:
        return _plain_reader(kind, field)
    except (TypeError, NameError) as error:
        if _is_union(kind):
            return _union_reader(typing.get_args(kind), field)
        raise DatasetError(
            f"{field}_type={kind!r} is not a type that values can be converted to: {error}",
            fix="use str, int, float, bool, list, dict, Optional, a union, a Literal, a dataclass, "
            "a TypedDict, a msgspec struct, a pydantic model, or Any",
        ) from None
    return _plain_reader(kind, field)


def accepts_null(read: Reader | None) -> bool:
    """Tell whether a reader accepts null."""
    if read is None:
        return True
    try:
        read(None)
    except InvalidRecord:
        return False
    return True


def field_type(kind: Any, key: str) -> Any:
    """Return the declared type of one field of a dataclass, struct, model or mapping."""
    if typing.get_origin(kind) in (dict, Mapping):
        return typing.get_args(kind)[1]
    if not isinstance(kind, type):
        return Any
    return typing.get_type_hints(kind).get(key, Any)


def _plain_reader(kind: Any, field: str) -> Reader:
    def read(value: Any) -> Any:
        try:
            converted = msgspec.convert(value, kind, dec_hook=_decode_other)
        except msgspec.ValidationError as error:
            faults = find_faults(kind, value, field) or explain_error(error, value, field)
            raise InvalidRecord(faults) from None
        _check_unknown_keys(value, converted, kind, field)
        return converted

    return read


def _check_unknown_keys(value: Any, converted: Any, kind: Any, field: str) -> None:
    if isinstance(value, Mapping | list | tuple):
        unknown = list(find_unknown_keys(value, converted, kind, field))
        if unknown:
            raise InvalidRecord(unknown)


def _union_reader(members: Sequence[Any], field: str) -> Reader:
    """Return a reader for a union that msgspec does not support; the first matching member wins."""
    readers = [make_reader(member, field) for member in members]

    def read(value: Any) -> Any:
        for reader in readers:
            try:
                return value if reader is None else reader(value)
            except InvalidRecord:
                continue
        names = " or ".join(getattr(member, "__name__", str(member)) for member in members)
        raise InvalidRecord([Fault(field, f"expected {names}, found {describe_value(value)}")])

    return read


def _pydantic_reader(kind: Any, field: str) -> Reader:
    pydantic = extras.require("pydantic", extra="pydantic", why="conversion to a pydantic model")
    adapter = pydantic.TypeAdapter(kind)

    def read(value: Any) -> Any:
        if isinstance(kind, type) and isinstance(value, kind):
            return value
        try:
            # Strict JSON mode does not guess, but accepts dates and enums as strings.
            converted = adapter.validate_json(codec.encode(value), strict=True)
        except pydantic.ValidationError as error:
            raise InvalidRecord(_pydantic_faults(error, field)) from None
        _check_unknown_keys(value, converted, kind, field)
        return converted

    return read


def _convert(value: Any, kind: Any) -> Any:
    """Convert a value; raise msgspec's error, or `InvalidRecord` for a pydantic model."""
    if _uses_pydantic(kind):
        return _pydantic_reader(kind, "")(value)
    return msgspec.convert(value, kind, dec_hook=_decode_other)


def _decode_other(kind: Any, value: Any) -> Any:
    """Decode a type that msgspec does not support, inside one that it supports."""
    if isinstance(value, kind):
        return value
    if _uses_pydantic(kind):
        return _pydantic_reader(kind, "")(value)
    raise TypeError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")


def _uses_pydantic(kind: Any) -> bool:
    return hasattr(kind, "__pydantic_validator__") or any(map(_uses_pydantic, typing.get_args(kind)))


def _pydantic_faults(error: Any, field: str) -> list[Fault]:
    faults = []
    for detail in error.errors(include_url=False):
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
        what = "is missing"
        if detail["type"] != "missing":
            expectation = detail["msg"].replace("Input should be", "expected")
            what = f"{expectation}, found {describe_value(detail['input'])}"
        faults.append(Fault(field + "".join(steps), what))
    return faults


class _Attributes(NamedTuple):
    """The attribute for each key of a class."""

    by_key: Mapping[str, str]
    accepts_other_keys: bool = False


def find_unknown_keys(value: Any, converted: Any, kind: Any, where: str) -> Iterator[Fault]:
    """Yield a fault for every key of a plain value that the converted value does not have."""
    if isinstance(value, list | tuple) and isinstance(converted, list | tuple):
        for index, (item, converted_item) in enumerate(zip(value, converted, strict=False)):
            yield from find_unknown_keys(item, converted_item, kind, f"{where}[{index}]")
    elif isinstance(value, Mapping) and isinstance(converted, Mapping):
        yield from _check_mapping(value, converted, kind, where)
    elif isinstance(value, Mapping) and value is not converted:
        yield from _check_object(value, converted, where)


def _check_mapping(value: Mapping[Any, Any], converted: Mapping[Any, Any], kind: Any, where: str) -> Iterator[Fault]:
    # Conversion to a TypedDict drops undeclared keys.
    if len(converted) < len(value):
        dropped = [key for key in value if key not in converted]
        yield from _unknown_key_faults(dropped, _typed_dict_keys(kind), where)
        items = [(key, item, converted[key]) for key, item in value.items() if key in converted]
    else:
        # Conversion may change keys, such as "1" to 1, but not their order.
        pairs = zip(value.items(), converted.values(), strict=True)
        items = [(key, item, converted_item) for (key, item), converted_item in pairs]
    hints = _hints(kind, include_extras=False) if typing.is_typeddict(kind) else {}
    for key, item, converted_item in items:
        yield from find_unknown_keys(item, converted_item, hints.get(key, kind), f"{where}.{key}")


def _check_object(value: Mapping[Any, Any], converted: Any, where: str) -> Iterator[Fault]:
    kind: Any = type(converted)
    attributes = _attributes(kind)
    if attributes is None:
        return
    if not attributes.accepts_other_keys:
        unknown = [key for key in value if key not in attributes.by_key]
        yield from _unknown_key_faults(unknown, attributes.by_key, where)
    hints = _hints(kind, include_extras=False)
    for key, item in value.items():
        attribute = attributes.by_key.get(key)
        if attribute is not None and isinstance(item, Mapping | list | tuple):
            converted_item = getattr(converted, attribute, None)
            yield from find_unknown_keys(item, converted_item, hints.get(attribute), f"{where}.{key}")


def _unknown_key_faults(unknown: Iterable[Any], declared: Iterable[str], where: str) -> Iterator[Fault]:
    names = list(declared)
    fix = f"use one of: {', '.join(names)}" if names else "leave it out"
    for key in unknown:
        yield Fault(f"{where}.{key}", f"is not known{_suggest(str(key), names)}", fix)


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
        return list(_hints(kind, include_extras=False))
    return list(dict.fromkeys(key for argument in typing.get_args(kind) for key in _typed_dict_keys(argument)))
