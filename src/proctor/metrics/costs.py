"""What the results took: time, tokens and money."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress
from math import fsum

from proctor.metrics.estimates import mean_of
from proctor.records.metric import MetricValue
from proctor.records.results import Column, Results
from proctor.statistics.quantiles import quantiles

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
