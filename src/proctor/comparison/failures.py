"""Which trials of a side lack a number, or part of one, because something failed or skipped."""

from __future__ import annotations

from collections import Counter

from proctor.comparison.sides import MEAN_SCORE, PASS_RATE, STRICT_PASS_RATE, Side
from proctor.records.comparison import also_known_as
from proctor.records.rubric_scores import TOTAL_SCORE, columns_in
from proctor.records.score import NOT_ASKED
from proctor.records.trial import EvalResult, Outcome

FAILED: tuple[Outcome, ...] = ("error", "unscored")


def failed_trials(side: Side, metric: str) -> Counter[str]:
    """How many trials of each sample lack a metric because something failed or was skipped.

    A total of rubrics lacks those without a score, also where the others make up a number. Skipped
    trials are left out in a run that ignores them. Nothing is known of sides without results, and
    of fields.
    """
    results = side.results
    if results is None:
        return Counter()
    names = also_known_as(metric)
    failed = FAILED
    if metric == PASS_RATE or MEAN_SCORE in names:
        evaluators: list[str | None] = [None]
    elif metric == STRICT_PASS_RATE:
        # Errors count as not passed there: only what was skipped is missing.
        evaluators, failed = [None], ()
    elif TOTAL_SCORE in names:
        evaluators = [column.name for column in columns_in(side.run).columns]
    else:
        known = {spec.name for spec in side.run.evaluators} if side.run else {*side.scores}
        evaluators = [name for name in names if name in known]
    ignored = side.run is not None and side.run.options.skipped == "ignore"
    outcomes: tuple[Outcome, ...] = failed if ignored else (*failed, "skipped")
    found = {
        (result.sample_id, result.trial.epoch)
        for evaluator in evaluators
        for outcome in outcomes
        for result in results.page(outcome=outcome, evaluator=evaluator, limit=len(results))
        if outcome != "skipped" or not _was_not_asked(result, evaluator)
    }
    return Counter(sample_id for sample_id, _ in found)


def _was_not_asked(result: EvalResult, evaluator: str | None) -> bool:
    """True if the score was left out by design, such as in all epochs but the last."""
    score = result.score if evaluator is None else result.scores.get(evaluator)
    return score is not None and score.reason in NOT_ASKED


def partial_totals(side: Side) -> int:
    """How many samples have a total that lacks a rubric without a score."""
    totals = side.metrics.get(TOTAL_SCORE, {})
    return sum(name in totals for name in failed_trials(side, TOTAL_SCORE))
