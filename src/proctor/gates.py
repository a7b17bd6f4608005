"""Thresholds: is every number at least what it should be?"""

from __future__ import annotations

from collections.abc import Mapping

from proctor.errors import ConfigError, nearest
from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport

DEFAULT_METRIC = "strict_pass_rate"


def shortfalls(report: EvalReport, thresholds: Mapping[str, float]) -> list[str]:
    """What is below its threshold, in words; every configuration must reach every threshold.

    A metric without a value (nothing could be scored) is below any threshold.
    """
    tables = report.by_configuration or {"": report.metrics}
    check_names(report, thresholds)
    return [
        f"{metric}{f' of {configuration}' if configuration else ''} is {_say(table[metric])}, "
        f"below {least:g}"
        for metric, least in thresholds.items()
        for configuration, table in tables.items()
        if _is_below(table[metric], least)
    ]


def check_names(report: EvalReport, thresholds: Mapping[str, float]) -> None:
    """Refuse a threshold for a metric that the run does not have."""
    for metric in thresholds:
        if metric not in report.metrics:
            raise ConfigError(
                f"there is no metric {metric!r}",
                where="fail_under",
                fix=nearest(metric, report.metrics),
            )


def _is_below(metric: MetricValue, least: float) -> bool:
    return metric.value is None or metric.value < least


def _say(metric: MetricValue) -> str:
    return "unknown" if metric.value is None else f"{metric.value:.4g}"
