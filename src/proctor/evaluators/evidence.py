"""Which evidence an evaluator takes: read once, from its positional parameters."""

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
# Carried by evaluators that decide themselves what to say without a recorded session.
SESSION_OPTIONAL = "__session_optional__"
# The names that frameworks give to a session in annotations.
SESSION_TYPES = "Session(?:View)?(?:Protocol)?"
SHAPES_TAKEN = (
    "write it as (output), (output, expected), (output, sample), (output, sample, config), "
    "(output, expected, session) or (field_context), with options as keyword-only parameters"
)

# Names that say what a parameter is meant to be.
_ROLES = {
    "output": ("output", "outputs", "answer", "response", "prediction", "completion", "y_pred"),
    "expected": ("expected", "reference", "references", "ground_truth", "y_true"),
    "input": ("input", "inputs", "question", "query", "prompt"),
    "context": ("context", "metadata"),
}


class Evidence(NamedTuple):
    """One positional argument of an evaluator: what it is, and what stands in for a missing one."""

    kind: EvidenceKind
    required: bool = False
    default: Any = None


class Shape(NamedTuple):
    """What an evaluator is called with: its evidence in order, and its options by name."""

    evidence: tuple[Evidence, ...]
    options: dict[str, Parameter]
    any_option: bool

    @property
    def kinds(self) -> tuple[EvidenceKind, ...]:
        """The kinds of evidence, in order."""
        return tuple(piece.kind for piece in self.evidence)

    @property
    def expects(self) -> bool:
        """True if it has nothing to say without an expected value."""
        return any(piece.kind == "expected" and piece.required for piece in self.evidence)

    @property
    def needs(self) -> tuple[str, ...]:
        """What a sample or trial must have for it, in words for a catalogue."""
        return ("expected",) * self.expects + ("session",) * ("session" in self.kinds)

    @property
    def in_context(self) -> bool:
        """True if it is given the context of a field, or the configuration of the trial."""
        return "context" in self.kinds or "config" in self.kinds


def shape_of(function: Callable[..., Any], label: str) -> Shape:
    """Read what a callable wants, or say which shapes are taken.

    Evidence goes by position: the output, the expected value, the session. A parameter called
    `sample` or `example`, or annotated `Sample`, gets the whole sample; one called `session`, or
    annotated `SessionView` or `Session`, a view of the session; one called `field_context`, or
    annotated `FieldContext`, the field and its surroundings; one called `config` the options
    of the trial's configuration, a mapping. A parameter with a default of its own that says none
    of this is an option.

    >>> def close_to(output, expected, *, margin=0.1): ...
    >>> shape_of(close_to, "close_to").kinds
    ('output', 'expected')
    """
    parameters = signature_of(function, label).parameters.values()
    marked = wants_session(function)
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    open_ended = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    if not places and not open_ended:
        raise EvaluatorError(
            "an evaluator takes at least the output, this one takes no positional parameter",
            where=label,
            fix=SHAPES_TAKEN,
        )
    evidence = _evidence(places, open_ended, marked)
    _refuse_misleading_names(places, evidence, label)
    left = places[len(evidence) :]
    _refuse_more([p.name for p in left if p.default is Parameter.empty], len(evidence), label)
    if marked and "session" not in (piece.kind for piece in evidence):
        raise EvaluatorError(
            "it is marked as needing the session, but has no third parameter to take it",
            where=label,
            fix="write it as (output, expected, session)",
        )
    by_name = [p for p in left if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    by_name += [p for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    any_option = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    return Shape(evidence, {p.name: p for p in by_name}, any_option)


def signature_of(function: Callable[..., Any], label: str) -> inspect.Signature:
    """The signature of a callable, or an error that tells what to do without one."""
    try:
        return inspect.signature(function)
    except ValueError:
        raise EvaluatorError(
            "it does not tell which parameters it takes",
            where=label,
            fix="wrap it: lambda output, expected: ...",
        ) from None


def wants_session(function: Any) -> bool:
    """True if a callable carries the mark of `needs_session`, also inside a partial."""
    while not (marked := bool(getattr(function, SESSION_MARK, False))):
        if not isinstance(function, functools.partial):
            break
        function = function.func
    return marked


def _evidence(places: list[Parameter], open_ended: bool, marked: bool) -> tuple[Evidence, ...]:
    in_context = bool(places) and _wants_context(places[0])
    found = [Evidence("context" if in_context else "output")]
    for position, parameter in enumerate(places[1:4], start=1):
        if position == 3 and parameter.name != "config":
            break
        piece = _piece(parameter, position, marked)
        if piece is None:
            break
        found.append(piece)
    else:
        if open_ended:
            found += [Evidence("expected"), Evidence("session")][len(found) - 1 : 1 + marked]
    return tuple(found)


def _piece(parameter: Parameter, position: int, marked: bool) -> Evidence | None:
    """What stands at a position, or None for an option that has a default of its own."""
    name, default = parameter.name, parameter.default
    bare = default is Parameter.empty
    if _wants_context(parameter):
        return Evidence("context")
    if name in ("sample", "example") or _annotated(parameter, "Sample"):
        return Evidence("sample")
    if name == "session" or _annotated(parameter, SESSION_TYPES):
        return Evidence("session")
    if name == "config":
        return Evidence("config")
    if position == 1 and (bare or default is None or name == "expected"):
        return Evidence("expected", required=bare, default=None if bare else default)
    return Evidence("session") if position == 2 and (bare or marked) else None


def _wants_context(parameter: Parameter) -> bool:
    return parameter.name == "field_context" or _annotated(parameter, "FieldContext")


def _annotated(parameter: Parameter, record: str) -> bool:
    """True if the annotation is the record, also as text, subscripted or optional."""
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    pattern = rf"""['"]?(?:(?:\w+\.)*Optional\[)?(?:\w+\.)*{record}\b"""
    return re.match(pattern, text) is not None


def _refuse_misleading_names(places: list[Parameter], evidence: tuple[Evidence, ...], label: str) -> None:
    """Refuse a parameter whose name says something else than what it would be given."""
    for parameter, piece in zip(places, evidence, strict=False):
        role = next((role for role, names in _ROLES.items() if parameter.name in names), piece.kind)
        if role != piece.kind and piece.kind in ("output", "expected", "session"):
            raise EvaluatorError(
                f"its parameter {parameter.name!r} would be given the {piece.kind}",
                where=label,
                fix="evidence goes by position: (output), (output, expected) or (output, expected, "
                "session); for the input or the metadata write (output, sample)",
            )


def _refuse_more(names: list[str], taken: int, label: str) -> None:
    if names:
        listed = ", ".join(repr(name) for name in names)
        raise EvaluatorError(
            f"nothing can be given for its parameters after the first {taken}: {listed}",
            where=label,
            fix=SHAPES_TAKEN,
        )
