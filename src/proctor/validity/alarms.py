"""Alarms: a control chart over the runs of one name, and the cause of a change: judge, data or agent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from proctor.comparison.compare import compare
from proctor.comparison.report import EvalReport
from proctor.core.stats.control_chart import ChartPoint, average_run_length, chart, find_limit
from proctor.core.stats.distributions import student_t_quantile
from proctor.records.comparison import MetricDelta
from proctor.records.metric import Trend, TrendPoint
from proctor.records.run import RunMetadata

Status = Literal["healthy", "alarm", "cannot tell"]
Cause = Literal["judge", "data", "agent", "cannot tell"]
Interval = tuple[float, float]
# With fewer runs the chart would need a change of many standard deviations.
MIN_RUNS = 6
FALSE_ALARM_EVERY = 200.0


class ChartedRun(msgspec.Struct, frozen=True):
    """A run on the chart: its value, and how far the sums of rises and falls have grown."""

    run_id: str
    value: float
    n: int
    rise: float
    fall: float


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a chart: healthy, an alarm, or too few runs to tell.

    False alarms are `false_alarm_every` runs apart on average; after a long healthy history, a change by one standard
    deviation of the runs takes `detection_runs` runs on average. After an alarm, `changed_run` is the first run that
    probably differs, `healthy_run` the one before it, and `shift` the change with its 95% interval.
    """

    name: str
    metric: str
    configuration: str
    status: Status
    runs: tuple[ChartedRun, ...]
    limit: float
    false_alarm_every: float
    detection_runs: float
    alarm_run: str | None = None
    changed_run: str | None = None
    healthy_run: str | None = None
    before: float | None = None
    after: float | None = None
    shift_interval: Interval | None = None
    kind: str = "number"

    @property
    def shift(self) -> float | None:
        """The mean after the change minus the mean before it."""
        return None if self.before is None or self.after is None else self.after - self.before


class Blame(msgspec.Struct, frozen=True, kw_only=True):
    """The cause of a change, and the evidence for it."""

    cause: Cause
    evidence: tuple[str, ...]
    fix: str = ""


def watch_runs(trend: Trend, name: str, configuration: str, every: float = FALSE_ALARM_EVERY) -> Alarm:
    """Chart a metric of runs, oldest first, until the first alarm."""
    points = [point for point in trend.points if point.configuration == configuration and not point.unfinished]
    limit = find_limit(every)
    newest_n = points[-1].n if points else 1
    # One result more or less is the smallest change of a rate; equal rates do not show that it never happens.
    floor = 1 / newest_n if trend.kind in ("rate", "mean") and not trend.unit and newest_n else 0.0
    weights = [newest_n / point.n if point.n else 1.0 for point in points]
    sums = chart([point.value for point in points], weights, floor)
    runs = tuple(
        ChartedRun(point.run_id, point.value, point.n, place.high, place.low)
        for point, place in zip(points, sums, strict=True)
    )
    signal = next((index for index, place in enumerate(sums) if max(place.high, place.low) > limit), None)
    status: Status = "cannot tell" if len(points) < MIN_RUNS else "healthy" if signal is None else "alarm"
    alarm = Alarm(
        name=name,
        metric=trend.field,
        configuration=configuration,
        status=status,
        runs=runs,
        limit=limit,
        false_alarm_every=every,
        detection_runs=average_run_length(limit, 1.0),
        kind="rate" if trend.kind == "rate" else "score" if floor else "number",
    )
    return alarm if status != "alarm" or signal is None else _locate_change(alarm, points, sums, signal, floor)


def _locate_change(
    alarm: Alarm, points: Sequence[TrendPoint], sums: Sequence[ChartPoint], signal: int, floor: float
) -> Alarm:
    """Find the first changed run and estimate the change.

    The change is after the last run with a sum of 0; there, the cut is where both sides vary least.
    """
    is_rise = sums[signal].high > alarm.limit
    grown = [place.high if is_rise else place.low for place in sums]
    earliest = next((index + 1 for index in reversed(range(signal)) if grown[index] == 0), 0)
    # The first two runs have no score: at least two runs are the healthy ones.
    cuts = range(min(max(2, earliest), signal), signal + 1)
    first = min(cuts, key=lambda cut: _sum_squares(points[:cut]) + _sum_squares(points[cut:]))
    before, after = points[:first], points[first:]
    means = [_average(before), _average(after)]
    return msgspec.structs.replace(
        alarm,
        alarm_run=points[signal].run_id,
        changed_run=points[first].run_id,
        healthy_run=points[first - 1].run_id,
        before=means[0],
        after=means[1],
        shift_interval=_estimate_shift(before, after, means[0], means[1], floor),
    )


def _average(points: Sequence[TrendPoint]) -> float:
    return math.fsum(p.value * p.n for p in points) / max(1, sum(p.n for p in points))


def _sum_squares(points: Sequence[TrendPoint]) -> float:
    center = _average(points)
    return math.fsum(p.n * (p.value - center) ** 2 for p in points)


