"""Thresholds: is every number at least what it should be?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from proctor.errors import ConfigError, Problem, nearest
from proctor.records.metric import MetricValue
from proctor.records.numbers import is_number, read_percent
from proctor.records.report import EvalReport
from proctor.records.rubric_scores import TOTAL_SCORE, Columns, columns_in

MEASURED = ("latency_ms.", "tokens.")
# What has a unit of its own is no share of anything.
WITH_UNIT = (*MEASURED, "cost.", "judges.")
DEFAULT_METRIC = "strict_pass_rate"


class Percent(float):
    """A threshold that was given in percent: 80 % is 0.8 of a share, and 4 on a scale to 5."""


def read_share(given: Any, where: str) -> float:
    """A share from a file, an option or Python: a number, or a text such as 0.8 or 80%.

    >>> read_share("80%", "fail_under"), read_share(0.5, "fail_under")
    (0.8, 0.5)
    """
    percent = read_percent(given)
    if percent is not None:
        return Percent(percent)
    if is_number(given):
        return float(given)
    try:
        number = float(given) if isinstance(given, str) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(
            f"expected a number such as 0.8 or 80%, found {given!r}",
            where=where,
            fix="write 0.8 or 80%",
        )
    return number


def read_thresholds(given: Any, where: str) -> dict[str, float]:
    """The least value of each metric; a bare number or percentage is for the strict pass rate."""
    named = given if isinstance(given, Mapping) else {DEFAULT_METRIC: given}
    found: dict[str, float] = {}
    problems: list[Problem] = []
    for metric, least in named.items():
        try:
            found[str(metric)] = read_share(least, where)
        except ConfigError as error:
            place = f"{where}.{metric}" if isinstance(given, Mapping) else where
            problems.append(Problem(place, error.what))
    if problems:
        raise ConfigError(
            "a threshold cannot be read",
            where=where,
            problems=problems,
            fix="write 0.8 or 80%",
        )
    return found


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
            fix=f"give a score on the scale, or a share of {high:g} such as 80%",
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
    unknown = {
        metric: likely(metric, names | set(own))
        for metric in thresholds
        if metric not in names and not f"{metric}.".startswith(beginnings)
    }
    if len(unknown) == 1:
        ((metric, fix),) = unknown.items()
        raise ConfigError(f"there is no metric {metric!r}", where="fail_under", fix=fix)
    if unknown:
        problems = [
            Problem(metric, f"there is no such metric; {fix}") for metric, fix in unknown.items()
        ]
        raise ConfigError("some metrics are not known", where="fail_under", problems=problems)


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
    problems = [
        Problem(metric, what)
        for metric, least in thresholds.items()
        if (what := _why_unreachable(metric, least))
    ]
    if len(problems) == 1:
        raise ConfigError(problems[0].what, where="fail_under", fix=_WRITE_SHARE)
    if problems:
        raise ConfigError(
            "some thresholds cannot be reached",
            where="fail_under",
            problems=problems,
            fix=_WRITE_SHARE,
        )


_WRITE_SHARE = "write a number such as 0.8, or 80%"


def _why_unreachable(metric: str, least: float) -> str:
    if metric.startswith(MEASURED):
        return f"{metric} is better the smaller it is, and a threshold here is a least value"
    is_share = metric.endswith(("rate", "accuracy"))
    if not math.isfinite(least) or (is_share and not 0 <= least <= 1):
        return f"the threshold of {metric} is {least:g}, and a share lies from 0 to 1"
    return ""


def _is_below(metric: MetricValue | None, least: float) -> bool:
    return metric is None or metric.value is None or metric.value < least


def _say(metric: MetricValue | None) -> str:
    return "unknown" if metric is None or metric.value is None else f"{metric.value:.4g}"
