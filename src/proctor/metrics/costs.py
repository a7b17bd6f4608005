"""What the results took: time and tokens."""

from __future__ import annotations

from math import fsum

from proctor.metrics.estimates import mean_of
from proctor.records.metric import MetricValue
from proctor.records.results import Results
from proctor.statistics.quantiles import quantiles


class LatencyMetric:
    """How long the target took, in milliseconds: mean, p50, p95 and max. Failures are in it.

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
            "p50": MetricValue(p50, n, kind="quantile", unit="ms"),
            "p95": MetricValue(p95, n, kind="quantile", unit="ms"),
            "max": MetricValue(longest, n, unit="ms"),
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
        total = fsum(column.values) if column.values else None
        n, unknown = len(column.values), column.skipped
        return {
            "mean": mean_of(column, unit="tokens"),
            "total": MetricValue(total, n, skipped=unknown, kind="count", unit="tokens"),
        }
