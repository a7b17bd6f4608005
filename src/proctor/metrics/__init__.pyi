# Written by tools/generate.py from EXPORTS in proctor.metrics.
from proctor.metrics.builtin import AccuracyMetric as AccuracyMetric
from proctor.metrics.builtin import CostMetric as CostMetric
from proctor.metrics.builtin import JudgesMetric as JudgesMetric
from proctor.metrics.builtin import LatencyMetric as LatencyMetric
from proctor.metrics.builtin import MeanScoreMetric as MeanScoreMetric
from proctor.metrics.builtin import PassKMetric as PassKMetric
from proctor.metrics.builtin import PassRateMetric as PassRateMetric
from proctor.metrics.builtin import ScoreDistributionMetric as ScoreDistributionMetric
from proctor.metrics.builtin import StrictPassRateMetric as StrictPassRateMetric
from proctor.metrics.builtin import SuccessRateMetric as SuccessRateMetric
from proctor.metrics.builtin import TokensMetric as TokensMetric
from proctor.metrics.registry import MetricRegistry as MetricRegistry
from proctor.records.metric import Metric as Metric
from proctor.records.metric import MetricValue as MetricValue

__all__ = [
    "AccuracyMetric",
    "CostMetric",
    "JudgesMetric",
    "LatencyMetric",
    "MeanScoreMetric",
    "Metric",
    "MetricRegistry",
    "MetricValue",
    "PassKMetric",
    "PassRateMetric",
    "ScoreDistributionMetric",
    "StrictPassRateMetric",
    "SuccessRateMetric",
    "TokensMetric",
]
EXPORTS: dict[str, tuple[str, ...]]
