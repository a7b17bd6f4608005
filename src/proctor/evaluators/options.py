"""The options of an evaluator: described for the catalogue, validated, and stored as data."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from inspect import Parameter
from typing import Any

import msgspec

from proctor.core.identity import address_in
from proctor.errors import EvaluatorError, Problem, UsageError, suggest_name
from proctor.evaluators.signatures import EvaluatorSignature, inspect_signature
from proctor.records import codec
from proctor.records.numbers import read_percent
from proctor.records.run import EvaluatorSpec

# Options that are a share from 0 to 1 in every evaluator that has them.
SHARES = frozenset(("threshold", "min_score", "at_least", "near", "p_value"))

_TYPE_NAMES: dict[Any, str] = {Sequence: "list", Iterable: "list", Mapping: "dict"}

Model = typing.Annotated[
    Any, msgspec.Meta(title="model", description="a model: an address such as openai:gpt-4o-mini")
]
Embedding = typing.Annotated[
    Any, msgspec.Meta(title="embedder", description="an embedder: an address such as local:minilm")
]


class ParameterInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One option of an evaluator: its name, its readable type, and its default if it has one."""

    name: str
    type: str
    default: Any = None
    required: bool = False


class OptionSet(typing.NamedTuple):
    """The options that a function or factory accepts, and their resolved types."""

    parameters: Mapping[str, Parameter]
    hints: Mapping[str, Any]
    accepts_any: bool

    def describe(self) -> tuple[ParameterInfo, ...]:
        """Return the options for the catalogue."""
        return tuple(
            ParameterInfo(
                name,
                format_type(self.hints.get(name, parameter.annotation)),
                None if _is_required(parameter) else to_data(parameter.default),
                _is_required(parameter),
            )
            for name, parameter in self.parameters.items()
        )

    def check(self, options: Mapping[str, Any], label: str) -> dict[str, Any]:
        """Convert options to their declared types; one error lists all faults."""
        problems = [
            Problem(name, f"there is no such parameter: {suggest_name(name, self.parameters)}")
            for name in options
            if not (self.accepts_any or name in self.parameters)
        ]
        for name, parameter in self.parameters.items():
            if _is_required(parameter) and name not in options:
                hint = self.hints.get(name, parameter.annotation)
                problems.append(
                    Problem(name, f"it is required: {_get_meta(hint).description or format_type(hint)}")
                )
        converted: dict[str, Any] = {}
        for name, value in options.items():
            hint = self.hints.get(name, Any)
            value = read_option(name, value) if "float" in format_type(hint) else value
            try:
                converted[name] = _convert(value, hint)
            except msgspec.ValidationError:
                problems.append(Problem(name, f"expected {format_type(hint)}, got {value!r}"))
        if problems:
            listed = ", ".join(
                f"{p.name}: {p.type}" + ("" if p.required else f" = {p.default!r}") for p in self.describe()
            )
            fix = f"it takes {listed or 'no parameters'}"
            raise EvaluatorError("its parameters do not fit", where=label, fix=fix, problems=problems)
        return converted


def read_option(name: str, value: Any) -> Any:
    """Return the value of an option; a share may be written as a percentage.

    >>> read_option("threshold", "80%"), read_option("pattern", "80%")
    (0.8, '80%')
    """
    percent = read_percent(value) if name in SHARES else None
    return value if percent is None else percent


def read_function_options(function: Callable[..., Any], signature: EvaluatorSignature) -> OptionSet:
    """Return the options of an evaluator: all parameters that are not evidence."""
    return OptionSet(signature.options, resolve_hints(function), signature.any_option)


def read_factory_options(factory: Callable[..., Any], label: str) -> OptionSet:
    """Return the options of a factory or class: all its parameters."""
    parameters = inspect_signature(factory, label).parameters
    named = {n: p for n, p in parameters.items() if p.kind is not Parameter.VAR_KEYWORD}
    lists = {n: list[Any] for n, p in named.items() if p.kind is Parameter.VAR_POSITIONAL}
    return OptionSet(named, {**resolve_hints(factory), **lists}, len(named) < len(parameters))


