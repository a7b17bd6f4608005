"""A trend as a sparkline, as a table, or as an SVG chart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import NamedTuple

from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue, Trend, TrendPoint
from proctor.reports.format import format_interval, format_metric, render_parts, single_line, styled_text
from proctor.reports.listing import align_columns

BLOCKS = "▁▂▃▄▅▆▇█"
MAX_BARS = 40
LABEL_LIMIT = 60


def render_sparkline(trend: Trend) -> str:
    """Return one line for each configuration: blocks, first and last value, range, number of runs.

    All configurations share one scale, from the lowest to the highest value.
    """
    name = single_line(trend.field, LABEL_LIMIT)
    if not trend.points:
        return f"{name}: no runs"
    runs = len({point.run_id for point in trend.points})
    first, last = (point.date.strftime("%Y-%m-%d") for point in (trend.points[0], trend.points[-1]))
    days = first if first == last else f"{first} to {last}"
    values = [point.value for point in trend.points]
    low, high = min(values), max(values)
    rows = []
    for label, points in trend.series.items():
        series = [point.value for point in points]
        rows.append(
            (
                single_line(label, LABEL_LIMIT),
                "".join(_block(value, low, high) for value in _average_neighbors(series, MAX_BARS)),
                f"{_format_value(series[0], trend)} → {_format_value(series[-1], trend)}",
                f"min {_format_value(min(series), trend)}",
                f"max {_format_value(max(series), trend)}",
                format_count(len(series), "run"),
            )
        )
    heading = f"{name}, {format_count(runs, 'run')}, {days}"
    if any(len(points) > MAX_BARS for points in trend.series.values()):
        heading += "; each block is the mean of several runs"
    if unfinished := len({point.run_id for point in trend.points if point.unfinished}):
        heading += f"; {unfinished} of them did not complete their plan"
    return "\n".join([heading, *align_columns(rows, 0)])


def render_table(trend: Trend) -> str:
    """Return one row for each run and configuration, oldest first."""
    from rich.table import Table

    grid = Table(box=None, pad_edge=False)
    headings = ["date", "run", "configuration", "value", "95% interval", "n"]
    if any(point.unfinished for point in trend.points):
        headings.append("not complete")
    for heading in headings:
        right = heading in ("value", "95% interval", "n")
        grid.add_column(heading, justify="right" if right else "left", no_wrap=True)
    labels = {id(point): label for label, points in trend.series.items() for point in points}
    for point in trend.points:
        value = point_metric(point, trend)
        cells = (
            point.date.strftime("%Y-%m-%d %H:%M"),
            point.run_id,
            labels[id(point)],
            format_metric(value),
            format_interval(value),
            f"{point.n:,}",
            point.unfinished,
        )
        grid.add_row(*(styled_text(cell, limit=LABEL_LIMIT) for cell in cells[: len(headings)]))
    return render_parts([grid], 200, color=False).rstrip("\n")


def point_metric(point: TrendPoint, trend: Trend) -> MetricValue:
    """Return a point as a metric value, for formatting."""
    return MetricValue(point.value, point.n, interval=point.interval, kind=trend.kind, unit=trend.unit)


def _format_value(value: float, trend: Trend) -> str:
    return format_metric(MetricValue(value, 1, kind=trend.kind, unit=trend.unit))


def _block(value: float, low: float, high: float) -> str:
    """Return the block for a value between the lowest and the highest; a middle block if all are equal."""
    if high <= low:
        return BLOCKS[3]
    return BLOCKS[min(len(BLOCKS) - 1, int((value - low) / (high - low) * len(BLOCKS)))]


def _average_neighbors(values: Sequence[float], limit: int) -> list[float]:
    if len(values) <= limit:
        return list(values)
    edges = [round(index * len(values) / limit) for index in range(limit + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]


WIDTH, HEIGHT = 800, 360
LEFT, RIGHT, TOP, BOTTOM = 84, 56, 48, 44
LEGEND_LINE, LEGEND_COLUMN, LEGEND_TEXT = 22, 360, 44
SVG_LABEL_LIMIT, SERIES_OFFSET = 60, 5
TICKS = 5
# In a shorter time span, the ticks need seconds to be distinct.
SECONDS_SCALE = timedelta(minutes=TICKS)
EQUAL, SMALLEST = 1e-9, 1e-300
# Grey and medium colors are visible on white and on black; marks and dashes distinguish the lines without color.
INK = "#777777"
COLORS = ("#2878c8", "#c4570f", "#12855c", "#b0509a", "#8a6d00", "#7a5fd0")
DASHES = ("", "6 4", "2 3")
# XML forbids these characters even in escaped form.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Scale(NamedTuple):
    """A linear scale from numbers to coordinates."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the coordinate of a number; the middle if the scale has only one number."""
        if self.high <= self.low:
            return (self.start + self.end) / 2
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def is_shorter_than(self, limit: timedelta) -> bool:
        """Return whether the scale covers a time span that is shorter than the limit."""
        return 0 < self.high - self.low < limit.total_seconds()


