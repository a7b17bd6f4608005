"""Flips: the samples that pass on one side of a comparison only, and what both sides answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import ne
from typing import Any

import msgspec

from proctor.comparison.sides import MEAN_SCORE, PASS_RATE, STRICT_PASS_RATE, Side, ValuesBySample, align_numbers
from proctor.records.comparison import Comparison, Flip, FlipResult, list_aliases, select_flips
from proctor.records.results import find_outcome
from proctor.records.trial import OUTCOMES, EvalResult

# How many flips of a comparison have their texts, unless more are requested.
FLIP_TEXTS = 5
_ERROR = OUTCOMES.index("error")


def find_flips(a: Side, b: Side, evaluator: str = "") -> tuple[Flip, ...]:
    """Find the samples that pass on one side only: lost samples first, largest drop first.

    With `evaluator`, they pass this evaluator on one side only. A trial without a verdict has not passed, as in a
    strict pass rate; a skipped one does not count.
    """
    a_rates, b_rates = (_find_pass_rates(side, evaluator) for side in (a, b))
    a_scores, b_scores = (_find_scores(side, evaluator) for side in (a, b))
    excluded = a.different_samples or ()
    ids = [*a_rates]
    a_column, b_column = (align_numbers(rates, ids) for rates in (a_rates, b_rates))
    # Plain functions instead of a loop: most of a hundred thousand samples do not flip.
    passes = [bytes(map((0.5).__lt__, _replace_none(column))) for column in (a_column, b_column)]
    columns = ids, b_column, align_numbers(a_scores, ids), align_numbers(b_scores, ids)
    flips = [
        (b_rate <= 0.5, (a_score or 0.0) - (b_score or 0.0), name, a_score, b_score)
        for name, b_rate, a_score, b_score in compress(zip(*columns, strict=True), map(ne, *passes))
        if b_rate is not None and name not in excluded
    ]
    flips.sort()
    return tuple(Flip(name, lost=not is_won, a=a_score, b=b_score) for is_won, _, name, a_score, b_score in flips)


def _replace_none(rates: Sequence[Any]) -> Iterable[float]:
    return (rate or 0.0 for rate in rates) if isinstance(rates, list) else rates


def find_flip_evaluator(metrics: Iterable[str], a: Side, b: Side) -> str:
    """Return the evaluator whose flips belong to the requested metrics; empty if they do not name exactly one.

    `judge`, `judge.mean` and `judge.pass_rate` name the evaluator judge. The name of a selected field means its
    numbers.
    """
    evaluators = _list_evaluators(a) & _list_evaluators(b)
    names = {alias.removesuffix(".score") for metric in metrics for alias in list_aliases(metric)}
    selected = sorted((evaluators & names) - {*a.fields, *b.fields})
    return selected[0] if len(selected) == 1 else ""


def _list_evaluators(side: Side) -> set[str]:
    return {spec.name for spec in side.run.evaluators} if side.run and side.results is not None else set()


def _find_pass_rates(side: Side, evaluator: str) -> ValuesBySample:
    if evaluator:
        return _rate_evaluator(side, evaluator)
    return side.metrics.get(STRICT_PASS_RATE) or side.metrics.get(PASS_RATE) or {}


def _find_scores(side: Side, evaluator: str) -> ValuesBySample:
    if not evaluator:
        return side.metrics.get(MEAN_SCORE, {})
    return side.scores.get(evaluator) or side.scores.get(f"{evaluator}.score") or {}


def _rate_evaluator(side: Side, evaluator: str) -> ValuesBySample:
    """Return the share of the epochs of each sample that pass an evaluator; errors count as not passed."""
    figures = side.read_figures()
    if side.results is None or figures is None:
        return {}
    passed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for name, value, outcome in zip(
        figures.sample_ids, figures.passes.get(evaluator, ()), figures.outcomes, strict=False
    ):
        if value == value or outcome == _ERROR:
            total[name] += 1
            passed[name] += value == 1
    unscored = side.results.page(outcome="unscored", evaluator=evaluator, limit=len(side.results))
    total.update(result.sample_id for result in unscored)
    return {name: passed[name] / count for name, count in total.items()}


def add_flip_texts(comparison: Comparison, a: Side, b: Side, limit: int = FLIP_TEXTS) -> Comparison:
    """Add to the first `limit` flips what each side answered and why it passed or not."""
    selected = {flip.sample_id for flip in select_flips(comparison.flips, limit)}
    flips = [
        _add_texts(flip, a, b, comparison.flips_of) if flip.sample_id in selected else flip for flip in comparison.flips
    ]
    return msgspec.structs.replace(comparison, flips=tuple(flips))


def _add_texts(flip: Flip, a: Side, b: Side, evaluator: str) -> Flip:
    if a.results is None or b.results is None:
        return flip
    new = _choose_result(a.results.for_sample(flip.sample_id), evaluator, passed=not flip.lost)
    old = _choose_result(b.results.for_sample(flip.sample_id), evaluator, passed=flip.lost)
    if new is None or old is None:
        return flip
    sample = new.trial.sample
    return msgspec.structs.replace(
        flip,
        input=sample.input,
        expected=sample.expected,
        a_result=_describe_result(new),
        b_result=_describe_result(old),
    )


def _choose_result(results: Sequence[EvalResult], evaluator: str, *, passed: bool) -> EvalResult | None:
    """Return the first result that passed, or the first that did not; skipped results are the last choice."""

    def rank(result: EvalResult) -> int:
        outcome = find_outcome(result, evaluator or None)
        return 2 if outcome == "skipped" else int((outcome == "passed") is not passed)

    return min(results, key=rank, default=None)


def _describe_result(result: EvalResult) -> FlipResult:
    scores = {name: msgspec.structs.replace(score, details={}) for name, score in result.scores.items()}
    return FlipResult(result.outcome, result.output, result.error or "", scores, result.trial.epoch)
