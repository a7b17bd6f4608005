"""The built-in metrics: rates, scores, latency, tokens, cost, and the total of rubrics."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress
from math import fsum
from typing import Literal, NamedTuple

import msgspec

from proctor.core.stats.descriptive import PassRule, pass_at_k, pass_hat_k
from proctor.errors import EvaluatorError
from proctor.metrics.estimates import (
    compute_outcome_rate,
    estimate_clustered_rate,
    estimate_mean,
    estimate_quantiles,
    estimate_rate,
    estimate_unbounded_mean,
)
from proctor.records.metric import MetricValue
from proctor.records.results import NAN, Column, Figures, Results, tally_passes, to_array
from proctor.records.rubric import TOTAL_SCORE, Columns, compute_total, has_failed, is_partial
from proctor.records.trial import OUTCOMES

_ERROR = OUTCOMES.index("error")


class TrialNumbers(NamedTuple):
    """A metric as a statistic of one number per trial, in the order of `Results.figures`; NaN is a missing number.

    `statistic` is "mean", "total", or the fraction of a quantile. A metric with `trial_numbers` is compared with paired
    methods, or with a faster bootstrap; any other metric is computed for every resample of a bootstrap.
    """

    values: Sequence[float]
    statistic: Literal["mean", "total"] | float


class SuccessRateMetric:
    """The share of results whose target returned an output."""

    name = "success_rate"

    def compute(self, results: Results) -> MetricValue:
        return compute_outcome_rate(results, {**dict.fromkeys(OUTCOMES, 1.0), "error": 0.0})

    def trial_numbers(self, results: Results) -> dict[str, TrialNumbers]:
        return {self.name: TrialNumbers([float(outcome != _ERROR) for outcome in results.outcomes()], "mean")}


class PassRateMetric:
    """The share of results with a verdict that passed: of one evaluator, or of all combined.

    Errors and skips are left out and counted.
    """

    def __init__(self, evaluator_name: str | None = None, label: str | None = None) -> None:
        self.evaluator_name = evaluator_name
        self.name = "pass_rate" if evaluator_name is None else f"{label or evaluator_name}.pass_rate"

    def compute(self, results: Results) -> MetricValue:
        column = results.column(self.evaluator_name)
        if column.clusters is not None:
            flags = array("d", list(column.passes))
            return estimate_clustered_rate(msgspec.structs.replace(column, values=flags))
        counts = column.passed, len(column.values)
        return estimate_rate(*counts, errors=column.errors, skipped=column.skipped)

    def trial_numbers(self, results: Results) -> dict[str, TrialNumbers]:
        passes = results.figures().passes.get(self.evaluator_name or "")
        return {} if passes is None else {self.name: TrialNumbers(passes, "mean")}


class StrictPassRateMetric:
    """The share that passed, with errors counted as not passed. Gates use this metric.

    Only skipped results are left out.
    """

    name = "strict_pass_rate"

    def compute(self, results: Results) -> MetricValue:
        skipped = results.outcomes().count(OUTCOMES.index("skipped"))
        counted = {outcome: float(outcome == "passed") for outcome in OUTCOMES}
        del counted["skipped"]
        return compute_outcome_rate(results, counted, skipped=skipped)


def list_pass_sizes(epochs: int) -> list[int]:
    """List the k of pass^k and pass@k that a report shows: 2, 3, 4, further powers of two, and all epochs.

    >>> list_pass_sizes(3), list_pass_sizes(20)
    ([2, 3], [2, 3, 4, 8, 16, 20])
    """
    sizes = {2, 3, 4, *(2**power for power in range(3, epochs.bit_length())), epochs}
    return sorted(k for k in sizes if 2 <= k <= epochs)


class PassKMetric:
    """pass^k (all of k trials pass) or pass@k (at least one passes), averaged over samples, as `pass_hat_k.2`.

    The verdicts are those of one evaluator, as `exact_match.pass_hat_k.2`, or of all combined. Only trials with a
    verdict count. A sample with fewer than k of them has no value and counts as skipped.
    """

    higher_is_better = True

    def __init__(
        self, rule: PassRule, epochs: int, evaluator_name: str | None = None, label: str | None = None
    ) -> None:
        name = "pass_hat_k" if rule == "all" else "pass_at_k"
        self.evaluator_name = evaluator_name
        self.name = name if evaluator_name is None else f"{label or evaluator_name}.{name}"
        self._measure = pass_hat_k if rule == "all" else pass_at_k
        self._sizes = list_pass_sizes(epochs)

    def compute(self, results: Results) -> dict[str, MetricValue]:
        figures, tallies = results.figures(), self._tally(results)
        names: Sequence[str | None] = figures.clusters or figures.sample_ids
        clusters = {sample: name or sample for sample, name in zip(figures.sample_ids, names, strict=True)}
        metrics = {}
        for k in self._sizes:
            values = {sample: self._measure(*tally, k) for sample, tally in tallies.items()}
            known = {sample: value for sample, value in values.items() if value is not None}
            # The interval follows the rule of the pass rate, whose clusters are the samples.
            units = [clusters[sample] for sample in known]
            column = Column(array("d", known.values()), skipped=len(values) - len(known), clusters=units)
            metrics[str(k)] = estimate_clustered_rate(column)
        return metrics

    def trial_numbers(self, results: Results) -> dict[str, TrialNumbers]:
        ids, tallies = results.figures().sample_ids, self._tally(results)
        numbers = {}
        for k in self._sizes if tallies else ():
            values = {sample: self._measure(*tally, k) for sample, tally in tallies.items()}
            numbers[f"{self.name}.{k}"] = TrialNumbers(to_array(values[sample] for sample in ids), "mean")
        return numbers

    def _tally(self, results: Results) -> dict[str, tuple[int, int]]:
        """Count verdicts and passes by sample; an evaluator that no result has, has none."""
        if self.evaluator_name is not None and self.evaluator_name not in results.figures().marks:
            return {}
        return tally_passes(results, self.evaluator_name)


PERCENTILES = (25, 50, 75, 95)


class MeanScoreMetric:
    """The mean score of one evaluator, or of all evaluators combined if `evaluator` is None."""

    def __init__(self, evaluator_name: str | None = None, label: str | None = None) -> None:
        self.evaluator_name = evaluator_name
        # `field.NAME` is the mean of a field's numbers, so its score has the suffix "score".
        name = f"{evaluator_name}.mean" if label is None else f"{label}.score"
        self.name = "mean_score" if evaluator_name is None else name

    def compute(self, results: Results) -> MetricValue:
        return estimate_mean(results.column(self.evaluator_name))


class AccuracyMetric:
    """The share of an evaluator's scores that reach a threshold: `score >= threshold`."""

    def __init__(self, evaluator_name: str, threshold: float = 0.5) -> None:
        if not 0 <= threshold <= 1:
            raise EvaluatorError(
                f"the threshold of an accuracy must be between 0 and 1, got {threshold!r}",
                where=f"{evaluator_name}.accuracy",
                fix="write a threshold from 0 to 1, such as 0.5",
            )
        self.evaluator_name = evaluator_name
        self.threshold = threshold
        self.name = f"{evaluator_name}.accuracy"

    def compute(self, results: Results) -> MetricValue:
        column = results.column(self.evaluator_name)
        flags = array("d", (value >= self.threshold for value in column.values))
        if column.clusters is not None:
            return estimate_clustered_rate(msgspec.structs.replace(column, values=flags))
        return estimate_rate(int(sum(flags)), len(flags), errors=column.errors, skipped=column.skipped)

    def trial_numbers(self, results: Results) -> dict[str, TrialNumbers]:
        scores = results.figures().scores.get(self.evaluator_name, ())
        flags = [float(score >= self.threshold) if score == score else NAN for score in scores]
        return {self.name: TrialNumbers(flags, "mean")} if flags else {}


