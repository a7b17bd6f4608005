"""A trend in the terminal: a line of blocks for each configuration, or every point in a table."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import NamedTuple

from proctor.records.metric import MetricValue, Trend, TrendPoint
from proctor.reports.format import count, figure, interval, line

BLOCKS = "▁▂▃▄▅▆▇█"
BARS_AT_MOST = 40
LABEL_LIMIT = 60


def sparkline(trend: Trend) -> str:
    """A line for each configuration: its way in blocks, first and last value, range, runs.

    All configurations have one scale, from the lowest to the highest value of any.

    >>> sparkline(Trend("pass_rate", ()))
    'pass_rate: no runs'
    """
    name = line(trend.field, LABEL_LIMIT)
    if not trend.points:
        return f"{name}: no runs"
    runs = len({point.run_id for point in trend.points})
    first, last = (point.date.strftime("%Y-%m-%d") for point in (trend.points[0], trend.points[-1]))
    days = first if first == last else f"{first} to {last}"
    values = [point.value for point in trend.points]
    low, high = min(values), max(values)
    rows = []
    crowded = False
    for label, points in trend.series.items():
        found = [point.value for point in points]
        bars = _means(found, BARS_AT_MOST)
        crowded = crowded or len(bars) < len(found)
        rows.append(
            (
                line(label, LABEL_LIMIT),
                "".join(_block(value, low, high) for value in bars),
                f"{_figure(found[0], trend)} → {_figure(found[-1], trend)}",
                f"min {_figure(min(found), trend)}",
                f"max {_figure(max(found), trend)}",
                count(len(found), "run"),
            )
        )
    heading = f"{name}, {count(runs, 'run')}, {days}"
    if crowded:
        heading += "; a block is the mean of several runs"
    if cut := len({point.run_id for point in trend.points if point.unfinished}):
        heading += f"; {cut} of them did not run all that was planned"
    return "\n".join([heading, *_aligned(rows)])


def table(trend: Trend) -> str:
    """A row for each run and configuration, the oldest first."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False)
    headings = ["date", "run", "configuration", "value", "95 % interval", "n"]
    if any(point.unfinished for point in trend.points):
        headings.append("not complete")
    for heading in headings:
        right = heading in ("value", "95 % interval", "n")
        grid.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for label, point in in_time(trend):
        value = metric(point, trend)
        cells = (
            point.date.strftime("%Y-%m-%d %H:%M"),
            point.run_id,
            label,
            figure(value),
            interval(value),
            f"{point.n:,}",
            point.unfinished,
        )
        grid.add_row(*(Text(line(cell, LABEL_LIMIT)) for cell in cells[: len(headings)]))
    console = Console(file=io.StringIO(), width=200, highlight=False, _environ={})
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(text.rstrip() for text in captured.get().splitlines())


def in_time(trend: Trend) -> list[tuple[str, TrendPoint]]:
    """Every point with its label, in the order of the trend."""
    labels = {id(point): label for label, points in trend.series.items() for point in points}
    return [(labels[id(point)], point) for point in trend.points]


def metric(point: TrendPoint, trend: Trend) -> MetricValue:
    """A point as the metric it was, to be written as others are."""
    return MetricValue(point.value, point.n, interval=point.interval, kind=trend.kind, unit=trend.unit)


def _figure(value: float, trend: Trend) -> str:
    return figure(MetricValue(value, 1, kind=trend.kind, unit=trend.unit))


def _block(value: float, low: float, high: float) -> str:
    """The block of a value between the lowest and the highest; one in the middle if all are equal.

    >>> "".join(_block(value, 0, 1) for value in (0, 0.5, 1)), _block(3, 3, 3)
    ('▁▅█', '▄')
    """
    if high <= low:
        return BLOCKS[3]
    return BLOCKS[min(len(BLOCKS) - 1, int((value - low) / (high - low) * len(BLOCKS)))]


