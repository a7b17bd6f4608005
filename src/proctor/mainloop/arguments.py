"""What a tool takes: its parameters as JSON Schema, and how a model's arguments are read."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from proctor import codec, extras
from proctor.asking.forms import inlined
from proctor.errors import Problem, TargetError, nearest

# Defaults that stand in a schema as they are; others are made when the tool is called.
_SHOWN = str | int | float | bool | None


class BadArguments(ValueError):
    """A model called a tool with arguments that do not fit; says which, so that it can mend it."""


class Arguments(NamedTuple):
    """How the arguments of a tool are described to a model, and how they are read."""

    schema: dict[str, Any]
    read: Callable[[Mapping[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


def of_type(kind: Any, where: str) -> Arguments:
    """Arguments that are the fields of one dataclass, struct or pydantic model.

    >>> class Query(msgspec.Struct):
    ...     text: str
    >>> of_type(Query, "search").read({"text": "Paris"})
    ((Query(text='Paris'),), {})
    """
    if not is_record(kind):
        raise TargetError(
            f"the parameters of a tool cannot be of the type {kind!r}",
            where=where,
            fix="give a dataclass, a struct or a pydantic model, whose fields they are",
        )
    schema = _schema(kind, where)

    def read(given: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        known = () if schema.get("additionalProperties") else schema.get("properties", {})
        faults = [_unknown(name, known) for name in given if known and name not in known]
        try:
            made = _decoded(codec.encode(given), kind)
        except ValueError as error:
            faults.append(_told(error))
        if faults:
            raise _bad(faults)
        return (made,), {}

    return Arguments(schema, read)


def of_function(function: Callable[..., Any], where: str) -> Arguments:
    """Arguments that are the parameters of a function, or the fields of its only parameter.

    >>> def add(a: int, b: int = 1) -> int: ...
    >>> of_function(add, "add").read({"a": 2})
    ((), {'a': 2})
    """
    parameters = inspect.signature(function).parameters
    hints = _hints(function, where)
    faults = [
        Problem(name, fault)
        for name, parameter in parameters.items()
        if (fault := _fault(parameter, hints))
    ]
    if faults:
        raise TargetError("it cannot be a tool as it is", where=where, problems=faults)
    if len(parameters) == 1 and is_record(only := hints[next(iter(parameters))]):
        return of_type(only, where)
    kinds = {name: _described(hints[name]) for name in parameters}
    needed = [name for name, each in parameters.items() if each.default is Parameter.empty]
    fields = [(name, kinds[name], _default(each)) for name, each in parameters.items()]
    made = msgspec.defstruct(
        where, [field if field[0] not in needed else field[:2] for field in fields], kw_only=True
    )
    schema = {**_schema(made, where), "additionalProperties": False}

    def read(given: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        faults = [_unknown(name, kinds) for name in given if name not in kinds]
        faults += [f"{name} is missing" for name in needed if name not in given]
        values = {}
        for name, value in given.items():
            try:
                values[name] = _decoded(codec.encode(value), kinds.get(name, Any))
            except ValueError as error:
                faults.append(f"{name}: {_told(error)}")
        if faults:
            raise _bad(faults)
        return (), values

    return Arguments(schema, read)


def is_record(kind: Any) -> bool:
    """True for a dataclass, a struct or a pydantic model.

    >>> is_record(int)
    False
    """
    return isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__")
        or issubclass(kind, msgspec.Struct)
        or extras.is_pydantic_model(kind)
    )


def _hints(function: Callable[..., Any], where: str) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    code = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(code, include_extras=True)
    except NameError as error:
        raise TargetError(
            f"a type of its parameters cannot be found: {error}",
            where=where,
            fix="import it where the tool is defined, and not for type checkers only",
        ) from None


def _fault(parameter: Parameter, hints: Mapping[str, Any]) -> str:
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return "a model cannot be told what it takes; name the parameters one by one"
    if parameter.kind is Parameter.POSITIONAL_ONLY:
        return "a model gives arguments by name, and this one goes only by place"
    return "" if parameter.name in hints else "it has no type"


def _described(kind: Any) -> Any:
    """A type in which a plain text beside it, as in `Annotated[str, "a city"]`, describes it."""
    if get_origin(kind) is not Annotated:
        return kind
    inside, *notes = get_args(kind)
    kept = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[inside, *kept]


def _default(parameter: Parameter) -> Any:
    value = parameter.default
    return value if isinstance(value, _SHOWN) else msgspec.field(default_factory=lambda: value)


def _schema(kind: Any, where: str) -> dict[str, Any]:
    if extras.is_pydantic_model(kind):
        return dict(kind.model_json_schema())
    definitions: dict[str, Any] = {}

    def inside(part: type) -> dict[str, Any]:
        if not extras.is_pydantic_model(part):
            raise TypeError(f"{part!r} has no JSON Schema")
        found = dict(part.model_json_schema())  # type: ignore[attr-defined]
        definitions.update(found.pop("$defs", {}))
        return found

    try:
        found = inlined(msgspec.json.schema(kind, schema_hook=inside))
    except TypeError as error:
        raise TargetError(f"a model cannot be told what it takes: {error}", where=where) from None
    if definitions:
        found = {**found, "$defs": {**definitions, **found.get("$defs", {})}}
    return found


def _decoded(data: bytes, kind: Any) -> Any:
    if extras.is_pydantic_model(kind):
        return kind.model_validate_json(data, strict=True)
    return msgspec.json.decode(data, type=kind, dec_hook=_foreign)


def _foreign(kind: type, value: Any) -> Any:
    """A pydantic model inside of something else."""
    try:
        return _decoded(codec.encode(value), kind)
    except ValueError as error:
        raise ValueError(_told(error)) from None


def _told(error: ValueError) -> str:
    """What is wrong, in one line; pydantic has several things to say."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors())


def _unknown(name: str, known: Mapping[str, Any] | tuple[()]) -> str:
    return f"there is no parameter {name!r}: {nearest(name, known)}"


def _bad(faults: list[str]) -> BadArguments:
    return BadArguments(f"the arguments do not fit: {'; '.join(faults)}")
