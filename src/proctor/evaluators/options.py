"""The parameters of an evaluator: its evidence by position, and its options by name.

Options are described for the catalogue, validated, and stored as data.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from inspect import Parameter
from typing import Any

import msgspec

from proctor.core.aliases import use_common_names
from proctor.core.identity import find_address
from proctor.errors import EvaluatorError, Problem, UsageError, join_choices, suggest_name
from proctor.records import codec
from proctor.records.numbers import read_percent
from proctor.records.run import EvaluatorSpec

EvidenceKind = typing.Literal["output", "expected", "sample", "session", "context", "config"]

SESSION_MARK = "__needs_session__"
# The attribute of evaluators that can score a trial without a recorded session.
SESSION_OPTIONAL = "__session_optional__"
# Annotations that frameworks use for a session.
SESSION_TYPES = "Session(?:View)?(?:Protocol)?"
SUPPORTED_SIGNATURES = (
    "write it as (output), (output, expected), (output, sample), (output, sample, config), "
    "(output, expected, session), (output, expected, session, sample) or (field_context), with options as keyword-only "
    "parameters"
)

# Parameter names that suggest a certain role.
_ROLES = {
    "output": ("output", "outputs", "answer", "response", "prediction", "completion", "y_pred"),
    "expected": ("expected", "reference", "references", "ground_truth", "y_true"),
    "input": ("input", "inputs", "question", "query", "prompt"),
    "context": ("context", "metadata"),
}
# Names of a third parameter that may receive the session; annotated or marked parameters need no such name.
_SESSION_NAMES = re.compile(r"_.*|s|.*(?:session|trace|transcript|view|log|event|chat|conversation).*", re.IGNORECASE)
# Options that are a fraction from 0 to 1 in every evaluator that has them.
FRACTIONS = frozenset(("threshold", "near", "p_value"))

_TYPE_NAMES: dict[Any, str] = {Sequence: "list", Iterable: "list", Mapping: "dict"}

Model = typing.Annotated[Any, msgspec.Meta(title="model", description="a model: an address such as openai:gpt-4o-mini")]
Embedding = typing.Annotated[
    Any, msgspec.Meta(title="embedder", description="an embedder: an address such as local:minilm")
]


class Evidence(typing.NamedTuple):
    """One positional argument of an evaluator."""

    kind: EvidenceKind
    required: bool = False
    default: Any = None


class EvaluatorSignature(typing.NamedTuple):
    """The arguments of an evaluator: its evidence in order, and its options by name."""

    evidence: tuple[Evidence, ...]
    options: dict[str, Parameter]
    accepts_any: bool

    @property
    def kinds(self) -> tuple[EvidenceKind, ...]:
        """The kinds of evidence, in order."""
        return tuple(evidence.kind for evidence in self.evidence)

    @property
    def requires_expected(self) -> bool:
        """True if the evaluator requires an expected value."""
        return any(evidence.kind == "expected" and evidence.required for evidence in self.evidence)

    @property
    def needs(self) -> tuple[str, ...]:
        """The evidence that a sample or trial must have, for the catalogue."""
        return ("expected",) * self.requires_expected + ("session",) * ("session" in self.kinds)

    @property
    def takes_context(self) -> bool:
        """True if the evaluator takes the context of a field or the configuration of the trial."""
        return "context" in self.kinds or "config" in self.kinds


def read_signature(function: Callable[..., Any], label: str) -> EvaluatorSignature:
    """Read the signature of an evaluator, or raise an error that lists the supported signatures.

    Evidence is passed by position: the output, the expected value, the session. A parameter called `sample` or
    `example`, or annotated `Sample`, gets the sample; `session`, or a parameter annotated `SessionView` or `Session`,
    gets a view of the session; `field_context`, or a parameter annotated `FieldContext`, gets the context of the field;
    `config` gets the options of the trial's configuration. Any other parameter with a default is an option.
    """
    parameters = inspect_signature(function, label).parameters.values()
    is_marked = _has_session_mark(function)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    is_variadic = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    if not positional and not is_variadic:
        what = "an evaluator takes at least the output, but this one has no positional parameter"
        raise EvaluatorError(what, where=label, fix=SUPPORTED_SIGNATURES)
    evidence = _read_evidence(positional, is_variadic, is_marked)
    _check_names(positional, evidence, label)
    if not is_marked:
        _check_session_name(positional, evidence, label)
    remaining = positional[len(evidence) :]
    if extra := [repr(p.name) for p in remaining if p.default is Parameter.empty]:
        what = f"there is no evidence for its parameters after the first {len(evidence)}: {', '.join(extra)}"
        raise EvaluatorError(what, where=label, fix=SUPPORTED_SIGNATURES)
    if is_marked and "session" not in (item.kind for item in evidence):
        raise EvaluatorError(
            "it is marked with needs_session, but has no third parameter for the session",
            where=label,
            fix="write it as (output, expected, session)",
        )
    options = [p for p in remaining if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    options += [p for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    accepts_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    return EvaluatorSignature(evidence, {p.name: p for p in options}, accepts_any)


def inspect_signature(function: Callable[..., Any], label: str) -> inspect.Signature:
    """Return the signature of a callable, or raise an error if it has none."""
    try:
        return inspect.signature(function)
    except ValueError:
        what, fix = "its parameters cannot be read", "wrap it: lambda output, expected: ..."
        raise EvaluatorError(what, where=label, fix=fix) from None


def _has_session_mark(function: Any) -> bool:
    while not getattr(function, SESSION_MARK, False):
        if not isinstance(function, functools.partial):
            return False
        function = function.func
    return True


def _read_evidence(positional: list[Parameter], is_variadic: bool, is_marked: bool) -> tuple[Evidence, ...]:
    takes_context = bool(positional) and _takes_context(positional[0])
    evidence = [Evidence("context" if takes_context else "output")]
    for position, parameter in enumerate(positional[1:4], start=1):
        if position == 3 and parameter.name not in ("config", "sample"):
            break
        item = _read_parameter(parameter, position, is_marked)
        if item is None:
            break
        evidence.append(item)
    else:
        if is_variadic:
            evidence += [Evidence("expected"), Evidence("session")][len(evidence) - 1 : 1 + is_marked]
    return tuple(evidence)


def _read_parameter(parameter: Parameter, position: int, is_marked: bool) -> Evidence | None:
    # None means an option.
    name, default = parameter.name, parameter.default
    has_no_default = default is Parameter.empty
    if _takes_context(parameter):
        return Evidence("context")
    if name in ("sample", "example") or _is_annotated(parameter, "Sample"):
        return Evidence("sample")
    if name == "session" or _is_annotated(parameter, SESSION_TYPES):
        return Evidence("session")
    if name == "config":
        return Evidence("config")
    if position == 1 and (has_no_default or default is None or name == "expected"):
        return Evidence("expected", required=has_no_default, default=None if has_no_default else default)
    return Evidence("session") if position == 2 and (has_no_default or is_marked) else None


def _takes_context(parameter: Parameter) -> bool:
    return parameter.name == "field_context" or _is_annotated(parameter, "FieldContext")


def _is_annotated(parameter: Parameter, record: str) -> bool:
    """Return True if the annotation is the record, including as a string, subscripted or optional."""
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.match(rf"""['"]?(?:(?:\w+\.)*Optional\[)?(?:\w+\.)*{record}\b""", text) is not None


def _check_names(positional: list[Parameter], evidence: tuple[Evidence, ...], label: str) -> None:
    for parameter, item in zip(positional, evidence, strict=False):
        role = next((role for role, names in _ROLES.items() if parameter.name in names), item.kind)
        if role != item.kind and item.kind in ("output", "expected", "session"):
            raise EvaluatorError(
                f"its parameter {parameter.name!r} would get the {item.kind}",
                where=label,
                fix="evidence goes by position: (output), (output, expected) or (output, expected, "
                "session); for the input or the metadata write (output, sample)",
            )


def _check_session_name(positional: list[Parameter], evidence: tuple[Evidence, ...], label: str) -> None:
    if len(positional) != len(evidence) or len(positional) < 3 or evidence[2].kind != "session":
        return
    parameter = positional[2]
    if not _SESSION_NAMES.fullmatch(parameter.name) and not _is_annotated(parameter, SESSION_TYPES):
        raise EvaluatorError(
            f"its third parameter {parameter.name!r} would get the session",
            where=label,
            fix=f"rename it to session, or make it an option: "
            f"({positional[0].name}, {positional[1].name}, *, {parameter.name}=…)",
        )


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
                None if parameter.default is Parameter.empty else to_data(parameter.default),
                parameter.default is Parameter.empty,
            )
            for name, parameter in self.parameters.items()
        )

    def check(self, options: Mapping[str, Any], label: str) -> dict[str, Any]:
        """Convert options to their declared types; one error lists all problems."""
        options = use_common_names(options, self.parameters)
        problems = [
            Problem("", f"unknown parameter {name!r}; {suggest_name(name, self.parameters)}")
            for name in options
            if not (self.accepts_any or name in self.parameters)
        ]
        for name, parameter in self.parameters.items():
            if parameter.default is Parameter.empty and name not in options:
                hint = self.hints.get(name, parameter.annotation)
                expected = _get_meta(hint).description or format_type(hint)
                problems.append(Problem(name, "is missing" + (f" ({expected})" if expected != "any" else "")))
        converted: dict[str, Any] = {}
        for name, value in options.items():
            hint = self.hints.get(name, Any)
            value = read_option(name, value) if "float" in format_type(hint) else value
            try:
                converted[name] = _convert(value, hint)
            except msgspec.ValidationError:
                problems.append(Problem(name, f"must be {describe_type(hint)}, got {value!r}"))
        if problems:
            parameter_list = ", ".join(
                f"{p.name}: {p.type}" + ("" if p.required else f" = {p.default!r}") for p in self.describe()
            )
            fix = f"its parameters are {parameter_list}" if parameter_list else "it has no parameters"
            missing = [p.name for p in self.describe() if p.required and p.name not in options]
            if len(missing) == len(problems):
                fix = f"set it: --set {label}.{missing[0]}=… on the command line, "
                fix += f"{{{label}: {{{', '.join(f'{name}: …' for name in missing)}}}}} in an eval file, "
                fix += f"or functools.partial({label}, {', '.join(f'{name}=…' for name in missing)}) in Python"
            raise EvaluatorError("its parameters are invalid", where=label, fix=fix, problems=problems)
        return converted


