"""Read which evidence an evaluator takes from its positional parameters."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from inspect import Parameter
from typing import Any, Literal, NamedTuple

from proctor.errors import EvaluatorError

EvidenceKind = Literal["output", "expected", "sample", "session", "context", "config"]

SESSION_MARK = "__needs_session__"
# Marks evaluators that can score a trial without a recorded session.
SESSION_OPTIONAL = "__session_optional__"
# Annotations that frameworks use for a session.
SESSION_TYPES = "Session(?:View)?(?:Protocol)?"
SUPPORTED_SIGNATURES = (
    "write it as (output), (output, expected), (output, sample), (output, sample, config), "
    "(output, expected, session) or (field_context), with options as keyword-only parameters"
)

# Parameter names that suggest a certain role.
_ROLES = {
    "output": ("output", "outputs", "answer", "response", "prediction", "completion", "y_pred"),
    "expected": ("expected", "reference", "references", "ground_truth", "y_true"),
    "input": ("input", "inputs", "question", "query", "prompt"),
    "context": ("context", "metadata"),
}


class Evidence(NamedTuple):
    """One positional argument of an evaluator."""

    kind: EvidenceKind
    required: bool = False
    default: Any = None


class EvaluatorSignature(NamedTuple):
    """The arguments of an evaluator: its evidence in order, and its options by name."""

    evidence: tuple[Evidence, ...]
    options: dict[str, Parameter]
    any_option: bool

    @property
    def kinds(self) -> tuple[EvidenceKind, ...]:
        """The kinds of evidence, in order."""
        return tuple(evidence.kind for evidence in self.evidence)

    @property
    def expects(self) -> bool:
        """True if it requires an expected value."""
        return any(evidence.kind == "expected" and evidence.required for evidence in self.evidence)

    @property
    def needs(self) -> tuple[str, ...]:
        """The evidence that a sample or trial must have, for the catalogue."""
        return ("expected",) * self.expects + ("session",) * ("session" in self.kinds)

    @property
    def in_context(self) -> bool:
        """True if it takes the context of a field or the configuration of the trial."""
        return "context" in self.kinds or "config" in self.kinds


def read_signature(function: Callable[..., Any], label: str) -> EvaluatorSignature:
    """Read the signature of an evaluator, or raise an error that lists the supported ones.

    Evidence goes by position: the output, the expected value, the session. A parameter called
    `sample` or `example`, or annotated `Sample`, gets the sample; `session`, or one annotated
    `SessionView` or `Session`, gets a view of the session; `field_context`, or one annotated
    `FieldContext`, gets the context of the field; `config` gets the options of the trial's
    configuration. Any other parameter with a default is an option.

    >>> def close_to(output, expected, *, margin=0.1): ...
    >>> read_signature(close_to, "close_to").kinds
    ('output', 'expected')
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
    rest = positional[len(evidence) :]
    if extra := [repr(p.name) for p in rest if p.default is Parameter.empty]:
        what = f"there is no evidence for its parameters after the first {len(evidence)}: {', '.join(extra)}"
        raise EvaluatorError(what, where=label, fix=SUPPORTED_SIGNATURES)
    if is_marked and "session" not in (item.kind for item in evidence):
        raise EvaluatorError(
            "it is marked as needing the session, but has no third parameter for it",
            where=label,
            fix="write it as (output, expected, session)",
        )
    options = [p for p in rest if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    options += [p for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    any_option = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    return EvaluatorSignature(evidence, {p.name: p for p in options}, any_option)


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
        if position == 3 and parameter.name != "config":
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
    """Return the evidence for a parameter, or None for an option."""
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
    """Return True if the annotation is the record, also as text, subscripted or optional."""
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
