"""Alarms: a control chart over the runs of one name, and the cause of a change: judge, data or agent."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from proctor.comparison.compare import compare
from proctor.comparison.report import EvalReport
from proctor.core.stats.control_chart import ChartPoint, average_run_length, chart, find_limit
from proctor.core.stats.distributions import normal_quantile, student_t_quantile
from proctor.records.comparison import MetricDelta
from proctor.records.formatting import format_count
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


class _Part(NamedTuple):
    """A part of a change with its 95% interval."""

    value: float
    interval: Interval

    @property
    def is_known(self) -> bool:
        """True if the interval excludes 0."""
        return self.interval[0] > 0 or self.interval[1] < 0

    def subtract(self, other: _Part) -> _Part:
        """Return the rest of the change; its interval joins both (MOVER, Zou and Donner 2008)."""
        value, (low, high), (other_low, other_high) = self.value - other.value, self.interval, other.interval
        below = math.hypot(self.value - low, other_high - other.value)
        above = math.hypot(high - self.value, other.value - other_low)
        return _Part(value, (value - below, value + above))

    def widen(self, factor: float) -> _Part:
        """Return the part with an interval of `factor` times the width."""
        low, high = (self.value + factor * (end - self.value) for end in self.interval)
        return _Part(self.value, (low, high))

    def is_larger_than(self, other: _Part) -> bool:
        return abs(self.value) >= abs(other.value)


RULES = "the evaluators are the same rules: the same output gets the same verdict"
# The alarm chose the latest run because it is extreme, so its change must be known with 99%, not 95%.
SELECTION = normal_quantile(0.995) / normal_quantile(0.975)
MORE_RUNS = "run it again and repeat the command: every run narrows the interval of the change"


def find_cause(alarm: Alarm, healthy: EvalReport, latest: EvalReport, rescored: EvalReport | None) -> Blame:
    """Find what changed: `rescored` are the outputs of the healthy run with today's evaluators, None if unavailable.

    The change of the chart has a part of the judge, which is the change of its verdicts on the same outputs, and the
    rest. The larger part is the cause if its interval excludes 0; otherwise the cause is "cannot tell". If the rest is
    larger and the datasets differ, it is split in the same way: the change on the samples in common is the agent's.
    """
    old, new, shift = healthy.metadata, latest.metadata, alarm.shift
    assert old is not None
    assert new is not None
    assert shift is not None
    change = _Part(shift, alarm.shift_interval or (-math.inf, math.inf))
    judge, evidence = _Part(0.0, (0.0, 0.0)), [RULES]
    if rescored is not None:
        delta = _compare(rescored, healthy, alarm)
        judge, text = _make_part(delta), _describe_delta(delta, alarm.kind)
        evidence = [f"today's evaluators on the stored outputs of {alarm.healthy_run}: {text}"]
    elif can_judge_move(old, new):
        return Blame(
            cause="cannot tell",
            evidence=("the evaluators ask a model or have changed, and the stored outputs were not judged again",),
            fix=f"add the evaluators: proctor watch {shlex.quote(alarm.name)} --file eval.yaml",
        )
    rest = change.subtract(judge)
    evidence.append(f"change of {alarm.metric} without the judge: {_describe_part(rest, alarm)}")
    if judge.is_larger_than(rest):
        fix = "" if judge.is_known else "ask the judge more often: `samples: 3`"
        return Blame(cause="judge" if judge.is_known else "cannot tell", evidence=tuple(evidence), fix=fix)
    if not rest.is_known:
        return Blame(cause="cannot tell", evidence=tuple(evidence), fix=MORE_RUNS)
    return _split_rest(alarm, rest, evidence, _compare(latest, rescored or healthy, alarm), (old, new))


def _split_rest(
    alarm: Alarm, rest: _Part, evidence: list[str], delta: MetricDelta, runs: tuple[RunMetadata, RunMetadata]
) -> Blame:
    """Name the agent or the data for the part of a change that the judge does not explain."""
    old, new = runs
    moved, target = _describe_delta(delta, alarm.kind), _describe_target(old, new)
    if old.dataset.fingerprint == new.dataset.fingerprint:
        same = f"the dataset is the same; on the same samples {alarm.metric} changed by {moved}"
        return Blame(cause="agent", evidence=(*evidence, same, *target))
    evidence.append(f"the dataset changed: {_describe_samples(delta)}")
    if not delta.paired:
        has_new_code = old.target.identity != new.target.identity and bool(old.target.identity)
        evidence += [*target, "without a sample in common, a change of the agent at the same time cannot be excluded"]
        fix = "run today's target on the old dataset" if has_new_code else ""
        return Blame(cause="cannot tell" if has_new_code else "data", evidence=tuple(evidence), fix=fix)
    agent = _make_part(delta).widen(SELECTION)
    data = rest.subtract(agent)
    evidence.append(f"on the samples in common {alarm.metric} changed by {moved}")
    evidence.append(f"the rest, by other samples: {_describe_part(data, alarm)}")
    larger = agent if agent.is_larger_than(data) else data
    if not larger.is_known:
        return Blame(cause="cannot tell", evidence=tuple(evidence), fix="run today's target on the old dataset")
    return Blame(cause="agent" if larger is agent else "data", evidence=tuple(evidence))


def _make_part(delta: MetricDelta) -> _Part:
    return _Part(delta.absolute or 0.0, delta.interval or (-math.inf, math.inf))


def _compare(a: EvalReport, b: EvalReport, alarm: Alarm) -> MetricDelta:
    sides = a.side(alarm.configuration, "now"), b.side(alarm.configuration, "before")
    comparison = compare(*sides, metrics=[alarm.metric], accept_changes=True)
    return next(iter(comparison.all_deltas()))


def _describe_delta(delta: MetricDelta, kind: str) -> str:
    """Describe a difference with its interval and n, such as "-12.0 points (95% interval -20.1 to -3.9, n = 100)"."""
    if delta.absolute is None:
        return f"unknown (n = {delta.n:,})"
    samples = f"n = {delta.n:,}{'' if delta.paired else ', different samples'}"
    return _describe_change(delta.absolute, delta.interval, kind, samples)


def _describe_part(part: _Part, alarm: Alarm) -> str:
    return _describe_change(part.value, part.interval, alarm.kind, f"n = {format_count(len(alarm.runs), 'run')}")


def _describe_change(value: float, interval: Interval | None, kind: str, count: str) -> str:
    scale, unit = (1.0, "") if kind == "number" else (100.0, " points")
    text = "no interval"
    if interval is not None and math.isfinite(interval[0]):
        low, high = (scale * end for end in interval)
        text = f"95% interval {low:+.3g} to {high:+.3g}"
    return f"{round(scale * value, 9) + 0.0:+.3g}{unit} ({text}, {count})"


def _describe_samples(delta: MetricDelta) -> str:
    in_common = delta.n if delta.paired else 0
    return f"{in_common:,} samples in common, {delta.only_a:,} new, {delta.only_b:,} gone"


def _describe_target(old: RunMetadata, new: RunMetadata) -> list[str]:
    if old.target.identity and old.target.identity == new.target.identity:
        return ["the target's code is the same, so what it calls or reads has changed"]
    change = new.describe_target_change(old)
    return [f"the target's code changed{f': {change}' if change else ''}"] if old.target.identity else []