def render_svg(trend: Trend) -> str:
    """Return a chart with one line for each configuration, 95% intervals, dates, and a legend."""
    series = trend.series
    height = HEIGHT + LEGEND_LINE * ceil(len(series) / 2)
    name = _text(trend.field)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}">'
    )
    parts = [
        head,
        f'<title id="title">{name} over time</title>',
        f'<desc id="desc">{_text(_describe_chart(trend))}</desc>',
        f'<text x="{LEFT}" y="26" font-size="16" font-weight="600">{name}</text>',
        f'<text x="{WIDTH - RIGHT}" y="26" text-anchor="end">{_text(_subtitle(trend))}</text>',
    ]
    if trend.points:
        x_scale, y_scale = _time_scale(trend), _value_scale(trend)
        parts += [*_value_ticks(trend, y_scale), *_date_ticks(x_scale)]
        for number, points in enumerate(series.values()):
            # Configurations of one run start together; an offset separates their bars.
            offset = SERIES_OFFSET * (number - (len(series) - 1) / 2)
            moved = x_scale._replace(start=x_scale.start + offset, end=x_scale.end + offset)
            parts += _draw_series(trend, points, number, moved, y_scale)
        parts += [_legend_entry(label, number) for number, label in enumerate(series)]
    return "\n".join([*parts, "</svg>", ""])


def _describe_chart(trend: Trend) -> str:
    """Return a description for screen readers."""
    if not trend.points:
        return "No runs."
    sentences = []
    for label, points in trend.series.items():
        first, last = (format_metric(point_metric(point, trend)) for point in (points[0], points[-1]))
        sentences.append(
            f"{single_line(label, SVG_LABEL_LIMIT)}: {first} on {_day(points[0])}, {last} on "
            f"{_day(points[-1])}, {format_count(len(points), 'run')}."
        )
    hollow_note = " Hollow marks are runs that did not complete their plan." if _has_unfinished(trend) else ""
    return f"{' '.join(sentences)} Bars are 95% intervals.{hollow_note} Dates are in UTC."


def _has_unfinished(trend: Trend) -> bool:
    return any(point.unfinished for point in trend.points)


def _subtitle(trend: Trend) -> str:
    runs = len({point.run_id for point in trend.points})
    bars = "; bars: 95% intervals" if any(point.interval for point in trend.points) else ""
    hollow_note = "; hollow: not complete" if _has_unfinished(trend) else ""
    # If the ticks show only times, add the day here.
    is_short = bool(trend.points) and _time_scale(trend).is_shorter_than(SECONDS_SCALE)
    day = f" on {_day(trend.points[0])}" if is_short else ""
    return f"{format_count(runs, 'run')}{day}{bars}{hollow_note}; {'times' if is_short else 'dates'} in UTC"


def _day(point: TrendPoint) -> str:
    return point.date.astimezone(UTC).strftime("%Y-%m-%d")


def _time_scale(trend: Trend) -> Scale:
    times = [point.date.timestamp() for point in trend.points]
    return Scale(min(times), max(times), LEFT + 16, WIDTH - RIGHT - 16)


def _value_scale(trend: Trend) -> Scale:
    """Return a scale between round numbers that includes all values and intervals."""
    values = [value for point in trend.points for value in (point.value, *(point.interval or ()))]
    low, high = min(values), max(values)
    is_share = trend.kind == "rate" and 0 <= low <= high <= 1
    size = max(abs(low), abs(high))
    # Numbers that are almost equal are drawn as equal.
    if high - low <= size * EQUAL:
        low, high = low - (size or 1.0) / 2, high + (size or 1.0) / 2
    step = _tick_step(high - low)
    low, high = floor(low / step) * step, ceil(high / step) * step
    if is_share:
        low, high = max(0.0, low), min(1.0, high)
    return Scale(low, high, HEIGHT - BOTTOM, TOP)


