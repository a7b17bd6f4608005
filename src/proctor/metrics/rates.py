"""Shares of results: that ran, that passed, and that passed with errors held against them."""

from __future__ import annotations

import msgspec

from proctor.metrics.estimates import by_cluster, clustered_rate_of, is_clustered, rate_of
from proctor.records.metric import MetricValue
from proctor.records.results import Results, outcome_for
from proctor.records.trial import EvalResult


class SuccessRateMetric:
    """The share of results whose target gave an output.

    >>> from proctor.records.results import ResultList
    >>> SuccessRateMetric().compute(ResultList([])).value is None
    True
    """

    name = "success_rate"

    def compute(self, results: Results) -> MetricValue:
        """The rate over all results; nothing is missing from it."""
        if is_clustered(results):
            return clustered_rate_of(by_cluster(results, lambda result: float(result.success)))
        counts = results.counts()
        return rate_of(counts.total - counts.error, counts.total)


class PassRateMetric:
    """The share that passed, of the results with a verdict: of one evaluator, or as a whole.

    Errors and skips are not in it; they are counted beside it.

    >>> PassRateMetric().name, PassRateMetric("exact_match").name
    ('pass_rate', 'exact_match.pass_rate')
    """

    def __init__(self, evaluator_name: str | None = None) -> None:
        self.evaluator_name = evaluator_name
        self.name = "pass_rate" if evaluator_name is None else f"{evaluator_name}.pass_rate"

    def compute(self, results: Results) -> MetricValue:
        """The rate over the verdicts."""
        evaluator = self.evaluator_name
        column = results.overall() if evaluator is None else results.column(evaluator)
        if column.clusters is not None:
            flags = by_cluster(results, self._passed)
            return clustered_rate_of(
                msgspec.structs.replace(flags, errors=column.errors, skipped=column.skipped)
            )
        return rate_of(
            column.passed, len(column.values), errors=column.errors, skipped=column.skipped
        )

    def _passed(self, result: EvalResult) -> float | None:
        outcome = outcome_for(result, self.evaluator_name)
        return float(outcome == "passed") if outcome in ("passed", "failed") else None


class StrictPassRateMetric:
    """The share that passed, errors counted as not passed. Gates use this one.

    Only results on which no evaluator had anything to say are left out.

    >>> StrictPassRateMetric().name
    'strict_pass_rate'
    """

    name = "strict_pass_rate"

    def compute(self, results: Results) -> MetricValue:
        """The rate over everything but what was skipped."""
        counts = results.counts()
        if is_clustered(results):
            flags = by_cluster(results, _passed_strictly)
            return clustered_rate_of(msgspec.structs.replace(flags, skipped=counts.skipped))
        return rate_of(counts.passed, counts.total - counts.skipped, skipped=counts.skipped)


def _passed_strictly(result: EvalResult) -> float | None:
    outcome = result.outcome
    return None if outcome == "skipped" else float(outcome == "passed")
