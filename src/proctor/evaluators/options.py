"""The options of an evaluator: described for the catalogue, checked when given, kept as data."""

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
from proctor.errors import EvaluatorError, Problem, UsageError, nearest
from proctor.evaluators.evidence import Shape, signature_of
from proctor.records import codec
from proctor.records.numbers import read_percent
from proctor.records.run import EvaluatorSpec

# Options that are a share from 0 to 1, whichever evaluator has them.
SHARES = frozenset(("threshold", "min_score", "at_least", "near", "p_value"))

_PLAIN_NAMES: dict[Any, str] = {Sequence: "list", Iterable: "list", Mapping: "dict"}

# What an option is to people, where its type says nothing of it.
Model = typing.Annotated[
    Any, msgspec.Meta(title="model", description="a model: an address such as openai:gpt-4o-mini")
]
Embedding = typing.Annotated[
    Any, msgspec.Meta(title="embedder", description="an embedder: an address such as local:minilm")
]


class ParameterInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One option of an evaluator: its name, its type in words, and its default if it has one."""

    name: str
    type: str
    default: Any = None
    required: bool = False


class Accepted(typing.NamedTuple):
    """The options that a function or factory takes, and their resolved types."""

    known: Mapping[str, Parameter]
    hints: Mapping[str, Any]
    anything: bool

    def describe(self) -> tuple[ParameterInfo, ...]:
        """The options for people to read."""
        return tuple(
            ParameterInfo(
                name,
                type_text(self.hints.get(name, parameter.annotation)),
                None if _bare(parameter) else data_of(parameter.default),
                _bare(parameter),
            )
            for name, parameter in self.known.items()
        )

    def check(self, given: Mapping[str, Any], label: str) -> dict[str, Any]:
        """The given options in their declared types; every fault is named at once."""
        problems = [
            Problem(name, f"there is no such parameter: {nearest(name, self.known)}")
            for name in given
            if not (self.anything or name in self.known)
        ]
        problems += [
            Problem(name, f"it is required: {_wanted(self.hints.get(name, p.annotation))}")
            for name, p in self.known.items()
            if _bare(p) and name not in given
        ]
        fitted: dict[str, Any] = {}
        for name, written in given.items():
            hint = self.hints.get(name, Any)
            value = read_option(name, written) if "float" in type_text(hint) else written
            try:
                fitted[name] = _fitted(value, hint)
            except msgspec.ValidationError:
                problems.append(Problem(name, f"expected {type_text(hint)}, got {value!r}"))
        if problems:
            raise EvaluatorError(
                "its parameters do not fit", where=label, fix=f"it takes {self._listed()}", problems=problems
            )
        return fitted

    def _listed(self) -> str:
        """All options in one line."""
        told = (f"{p.name}: {p.type}" + ("" if p.required else f" = {p.default!r}") for p in self.describe())
        return ", ".join(told) or "no parameters"


def read_option(name: str, value: Any) -> Any:
    """The value of an option; a share may be written as a percentage.

    >>> read_option("threshold", "80%"), read_option("pattern", "80%")
    (0.8, '80%')
    """
    percent = read_percent(value) if name in SHARES else None
    return value if percent is None else percent


def options_of_function(function: Callable[..., Any], shape: Shape) -> Accepted:
    """The options of an evaluator: what it takes besides the evidence."""
    return Accepted(shape.options, hints_of(function), shape.any_option)


def options_of_factory(factory: Callable[..., Any], label: str) -> Accepted:
    """The options of a factory or class: all its parameters."""
    parameters = signature_of(factory, label).parameters
    anything = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    known = {n: p for n, p in parameters.items() if p.kind is not Parameter.VAR_KEYWORD}
    hints = dict(hints_of(factory))
    for name, parameter in known.items():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            hints[name] = list[Any]
    return Accepted(known, hints, anything)


def make(factory: Callable[..., Any], options: Mapping[str, Any], label: str) -> Any:
    """Call a factory or class with options by name."""
    fitted = options_of_factory(factory, label).check(options, label)
    bound = _bound(signature_of(factory, label), fitted)
    try:
        return factory(*bound.args, **bound.kwargs)
    except EvaluatorError:
        raise
    except UsageError as error:
        where = f"{label}, {error.where}" if error.where else label
        raise EvaluatorError(error.what, where=where, fix=error.fix, problems=error.problems) from error
    except Exception as error:
        raise EvaluatorError(f"it could not be made: {type(error).__name__}: {error}", where=label) from error


def _bound(signature: inspect.Signature, options: Mapping[str, Any]) -> inspect.BoundArguments:
    """Options by name as the arguments of a call, a list spread over `*args`."""
    bound = signature.bind_partial()
    others = dict(options)
    for name, parameter in signature.parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            bound.arguments[name] = others
        elif name in others:
            value = others.pop(name)
            spread = parameter.kind is Parameter.VAR_POSITIONAL
            bound.arguments[name] = tuple(value) if spread else value
    bound.apply_defaults()
    return bound


def hints_of(function: Any) -> Mapping[str, Any]:
    """The resolved types of a callable's parameters; none where they cannot be resolved."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        function = function.__init__  # type: ignore[misc]
    elif not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        # Names imported for type checkers only cannot be resolved: then types are not checked.
        return {}


