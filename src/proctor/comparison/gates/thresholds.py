"""Thresholds: check that every metric is at least as high as required."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError, Problem, suggest_name
from proctor.records.numbers import is_number, read_percent
from proctor.records.rubric import TOTAL_SCORE, Columns, read_run_columns

# Lower is better for metrics with these prefixes, so they have no threshold; each value suggests an alternative.
LOWER_IS_BETTER = {
    "latency_ms.": "check each sample with the evaluator latency: field: {path: latency_ms, "
    "evaluators: [{latency: {max_ms: 2000}}]}; or compare with an earlier run: "
    "proctor gate RUN --baseline NAME --metric latency_ms.mean=10%",
    "tokens.": "stop the run at a limit: --budget tokens=100000; or compare with an earlier run: "
    "proctor gate RUN --baseline NAME --metric tokens.mean=10%",
    "cost.": "stop the run at a limit in US dollars: --budget cost=5; or compare with an earlier "
    "run: proctor gate RUN --baseline NAME --metric cost.mean=10%",
    "judges.": "stop the run at a limit: --budget tokens=100000 or --budget cost=5",
}
DEFAULT_METRIC = "strict_pass_rate"
# A smaller percentage is probably a typing error: 0.9% for 0.9 or 90%.
MIN_PERCENTAGE = 0.01


class Percentage(float):
    """A threshold in percent: 80% of a rate is 0.8, and 80% of a scale up to 5 is 4."""


def read_threshold(raw: Any, where: str) -> float:
    """Read a threshold from a file, an option or Python: a number, or a string such as "80%"."""
    percent = read_percent(raw)
    if percent is not None:
        if 0 < percent < MIN_PERCENTAGE:
            raise ConfigError(
                f"{raw} is {percent:.4g}, which nearly every run reaches; did you mean "
                f"{10_000 * percent:g}% or {100 * percent:g}?",
                where=where,
                fix=f"write {10_000 * percent:g}% or {100 * percent:g}; if the threshold is that "
                f"low, write {percent:.4g}",
            )
        return Percentage(percent)
    if is_number(raw):
        return float(raw)
    try:
        number = float(raw) if isinstance(raw, str) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"must be a number such as 0.8 or 80%, got {raw!r}", where=where, fix="write 0.8 or 80%")
    return number


def read_thresholds(raw: Any, where: str) -> dict[str, float]:
    """Read the lowest allowed value of each metric; a bare number is for the strict pass rate."""
    values_by_metric = raw if isinstance(raw, Mapping) else {DEFAULT_METRIC: raw}
    thresholds: dict[str, float] = {}
    problems: list[Problem] = []
    for metric, threshold in values_by_metric.items():
        try:
            thresholds[str(metric)] = read_threshold(threshold, where)
        except ConfigError as error:
            place = f"{where}.{metric}" if isinstance(raw, Mapping) else where
            problems.append(Problem(place, error.what, error.fix))
    if problems:
        raise ConfigError("some thresholds are invalid", where=where, problems=problems)
    return thresholds


def convert_thresholds(thresholds: Mapping[str, float], rubrics: Columns) -> dict[str, float]:
    """Convert each threshold to the unit of its metric: 80% of a total score up to 5 is 4.

    Raises `ConfigError` for a total score outside its scale.
    """
    threshold = thresholds.get(TOTAL_SCORE)
    if threshold is None or not rubrics.columns:
        return dict(thresholds)
    low, high = rubrics.scale
    value = round(threshold * high, 12) if isinstance(threshold, Percentage) else threshold
    if not low <= value <= high:
        share = f"{100 * threshold:g}% of {high:g}, " if isinstance(threshold, Percentage) else ""
        raise ConfigError(
            f"the threshold of {TOTAL_SCORE} is {share}{value:g}, but its scale is from {low:g} to {high:g}",
            where="fail_under",
            fix=f"write a score from {low:g} to {high:g}, or a percentage of {high:g} such as 80%",
        )
    return {**thresholds, TOTAL_SCORE: value}


def find_shortfalls(report: EvalReport, thresholds: Mapping[str, float]) -> list[str]:
    """Describe which metrics do not reach their threshold, in any configuration.

    A metric without a value does not reach its threshold: no result could be scored.
    """
    if not thresholds:
        return []
    from proctor.comparison.describe import describe_count

    require_higher_is_better(thresholds)
    tables = report.by_configuration or {"": report.metrics}
    require_known_metrics(thresholds, report.metrics)
    thresholds = convert_thresholds(thresholds, read_run_columns(report.metadata))
    shortfalls = []
    for metric, threshold in thresholds.items():
        for configuration, table in tables.items():
            name = f"{metric} of {configuration}" if configuration else metric
            value = table[metric].value if metric in table else None
            if value is None:
                count = describe_count(table.get(metric))
                shortfalls.append(
                    f"{name} has no value, because no result was scored; the threshold is {threshold:g}{count}"
                )
            elif value < threshold:
                shortfalls.append(f"{name} is {value:.4g}, below {threshold:g}{describe_count(table[metric])}")
    return shortfalls


def require_known_metrics(
    thresholds: Iterable[str], known_metrics: Iterable[str], custom: Collection[str] = ()
) -> None:
    """Raise `ConfigError` for a threshold of an unknown metric.

    A name that starts with the name of a `custom` metric is accepted, because the values of a custom metric are known
    only after it is computed.
    """
    names, prefixes = set(known_metrics), tuple(f"{name}." for name in custom)
    unknown_metrics = {
        metric: suggest_metric(metric, names | set(custom))
        for metric in thresholds
        if metric not in names and not f"{metric}.".startswith(prefixes)
    }
    if len(unknown_metrics) == 1:
        ((metric, fix),) = unknown_metrics.items()
        raise ConfigError(f"unknown metric {metric!r}", where="fail_under", fix=fix)
    if unknown_metrics:
        problems = [Problem(metric, f"unknown metric; {fix}") for metric, fix in unknown_metrics.items()]
        raise ConfigError("some metrics are unknown", where="fail_under", problems=problems)


def suggest_metric(metric: str, known_metrics: Iterable[str]) -> str:
    """Suggest a metric: one of the evaluator's metrics, one with that prefix, or the nearest name."""
    names = set(known_metrics)
    of_evaluator = [name for suffix in ("mean", "pass_rate") if (name := f"{metric}.{suffix}") in names]
    matches = of_evaluator or sorted(name for name in names if name.startswith(f"{metric}_"))[:1]
    return f"did you mean {' or '.join(map(repr, matches))}?" if matches else suggest_name(metric, names)


