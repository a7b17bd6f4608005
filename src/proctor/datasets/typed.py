"""Plain values (what JSON holds) into declared types, strictly, and in words where they differ."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence, Set
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from proctor.core import optional as extras
from proctor.datasets.faults import Fault, Unfit, found
from proctor.datasets.unknown_keys import find_unknown_keys
from proctor.errors import DatasetError
from proctor.records import codec

Convert = Callable[[Any, Any], Any]

# A value with more faults than this is of another type altogether.
MOST_FAULTS = 50
WORDS = {
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


class _Key(NamedTuple):
    """One key that a type declares: its name in the file, its type, and whether it is needed."""

    name: str
    kind: Any
    required: bool


def find_faults(kind: Any, value: Any, field: str, convert: Convert) -> list[Fault]:
    """All faults of a value that cannot be converted; empty if none can be named in detail."""
    return list(islice(_walk(kind, value, field, convert), MOST_FAULTS))


def is_union(kind: Any) -> bool:
    """True for `A | B` and `Union[A, B]`."""
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def _walk(kind: Any, value: Any, where: str, convert: Convert) -> Iterator[Fault]:
    try:
        convert(value, kind)
        return
    except Unfit as unfit:
        # A pydantic model inside another type names all its faults itself.
        yield from _moved(unfit, where)
        return
    except msgspec.ValidationError as error:
        failure = error
    except (TypeError, NameError):
        # msgspec reads this type only as a part of the whole, which is explained as such.
        return
    yield from _parts(kind, value, where, convert) or explain(failure, value, where)


def _parts(kind: Any, value: Any, where: str, convert: Convert) -> list[Fault]:
    """The faults of the parts of a value; empty where the fault is in the value as a whole."""
    if choices := _choices(kind):
        return [_not_a_choice(choices, value, where)]
    if is_union(kind):
        members = [one for one in typing.get_args(kind) if one is not types.NoneType]
        if len(members) == 1 and value is not None:
            parts = list(_walk(members[0], value, where, convert))
            is_inside = any(fault.field != where for fault in parts)
            return parts if is_inside or _choices(members[0]) else []
        return _outside_union(members, value, where)
    if isinstance(value, Mapping):
        return list(_faults_of_keys(kind, value, where, convert))
    if isinstance(value, list | tuple):
        pairs = zip(_item_types(kind, len(value)), value, strict=False)
        return [
            fault
            for index, (one, item) in enumerate(pairs)
            for fault in _walk(one, item, f"{where}[{index}]", convert)
        ]
    return []


def _item_types(kind: Any, length: int) -> Sequence[Any]:
    """The type of each item of a list; empty where the type does not tell, or the length is off."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and arguments:
        if len(arguments) == 2 and arguments[1] is ...:
            return [arguments[0]] * length
        return arguments if len(arguments) == length else ()
    if origin in _LISTS and arguments:
        return [arguments[0]] * length
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = _hints(kind)
        known = [hints[name] for name in kind._fields if name in hints]
        return known if len(known) == length else ()
    return ()


def _faults_of_keys(kind: Any, value: Mapping[Any, Any], where: str, convert: Convert) -> Iterator[Fault]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in _MAPPINGS and arguments:
        for key, part in value.items():
            for fault in _walk(arguments[0], key, where, convert):
                yield Fault(f"a key of {where}", fault.what)
            yield from _walk(arguments[1], part, f"{where}.{key}", convert)
        return
    declared, closed = _declared(kind)
    for key in declared:
        if key.name in value:
            yield from _walk(key.kind, value[key.name], f"{where}.{key.name}", convert)
        elif key.required:
            yield Fault(f"{where}.{key.name}", "is missing")
    names = [key.name for key in declared]
    for unknown in (key for key in value if closed and key not in names):
        yield Fault(f"{where}.{unknown}", "is not known" + _likely(unknown, names))


