"""Evaluate one field of a result with several evaluators and combine their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.core import imports as importing
from proctor.core.identity import compute_identity
from proctor.errors import EvaluatorError, StopRun, UsageError
from proctor.evaluators.bound_evaluator import BoundEvaluator
from proctor.evaluators.combination import (
    CombineRule,
    check_skipped,
    collect_needs,
    collect_uncovered,
    combine_scorers,
    make_rule,
    name_evaluators,
)
from proctor.evaluators.decorator import evaluator
from proctor.evaluators.options import to_data
from proctor.evaluators.score_conversion import as_error
from proctor.ports import EvaluatorObject, FieldGroup
from proctor.records.fields.path import parse_path
from proctor.records.fields.view import Field, focus_on_field
from proctor.records.run import EvaluatorSpec
from proctor.records.score import Score, Skipped, combine_all, combine_any
from proctor.records.trial import Trial

Combination = str | Callable[..., Any]
RULES: Mapping[str, Callable[[Mapping[str, Score], Skipped], Score]] = {"and": combine_all, "or": combine_any}
_EXAMPLE = 'field("output", evaluators=[contains, exact_match])'


@evaluator(category="combination", factory=True, parts="evaluators")
def field(
    path: str,
    evaluators: Sequence[EvaluatorObject],
    combine: Combination = "and",
    name: str | None = None,
    skipped: Skipped = "skip",
) -> BoundEvaluator:
    """Evaluates one field of a result and combines the scores.

    `path` selects the field: `output`, `usage.total_tokens`, `items.*.name`; its evaluators get the value of the field
    as the output. `combine` is "and", "or", or a function of the scores by name (in an eval file `module:function`). A
    result without the field is an error. An evaluator that skips makes the field skipped, unless another evaluator
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
    try:
        target = Field(label, parse_path(path).text)
    except UsageError as error:
        raise EvaluatorError(error.what, where=label, fix=error.fix) from None
    named_evaluators = name_evaluators(evaluators, label, _EXAMPLE)
    parts = {key: _attach_to_field(part, target) for key, part in named_evaluators.items()}
    check_skipped(skipped, label)
    rule = _read_rule(combine, label, skipped)
    parameters = {
        "path": path,
        "evaluators": to_data(list(parts.values())),
        "combine": combine if isinstance(combine, str) else to_data(combine),
        **({} if skipped == "skip" else {"skipped": skipped}),
    }
    identity, uncovered, _ = compute_identity(["field", parameters, combine])
    uncovered = tuple(dict.fromkeys((*uncovered, *collect_uncovered(parts.values()))))
    spec = EvaluatorSpec(label, "field", parameters, identity, uncovered)
    needs = collect_needs(parts) | {"context"}
    return BoundEvaluator(spec, *combine_scorers(parts, rule), needs, FieldGroup(target, parts, rule))


def _attach_to_field(part: BoundEvaluator, target: Field) -> BoundEvaluator:
    """Return an evaluator that sees only the field; a missing field results in an error score."""

    def focus(trial: Trial) -> Trial | Score:
        try:
            return focus_on_field(trial, target)
        except StopRun:
            raise
        except Exception as error:
            return as_error(error)

    def score(trial: Trial) -> Any:
        focused = focus(trial)
        return focused if isinstance(focused, Score) else part.score(focused)

    async def score_async(trial: Trial) -> Any:
        focused = focus(trial)
        return focused if isinstance(focused, Score) else await part.score(focused)

    return BoundEvaluator(part.spec, part.mode, score_async if part.mode == "async" else score, part.needs)


def _read_rule(combine: Any, label: str, skipped: Skipped) -> CombineRule:
    if callable(combine):
        rule = make_rule(combine)

        def rule_with_parts(scores: Mapping[str, Score]) -> Score:
            score = rule(scores)
            return msgspec.structs.replace(score, details={**score.details, "parts": dict(scores)})

        return rule_with_parts
    if isinstance(combine, str) and combine in RULES:
        return lambda scores: RULES[combine](scores, skipped)
    if isinstance(combine, str) and ":" in combine:
        try:
            function = importing.import_object(combine)
        except UsageError as error:
            raise EvaluatorError(error.what, where=f"{label}, {combine}", fix=error.fix) from None
        return _read_rule(function, label, skipped)
    raise EvaluatorError(
        f"evaluators cannot be combined with {combine!r}",
        where=label,
        fix='choose "and" (all pass), "or" (one passes), or a function of the scores',
    )