class ScoreDistributionMetric:
    """The percentiles p25, p50, p75 and p95 of an evaluator's scores, named `exact_match.p50` and so on."""

    def __init__(self, evaluator_name: str, label: str | None = None) -> None:
        self.evaluator_name = evaluator_name
        self.name = label or evaluator_name

    def compute(self, results: Results) -> dict[str, MetricValue]:
        values = estimate_quantiles(results.column(self.evaluator_name), [percent / 100 for percent in PERCENTILES])
        return {f"p{percent}": value for percent, value in zip(PERCENTILES, values, strict=True)}

    def trial_numbers(self, results: Results) -> dict[str, TrialNumbers]:
        scores = results.figures().scores.get(self.evaluator_name)
        if scores is None:
            return {}
        return {f"{self.name}.p{percent}": TrialNumbers(scores, percent / 100) for percent in PERCENTILES}


DOLLARS = "USD"


def read_answer_latencies(figures: Figures) -> array[float]:
    """Return the latency of each trial; NaN for failed calls, because they are not answers."""
    if _ERROR not in figures.outcomes:
        return figures.latencies
    pairs = zip(figures.latencies, figures.outcomes, strict=True)
    return array("d", (NAN if outcome == _ERROR else latency for latency, outcome in pairs))


class LatencyMetric:
    """The latency of the target's answers in milliseconds: mean, p50, p95 and max.

    Failed calls count as errors, because a timeout or a refused connection is not an answer. Trials
    without a measured latency, such as a request that no worker answered, count as skipped.
    """

    name = "latency_ms"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        column = _answer_latency_column(results)
        p50, p95 = estimate_quantiles(column, (0.5, 0.95), unit="ms")
        longest = max(column.values, default=None)
        return {
            "mean": estimate_mean(column, unit="ms"),
            "p50": p50,
            "p95": p95,
            "max": MetricValue(longest, len(column.values), column.errors, column.skipped, unit="ms"),
        }

    def trial_numbers(self, results: Results) -> dict[str, TrialNumbers]:
        values = read_answer_latencies(results.figures())
        return {f"{self.name}.{key}": TrialNumbers(values, q) for key, q in (("p50", 0.5), ("p95", 0.95), ("max", 1.0))}


