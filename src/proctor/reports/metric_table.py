"""The table of metrics in the terminal: a column for each configuration, in lines that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from proctor.records.metric import MetricValue
from proctor.reports.format import (
    DASH,
    break_name,
    cell_width,
    format_interval,
    format_metric,
    format_missing,
    new_table,
    single_line,
    styled_text,
)
from proctor.reports.summary import describe_size

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

LINE_LIMIT = 500
MAX_CONFIGURATION_COLUMNS = 3
# Names of configurations are broken into lines if they leave less room for the names of metrics.
NAME_WIDTH, MIN_NAME_WIDTH = 24, 12
# The space between two columns, with values on one line and with values above their intervals.
WIDE_GAP, NARROW_GAP = 3, 2

MetricTables = Mapping[str, Mapping[str, MetricValue]]


def render_metric_table(tables: MetricTables, width: int) -> Table:
    """Return the metrics: one column per configuration, or one row per metric and configuration if there are many."""
    if len(tables) <= MAX_CONFIGURATION_COLUMNS:
        return _column_per_configuration(tables, width)
    return _row_per_configuration(tables)


def _column_per_configuration(tables: MetricTables, width: int) -> Table:
    """Return one column per configuration; intervals are below the values if they do not fit beside them."""
    names = list(_metric_names(tables))
    headings = [[single_line(name, LINE_LIMIT), _usual_sample_size(metrics)] for name, metrics in tables.items()]
    columns = [
        [_metric_cell(metrics.get(name), _usual_sample_size(metrics)) for name in names] for metrics in tables.values()
    ]
    beside = [[[_join_cell(cell)] for cell in column] for column in columns]
    name_width = max(map(cell_width, ("Metric", *names)))
    if name_width + _total_width(headings, beside, WIDE_GAP) <= width:
        return _build_table(names, headings, beside, name_width, WIDE_GAP)
    if width - _total_width(headings, columns, NARROW_GAP) < min(name_width, NAME_WIDTH):
        headings = [
            [*break_name(title, max(_column_width(column), cell_width(size))), size]
            for (title, size), column in zip(headings, columns, strict=True)
        ]
    name_width = min(name_width, max(MIN_NAME_WIDTH, width - _total_width(headings, columns, NARROW_GAP)))
    return _build_table(names, headings, columns, name_width, NARROW_GAP)


def _total_width(headings: Sequence[Sequence[str]], columns: Sequence[Sequence[Sequence[str]]], gap: int) -> int:
    return sum(gap + _column_width([heading, *column]) for heading, column in zip(headings, columns, strict=True))


def _column_width(cells: Iterable[Sequence[str]]) -> int:
    return max((cell_width(line) for cell in cells for line in cell), default=0)


def _build_table(
    names: Sequence[str],
    headings: Sequence[Sequence[str]],
    columns: Sequence[Sequence[Sequence[str]]],
    name_width: int,
    gap: int,
) -> Table:
    grid = new_table(1, left=gap - 2)
    grid.add_column("Metric", overflow="fold")
    for heading in headings:
        grid.add_column(_lines(filter(None, heading)), justify="right", overflow="fold")
    for name, *cells in zip(names, *columns, strict=True):
        grid.add_row(_lines(break_name(single_line(name, LINE_LIMIT), name_width)), *map(_lines, cells))
    return grid


def _lines(lines: Iterable[str]) -> Text:
    from rich.text import Text

    return Text("\n").join(styled_text(line) for line in lines)


def _row_per_configuration(tables: MetricTables) -> Table:
    grid = new_table()
    for title in ("Metric", "Configuration"):
        grid.add_column(title, overflow="fold")
    for title in ("Value", "95% interval", "n", "Missing"):
        grid.add_column(title, justify="right")
    for name in _metric_names(tables):
        is_first = True
        for configuration, metrics in tables.items():
            if (metric := metrics.get(name)) is not None:
                cells = (
                    name if is_first else "",
                    configuration,
                    format_metric(metric),
                    format_interval(metric),
                    f"{metric.n:,}",
                    format_missing(metric),
                )
                grid.add_row(*(styled_text(content, wrap=False) for content in cells))
                is_first = False
    return grid


def _metric_names(tables: MetricTables) -> Iterable[str]:
    return dict.fromkeys(name for metrics in tables.values() for name in metrics)


def _usual_sample_size(metrics: Mapping[str, MetricValue]) -> str:
    metric = metrics.get("pass_rate") or next(iter(metrics.values()), None)
    return "" if metric is None else describe_size(metric)


def _metric_cell(metric: MetricValue | None, usual_size: str) -> list[str]:
    """Return the value, the interval if there is one, and the number of samples if it is unusual."""
    if metric is None:
        return [DASH]
    size = describe_size(metric)
    interval = f"({format_interval(metric)})" if metric.interval else ""
    return [format_metric(metric), *filter(None, (interval, "" if size == usual_size else size))]


def _join_cell(lines: Sequence[str]) -> str:
    has_interval = lines[1:] and lines[1].startswith("(")
    return ", ".join([" ".join(lines[:2]), *lines[2:]] if has_interval else lines)
