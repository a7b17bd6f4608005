"""Metrics by slice, and the quality of labels, in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TextIO

from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.records.slices import LabelReport, LabelScore, Slices
from proctor.reports import summary
from proctor.reports.format import (
    format_interval,
    format_metric,
    format_missing,
    new_table,
    print_rendered,
    render_parts,
    single_line,
    styled_text,
    table_cell,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

LINE_LIMIT = 500
NAME_LIMIT = 60
_cell = partial(table_cell, limit=NAME_LIMIT)
MAX_COLUMNS = 3
MAX_CONFUSION_COLUMNS = 8
ALL = "all samples"
PASS_RATE, SUCCESS_RATE = "pass_rate", "success_rate"


def show_slices(slices: Slices, file: TextIO | None = None) -> None:
    """Print the metrics of each slice."""
    print_rendered(lambda width, color: render_slices(slices, width, color), file)


def show_labels(reports: Sequence[LabelReport], file: TextIO | None = None) -> None:
    """Print the quality of the labels of each configuration."""
    print_rendered(lambda width, color: render_labels(reports, width, color), file)


def render_slices(slices: Slices, width: int = 80, color: bool = False) -> str:
    """Return one table with the rates and scores of every slice and configuration."""
    return render_parts(_slice_parts(slices), width, color)


def render_labels(reports: Sequence[LabelReport], width: int = 80, color: bool = False) -> str:
    """Return precision, recall, F1 and the confusion table of each configuration, or why there are none."""
    return render_parts(_label_parts(reports), width, color)


def _slice_parts(slices: Slices) -> Iterator[RenderableType]:
    yield styled_text(f"By {slices.key}", "bold")
    yield ""
    yield _slice_table(slices)
    yield from (styled_text(f"Note: {note}", "yellow") for note in slices.notes)
    repeated = ", ".join(single_line(name, NAME_LIMIT) for name in _list_metrics(_list_tables(slices))[1])
    facts = [
        "95% intervals in parentheses, each for its slice alone",
        f"equal to {PASS_RATE} in all slices and left out: {repeated}" if repeated else "",
        "numbers in ranges of similar size" if slices.binned else "",
        "a sample with several values is in several slices" if slices.overlapping else "",
    ]
    yield styled_text("; ".join(filter(None, facts)), "dim")


def _slice_table(slices: Slices) -> Table:
    rows = [(f"{part.label} ({part.samples:,})", part.metrics) for part in slices]
    rows.append((ALL, slices.total))
    configurations = list(slices.total)
    shown, _ = _list_metrics(_list_tables(slices))
    is_wide = len(configurations) <= MAX_COLUMNS
    grid = new_table(left=0)
    for title in ("Metric", slices.key, *([] if is_wide else ["Configuration"])):
        grid.add_column(styled_text(title, limit=NAME_LIMIT), overflow="fold")
    for title in configurations if is_wide else ["Value"]:
        grid.add_column(styled_text(title, limit=NAME_LIMIT), justify="right", overflow="fold")
    for name in shown:
        title = name
        for label, tables in rows:
            cells = [_format_cell(tables.get(configuration, {}).get(name)) for configuration in configurations]
            style = "dim" if label == ALL else ""
            if is_wide:
                grid.add_row(*(_cell(text, style) for text in (title, label, *cells)))
            else:
                for index, (configuration, cell) in enumerate(zip(configurations, cells, strict=True)):
                    start = (title, label) if not index else ("", "")
                    grid.add_row(*(_cell(text, style) for text in (*start, configuration, cell)))
            title = ""
    return grid


def _list_tables(slices: Slices) -> list[Mapping[str, Mapping[str, MetricValue]]]:
    return [*(part.metrics for part in slices), slices.total]


def _list_metrics(rows: Sequence[Mapping[str, Mapping[str, MetricValue]]]) -> tuple[list[str], list[str]]:
    """List the rates and scores to show, and the evaluators' rates that are equal to the pass rate everywhere.

    Other numbers are only in the JSON.
    """
    tables = {
        f"{index} {configuration}": summary.table_metrics(metrics)
        for index, row in enumerate(rows)
        for configuration, metrics in row.items()
    }
    distinct_tables = summary.drop_redundant_metrics(tables)
    names = dict.fromkeys(
        name
        for metrics in distinct_tables.values()
        for name, metric in metrics.items()
        if metric.kind in ("rate", "mean", "number") and not metric.unit and name != SUCCESS_RATE
    )
    repeated = [name for name in names if _repeats_pass_rate(name, distinct_tables.values())]
    return [name for name in names if name not in repeated], repeated


def _repeats_pass_rate(name: str, tables: Iterable[Mapping[str, MetricValue]]) -> bool:
    return name.endswith(f".{PASS_RATE}") and all(metrics.get(name) == metrics.get(PASS_RATE) for metrics in tables)


def _format_cell(metric: MetricValue | None) -> str:
    if metric is None:
        return "–"
    interval = f" ({format_interval(metric)})" if metric.interval else ""
    missing = f", {format_missing(metric)}" if metric.missing else ""
    return f"{format_metric(metric)}{interval}\nn = {metric.n:,}{missing}"


def _label_parts(reports: Sequence[LabelReport]) -> Iterator[RenderableType]:
    has_several = len(reports) > 1
    for report in reports:
        name = f" of {single_line(report.configuration, NAME_LIMIT)}" if has_several else ""
        if report.problem:
            yield styled_text(f"No precision and recall{name}: {report.problem}", limit=LINE_LIMIT)
            continue
        missing = [format_count(report.errors, "error")] * (report.errors > 0)
        missing += [f"{report.skipped:,} without an expected label"] * (report.skipped > 0)
        counts = ", ".join([f"n = {report.n:,}", *missing])
        if report is not reports[0]:
            yield ""
        yield styled_text(f"Labels{name} ({counts})", "bold")
        yield ""
        yield _label_table(report)
        yield ""
        yield _confusion_table(report)
        for note in report.notes:
            yield styled_text(f"Note: {note}", "yellow", limit=LINE_LIMIT)
    if any(not report.problem for report in reports):
        yield styled_text("95% intervals in parentheses; texts are compared in any case", "dim")


def _label_table(report: LabelReport) -> Table:
    grid = new_table(left=0)
    grid.add_column("Label", overflow="fold")
    for title in ("Precision", "Recall", "F1"):
        grid.add_column(title, justify="right")
    scores: list[LabelScore] = [*report.labels, *([] if report.macro is None else [report.macro])]
    for score in scores:
        cells = [_format_cell(metric) for metric in (score.precision, score.recall, score.f1)]
        grid.add_row(_cell(score.label), *(_cell(text) for text in cells))
    if report.accuracy is not None:
        grid.add_row(_cell("accuracy"), _cell(_format_cell(report.accuracy)), "", "")
    return grid


def _confusion_table(report: LabelReport) -> RenderableType:
    columns = list(next(iter(report.confusion.values()), {}))
    if len(columns) > MAX_CONFUSION_COLUMNS:
        pairs = sorted(
            (-count, expected, output)
            for expected, row in report.confusion.items()
            for output, count in row.items()
            if count and expected != output
        )
        confusions = [f"{expected} → {output} {-count:,}" for count, expected, output in pairs[:MAX_CONFUSION_COLUMNS]]
        return styled_text(f"Most frequent confusions (expected → output): {'; '.join(confusions) or 'none'}")
    grid = new_table(left=0)
    grid.add_column("Expected ↓ Output →", overflow="fold")
    for column in columns:
        grid.add_column(styled_text(column, limit=NAME_LIMIT), justify="right", overflow="fold")
    for expected, row in report.confusion.items():
        grid.add_row(_cell(expected), *(_cell(f"{count:,}") for count in row.values()))
    return grid
