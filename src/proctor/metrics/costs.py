"""What the results took: time and tokens."""

from __future__ import annotations

from math import fsum

import msgspec

from proctor.metrics.estimates import by_cluster, is_clustered, mean_of
from proctor.records.metric import MetricKind, MetricValue
from proctor.records.results import Column, Results
from proctor.records.trial import EvalResult
from proctor.statistics.quantiles import quantile


class LatencyMetric:
    """How long the target took, in milliseconds: mean, p50, p95 and max. Failures are in it.

    >>> LatencyMetric().name
    'latency_ms'
    """

    name = "latency_ms"

    def compute(self, results: Results) -> dict[str, MetricValue]:
        """The four numbers, over every trial."""
        column = Column(results.latencies())
        ordered = sorted(column.values)
        if is_clustered(results):
            column = by_cluster(results, lambda result: result.latency_ms)

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
        column = Column(results.tokens())
        total = fsum(column.values) if column.values else None
        n = len(column.values)
        unknown = len(results) - n
        if n and is_clustered(results):
            column = by_cluster(results, _tokens)
        return {
            "mean": mean_of(msgspec.structs.replace(column, skipped=unknown), unit="tokens"),
            "total": MetricValue(total, n, skipped=unknown, kind="count", unit="tokens"),
        }


def _tokens(result: EvalResult) -> float | None:
    return None if result.trial.usage is None else result.trial.usage.total_tokens
