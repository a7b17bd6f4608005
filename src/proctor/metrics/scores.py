"""What one evaluator's scores amount to: their mean, their spread, the share above a line."""

from __future__ import annotations

from array import array

import msgspec

from proctor.errors import EvaluatorError
from proctor.metrics.estimates import clustered_rate_of, mean_of, rate_of
from proctor.records.metric import MetricValue
from proctor.records.results import Results
from proctor.statistics.quantiles import quantiles

PERCENTILES = (25, 50, 75, 95)


class MeanScoreMetric:
    """The mean score of one evaluator, or of the whole results when none is named.

    >>> MeanScoreMetric("exact_match").name, MeanScoreMetric().name
    ('exact_match.mean', 'mean_score')
    """

    def __init__(self, evaluator_name: str | None = None, label: str | None = None) -> None:
        self.evaluator_name = evaluator_name
        # Of a field, whose numbers have a mean of their own, it is called by its full name.
        own = f"{evaluator_name}.mean" if label is None else f"{label}.score"
        self.name = "mean_score" if evaluator_name is None else own

    def compute(self, results: Results) -> MetricValue:
        """The mean over the verdicts, errors and skips left out and counted."""
        return mean_of(results.column(self.evaluator_name))


class AccuracyMetric:
    """The share of an evaluator's scores that reach a threshold: `score >= threshold`.

    >>> AccuracyMetric("similarity", threshold=0.8).name
    'similarity.accuracy'
    """

    def __init__(self, evaluator_name: str, threshold: float = 0.5) -> None:
        if not 0 <= threshold <= 1:
            raise EvaluatorError(
                f"the threshold of an accuracy must be from 0 to 1, got {threshold!r}",
                where=f"{evaluator_name}.accuracy",
                fix="scores lie from 0 to 1; give a threshold among them, such as 0.5",
            )
        self.evaluator_name = evaluator_name
        self.threshold = threshold
        self.name = f"{evaluator_name}.accuracy"

    def compute(self, results: Results) -> MetricValue:
        """The rate over the verdicts."""
        column = results.column(self.evaluator_name)
        flags = array("d", (value >= self.threshold for value in column.values))
        if column.clusters is not None:
            return clustered_rate_of(msgspec.structs.replace(column, values=flags))
        return rate_of(int(sum(flags)), len(flags), errors=column.errors, skipped=column.skipped)


class ScoreDistributionMetric:
    """How an evaluator's scores are spread: the percentiles p25, p50, p75 and p95.

    They are kept as `exact_match.p50` and so on.

    >>> ScoreDistributionMetric("exact_match").name
    'exact_match'
    """

    def __init__(self, evaluator_name: str, label: str | None = None) -> None:
        self.evaluator_name = evaluator_name
        self.name = label or evaluator_name

    def compute(self, results: Results) -> dict[str, MetricValue]:
        """The percentiles of the verdicts, interpolated linearly."""
        column = results.column(self.evaluator_name)
        found = quantiles(column.values, [percent / 100 for percent in PERCENTILES])
        n = len(column.values)
        return {
            f"p{percent}": MetricValue(value, n, column.errors, column.skipped, kind="quantile")
            for percent, value in zip(PERCENTILES, found, strict=True)
        }
