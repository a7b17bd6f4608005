"""A field with its evaluators: each sees the field's value, and together they give one score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proctor.core import imports as importing
from proctor.core.identity import examine
from proctor.errors import EvaluatorError, StopRun, UsageError
from proctor.evaluators.attached import Attached
from proctor.evaluators.combination import (
    Rule,
    check_skipped,
    needs_of,
    parts_of,
    rule_of,
    scored_together,
    uncovered_by,
)
from proctor.evaluators.marking import evaluator
from proctor.evaluators.options import data_of
from proctor.evaluators.verdict import as_error
from proctor.ports import FieldGroup
from proctor.records.fields.path import compiled
from proctor.records.fields.view import Field, looking_at
from proctor.records.run import EvaluatorSpec
from proctor.records.score import Score, Skipped, combine_all, combine_any
from proctor.records.trial import Trial

Combination = str | Callable[..., Any]
RULES: Mapping[str, Callable[[Mapping[str, Score], Skipped], Score]] = {"and": combine_all, "or": combine_any}


@evaluator(category="combination", factory=True, parts="evaluators")
def field(
    path: str,
    evaluators: Sequence[Any],
    combine: Combination = "and",
    name: str | None = None,
    skipped: Skipped = "skip",
) -> Attached:
    """Evaluators of one field of a result: all must pass, or any, or what a function says.

    `path` leads to the field: `output`, `usage.total_tokens`, `items.*.name`; to its evaluators
    the field's value is the output. `combine` is "and", "or", or a function of the scores by name
    that returns a score, or what makes one (in an eval file `module:function`). A result without
    the field is an error. An evaluator that skips makes the field skipped, unless another one
    decides; `skipped="ignore"` leaves it out.

    >>> from proctor.evaluators.matching import contains
    >>> from proctor.records.sample import Sample
    >>> short = field("answer.text", [contains, lambda output: len(output) < 20])
    >>> short.score(Trial(Sample("1", "capital?", "Paris"), {"text": "Paris"})).status
    'error'
    >>> short = field("output.text", [contains, lambda output: len(output) < 20])
    >>> short.score(Trial(Sample("1", "capital?", "Paris"), {"text": "Paris"})).passed
    True
    """
    label = name or path
    where = Field(label, _checked(path, label))
    parts = {key: _of_field(part, where) for key, part in parts_of(evaluators, label, _EXAMPLE).items()}
    check_skipped(skipped, label)
    rule = _rule(combine, label, skipped)
    parameters = {
        "path": path,
        "evaluators": data_of(list(parts.values())),
        "combine": combine if isinstance(combine, str) else data_of(combine),
        **({} if skipped == "skip" else {"skipped": skipped}),
    }
    identity, uncovered = examine(["field", parameters, combine])
    uncovered = tuple(dict.fromkeys((*uncovered, *uncovered_by(parts.values()))))
    spec = EvaluatorSpec(label, "field", parameters, identity, uncovered)
    mode, score = scored_together(parts, rule)
    needs = needs_of(parts) | {"context"}
    return Attached(spec, mode, score, needs, FieldGroup(where, parts, rule))


def _of_field(part: Attached, where: Field) -> Attached:
    """An evaluator that sees only the field; where it is missing, its score is an error."""
    inner = part.score

    def score(trial: Trial) -> Score:
        try:
            return inner(looking_at(trial, where))  # type: ignore[no-any-return]
        except StopRun:
            raise
        except Exception as error:
            return as_error(error)

    async def score_later(trial: Trial) -> Score:
        try:
            return await inner(looking_at(trial, where))  # type: ignore[no-any-return]
        except StopRun:
            raise
        except Exception as error:
            return as_error(error)

    call = score_later if part.mode == "async" else score
    return Attached(part.spec, part.mode, call, part.needs)


def _checked(path: Any, label: str) -> str:
    try:
        return compiled(path).text
    except UsageError as error:
        raise EvaluatorError(error.what, where=label, fix=error.fix) from None


def _rule(combine: Any, label: str, skipped: Skipped) -> Rule:
    if callable(combine):
        return _telling(rule_of(combine))
    if isinstance(combine, str) and combine in RULES:
        together = RULES[combine]
        return lambda scores: together(scores, skipped)
    if isinstance(combine, str) and ":" in combine:
        return _rule(_loaded(combine, label), label, skipped)
    raise EvaluatorError(
        f"evaluators cannot be combined with {combine!r}",
        where=label,
        fix='choose "and" (all pass), "or" (one passes), or a function of the scores',
    )


def _telling(rule: Rule) -> Rule:
    """A rule of the user's whose score also tells what it was made of."""

    def told(scores: Mapping[str, Score]) -> Score:
        score = rule(scores)
        details = {**score.details, "parts": dict(scores)}
        return Score(score.value, score.passed, score.reason, details, score.status)

    return told


def _loaded(address: str, label: str) -> Any:
    try:
        return importing.load(address)
    except UsageError as error:
        raise EvaluatorError(error.what, where=f"{label}, {address}", fix=error.fix) from None


_EXAMPLE = 'field("output", [contains, exact_match])'
