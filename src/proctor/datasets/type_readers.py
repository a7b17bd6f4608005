"""Convert plain JSON values to declared types strictly, and explain invalid values and unknown keys."""

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
from proctor.datasets.problems import InvalidRecord, describe_value
from proctor.errors import DatasetError, Problem
from proctor.records import codec
from proctor.records.validation import TYPE_NAMES, describe_bound, describe_types

# A value with more problems probably has a different type.
MAX_PROBLEMS = 50
EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]+)`, got `(?P<got>[^`]+)`")
BOUND = re.compile(r"Expected `(?P<kind>[^`]+)`(?P<bound> .+)")
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
    value_type: Any
    required: bool


def _is_union(value_type: Any) -> bool:
    return typing.get_origin(value_type) in (typing.Union, types.UnionType)


def _walk(value_type: Any, value: Any, where: str) -> Iterator[Problem]:
    try:
        _convert(value, value_type)
        return
    except InvalidRecord as invalid:
        # A pydantic model inside another type reports all its problems.
        yield from (Problem(where + problem.where, problem.what, problem.fix) for problem in invalid.problems)
        return
    except msgspec.ValidationError as error:
        failure = error
    except (TypeError, NameError):
        # msgspec supports this type only inside another type, whose problem is reported.
        return
    yield from _find_inner_problems(value_type, value, where) or explain_error(failure, value, where)


def _find_inner_problems(value_type: Any, value: Any, where: str) -> list[Problem]:
    """Return the problems inside a value; empty if the value itself has the wrong type."""
    if choices := _choices(value_type):
        hint = _suggest(value, choices)
        return [Problem(where, f"must be {_list_choices(choices)}, got {describe_value(value)}{hint}")]
    if _is_union(value_type):
        members = [member for member in typing.get_args(value_type) if member is not types.NoneType]
        if len(members) == 1 and value is not None:
            problems = list(_walk(members[0], value, where))
            is_inside = any(problem.where != where for problem in problems)
            return problems if is_inside or _choices(members[0]) else []
        return _find_union_problems(members, value, where)
    if isinstance(value, Mapping):
        return list(_find_key_problems(value_type, value, where))
    if isinstance(value, list | tuple):
        pairs = zip(_item_types(value_type, len(value)), value, strict=False)
        return [
            problem
            for index, (item_type, item) in enumerate(pairs)
            for problem in _walk(item_type, item, f"{where}[{index}]")
        ]
    return []


def _item_types(value_type: Any, length: int) -> Sequence[Any]:
    """Return the type of each item of a list; empty if unknown or if the length is wrong."""
    origin, arguments = typing.get_origin(value_type), typing.get_args(value_type)
    if origin is tuple and arguments:
        if len(arguments) == 2 and arguments[1] is ...:
            return [arguments[0]] * length
        return arguments if len(arguments) == length else ()
    if origin in _LISTS and arguments:
        return [arguments[0]] * length
    if isinstance(value_type, type) and issubclass(value_type, tuple) and hasattr(value_type, "_fields"):
        hints = _hints(value_type)
        item_types = [hints[name] for name in value_type._fields if name in hints]
        return item_types if len(item_types) == length else ()
    return ()


def _find_key_problems(value_type: Any, value: Mapping[Any, Any], where: str) -> Iterator[Problem]:
    origin, arguments = typing.get_origin(value_type), typing.get_args(value_type)
    if origin in _MAPPINGS and arguments:
        for key, item in value.items():
            for problem in _walk(arguments[0], key, where):
                yield Problem(f"a key of {where}", problem.what)
            yield from _walk(arguments[1], item, f"{where}.{key}")
        return
    declared_keys, is_closed = _declared_keys(value_type)
    for key in declared_keys:
        if key.name in value:
            yield from _walk(key.value_type, value[key.name], f"{where}.{key.name}")
        elif key.required:
            yield Problem(f"{where}.{key.name}", "is missing")
    names = [key.name for key in declared_keys]
    for unknown_key in (key for key in value if is_closed and key not in names):
        yield Problem(f"{where}.{unknown_key}", "is unknown" + _suggest(unknown_key, names))


def _declared_keys(value_type: Any) -> tuple[list[_Key], bool]:
    """Return the keys that a class declares, and whether it rejects other keys."""
    if not isinstance(value_type, type):
        return [], False
    if issubclass(value_type, msgspec.Struct):
        config = value_type.__struct_config__
        if config.array_like or config.tag is not None:
            return [], False
        fields = msgspec.structs.fields(value_type)
        return [_Key(field.encode_name, field.type, field.required) for field in fields], True
    hints = _hints(value_type)
    if dataclasses.is_dataclass(value_type):
        missing = dataclasses.MISSING
        return [
            _Key(field.name, hints[field.name], field.default is field.default_factory is missing)
            for field in dataclasses.fields(value_type)
            if field.init and field.name in hints
        ], True
    if typing.is_typeddict(value_type):
        required: frozenset[str] = getattr(value_type, "__required_keys__", frozenset())
        return [_Key(name, _unqualified(hint), name in required) for name, hint in hints.items()], True
    return [], False


def _hints(value_type: Any, *, include_extras: bool = True) -> dict[str, Any]:
    try:
        return typing.get_type_hints(value_type, include_extras=include_extras)
    except Exception:  # The name exists only for type checkers.
        return {}


def _unqualified(value_type: Any) -> Any:
    return typing.get_args(value_type)[0] if typing.get_origin(value_type) in _QUALIFIERS else value_type


def _choices(value_type: Any) -> tuple[Any, ...]:
    """Return the values of a literal or enum as they appear in a file."""
    if typing.get_origin(value_type) is typing.Literal:
        return typing.get_args(value_type)
    if isinstance(value_type, type) and issubclass(value_type, enum.Enum):
        return tuple(member.value for member in value_type)
    return ()


def _list_choices(choices: Sequence[Any]) -> str:
    return ("one of " if len(choices) > 1 else "") + ", ".join(map(repr, choices))


def _suggest(value: Any, choices: Collection[Any]) -> str:
    texts = [choice for choice in choices if isinstance(choice, str)]
    close = difflib.get_close_matches(value, texts, n=1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def _find_union_problems(members: Sequence[Any], value: Any, where: str) -> list[Problem]:
    """Return the problem with a value that is not in a union of choices; empty for other unions."""
    if not any(map(_choices, members)):
        return []
    names = [
        _list_choices(choices)
        if (choices := _choices(member))
        else TYPE_NAMES.get(getattr(member, "__name__", ""), getattr(member, "__name__", str(member)))
        for member in members
    ]
    hint = _suggest(value, [choice for member in members for choice in _choices(member)])
    return [Problem(where, f"must be {' or '.join(names)}, got {describe_value(value)}{hint}")]


def explain_error(error: msgspec.ValidationError, value: Any, field: str) -> list[Problem]:
    """Explain the first problem that msgspec reports: path, expected type, actual value."""
    text = str(error)
    at = AT.search(text)
    steps = at["path"] if at else ""
    where, message = field + steps, AT.sub("", text)
    if at and at["key"]:
        # msgspec does not name the key, so there is no value to show.
        where, steps = f"a key of {where}", "[...]"
    if isinstance(error.__cause__, InvalidRecord):
        return [Problem(where + problem.where, problem.what) for problem in error.__cause__.problems]
    if match := FIELD.match(message):
        is_missing = match["how"] == "missing required"
        return [Problem(f"{where}.{match['name']}", "is missing" if is_missing else "is unknown")]
    if match := LENGTH.match(message):
        return [Problem(where, f"must be a list of {match['wanted']}, got {match['got']}")]
    if match := EXPECTED.match(message):
        return [
            Problem(
                where, f"must be {describe_types(match['kinds'])}, got {_describe_value_at(steps, value, match['got'])}"
            )
        ]
    if match := BOUND.match(message):
        bound = TYPE_NAMES.get(match["kind"], match["kind"]) + describe_bound(match["bound"])
        return [Problem(where, f"must be {bound}, got {_describe_value_at(steps, value, 'another')}")]
    return [Problem(where, message[:1].lower() + message[1:])]


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


def make_reader(value_type: Any, field: str) -> Reader | None:
    """Return a function that converts a plain value to a type, or None if any value is allowed.

    A boolean is not a number; a whole number is accepted as a float. The type may be a plain type, a list or mapping of
    such types, optional, a union, a Literal, a dataclass, a TypedDict, a msgspec struct or a pydantic model.
    """
    if value_type is Any or value_type is object:
        return None
    if _uses_pydantic(value_type):
        return _pydantic_reader(value_type, field)
    try:
        msgspec.convert(None, value_type, dec_hook=_decode_other)
    except msgspec.ValidationError:
        return _plain_reader(value_type, field)
    except (TypeError, NameError) as error:
        if _is_union(value_type):
            return _union_reader(typing.get_args(value_type), field)
        raise DatasetError(
            f"{field}_type={value_type!r} is not a type that values can be converted to: {error}",
            fix="use str, int, float, bool, list, dict, Optional, a union, a Literal, a dataclass, "
            "a TypedDict, a msgspec struct, a pydantic model, or Any",
        ) from None
    return _plain_reader(value_type, field)


def accepts_null(read: Reader | None) -> bool:
    """Return True if a reader accepts null."""
    if read is None:
        return True
    try:
        read(None)
    except InvalidRecord:
        return False
    return True


def field_type(value_type: Any, key: str) -> Any:
    """Return the declared type of one field of a dataclass, struct, model or mapping."""
    if typing.get_origin(value_type) in (dict, Mapping):
        return typing.get_args(value_type)[1]
    if not isinstance(value_type, type):
        return Any
    return typing.get_type_hints(value_type).get(key, Any)


def _plain_reader(value_type: Any, field: str) -> Reader:
    def read(value: Any) -> Any:
        try:
            converted = msgspec.convert(value, value_type, dec_hook=_decode_other)
        except msgspec.ValidationError as error:
            problems = list(islice(_walk(value_type, value, field), MAX_PROBLEMS))
            raise InvalidRecord(problems or explain_error(error, value, field)) from None
        _check_unknown_keys(value, converted, value_type, field)
        return converted

    return read


def _check_unknown_keys(value: Any, converted: Any, value_type: Any, field: str) -> None:
    if isinstance(value, Mapping | list | tuple):
        unknown_keys = list(find_unknown_keys(value, converted, value_type, field))
        if unknown_keys:
            raise InvalidRecord(unknown_keys)


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
        raise InvalidRecord([Problem(field, f"must be {names}, got {describe_value(value)}")])

    return read


def _pydantic_reader(value_type: Any, field: str) -> Reader:
    pydantic = extras.require("pydantic", extra="pydantic", why="conversion to a pydantic model")
    adapter = pydantic.TypeAdapter(value_type)

    def read(value: Any) -> Any:
        if isinstance(value_type, type) and isinstance(value, value_type):
            return value
        try:
            # Strict JSON mode does not guess, but accepts dates and enums as strings.
            converted = adapter.validate_json(codec.encode(value), strict=True)
        except pydantic.ValidationError as error:
            raise InvalidRecord(_convert_pydantic_errors(error, field)) from None
        _check_unknown_keys(value, converted, value_type, field)
        return converted

    return read


def _convert(value: Any, value_type: Any) -> Any:
    """Convert a value; raise msgspec's error, or `InvalidRecord` for a pydantic model."""
    if _uses_pydantic(value_type):
        return _pydantic_reader(value_type, "")(value)
    return msgspec.convert(value, value_type, dec_hook=_decode_other)


def _decode_other(value_type: Any, value: Any) -> Any:
    """Decode a type that msgspec does not support, inside a type that it supports."""
    if isinstance(value, value_type):
        return value
    if _uses_pydantic(value_type):
        return _pydantic_reader(value_type, "")(value)
    raise TypeError(f"Expected `{value_type.__name__}`, got `{type(value).__name__}`")


def _uses_pydantic(value_type: Any) -> bool:
    return hasattr(value_type, "__pydantic_validator__") or any(map(_uses_pydantic, typing.get_args(value_type)))


def _convert_pydantic_errors(error: Any, field: str) -> list[Problem]:
    problems = []
    for detail in error.errors(include_url=False):
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
        what = "is missing"
        if detail["type"] != "missing":
            expectation = detail["msg"].replace("Input should be", "must be").replace("Value error, ", "")
            what = f"{expectation}, got {describe_value(detail['input'])}"
        problems.append(Problem(field + "".join(steps), what))
    return problems


class _Attributes(NamedTuple):
    """The attribute for each key of a class."""

    by_key: Mapping[str, str]
    accepts_other_keys: bool = False


def find_unknown_keys(value: Any, converted: Any, value_type: Any, where: str) -> Iterator[Problem]:
    """Yield a problem for every key of a plain value that the converted value lacks."""
    if isinstance(value, list | tuple) and isinstance(converted, list | tuple):
        for index, (item, converted_item) in enumerate(zip(value, converted, strict=False)):
            yield from find_unknown_keys(item, converted_item, value_type, f"{where}[{index}]")
    elif isinstance(value, Mapping) and isinstance(converted, Mapping):
        yield from _check_mapping(value, converted, value_type, where)
    elif isinstance(value, Mapping) and value is not converted:
        yield from _check_object(value, converted, where)


def _check_mapping(
    value: Mapping[Any, Any], converted: Mapping[Any, Any], value_type: Any, where: str
) -> Iterator[Problem]:
    # Conversion to a TypedDict drops undeclared keys.
    if len(converted) < len(value):
        dropped = [key for key in value if key not in converted]
        yield from _unknown_key_problems(dropped, _typed_dict_keys(value_type), where)
        items = [(key, item, converted[key]) for key, item in value.items() if key in converted]
    else:
        # Conversion may change keys, such as "1" to 1, but not their order.
        pairs = zip(value.items(), converted.values(), strict=True)
        items = [(key, item, converted_item) for (key, item), converted_item in pairs]
    hints = _hints(value_type, include_extras=False) if typing.is_typeddict(value_type) else {}
    for key, item, converted_item in items:
        yield from find_unknown_keys(item, converted_item, hints.get(key, value_type), f"{where}.{key}")


def _check_object(value: Mapping[Any, Any], converted: Any, where: str) -> Iterator[Problem]:
    value_type: Any = type(converted)
    attributes = _attributes(value_type)
    if attributes is None:
        return
    if not attributes.accepts_other_keys:
        unknown_keys = [key for key in value if key not in attributes.by_key]
        yield from _unknown_key_problems(unknown_keys, attributes.by_key, where)
    hints = _hints(value_type, include_extras=False)
    for key, item in value.items():
        attribute = attributes.by_key.get(key)
        if attribute is not None and isinstance(item, Mapping | list | tuple):
            converted_item = getattr(converted, attribute, None)
            yield from find_unknown_keys(item, converted_item, hints.get(attribute), f"{where}.{key}")


def _unknown_key_problems(unknown_keys: Iterable[Any], declared_keys: Iterable[str], where: str) -> Iterator[Problem]:
    names = list(declared_keys)
    fix = f"use one of: {', '.join(names)}" if names else "leave it out"
    for key in unknown_keys:
        yield Problem(f"{where}.{key}", f"is unknown{_suggest(str(key), names)}", fix)


@lru_cache(maxsize=256)
def _attributes(value_type: Any) -> _Attributes | None:
    """Return the attributes of a class that values can be converted to; None for any other class."""
    if hasattr(value_type, "__pydantic_fields__"):
        return _pydantic_attributes(value_type)
    if issubclass(value_type, msgspec.Struct):
        config = value_type.__struct_config__
        names = {field.encode_name: field.name for field in msgspec.structs.fields(value_type)}
        if config.tag_field is not None:
            names[config.tag_field] = ""
        return _Attributes(names)
    if dataclasses.is_dataclass(value_type):
        return _Attributes({field.name: field.name for field in dataclasses.fields(value_type) if field.init})
    attrs = getattr(value_type, "__attrs_attrs__", None)
    return None if attrs is None else _Attributes({field.name: field.name for field in attrs})


def _pydantic_attributes(value_type: Any) -> _Attributes:
    names: dict[str, str] = {}
    for name, field in value_type.__pydantic_fields__.items():
        aliases = (field.alias, field.validation_alias)
        names.update({key: name for alias in aliases for key in _alias_keys(alias)})
        names.setdefault(name, name)
    config = getattr(value_type, "model_config", None) or getattr(value_type, "__pydantic_config__", None) or {}
    validators = value_type.__pydantic_decorators__.model_validators.values()
    has_early_validator = any(validator.info.mode in _EARLY_MODES for validator in validators)
    is_root = getattr(value_type, "__pydantic_root_model__", False)
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


def _typed_dict_keys(value_type: Any) -> list[str]:
    if typing.is_typeddict(value_type):
        return list(_hints(value_type, include_extras=False))
    return list(dict.fromkeys(key for argument in typing.get_args(value_type) for key in _typed_dict_keys(argument)))
