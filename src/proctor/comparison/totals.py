"""The weighted total of rubrics: compared as a fraction of its scale, and shown on the scale."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from proctor.records.comparison import NOT_COMPARABLE, Interval, MetricDelta
from proctor.records.results import NAN, Figures
from proctor.records.rubric import DIGITS, TOTAL_SCORE, Scale, read_run_columns, weighted_mean
from proctor.records.run import RunMetadata

_SHARE: Scale = (0.0, 1.0)


def find_total_scale(run: RunMetadata | None) -> Scale | None:
    """Return the scale of a run's totals; None if the run was not scored by rubrics."""
    columns = read_run_columns(run)
    return columns.scale if columns.columns else None


def compute_total_shares(figures: Figures, run: RunMetadata | None) -> list[float]:
    """Compute the total of each trial as a fraction from 0 to 1, over its scored rubrics; NaN if there are none.

    Empty if the run was not scored by rubrics.
    """
    rubrics = [(c.rubric.weight, figures.scores.get(c.name, ())) for c in read_run_columns(run).columns]
    if not rubrics:
        return []
    totals = []
    for index in range(len(figures.sample_ids)):
        weighted = [(weight, values[index]) for weight, values in rubrics if values and values[index] == values[index]]
        totals.append(round(weighted_mean(weighted), DIGITS) if weighted else NAN)
    return totals


def delta_to_scale(delta: MetricDelta, a: Scale | None, b: Scale | None) -> MetricDelta:
    """Convert the delta of a total to the scale of its rubrics; return any other delta unchanged.

    Totals on two scales are not comparable. If only one side has a total, its scale is used.
    """
    scale = a or b
    if delta.name != TOTAL_SCORE or scale is None:
        return delta
    if a is None or b is None or a == b:
        return _convert(delta, _SHARE, scale, scale)
    on_a, on_b = _convert(delta, _SHARE, a, None), _convert(delta, _SHARE, b, None)
    return MetricDelta(
        delta.name,
        on_a.a,
        on_b.b,
        a_interval=on_a.a_interval,
        b_interval=on_b.b_interval,
        verdict=NOT_COMPARABLE,
        only_a=delta.only_a,
        only_b=delta.only_b,
        kind=delta.kind,
        higher_is_better=delta.higher_is_better,
    )


def delta_to_share(delta: MetricDelta) -> MetricDelta:
    """Convert the delta of a total back to a fraction from 0 to 1; return any other delta unchanged."""
    return delta if delta.scale is None else _convert(delta, delta.scale, _SHARE, None)


def scale_width(delta: MetricDelta) -> float:
    """Return the width of a delta's scale; it is 1 for fractions and scores."""
    return 1.0 if delta.scale is None else delta.scale[1] - delta.scale[0]


def describe_scale_difference(scales: Mapping[str, Scale | None]) -> str:
    """Explain that totals are on different scales; empty if they share a scale."""
    known_scales = {name: scale for name, scale in scales.items() if scale is not None}
    if len(set(known_scales.values())) < 2:
        return ""
    ranges = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in known_scales.items())
    return f"{TOTAL_SCORE} is on different scales: {ranges}"


def share_to_scale(share: float, scale: Scale) -> float:
    """Convert a fraction from 0 to 1 to a value on a scale."""
    return scale[0] + share * (scale[1] - scale[0])


def scale_interval(interval: Interval | None, factor: float) -> Interval | None:
    """Multiply the interval of a difference by the width of a scale."""
    return interval and (factor * interval[0], factor * interval[1])


def _convert(delta: MetricDelta, source: Scale, target: Scale, scale: Scale | None) -> MetricDelta:
    width = source[1] - source[0]
    factor = (target[1] - target[0]) / width

    def convert(number: float) -> float:
        return share_to_scale((number - source[0]) / width, target)

    def convert_interval(interval: Interval | None) -> Interval | None:
        return interval and (convert(interval[0]), convert(interval[1]))

    absolute = None if delta.absolute is None else factor * delta.absolute
    b = None if delta.b is None else convert(delta.b)
    return msgspec.structs.replace(
        delta,
        a=None if delta.a is None else convert(delta.a),
        b=b,
        absolute=absolute,
        percentage=100 * absolute / abs(b) if absolute is not None and b else None,
        interval=scale_interval(delta.interval, factor),
        a_interval=convert_interval(delta.a_interval),
        b_interval=convert_interval(delta.b_interval),
        error=None if delta.error is None else factor * delta.error,
        min_difference=factor * delta.min_difference,
        scale=scale,
    )
