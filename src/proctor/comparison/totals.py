"""The weighted total of rubrics: compared as a share of its scale, and told on the scale."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from proctor.records.comparison import NOT_COMPARABLE, Interval, MetricDelta
from proctor.records.results import NAN, Figures
from proctor.records.rubric import DIGITS, TOTAL_SCORE, Ends, columns_in, weighted_mean
from proctor.records.run import RunMetadata

# What a total is compared as: then it is a score like any other.
SHARE: Ends = (0.0, 1.0)


def scale_in(run: RunMetadata | None) -> Ends | None:
    """The scale of a run's totals; None of a run that was not scored by rubrics."""
    columns = columns_in(run)
    return columns.scale if columns.columns else None


def total_shares(figures: Figures, run: RunMetadata | None) -> list[float]:
    """The total of each trial from 0 to 1, over the rubrics that were scored; NaN is none."""
    if scale_in(run) is None:
        return [NAN] * len(figures.sample_ids)
    weights = {column.name: column.rubric.weight for column in columns_in(run).columns}
    held = [(weight, figures.scores.get(name, ())) for name, weight in weights.items()]
    known = [(weight, values) for weight, values in held if values]
    return [
        _mean([(weight, values[place]) for weight, values in known])
        for place in range(len(figures.sample_ids))
    ]


def _mean(weighted: list[tuple[float, float]]) -> float:
    told = [(weight, value) for weight, value in weighted if value == value]
    if not told:
        return NAN
    return round(weighted_mean(told), DIGITS)


def on_scale(delta: MetricDelta, a: Ends | None, b: Ends | None) -> MetricDelta:
    """A delta of totals on the scale of their rubrics; any other as it is.

    On two scales they are not comparable, whatever else is; where one side has no total, that of
    the other is told on its own scale.

    >>> delta = MetricDelta("total_score", 0.75, 0.5, 0.25, interval=(0.125, 0.375))
    >>> told = on_scale(delta, (1, 5), (1, 5))
    >>> told.a, told.b, told.absolute, told.interval
    (4.0, 3.0, 1.0, (0.5, 1.5))
    """
    own = a or b
    if delta.name != TOTAL_SCORE or own is None:
        return delta
    if a is not None and b is not None and a != b:
        apart = MetricDelta(
            delta.name,
            _at(delta.a, a),
            _at(delta.b, b),
            a_interval=_between(delta.a_interval, a),
            b_interval=_between(delta.b_interval, b),
            verdict=NOT_COMPARABLE,
            kind=delta.kind,
            higher_is_better=delta.higher_is_better,
        )
        return msgspec.structs.replace(apart, only_a=delta.only_a, only_b=delta.only_b)
    return _moved(delta, SHARE, own, own)


def as_share(delta: MetricDelta) -> MetricDelta:
    """A delta as it was compared: that of totals from 0 to 1, any other as it is."""
    return delta if delta.scale is None else _moved(delta, delta.scale, SHARE, None)


def width(delta: MetricDelta) -> float:
    """How wide the scale of a delta is, beside that of shares and scores."""
    return 1.0 if delta.scale is None else delta.scale[1] - delta.scale[0]


def unlike_scales(scales: Mapping[str, Ends | None]) -> str:
    """What is to be said of totals that are not on one scale; nothing where they are.

    >>> unlike_scales({"a": (1, 5), "b": (0, 10), "c": None})
    'total_score is on another scale: a 1 to 5, b 0 to 10'
    """
    known = {name: ends for name, ends in scales.items() if ends is not None}
    if len(set(known.values())) < 2:
        return ""
    told = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in known.items())
    return f"{TOTAL_SCORE} is on another scale: {told}"


def at(share: float, ends: Ends) -> float:
    """Where a share lies on a scale."""
    return ends[0] + share * (ends[1] - ends[0])


def _moved(delta: MetricDelta, was: Ends, now: Ends, scale: Ends | None) -> MetricDelta:
    factor = (now[1] - now[0]) / (was[1] - was[0])

    def place(number: float | None) -> float | None:
        return None if number is None else at((number - was[0]) / (was[1] - was[0]), now)

    def ends(interval: Interval | None) -> Interval | None:
        return interval and (place(interval[0]) or 0.0, place(interval[1]) or 0.0)

    absolute = None if delta.absolute is None else factor * delta.absolute
    beside = place(delta.b)
    return msgspec.structs.replace(
        delta,
        a=place(delta.a),
        b=beside,
        absolute=absolute,
        percentage=100 * absolute / abs(beside) if absolute is not None and beside else None,
        interval=wider(delta.interval, factor),
        a_interval=ends(delta.a_interval),
        b_interval=ends(delta.b_interval),
        error=None if delta.error is None else factor * delta.error,
        worth=factor * delta.worth,
        scale=scale,
    )


def wider(interval: Interval | None, factor: float) -> Interval | None:
    """Where a difference lies, in a unit that is so many times smaller."""
    return interval and (factor * interval[0], factor * interval[1])


def _at(share: float | None, ends: Ends) -> float | None:
    return None if share is None else at(share, ends)


def _between(interval: Interval | None, ends: Ends) -> Interval | None:
    return interval and (at(interval[0], ends), at(interval[1], ends))