def _means(values: Sequence[float], most: int) -> list[float]:
    """At most so many values: of more, the means of neighbours.

    >>> _means([1, 3, 5, 7], 2), _means([1, 3], 40)
    ([2.0, 6.0], [1, 3])
    """
    if len(values) <= most:
        return list(values)
    edges = [round(part * len(values) / most) for part in range(most + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    from rich.cells import cell_len

    widths = [max(cell_len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


WIDTH, HEIGHT = 800, 360
LEFT, RIGHT, TOP, BOTTOM = 84, 56, 48, 44
LEGEND_LINE, LEGEND_COLUMN, LEGEND_TEXT = 22, 360, 44
SVG_LABEL_LIMIT, ASIDE = 60, 5
TICKS = 5
# Within so short a time minutes would not tell the ticks apart.
MINUTES = timedelta(minutes=TICKS)
EQUAL, SMALLEST = 1e-9, 1e-300
# Grey and colours of middle brightness stand out from white and from black alike; marks and
# dashes tell the lines apart for those who do not see the colours.
INK = "#777777"
COLORS = ("#2878c8", "#c4570f", "#12855c", "#b0509a", "#8a6d00", "#7a5fd0")
DASHES = ("", "6 4", "2 3")
# What XML cannot hold even when it is escaped.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Scale(NamedTuple):
    """Numbers onto a stretch of the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a number lies; all in the middle where there is only one."""
        if self.high <= self.low:
            return (self.start + self.end) / 2
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def spans(self, most: timedelta) -> bool:
        """True if there is something between the ends, and not more than this."""
        return 0 < self.high - self.low < most.total_seconds()


def svg(trend: Trend) -> str:
    """A line for each configuration with its 95 % intervals, dates below, a legend.

    >>> svg(Trend("pass_rate", ())).startswith("<svg")
    True
    """
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
        f'<desc id="desc">{_text(_told(trend))}</desc>',
        f'<text x="{LEFT}" y="26" font-size="16" font-weight="600">{name}</text>',
        f'<text x="{WIDTH - RIGHT}" y="26" text-anchor="end">{_text(_span(trend))}</text>',
    ]
    if trend.points:
        across, up = _across(trend), _up(trend)
        parts += [*_values(trend, up), *_dates(across)]
        for number, points in enumerate(series.values()):
            # Configurations of one run began together: a step aside keeps their bars apart.
            aside = ASIDE * (number - (len(series) - 1) / 2)
            moved = across._replace(start=across.start + aside, end=across.end + aside)
            parts += _drawn(trend, points, number, moved, up)
        for number, label in enumerate(series):
            parts += _legend(label, number)
    return "\n".join([*parts, "</svg>", ""])


def _told(trend: Trend) -> str:
    """The picture in words, for those who do not see it."""
    if not trend.points:
        return "No runs."
    said = []
    for label, points in trend.series.items():
        first, last = (figure(metric(point, trend)) for point in (points[0], points[-1]))
        said.append(
            f"{line(label, SVG_LABEL_LIMIT)}: {first} on {_day(points[0])}, {last} on "
            f"{_day(points[-1])}, {count(len(points), 'run')}."
        )
    cut = " Hollow marks are runs that did not run all that was planned." if _cut(trend) else ""
    return f"{' '.join(said)} Bars are 95 % intervals.{cut} Dates are in UTC."


def _cut(trend: Trend) -> bool:
    return any(point.unfinished for point in trend.points)


def _span(trend: Trend) -> str:
    runs = len({point.run_id for point in trend.points})
    bars = "; bars: 95 % intervals" if any(point.interval for point in trend.points) else ""
    cut = "; hollow: not complete" if _cut(trend) else ""
    # Where the ticks are times alone, the day stands here.
    short = trend.points and _across(trend).spans(MINUTES)
    day = f" on {_day(trend.points[0])}" if short else ""
    return f"{count(runs, 'run')}{day}{bars}{cut}; {'times' if short else 'dates'} in UTC"


def _day(point: TrendPoint) -> str:
    return point.date.astimezone(UTC).strftime("%Y-%m-%d")


def _across(trend: Trend) -> Scale:
    moments = [point.date.timestamp() for point in trend.points]
    return Scale(min(moments), max(moments), LEFT + 16, WIDTH - RIGHT - 16)


def _up(trend: Trend) -> Scale:
    """From below the lowest to above the highest, ends of intervals included, at round numbers."""
    found = [value for point in trend.points for value in (point.value, *(point.interval or ()))]
    low, high = min(found), max(found)
    share = trend.kind == "rate" and 0 <= low <= high <= 1
    size = max(abs(low), abs(high))
    # Numbers that differ by next to nothing are drawn as equal ones.
    if high - low <= size * EQUAL:
        low, high = low - (size or 1.0) / 2, high + (size or 1.0) / 2
    step = _step(high - low)
    low, high = floor(low / step) * step, ceil(high / step) * step
    if share:
        low, high = max(0.0, low), min(1.0, high)
    return Scale(low, high, HEIGHT - BOTTOM, TOP)


def _step(span: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten.

    >>> _step(1.0), _step(0.37), _step(900)
    (0.2, 0.1, 200.0)
    """
    rough = max(span, SMALLEST) / TICKS
    power: float = 10.0 ** floor(log10(rough))
    return next(float(f"{times * power:.6g}") for times in (1, 2, 5, 10) if times * power >= rough * 0.999)


def _values(trend: Trend, up: Scale) -> Iterator[str]:
    step = _step(up.high - up.low)
    for number in range(round((up.high - up.low) / step) + 1):
        value = up.low + number * step
        y = up(value)
        yield (
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="{INK}" stroke-opacity="0.3"/>'
        )
        shown = figure(MetricValue(float(f"{value:.10g}"), 1, kind=trend.kind, unit=trend.unit))
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_text(shown)}</text>'


def _dates(across: Scale) -> Iterator[str]:
    """Some dates below: days, with times where all runs were within two days, or times alone."""
    short = across.high - across.low < timedelta(days=2).total_seconds()
    format_ = "%Y-%m-%d %H:%M" if short else "%Y-%m-%d"
    if across.spans(MINUTES):
        format_ = "%H:%M:%S" if across.high - across.low >= TICKS else "%H:%M:%S.%f"
    shown: dict[str, float] = {}
    for number in range(TICKS):
        moment = across.low + number / (TICKS - 1) * (across.high - across.low)
        shown.setdefault(datetime.fromtimestamp(moment, UTC).strftime(format_), moment)
    for text, moment in shown.items():
        x = across(moment)
        yield (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT - BOTTOM}" '
            f'y2="{HEIGHT - BOTTOM + 5}" stroke="{INK}"/>'
        )
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{text}</text>'


def _drawn(
    trend: Trend, points: Sequence[TrendPoint], number: int, across: Scale, up: Scale
) -> Iterator[str]:
    color = COLORS[number % len(COLORS)]
    yield f'<g stroke="{color}" fill="none">'
    places = [(across(point.date.timestamp()), up(point.value)) for point in points]
    for point, (x, _) in zip(points, places, strict=True):
        if point.interval is not None:
            low, high = (up(end) for end in point.interval)
            yield (
                f'<path d="M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {low:.1f}h6'
                f'M{x - 3:.1f} {high:.1f}h6" stroke-opacity="0.7"/>'
            )
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{way}" stroke-width="2"{_dash(number)}/>'
    for point, (x, y) in zip(points, places, strict=True):
        told = f"{point.run_id}, {_day(point)}: {figure(metric(point, trend))}, n = {point.n:,}"
        told += f", {point.unfinished}" if point.unfinished else ""
        fill = "none" if point.unfinished else color
        yield f'<path d="{_mark(number, x, y)}" fill="{fill}"><title>{_text(told)}</title></path>'
    yield "</g>"


def _legend(label: str, number: int) -> Iterator[str]:
    x = LEFT + LEGEND_COLUMN * (number % 2)
    y = HEIGHT + LEGEND_LINE * (number // 2) + 4
    color = COLORS[number % len(COLORS)]
    yield (
        f'<path d="M{x} {y - 4}h32" stroke="{color}" stroke-width="2"{_dash(number)}/>'
        f'<path d="{_mark(number, x + 16, y - 4)}" fill="{color}"/>'
        f'<text x="{x + 40}" y="{y}">{_text(line(label, LEGEND_TEXT))}</text>'
    )


def _dash(number: int) -> str:
    dash = DASHES[number // len(COLORS) % len(DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _mark(number: int, x: float, y: float) -> str:
    """A mark around a place: a round, a square, a triangle or a diamond."""
    ways = (
        f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        f"M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7z",
        f"M{x:.1f} {y - 5:.1f}l4.5 8.5h-9z",
        f"M{x:.1f} {y - 5:.1f}l4.5 5l-4.5 5l-4.5 -5z",
    )
    return ways[number % len(ways)]


def _text(text: str) -> str:
    """A text that XML shows as it is."""
    return escape(FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", line(text, 500)))
