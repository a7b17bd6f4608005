"""Thresholds: is every number at least what it should be?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from proctor.errors import ConfigError, nearest
from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport

MEASURED = ("latency_ms.", "tokens.")
DEFAULT_METRIC = "strict_pass_rate"


def shortfalls(report: EvalReport, thresholds: Mapping[str, float]) -> list[str]:
    """What is below its threshold, in words; every configuration must reach every threshold.

    A metric without a value (nothing could be scored) is below any threshold.
    """
    tables = report.by_configuration or {"": report.metrics}
    refuse_unknown(thresholds, report.metrics)
    return [
        f"{metric}{f' of {configuration}' if configuration else ''} is "
        f"{_say(table.get(metric))}, below {least:g}"
        for metric, least in thresholds.items()
        for configuration, table in tables.items()
        if _is_below(table.get(metric), least)
    ]


def refuse_unknown(
    thresholds: Iterable[str], known: Iterable[str], custom: Iterable[str] = ()
) -> None:
    """Refuse a threshold for a metric that there is not.

    What a custom metric will give is not known before it has; anything under its name is let be.
    """
    names, beginnings = set(known), tuple(f"{name}." for name in custom)
    for metric in thresholds:
        if metric not in names and not f"{metric}.".startswith(beginnings):
            likely = f"{metric}.pass_rate"
            fix = f"did you mean {likely!r}?" if likely in names else nearest(metric, names)
            raise ConfigError(f"there is no metric {metric!r}", where="fail_under", fix=fix)


def refuse_unreachable(thresholds: Mapping[str, float]) -> None:
    """Refuse what is no number, and a share over 1 (80 where 0.8 or 80% is meant)."""
    for metric, least in thresholds.items():
        if metric.startswith(MEASURED):
            raise ConfigError(
                f"{metric} is better the smaller it is, and a threshold here is a least value",
                where="fail_under",
            )
        is_share = metric.endswith(("rate", "accuracy"))
        if not math.isfinite(least) or (is_share and not 0 <= least <= 1):
            raise ConfigError(
                f"the threshold of {metric} is {least:g}, and a share lies from 0 to 1",
                where="fail_under",
                fix="give a number such as 0.8, or 80% on the command line",
            )


def _is_below(metric: MetricValue | None, least: float) -> bool:
    return metric is None or metric.value is None or metric.value < least


def _say(metric: MetricValue | None) -> str:
    return "unknown" if metric is None or metric.value is None else f"{metric.value:.4g}"
