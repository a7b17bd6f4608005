"""A trend in the terminal: a line of blocks for each configuration, or every point in a table."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise

from proctor.records.metric import MetricValue
from proctor.records.trend import Trend, TrendPoint
from proctor.reports.excerpts import line
from proctor.reports.figures import count, figure, interval

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
    return MetricValue(
        point.value, point.n, interval=point.interval, kind=trend.kind, unit=trend.unit
    )


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