def _estimate_shift(
    before: Sequence[TrendPoint], after: Sequence[TrendPoint], old: float, new: float, floor: float
) -> Interval | None:
    """Return the interval of the change, with the spread of the runs on each side of it, at least `floor`."""
    df = len(before) + len(after) - 2
    if df < 1:
        return None
    squares = math.fsum((p.value - old) ** 2 for p in before) + math.fsum((p.value - new) ** 2 for p in after)
    error = math.sqrt(max(squares / df, floor * floor) * (1 / len(before) + 1 / len(after)))
    half = student_t_quantile(0.975, df) * error
    return new - old - half, new - old + half


def can_judge_move(healthy: RunMetadata, latest: RunMetadata) -> bool:
    """True if the evaluators differ, or ask a model; rules with the same code give the same verdicts."""
    specs = [[(spec.name, spec.identity) for spec in run.evaluators] for run in (healthy, latest)]
    return specs[0] != specs[1] or any(spec.judges_inside for spec in latest.evaluators)


def find_cause(alarm: Alarm, healthy: EvalReport, latest: EvalReport, rescored: EvalReport | None) -> Blame:
    """Find what changed: `rescored` are the outputs of the healthy run with today's evaluators, None if unavailable.

    The judge changed if its verdicts on the same outputs moved by about the change of the chart. Else the data changed
    if the datasets differ and the samples in common did not move. Else the agent changed.
    """
    old, new = healthy.metadata, latest.metadata
    shift = alarm.shift
    assert old is not None
    assert new is not None
    assert shift is not None
    judged = _check_judge(alarm, healthy, rescored, shift)
    if judged is None and can_judge_move(old, new):
        return Blame(
            cause="cannot tell",
            evidence=("the evaluators ask a model or have changed, and the stored outputs were not judged again",),
            fix=f"add the evaluators: proctor watch {alarm.name} --file eval.yaml",
        )
    cause, evidence = judged or ("", "the evaluators are the same rules: the same output gets the same verdict")
    if cause:
        fix = "ask the judge more often: `samples: 3`" if cause == "cannot tell" else ""
        return Blame(cause="judge" if cause == "judge" else "cannot tell", evidence=(evidence,), fix=fix)
    delta = _compare(latest, healthy, alarm)
    moved = _describe_delta(delta, alarm.kind)
    if old.dataset.fingerprint != new.dataset.fingerprint:
        data = f"the dataset changed: {_describe_samples(delta)}"
        if not delta.paired or not _explains(delta, shift):
            shared = f"on the samples in common {alarm.metric} changed by {moved}" if delta.paired else ""
            return Blame(cause="data", evidence=tuple(filter(None, (evidence, data, shared))))
        return Blame(cause="agent", evidence=(evidence, f"{data}, but the samples in common changed too: {moved}"))
    same = f"the dataset is the same; on the same samples {alarm.metric} changed by {moved}"
    return Blame(cause="agent", evidence=(evidence, same, *_describe_target(old, new)))


def _check_judge(
    alarm: Alarm, healthy: EvalReport, rescored: EvalReport | None, shift: float
) -> tuple[str, str] | None:
    """Return "judge" if it moved by about the shift, "cannot tell" if it may have, else "", with the evidence."""
    if rescored is None:
        return None
    delta = _compare(rescored, healthy, alarm)
    text = f"today's evaluators on the stored outputs of {alarm.healthy_run}: {_describe_delta(delta, alarm.kind)}"
    low, high = delta.interval or (-math.inf, math.inf)
    if low <= 0 <= high and low <= shift <= high and delta.absolute != 0:
        return "cannot tell", text
    return ("judge" if _explains(delta, shift) else ""), text


def _explains(delta: MetricDelta, shift: float) -> bool:
    """True if a difference is nearer to the shift than to 0."""
    return delta.absolute is not None and abs(delta.absolute - shift) < abs(delta.absolute)


def _compare(a: EvalReport, b: EvalReport, alarm: Alarm) -> MetricDelta:
    sides = a.side(alarm.configuration, "now"), b.side(alarm.configuration, "before")
    comparison = compare(*sides, metrics=[alarm.metric], accept_changes=True)
    return next(iter(comparison.all_deltas()))


def _describe_delta(delta: MetricDelta, kind: str) -> str:
    """Describe a difference with its interval and n, such as "-12.0 points (95% interval -20.1 to -3.9, n = 100)"."""
    if delta.absolute is None:
        return f"unknown (n = {delta.n:,})"
    scale, unit = (1.0, "") if kind == "number" else (100.0, " points")
    interval = "no interval"
    if delta.interval is not None:
        low, high = (scale * end for end in delta.interval)
        interval = f"95% interval {low:+.3g} to {high:+.3g}"
    samples = f"n = {delta.n:,}{'' if delta.paired else ', different samples'}"
    return f"{scale * delta.absolute:+.3g}{unit} ({interval}, {samples})"


def _describe_samples(delta: MetricDelta) -> str:
    in_common = delta.n if delta.paired else 0
    return f"{in_common:,} samples in common, {delta.only_a:,} new, {delta.only_b:,} gone"


def _describe_target(old: RunMetadata, new: RunMetadata) -> list[str]:
    if old.target.identity and old.target.identity == new.target.identity:
        return ["the target's code is the same, so what it calls or reads has changed"]
    return ["the target's code changed"] if old.target.identity else []