def _tick_step(span: float) -> float:
    """Return a round distance between ticks: 1, 2 or 5 times a power of ten."""
    rough = max(span, SMALLEST) / TICKS
    power: float = 10.0 ** floor(log10(rough))
    return next(float(f"{n * power:.6g}") for n in (1, 2, 5, 10) if n * power >= rough * 0.999)


def _value_ticks(trend: Trend, y_scale: Scale) -> Iterator[str]:
    step = _tick_step(y_scale.high - y_scale.low)
    for number in range(round((y_scale.high - y_scale.low) / step) + 1):
        value = y_scale.low + number * step
        y = y_scale(value)
        yield (
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{INK}" stroke-opacity="0.3"/>'
        )
        label = _format_value(float(f"{value:.10g}"), trend)
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_text(label)}</text>'


def _date_ticks(x_scale: Scale) -> Iterator[str]:
    """Draw days, days with times if all runs are within two days, or times within minutes."""
    seconds = x_scale.high - x_scale.low
    date_format = "%Y-%m-%d %H:%M" if seconds < timedelta(days=2).total_seconds() else "%Y-%m-%d"
    if x_scale.is_shorter_than(SECONDS_SCALE):
        date_format = "%H:%M:%S" if seconds >= TICKS else "%H:%M:%S.%f"
    ticks: dict[str, float] = {}
    for number in range(TICKS):
        time = x_scale.low + number / (TICKS - 1) * seconds
        ticks.setdefault(datetime.fromtimestamp(time, UTC).strftime(date_format), time)
    for text, time in ticks.items():
        x = x_scale(time)
        yield (f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 5}" stroke="{INK}"/>')
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{text}</text>'


def _draw_series(
    trend: Trend, points: Sequence[TrendPoint], number: int, x_scale: Scale, y_scale: Scale
) -> Iterator[str]:
    color = COLORS[number % len(COLORS)]
    yield f'<g stroke="{color}" fill="none">'
    positions = [(x_scale(point.date.timestamp()), y_scale(point.value)) for point in points]
    for point, (x, _) in zip(points, positions, strict=True):
        if point.interval is not None:
            low, high = (y_scale(end) for end in point.interval)
            yield (
                f'<path d="M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {low:.1f}h6'
                f'M{x - 3:.1f} {high:.1f}h6" stroke-opacity="0.7"/>'
            )
    line_points = " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
    yield f'<polyline points="{line_points}" stroke-width="2"{_dash(number)}/>'
    for point, (x, y) in zip(points, positions, strict=True):
        title = f"{point.run_id}, {_day(point)}: {_format_value(point.value, trend)}, n = {point.n:,}"
        title += f", {point.unfinished}" if point.unfinished else ""
        fill = "none" if point.unfinished else color
        yield f'<path d="{_point_marker(number, x, y)}" fill="{fill}"><title>{_text(title)}</title></path>'
    yield "</g>"


def _legend_entry(label: str, number: int) -> str:
    x = LEFT + LEGEND_COLUMN * (number % 2)
    y = HEIGHT + LEGEND_LINE * (number // 2) + 4
    color = COLORS[number % len(COLORS)]
    return (
        f'<path d="M{x} {y - 4}h32" stroke="{color}" stroke-width="2"{_dash(number)}/>'
        f'<path d="{_point_marker(number, x + 16, y - 4)}" fill="{color}"/>'
        f'<text x="{x + 40}" y="{y}">{_text(single_line(label, LEGEND_TEXT))}</text>'
    )


def _dash(number: int) -> str:
    dash = DASHES[number // len(COLORS) % len(DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _point_marker(number: int, x: float, y: float) -> str:
    paths = (
        f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        f"M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7z",
        f"M{x:.1f} {y - 5:.1f}l4.5 8.5h-9z",
        f"M{x:.1f} {y - 5:.1f}l4.5 5l-4.5 5l-4.5 -5z",
    )
    return paths[number % len(paths)]


def _text(text: str) -> str:
    return escape(FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", single_line(text, 500)))
