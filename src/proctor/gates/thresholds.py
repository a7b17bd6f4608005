"""Thresholds: is every number at least what it should be?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from proctor.errors import ConfigError, nearest
from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport
from proctor.records.rubric_scores import TOTAL_SCORE, Columns, columns_in

MEASURED = ("latency_ms.", "tokens.")
# What has a unit of its own is no share of anything.
WITH_UNIT = (*MEASURED, "cost.", "judges.")
DEFAULT_METRIC = "strict_pass_rate"


class Percent(float):
    """A threshold that was given in percent: 80 % is 0.8 of a share, and 4 on a scale to 5."""


def in_own_unit(thresholds: Mapping[str, float], rubrics: Columns) -> dict[str, float]:
    """Each threshold in the unit of its metric: percent of a total are of the greatest score.

    Refused are percent of what is no share, and a total that its scale has not.
    """
    scale = rubrics.scale if rubrics.columns else None
    return {metric: _own(metric, least, scale) for metric, least in thresholds.items()}


def _own(metric: str, least: float, scale: tuple[float, float] | None) -> float:
    if isinstance(least, Percent) and metric.startswith(WITH_UNIT):
        raise ConfigError(
            f"the threshold of {metric} is {100 * least:g} %, and it is no share of anything",
            where="fail_under",
            fix="give it in its own unit, without a percent sign",
        )
    if metric != TOTAL_SCORE or scale is None:
        return least
    low, high = scale
    told = round(least * high, 12) if isinstance(least, Percent) else least
    if not low <= told <= high:
        share = f"{100 * least:g} % of {high:g}, " if isinstance(least, Percent) else ""
        raise ConfigError(
            f"the threshold of {metric} is {share}{told:g}, and its scale is from {low:g} to "
            f"{high:g}",
            where="fail_under",
            fix=f"give a score on the scale; on the command line also a share of {high:g}: 80%",
        )
    return told


def shortfalls(report: EvalReport, thresholds: Mapping[str, float]) -> list[str]:
    """What is below its threshold, in words; every configuration must reach every threshold.

    A metric without a value (nothing could be scored) is below any threshold.
    """
    tables = report.by_configuration or {"": report.metrics}
    refuse_unknown(thresholds, report.metrics)
    thresholds = in_own_unit(thresholds, columns_in(report.metadata))
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
    own = list(custom)
    names, beginnings = set(known), tuple(f"{name}." for name in own)
    for metric in thresholds:
        if metric not in names and not f"{metric}.".startswith(beginnings):
            fix = likely(metric, names | set(own))
            raise ConfigError(f"there is no metric {metric!r}", where="fail_under", fix=fix)


def likely(metric: str, known: Iterable[str]) -> str:
    """Which metric was probably meant: that of an evaluator, one that begins so, or the nearest.

    >>> likely("total", ["cost.total", "total_score"])
    "did you mean 'total_score'?"
    """
    names = set(known)
    parts = [name for part in ("mean", "pass_rate") if (name := f"{metric}.{part}") in names]
    found = parts or sorted(name for name in names if name.startswith(f"{metric}_"))[:1]
    if not found:
        return nearest(metric, names)
    return f"did you mean {' or '.join(map(repr, found))}?"


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
