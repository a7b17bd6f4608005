"""Which trials of a side have no number, or only part of one, because something failed."""

from __future__ import annotations

from collections import Counter

from proctor.comparison.sides import MEAN_SCORE, PASS_RATE, Side
from proctor.records.comparison import also_known_as
from proctor.records.rubric_scores import TOTAL_SCORE, columns_in
from proctor.records.trial import Outcome

FAILED: tuple[Outcome, ...] = ("error", "unscored")


def failed_trials(side: Side, metric: str) -> Counter[str]:
    """How many trials of each sample a metric cannot tell, for an evaluator or the target failed.

    A total of rubrics lacks those that failed, also where the others make up a number. What was
    skipped is not among them. Nothing is known of sides without results, and of fields.
    """
    results = side.results
    if results is None:
        return Counter()
    names = also_known_as(metric)
    if metric == PASS_RATE or MEAN_SCORE in names:
        evaluators: list[str | None] = [None]
    elif TOTAL_SCORE in names:
        evaluators = [column.name for column in columns_in(side.run).columns]
    else:
        known = {spec.name for spec in side.run.evaluators} if side.run else {*side.scores}
        evaluators = [name for name in names if name in known]
    found = {
        (result.sample_id, result.trial.epoch)
        for evaluator in evaluators
        for outcome in FAILED
        for result in results.page(outcome=outcome, evaluator=evaluator, limit=len(results))
    }
    return Counter(sample_id for sample_id, _ in found)


def partial_totals(side: Side) -> int:
    """How many samples have a total that lacks a rubric which failed."""
    totals = side.metrics.get(TOTAL_SCORE, {})
    return sum(name in totals for name in failed_trials(side, TOTAL_SCORE))
