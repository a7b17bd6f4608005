"""Shares of results: that ran, that passed, and that passed with errors held against them."""

from __future__ import annotations

from array import array

import msgspec

from proctor.metrics.estimates import clustered_rate_of, rate_of, rate_over
from proctor.records.metric import MetricValue
from proctor.records.results import Results
from proctor.records.trial import OUTCOMES


class SuccessRateMetric:
    """The share of results whose target gave an output.

    >>> from proctor.records.results import ResultList
    >>> SuccessRateMetric().compute(ResultList([])).value is None
    True
    """

    name = "success_rate"

    def compute(self, results: Results) -> MetricValue:
        """The rate over all results; nothing is missing from it."""
        return rate_over(results, {**dict.fromkeys(OUTCOMES, 1.0), "error": 0.0})


class PassRateMetric:
    """The share that passed, of the results with a verdict: of one evaluator, or as a whole.

    Errors and skips are not in it; they are counted beside it.

    >>> PassRateMetric().name, PassRateMetric("exact_match").name
    ('pass_rate', 'exact_match.pass_rate')
    """

    def __init__(self, evaluator_name: str | None = None, label: str | None = None) -> None:
        self.evaluator_name = evaluator_name
        self.name = (
            "pass_rate" if evaluator_name is None else f"{label or evaluator_name}.pass_rate"
        )

    def compute(self, results: Results) -> MetricValue:
        """The rate over the verdicts."""
        column = results.column(self.evaluator_name)
        if column.clusters is not None:
            flags = array("d", list(column.passes))
            return clustered_rate_of(msgspec.structs.replace(column, values=flags))
        n = len(column.values)
        return rate_of(column.passed, n, errors=column.errors, skipped=column.skipped)


class StrictPassRateMetric:
    """The share that passed, errors counted as not passed. Gates use this one.

    Only results on which no evaluator had anything to say are left out.

    >>> StrictPassRateMetric().name
    'strict_pass_rate'
    """

    name = "strict_pass_rate"

    def compute(self, results: Results) -> MetricValue:
        """The rate over everything but what was skipped."""
        skipped = results.outcomes().count(OUTCOMES.index("skipped"))
        counted = {outcome: float(outcome == "passed") for outcome in OUTCOMES}
        del counted["skipped"]
        return rate_over(results, counted, skipped=skipped)
