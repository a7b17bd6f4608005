"""Describe the result of a gate in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from proctor.comparison.describe import describe_grouping
from proctor.core.stats.intervals import FEWEST_CLUSTERS
from proctor.records.comparison import Comparison, MetricDelta
from proctor.records.formatting import (
    Kind,
    add_clusters,
    change_unit,
    format_change,
    format_estimate,
    format_value,
)
from proctor.records.gate import Check, Early, GateVerdict
from proctor.records.metric import MetricValue

MAX_LISTED_IDS = 3
# Nobody runs this many times as many samples.
_HOPELESS_FACTOR = 1_000
_OPENINGS = {"pass": "The gate passes", "fail": "The gate fails", "inconclusive": "The gate is inconclusive"}


def describe_gate(verdict: GateVerdict, checks: Sequence[Check], early: Early | None) -> str:
    """Describe a gate in one sentence: its decisive check, and how many more there are."""
    deciding = [check for check in checks if check.verdict == verdict]
    count = f"{len(deciding)} of {len(checks)}"
    if len(deciding) == len(checks):
        count = "both" if len(checks) == 2 else f"all {len(checks)}"
    scope = f" in {count} checks" if len(checks) > 1 else ""
    hardest = max(deciding, key=_rate_difficulty) if verdict == "inconclusive" else deciding[0]
    configuration = f"{hardest.configuration}: " if hardest.configuration else ""
    stop = "" if early is None else f"; {describe_early(early, verdict)}"
    return f"{_OPENINGS[verdict]}{scope}: {configuration}{hardest.sentence}{stop}."


def _rate_difficulty(check: Check) -> float:
    return math.inf if _is_hopeless(check) else check.more_samples or 0


def _is_hopeless(check: Check) -> bool:
    return check.more_samples is None or check.more_samples > _HOPELESS_FACTOR * max(1, check.n)


def describe_metric(
    check: Check, delta: MetricDelta, family: int = 1, missing: int = 0, *, show_more: bool = True
) -> str:
    """Compare a metric with the baseline: its values, the range of the difference, and the margin.

    Without `show_more` the sentence leaves out how many more samples are needed.
    """
    kind = delta.kind
    figures = f"{check.name} {format_value(check.value, kind)} against {format_value(check.baseline, kind)}"
    gaps = f"; {_count_samples(missing)} without a number left out" if missing and check.n else ""
    margin = _describe_margin(check, delta)
    if check.interval is None:
        return f"{figures}, {_describe_no_interval(check, delta)} ({margin}){gaps}{_describe_more(check)}"
    low, high = check.interval
    if not delta.higher_is_better:
        low, high = -high, -low
    lowest, highest = (_describe_difference(kind, end, check.margin) for end in (low, high))
    if check.verdict == "pass":
        return f"{figures}, {'at least' if low > 0 else 'at most'} {lowest} ({margin}){gaps}"
    if check.verdict == "fail":
        return f"{figures}, at least {highest} ({margin}){gaps}"
    is_beyond = high < -(check.margin or 0.0)
    doubt = f", which is not certain enough for one of {family} metrics" if is_beyond else ""
    more = _describe_more(check) if show_more else ""
    return f"{figures}, from {lowest} to {highest} ({margin}){doubt}{gaps}{more}"


def describe_threshold(metric: str, reached: float | None, threshold: float) -> str:
    """Say that a metric reached its threshold."""
    number = "" if reached is None else f" is {reached:.4g},"
    return f"{metric}{number} at least {threshold:g}"


def describe_count(metric: MetricValue | None) -> str:
    """Say how many values a metric is computed from, and how many it could not use."""
    if metric is None:
        return ""
    partial = f", {metric.partial:,} lack a rubric that failed" if metric.partial else ""
    missing = f", {metric.errors:,} missing" if metric.errors else ""
    skipped = f", {metric.skipped:,} skipped" if metric.skipped else ""
    return f" (n = {metric.n:,}{partial}{missing}{skipped})"


def describe_flips(lost: int, limit: int) -> str:
    """Say how many samples were lost, and how many may be."""
    return f"{_count_samples(lost)} {'was' if lost == 1 else 'were'} lost, at most {limit} may be"


def describe_early(early: Early, verdict: GateVerdict) -> str:
    """Say after how many samples a gate was decided, and how many samples that saved."""
    total = "" if early.of is None else f" of {early.of:,}"
    if verdict == "inconclusive":
        return (
            f"not decided after {early.n:,}{total} samples, because checking after every sample "
            "needs a wider interval than checking once at the end"
        )
    saved = f"; {early.saved:,} saved" if early.of is not None else ""
    return f"decided after {early.n:,}{total} samples{saved}"


def describe_unmatched(comparison: Comparison) -> Iterator[str]:
    """Say which samples have no partner and are left out, or that no sample has one."""
    a, b = comparison.a, comparison.b
    if not comparison.samples:
        grouping = describe_grouping(comparison)
        yield f"{a} and {b}: {grouping[0].lower()}{grouping[1:-1]}"
        return
    for ids, side, other in ((comparison.only_a, a, b), (comparison.only_b, b, a)):
        if ids:
            listed = ", ".join(ids[:MAX_LISTED_IDS]) + (", …" if len(ids) > MAX_LISTED_IDS else "")
            verb = "is" if len(ids) == 1 else "are"
            yield f"{_count_samples(len(ids))} of {side} {verb} not in {other} and left out: {listed}"


def _describe_no_interval(check: Check, delta: MetricDelta) -> str:
    if not check.n:
        return "no sample has this number in both"
    if delta.clusters is not None and delta.clusters < FEWEST_CLUSTERS:
        return f"the difference cannot be estimated from {delta.clusters} clusters of samples"
    if delta.clusters is not None and delta.p is None and delta.method:
        return f"{delta.method}, so the difference cannot be estimated"
    return f"the difference cannot be estimated from {_count_samples(check.n)}"


def _describe_margin(check: Check, delta: MetricDelta) -> str:
    margin = check.margin or 0.0
    text = f"margin {_format_size(delta.kind, margin)}"
    if delta.kind == "number" and delta.b:
        text += f", {100 * margin / abs(delta.b):.3g} %"
    samples = _count_samples(check.n)
    if check.baseline_n is not None:
        samples = f"two groups of {check.n:,} and {check.baseline_n:,} samples"
    return f"{text}, {add_clusters(samples, check.clusters)}"


def _describe_more(check: Check) -> str:
    more = check.more_samples
    if more is not None and not _is_hopeless(check):
        side = "" if check.baseline_n is None else " on each side"
        return f"; about {format_estimate(more)} more sample{'' if more == 1 else 's'}{side} would decide it"
    if check.interval is None or not check.n:
        return ""
    if not check.margin and not check.difference:
        return "; with a margin of 0 equal systems never pass"
    distance = abs(abs(check.difference or 0.0) - (check.margin or 0.0))
    if more is None and distance > 1e-9:
        return ""
    return "; the difference is so close to the margin that more samples are unlikely to decide it"


def _describe_difference(kind: Kind, number: float, margin: float | None) -> str:
    """Say how much better or worse; a number that rounds to the margin gets more digits."""
    text = _format_size(kind, abs(number))
    looks_like_margin = margin is not None and text == _format_size(kind, margin)
    if kind == "rate" and looks_like_margin and abs(abs(number) - (margin or 0.0)) > 1e-9:
        text = f"{100 * abs(number):.3f} points"
    return f"{text} {'better' if number > 0 else 'worse'}"


def _format_size(kind: Kind, number: float) -> str:
    return f"{format_change(number, kind, sign='')}{change_unit(kind)}"


def _count_samples(count: int) -> str:
    return f"{count:,} sample{'' if count == 1 else 's'}"