def _declared(kind: Any) -> tuple[list[_Key], bool]:
    """The keys that a class declares, and whether it refuses others."""
    if not isinstance(kind, type):
        return [], False
    if issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        if config.array_like or config.tag is not None:
            return [], False
        fields = msgspec.structs.fields(kind)
        keys = [_Key(one.encode_name, one.type, one.required) for one in fields]
        return keys, True
    hints = _hints(kind)
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        return [
            _Key(one.name, hints[one.name], one.default is one.default_factory is missing)
            for one in dataclasses.fields(kind)
            if one.init and one.name in hints
        ], True
    if typing.is_typeddict(kind):
        required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
        return [_Key(name, _unqualified(one), name in required) for name, one in hints.items()], (True)
    return [], False


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:  # names for type checkers only; then the fault is told as a whole
        return {}


def _unqualified(kind: Any) -> Any:
    return typing.get_args(kind)[0] if typing.get_origin(kind) in _QUALIFIERS else kind


def _choices(kind: Any) -> tuple[Any, ...]:
    """What a literal or an enum allows, as a file writes it."""
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return tuple(member.value for member in kind)
    return ()


def _not_a_choice(choices: Sequence[Any], value: Any, where: str) -> Fault:
    wanted = _listed(choices)
    return Fault(where, f"expected {wanted}, found {found(value)}{_likely(value, choices)}")


def _listed(choices: Sequence[Any]) -> str:
    return ("one of " if len(choices) > 1 else "") + ", ".join(map(repr, choices))


def _likely(value: Any, choices: Collection[Any]) -> str:
    texts = [choice for choice in choices if isinstance(choice, str)]
    close = difflib.get_close_matches(value, texts, n=1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def _outside_union(members: Sequence[Any], value: Any, where: str) -> list[Fault]:
    """The fault of a value outside a union that has choices; others are explained as they are."""
    if not any(map(_choices, members)):
        return []
    words = [
        _listed(choices)
        if (choices := _choices(member))
        else WORDS.get(getattr(member, "__name__", ""), getattr(member, "__name__", str(member)))
        for member in members
    ]
    every = [choice for member in members for choice in _choices(member)]
    what = f"expected {' or '.join(words)}, found {found(value)}{_likely(value, every)}"
    return [Fault(where, what)]


def _moved(unfit: Unfit, where: str) -> Iterator[Fault]:
    for fault in unfit.faults:
        yield Fault(where + fault.field, fault.what, fault.fix)


def explain(error: msgspec.ValidationError, value: Any, field: str) -> list[Fault]:
    """The first fault that msgspec found, in our words: path, expected, found."""
    text = str(error)
    at = AT.search(text)
    steps = at["path"] if at else ""
    where, message = field + steps, AT.sub("", text)
    if at and at["key"]:
        # The key itself is not told, so that there is no value to show.
        where, steps = f"a key of {where}", "[...]"
    if isinstance(error.__cause__, Unfit):
        inner = error.__cause__.faults
        return [Fault(where + fault.field, fault.what) for fault in inner]
    if match := FIELD.match(message):
        missing = match["how"] == "missing required"
        return [Fault(f"{where}.{match['name']}", "is missing" if missing else "is not known")]
    if match := LENGTH.match(message):
        return [Fault(where, f"expected a list of {match['wanted']}, found {match['got']}")]
    if match := EXPECTED.match(message):
        wanted = " or ".join(WORDS.get(kind, kind) for kind in match["kinds"].split(" | "))
        return [Fault(where, f"expected {wanted}, found {_found_at(steps, value, match['got'])}")]
    if match := BOUND.match(message):
        wanted = f"{WORDS.get(match['kind'], match['kind'])} {match['bound']}"
        return [Fault(where, f"expected {wanted}, found {_found_at(steps, value, 'another')}")]
    return [Fault(where, message[:1].lower() + message[1:])]


def _found_at(steps: str, value: Any, got: str) -> str:
    """The value at a path, in words; only its kind where the path does not lead there."""
    for step in STEP.finditer(steps):
        key, index = step["key"], step["index"]
        if key is not None and isinstance(value, Mapping) and key in value:
            value = value[key]
        elif index is not None and isinstance(value, Sequence):
            value = value[int(index)]
        else:
            return WORDS.get(got, got)
    return found(value)


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
        where = field + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in part["loc"])
        if part["type"] == "missing":
            faults.append(Fault(where, "is missing"))
        else:
            what = part["msg"].replace("Input should be", "expected")
            faults.append(Fault(where, f"{what}, found {found(part['input'])}"))
    return faults
