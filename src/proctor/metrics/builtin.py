"""The weighted total of rubrics over the sessions of a run."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress
from math import fsum

import msgspec

from proctor.core.stats.descriptive import quantiles
from proctor.core.stats.intervals import Interval
from proctor.errors import EvaluatorError
from proctor.metrics.estimates import any_mean_of, clustered_rate_of, mean_of, rate_of, rate_over
from proctor.records.metric import MetricValue
from proctor.records.results import Column, Results
from proctor.records.rubric import TOTAL_SCORE, Columns, has_failed, is_partial, total_of
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
        self.name = "pass_rate" if evaluator_name is None else f"{label or evaluator_name}.pass_rate"

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


DOLLARS = "USD"


class LatencyMetric:
    """How long the target took, in milliseconds: mean, p50, p95 and max. Failures are in it.

    What nobody measured, such as a request that no worker could answer, is counted as skipped.

    >>> LatencyMetric().name
    'latency_ms'
    """

    name = "latency_ms"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        """The four numbers, over every trial."""
        column = results.latencies()
        n = len(column.values)
        p50, p95, longest = quantiles(column.values, (0.5, 0.95, 1.0))
        return {
            "mean": mean_of(column, unit="ms"),
            "p50": MetricValue(p50, n, skipped=column.skipped, kind="quantile", unit="ms"),
            "p95": MetricValue(p95, n, skipped=column.skipped, kind="quantile", unit="ms"),
            "max": MetricValue(longest, n, skipped=column.skipped, unit="ms"),
        }


class TokensMetric:
    """How many tokens the results used: mean and total, over the trials that told their usage.

    Trials that did not tell are counted as skipped; if none did, there is no number.

    >>> TokensMetric().name
    'tokens'
    """

    name = "tokens"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        """The two numbers; unknown is not zero."""
        column = results.tokens()
        return {
            "mean": mean_of(column, unit="tokens"),
            "total": _total(column.values, unit="tokens", skipped=column.skipped),
        }


class CostMetric:
    """What the target's models cost, in US dollars: mean and total.

    Trials whose price is not known are counted as skipped and never guessed.

    >>> CostMetric().name
    'cost'
    """

    name = "cost"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        """The two numbers; none where no trial has a known cost."""
        spent = results.spent() or [None] * len(results)
        known = [each is not None and each.cost is not None for each in spent]
        costs = array("d", (each.cost for each in spent if each and each.cost is not None))
        clusters = results.clusters()
        column = Column(
            costs,
            skipped=known.count(False),
            clusters=None if clusters is None else list(compress(clusters, known)),
        )
        return {
            "mean": mean_of(column, unit=DOLLARS),
            "total": _total(costs, unit=DOLLARS, skipped=column.skipped),
        }


class JudgesMetric:
    """What the evaluators' models used in all: tokens and US dollars.

    >>> JudgesMetric().name
    'judges'
    """

    name = "judges"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        """The two totals, over the results that told; none where no evaluator asked a model."""
        asked = [each for each in results.spent() or () if each is not None]
        tokens = [each.judge_tokens for each in asked if each.judge_tokens is not None]
        costs = [each.judge_cost for each in asked if each.judge_cost is not None]
        unpriced = max(0, len(tokens) - len(costs))
        return {
            "tokens": _total(tokens, unit="tokens"),
            "cost": _total(costs, unit=DOLLARS, skipped=unpriced),
        }


def _total(values: Sequence[float], *, unit: str, skipped: int = 0) -> MetricValue:
    total = fsum(values) if values else None
    return MetricValue(total, len(values), skipped=skipped, kind="count", unit=unit)


class RubricTotalMetric:
    """The mean of the sessions' weighted totals, on the scale of the rubrics.

    Sessions without any score are left out and counted; totals that lack a rubric which failed are
    in it, and counted too (`partial`). No mean lies beyond the ends of the scale, and so its
    interval does not either.
    """

    name = TOTAL_SCORE

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def compute(self, results: Results) -> MetricValue:
        """The mean with its interval."""
        totals, skipped, partial = [], 0, 0
        for result in results:
            total = total_of(result.scores, self._columns)
            failed = has_failed(result.scores, self._columns)
            totals.append(total)
            partial += total is not None and is_partial(result.scores, self._columns)
            # Where every rubric was skipped nothing is missing.
            skipped += total is None and result.success and not failed
        known = array("d", (total.score for total in totals if total is not None))
        clusters = results.clusters()
        if clusters is not None:
            clusters = list(compress(clusters, (total is not None for total in totals)))
        missing = len(totals) - len(known) - skipped
        found = any_mean_of(Column(known, errors=missing, skipped=skipped, clusters=clusters))
        on_scale = self._on_scale(found.interval)
        return msgspec.structs.replace(found, interval=on_scale, partial=partial)

    def _on_scale(self, interval: Interval | None) -> Interval | None:
        low, high = self._columns.scale
        return interval and (max(low, interval[0]), min(high, interval[1]))