def type_text(hint: Any) -> str:
    """A type in the words of someone who writes an eval file.

    >>> type_text(Sequence[str]), type_text(float | None), type_text(typing.Literal["a", "b"])
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
        return _said_of(hint).title or type_text(arguments[0])
    if origin is typing.Literal:
        return " | ".join(repr(choice) for choice in arguments)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(type_text(choice) for choice in arguments)
    kind = origin or hint
    name = str(_PLAIN_NAMES.get(kind) or getattr(kind, "__name__", kind))
    inner = ", ".join(type_text(argument) for argument in arguments if argument is not ...)
    return f"{name}[{inner}]" if inner else name


def _wanted(hint: Any) -> str:
    """What is missing, in words where its annotation has some."""
    return _said_of(hint).description or type_text(hint)


def _said_of(hint: Any) -> msgspec.Meta:
    notes = getattr(hint, "__metadata__", ())
    return next((note for note in notes if isinstance(note, msgspec.Meta)), msgspec.Meta())


def data_of(value: Any) -> Any:
    """An option as plain data that is the same in the next process.

    Evaluators become their specs, models, functions and classes their addresses; what cannot be
    written as data is told by its type alone.

    >>> data_of({"words": {"b", "a"}, "by": len})
    {'words': ['a', 'b'], 'by': 'builtins:len'}
    """
    spec = getattr(value, "spec", None)
    if isinstance(spec, EvaluatorSpec):
        return codec.plain(msgspec.structs.replace(spec, uncovered=()))
    if (address := address_in(value)) is not None:
        return address
    if isinstance(value, Mapping):
        return {str(key): data_of(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [data_of(item) for item in value]
    if isinstance(value, Set):
        return sorted((data_of(item) for item in value), key=repr)
    if inspect.isroutine(value) or isinstance(value, type):
        return address_of(value)
    written = codec.plain(value)
    if isinstance(written, dict) and "$repr" in written:
        return {"$type": written["$type"]}
    return written


def address_of(thing: Any) -> str:
    """Where a function or class is found, as `module:attribute`; an object is told by its class.

    >>> address_of(data_of)
    'proctor.evaluators.options:data_of'
    """
    if not (inspect.isroutine(thing) or isinstance(thing, type)):
        thing = type(thing)
    return f"{getattr(thing, '__module__', None)}:{thing.__qualname__}"


def _bare(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty


def _fitted(value: Any, hint: Any) -> Any:
    """The value in its declared type, with lists and numbers converted as JSON would."""
    try:
        return msgspec.convert(value, hint, strict=True)
    except TypeError:
        # A type that only Python knows how to check is left to the evaluator itself.
        return value
