"""Numbers over many results: each with its n, what is missing, and an interval."""

from proctor.metrics.costs import CostMetric, JudgesMetric, LatencyMetric, TokensMetric
from proctor.metrics.rates import PassRateMetric, StrictPassRateMetric, SuccessRateMetric
from proctor.metrics.registry import MetricRegistry
from proctor.metrics.scores import AccuracyMetric, MeanScoreMetric, ScoreDistributionMetric

__all__ = [
    "AccuracyMetric",
    "CostMetric",
    "JudgesMetric",
    "LatencyMetric",
    "MeanScoreMetric",
    "MetricRegistry",
    "PassRateMetric",
    "ScoreDistributionMetric",
    "StrictPassRateMetric",
    "SuccessRateMetric",
    "TokensMetric",
]