def call_factory(factory: Callable[..., Any], options: Mapping[str, Any], label: str) -> Any:
    """Call a factory or class with options by name."""
    converted = read_factory_options(factory, label).check(options, label)
    bound = _bind(inspect_signature(factory, label), converted)
    try:
        return factory(*bound.args, **bound.kwargs)
    except EvaluatorError:
        raise
    except UsageError as error:
        where = f"{label}, {error.where}" if error.where else label
        raise EvaluatorError(error.what, where=where, fix=error.fix, problems=error.problems) from error
    except Exception as error:
        raise EvaluatorError(
            f"creating it failed with {type(error).__name__}: {error}", where=label
        ) from error


def _bind(signature: inspect.Signature, options: dict[str, Any]) -> inspect.BoundArguments:
    bound = signature.bind_partial()
    for name, parameter in signature.parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            bound.arguments[name] = options
        elif name in options:
            value = options.pop(name)
            bound.arguments[name] = tuple(value) if parameter.kind is Parameter.VAR_POSITIONAL else value
    bound.apply_defaults()
    return bound


def resolve_hints(function: Any) -> Mapping[str, Any]:
    """Return the resolved types of a callable's parameters; none if they cannot be resolved."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        function = function.__init__  # type: ignore[misc]
    elif not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        # Names imported under TYPE_CHECKING cannot be resolved; then types are not checked.
        return {}


def format_type(hint: Any) -> str:
    """Return a type as the author of an eval file reads it.

    >>> format_type(Sequence[str]), format_type(float | None), format_type(typing.Literal["a", "b"])
    ('list[str]', 'float | None', "'a' | 'b'")
    """
    if isinstance(hint, str):
        return hint
    if hint in (Any, Parameter.empty):
        return "any"
    if hint is None or hint is types.NoneType:
        return "None"
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _get_meta(hint).title or format_type(arguments[0])
    if origin is typing.Literal:
        return " | ".join(map(repr, arguments))
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(format_type, arguments))
    base = origin or hint
    name = str(_TYPE_NAMES.get(base) or getattr(base, "__name__", base))
    inner = ", ".join(format_type(argument) for argument in arguments if argument is not ...)
    return f"{name}[{inner}]" if inner else name


def _get_meta(hint: Any) -> msgspec.Meta:
    annotations = getattr(hint, "__metadata__", ())
    return next((meta for meta in annotations if isinstance(meta, msgspec.Meta)), msgspec.Meta())


def to_data(value: Any) -> Any:
    """Return an option as plain data that is equal in every process.

    Evaluators become their specs; models, functions and classes become their addresses; other
    objects become their type name.

    >>> to_data({"words": {"b", "a"}, "by": len})
    {'words': ['a', 'b'], 'by': 'builtins:len'}
    """
    spec = getattr(value, "spec", None)
    if isinstance(spec, EvaluatorSpec):
        return codec.plain(msgspec.structs.replace(spec, uncovered=()))
    if (address := address_in(value)) is not None:
        return address
    if isinstance(value, Mapping):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_data(item) for item in value]
    if isinstance(value, Set):
        return sorted((to_data(item) for item in value), key=repr)
    if inspect.isroutine(value) or isinstance(value, type):
        return get_address(value)
    data = codec.plain(value)
    return {"$type": data["$type"]} if isinstance(data, dict) and "$repr" in data else data


def get_address(thing: Any) -> str:
    """Return the `module:attribute` of a function or class, or of the class of an object.

    >>> get_address(to_data)
    'proctor.evaluators.options:to_data'
    """
    if not (inspect.isroutine(thing) or isinstance(thing, type)):
        thing = type(thing)
    return f"{getattr(thing, '__module__', None)}:{thing.__qualname__}"


def _is_required(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty


def _convert(value: Any, hint: Any) -> Any:
    try:
        return msgspec.convert(value, hint, strict=True)
    except TypeError:
        # msgspec cannot check this type, so the evaluator has to.
        return value