def require_reachable(thresholds: Mapping[str, float]) -> None:
    """Raise `ConfigError` for a threshold that no run can reach, such as 80 instead of 80%."""
    require_higher_is_better(thresholds)
    problems = [
        Problem(metric, f"the threshold of {metric} is {threshold:g}, but its values are from 0 to 1")
        for metric, threshold in thresholds.items()
        if not math.isfinite(threshold) or (metric.endswith(("rate", "accuracy")) and not 0 <= threshold <= 1)
    ]
    if len(problems) == 1:
        raise ConfigError(problems[0].what, where="fail_under", fix=_WRITE_SHARE)
    if problems:
        raise ConfigError(
            "no run can reach some of the thresholds", where="fail_under", problems=problems, fix=_WRITE_SHARE
        )


_WRITE_SHARE = "write a number such as 0.8, or 80%"


def require_higher_is_better(thresholds: Iterable[str]) -> None:
    """Raise `ConfigError` for a metric that is better if lower, with an alternative."""
    fixes = {
        metric: fix for metric in thresholds for prefix, fix in LOWER_IS_BETTER.items() if metric.startswith(prefix)
    }
    if fixes:
        names = ", ".join(fixes)
        raise ConfigError(
            f"a threshold is the lowest allowed value, but lower is better for {names}",
            where="fail_under",
            fix=";\n  ".join(dict.fromkeys(fixes.values())),
        )
