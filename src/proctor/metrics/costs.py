"""What the results took: time and tokens."""

from __future__ import annotations

from math import fsum

from proctor.metrics.estimates import mean_of
from proctor.records.metric import MetricKind, MetricValue
from proctor.records.results import Results
from proctor.statistics.quantiles import quantile


class LatencyMetric:
    """How long the target took, in milliseconds: mean, p50, p95 and max. Failures are in it.

    >>> LatencyMetric().name
    'latency_ms'
    """

    name = "latency_ms"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        """The four numbers, over every trial."""
        column = results.latencies()
        ordered = sorted(column.values)

        def quantile_at(share: float, kind: MetricKind = "quantile") -> MetricValue:
            return MetricValue(quantile(ordered, share), len(ordered), kind=kind, unit="ms")

        return {
            "mean": mean_of(column, unit="ms"),
            "p50": quantile_at(0.5),
            "p95": quantile_at(0.95),
            "max": quantile_at(1.0, "number"),
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
