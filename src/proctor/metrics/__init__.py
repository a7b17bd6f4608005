"""Metrics: numbers computed over many results, each with its sample size, missing values and confidence interval."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> the public names that it defines.
EXPORTS = {
    "metrics.builtin": (
        "AccuracyMetric",
        "CostMetric",
        "JudgesMetric",
        "LatencyMetric",
        "MeanScoreMetric",
        "PassKMetric",
        "PassRateMetric",
        "ScoreDistributionMetric",
        "StrictPassRateMetric",
        "SuccessRateMetric",
        "TokensMetric",
    ),
    "metrics.registry": ("MetricRegistry",),
    "records.metric": ("Metric", "MetricValue"),
}

__all__ = sorted(name for names in EXPORTS.values() for name in names)

__getattr__, __dir__ = lazy_names("proctor.metrics", EXPORTS)