def _answer_latency_column(results: Results) -> Column:
    column, outcomes = results.latencies(), results.outcomes()
    errors = outcomes.count(_ERROR)
    if not errors:
        return column
    # Reading the figures of a run is slow, so they are read only if some latencies are missing.
    latencies = read_answer_latencies(results.figures()) if column.skipped else column.values
    answered = [latency == latency and o != _ERROR for latency, o in zip(latencies, outcomes, strict=True)]
    clusters = results.clusters()
    return Column(
        array("d", compress(latencies, answered)),
        errors=errors,
        skipped=answered.count(False) - errors,
        clusters=None if clusters is None else list(compress(clusters, answered)),
    )


class TokensMetric:
    """The tokens that the results used: mean and total, over the trials with a known usage.

    Failed calls with an unknown usage count as errors, other trials with an unknown usage as skipped.
    """

    name = "tokens"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        column = results.tokens()
        errors = results.outcomes().count(_ERROR) if column.skipped else 0
        if errors and column.values:
            # Reading the figures of a run is slow, so they are read only if a failed call may have a known usage.
            pairs = zip(results.figures().tokens, results.outcomes(), strict=True)
            errors = sum(tokens != tokens and outcome == _ERROR for tokens, outcome in pairs)
        column = msgspec.structs.replace(column, errors=errors, skipped=column.skipped - errors)
        return {
            "mean": estimate_mean(column, unit="tokens"),
            "total": _total(column.values, unit="tokens", errors=errors, skipped=column.skipped),
        }

    def trial_numbers(self, results: Results) -> dict[str, TrialNumbers]:
        return {"tokens.total": TrialNumbers(results.figures().tokens, "total")}


class CostMetric:
    """The cost of the target's models in US dollars: mean and total.

    Failed calls with an unknown price count as errors, other trials with an unknown price as skipped.
    """

    name = "cost"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        spent, outcomes = results.model_usage() or [], results.outcomes()
        is_known = [usage is not None and usage.cost is not None for usage in spent]
        costs = array("d", (usage.cost for usage in spent if usage and usage.cost is not None))
        clusters = results.clusters()
        errors = outcomes.count(_ERROR)
        if spent:
            errors -= sum(outcome == _ERROR for outcome in compress(outcomes, is_known))
        column = Column(
            costs,
            errors=errors,
            skipped=len(outcomes) - len(costs) - errors,
            clusters=None if clusters is None else list(compress(clusters, is_known)),
        )
        return {
            "mean": estimate_mean(column, unit=DOLLARS),
            "total": _total(costs, unit=DOLLARS, errors=errors, skipped=column.skipped),
        }

    def trial_numbers(self, results: Results) -> dict[str, TrialNumbers]:
        costs = results.figures().costs
        return {} if costs is None else {"cost.total": TrialNumbers(costs, "total")}


class JudgesMetric:
    """The total usage of the evaluators' models: tokens and US dollars."""

    name = "judges"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        known_usage = [usage for usage in results.model_usage() or () if usage is not None]
        tokens = [usage.judge_tokens for usage in known_usage if usage.judge_tokens is not None]
        costs = [usage.judge_cost for usage in known_usage if usage.judge_cost is not None]
        unpriced = max(0, len(tokens) - len(costs))
        return {"tokens": _total(tokens, unit="tokens"), "cost": _total(costs, unit=DOLLARS, skipped=unpriced)}

    def trial_numbers(self, results: Results) -> dict[str, TrialNumbers]:
        spent = results.model_usage() or ()
        numbers = {
            "judges.tokens": to_array(None if usage is None else usage.judge_tokens for usage in spent),
            "judges.cost": to_array(None if usage is None else usage.judge_cost for usage in spent),
        }
        return {name: TrialNumbers(values, "total") for name, values in numbers.items() if values}


def _total(values: Sequence[float], *, unit: str, errors: int = 0, skipped: int = 0) -> MetricValue:
    total = fsum(values) if values else None
    return MetricValue(total, len(values), errors, skipped, kind="count", unit=unit)


class RubricTotalMetric:
    """The mean of the sessions' weighted totals, on the scale of the rubrics.

    Sessions without any score are left out and counted; totals that leave out a failed rubric are included
    and counted as `partial`.
    """

    name = TOTAL_SCORE

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def compute(self, results: Results) -> MetricValue:
        totals, skipped, partial = [], 0, 0
        for result in results:
            total = compute_total(result.scores, self._columns)
            failed = has_failed(result.scores, self._columns)
            totals.append(total)
            partial += total is not None and is_partial(result.scores, self._columns)
            # A session whose rubrics were all skipped is not missing.
            skipped += total is None and result.success and not failed
        known_scores = array("d", (total.score for total in totals if total is not None))
        clusters = results.clusters()
        if clusters is not None:
            clusters = list(compress(clusters, (total is not None for total in totals)))
        missing = len(totals) - len(known_scores) - skipped
        column = Column(known_scores, errors=missing, skipped=skipped, clusters=clusters)
        value = estimate_unbounded_mean(column)
        low, high = self._columns.scale
        interval = value.interval and (max(low, value.interval[0]), min(high, value.interval[1]))
        return msgspec.structs.replace(value, interval=interval, partial=partial)