def read_option(name: str, value: Any) -> Any:
    """Return the value of an option; a fraction may be written as a percentage."""
    percent = read_percent(value) if name in FRACTIONS else None
    return value if percent is None else percent


def read_function_options(function: Callable[..., Any], signature: EvaluatorSignature) -> OptionSet:
    """Return the options of an evaluator: all parameters that are not evidence."""
    return OptionSet(signature.options, resolve_hints(function), signature.accepts_any)


def read_factory_options(factory: Callable[..., Any], label: str) -> OptionSet:
    """Return the options of a factory or class: all its parameters."""
    parameters = inspect_signature(factory, label).parameters
    named_parameters = {n: p for n, p in parameters.items() if p.kind is not Parameter.VAR_KEYWORD}
    list_types = {n: list[Any] for n, p in named_parameters.items() if p.kind is Parameter.VAR_POSITIONAL}
    return OptionSet(
        named_parameters, {**resolve_hints(factory), **list_types}, len(named_parameters) < len(parameters)
    )


def find_wrong_types(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters whose values do not have the declared type, with that type."""
    hints = resolve_hints(function)
    wrong = {}
    for name, value in values.items():
        hint = hints.get(name, Any)
        is_record = isinstance(hint, type) and hint.__module__.startswith("proctor.records.")
        try:
            _convert(value, hint)
            fits = not is_record or isinstance(value, hint)
        except msgspec.ValidationError:
            fits = False
        if not fits:
            wrong[name] = hint
    return wrong


def find_literal_problems(function: Callable[..., Any], values: Mapping[str, Any]) -> list[Problem]:
    """Return a problem for each value that is not one of the literal values of its parameter."""
    literals = list_literals(getattr(function, "func", function)) if values else {}
    return [
        Problem(name, f"must be {format_choices(literals[name])}, got {value!r}", _suggest(value, literals[name]))
        for name, value in values.items()
        if name in literals and not any(type(value) is type(choice) and value == choice for choice in literals[name])
    ]


def _suggest(value: Any, choices: Iterable[Any]) -> str:
    suggestion = suggest_name(str(value).lower(), map(str, choices))
    return suggestion if suggestion.startswith("did you mean") else ""


@functools.cache
def list_literals(function: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """Return the values of the parameters that accept only certain values, or None as well."""
    literals = {}
    for name, hint in resolve_hints(function).items():
        is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        members = typing.get_args(hint) if is_union else (hint,)
        if all(member is types.NoneType or typing.get_origin(member) is typing.Literal for member in members):
            # The arguments of None are empty.
            values = [value for member in members for value in typing.get_args(member)]
            literals[name] = tuple(values) + (None,) * (types.NoneType in members)
    return literals


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
        raise EvaluatorError(f"creating it failed with {type(error).__name__}: {error}", where=label) from error


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
    """Return the resolved types of a callable's parameters; empty if they cannot be resolved."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        function = function.__init__  # type: ignore[misc]
    elif not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        # Names imported under TYPE_CHECKING cannot be resolved, so types are not checked.
        return {}


def format_type(hint: Any) -> str:
    """Return the name of a type for authors of eval files."""
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


def describe_type(hint: Any) -> str:
    """Return what a value must be, in a sentence: "of type int", or "'auto', 'higher' or 'lower'" for a literal."""
    members = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    literals = [member for member in members if typing.get_origin(member) is typing.Literal]
    if not literals:
        return f"of type {format_type(hint)}"
    others = [format_type(member) for member in members if member not in literals]
    return join_choices([*(repr(value) for literal in literals for value in typing.get_args(literal)), *others])


def format_choices(values: Iterable[Any]) -> str:
    """Write values as alternatives: "'a', 'b' or 'c'"."""
    return join_choices(map(repr, values))


def _get_meta(hint: Any) -> msgspec.Meta:
    annotations = getattr(hint, "__metadata__", ())
    return next((meta for meta in annotations if isinstance(meta, msgspec.Meta)), msgspec.Meta())


def to_data(value: Any) -> Any:
    """Return an option as plain data that is the same in every process.

    Evaluators become their specs; models, functions and classes become their addresses; other
    objects become their type name.
    """
    spec = getattr(value, "spec", None)
    if isinstance(spec, EvaluatorSpec):
        return codec.to_plain(msgspec.structs.replace(spec, uncovered=()))
    if (address := find_address(value)) is not None:
        return address
    if isinstance(value, Mapping):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_data(item) for item in value]
    if isinstance(value, Set):
        return sorted((to_data(item) for item in value), key=repr)
    if inspect.isroutine(value) or isinstance(value, type):
        return get_address(value)
    data = codec.to_plain(value)
    return {"$type": data["$type"]} if isinstance(data, dict) and "$repr" in data else data


def get_address(obj: Any) -> str:
    """Return the `module:attribute` of a function or class, or of the class of an object."""
    if not (inspect.isroutine(obj) or isinstance(obj, type)):
        obj = type(obj)
    return f"{getattr(obj, '__module__', None)}:{obj.__qualname__}"


def _convert(value: Any, hint: Any) -> Any:
    try:
        return msgspec.convert(value, hint, strict=True)
    except TypeError:
        # msgspec cannot check this type, but it can check that a list is a list; the evaluator checks the rest.
        return msgspec.convert(value, list[Any]) if typing.get_origin(hint) is Sequence else value
