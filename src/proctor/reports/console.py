"""The report in the terminal: the headline, the metrics, the errors, and the worst failures."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from proctor.comparison.report import EvalReport
from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.records.trial import EvalResult
from proctor.reports import summary
from proctor.reports.comparison import render_comparison
from proctor.reports.format import (
    DASH,
    format_bounds,
    format_duration,
    format_interval,
    format_metric,
    format_missing,
    new_table,
    print_rendered,
    render_parts,
    single_line,
    styled_text,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

FAILURES_SHOWN = 3
FLIPS_SHOWN = 3
LINE_LIMIT = 500
MAX_CONFIGURATION_COLUMNS = 3

MetricTables = dict[str, dict[str, MetricValue]]


def show_report(report: EvalReport, file: TextIO | None = None) -> None:
    """Print the report in the terminal's width and colors."""
    print_rendered(lambda width, color: render_text(report, width=width, color=color), file)


def render_report(report: EvalReport, *, width: int = 80, color: bool = False) -> str:
    """Return the report as lines of at most `width` columns."""
    return render_parts(_report_parts(report), width, color)


def render_text(report: EvalReport, *, width: int | None = None, color: bool = False) -> str:
    """Return what `proctor show` prints: the report, and each configuration compared with the run's baseline.

    The default width is that of the terminal.
    """
    width = width or shutil.get_terminal_size().columns
    comparisons = [
        render_comparison(comparison, width, color, flips=FLIPS_SHOWN) for comparison in report.compare_with_baseline()
    ]
    return "\n".join([render_report(report, width=width, color=color), *comparisons])


render_text.extension = "txt"  # type: ignore[attr-defined]


def _report_parts(report: EvalReport) -> Iterator[RenderableType]:
    for sentence in summary.headlines(report):
        yield styled_text(sentence, "bold")
    yield from _run_lines(report)
    if report.metrics:
        yield ""
        yield _metric_table(report)
        yield from _metric_notes(report)
    yield from _error_lines(report)
    yield from _failure_lines(report)


def _run_lines(report: EvalReport) -> Iterator[Text]:
    run = report.metadata
    if run is None:
        return
    size = f" ({summary.describe_samples(run)})" if run.dataset.length is not None else ""
    facts = (
        f"run {run.run_id}",
        f"rescored from {run.rescored_from}" if run.rescored_from else "",
        f"target {run.target.name}" if run.target.name else "",
        f"dataset {run.dataset.name}{size}" if run.dataset.name else "",
        format_duration(run.duration_seconds),
        f"code {run.provenance.code}" if run.provenance.code else "",
    )
    yield styled_text(" · ".join(filter(None, facts)), "dim")
    if status := summary.describe_status(report, run):
        yield styled_text(f"This run is {status}", "yellow")
    if early_stop := summary.describe_early_stop(run):
        yield styled_text(f"This run was {early_stop}")
    if run.cached_outputs is not None:
        yield styled_text(str(run.cached_outputs), "yellow" if run.cached_outputs.count else "dim", wrap=False)
    for warning in run.warnings:
        yield styled_text(f"Warning: {warning}", "yellow")


def _metric_table(report: EvalReport) -> Table:
    """Return the metrics: one column per configuration, or one row per metric and configuration if there are many."""
    tables = summary.drop_redundant_metrics(summary.metrics_by_configuration(report))
    if len(tables) <= MAX_CONFIGURATION_COLUMNS:
        return _column_per_configuration(tables)
    return _row_per_configuration(tables)


def _column_per_configuration(tables: MetricTables) -> Table:
    from rich.text import Text

    grid = new_table()
    grid.add_column("Metric", overflow="fold")
    sample_sizes = {configuration: _usual_sample_size(metrics) for configuration, metrics in tables.items()}
    for configuration, sample_size in sample_sizes.items():
        heading = filter(None, (single_line(configuration, LINE_LIMIT), sample_size))
        grid.add_column(Text("\n".join(heading)), justify="right")
    for name in _metric_names(tables):
        cells = [
            _metric_cell(metrics[name], sample_sizes[configuration]) if name in metrics else DASH
            for configuration, metrics in tables.items()
        ]
        grid.add_row(*map(styled_text, (name, *cells)))
    return grid


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
    return "" if metric is None else _sample_size(metric)


def _metric_cell(metric: MetricValue, usual_size: str) -> str:
    interval = f" ({format_interval(metric)})" if metric.interval else ""
    size = _sample_size(metric)
    return f"{format_metric(metric)}{interval}{'' if size == usual_size else f', {size}'}"


def _sample_size(metric: MetricValue) -> str:
    return f"n = {metric.n:,}{f', {format_missing(metric)}' if metric.missing else ''}"


def _metric_notes(report: EvalReport) -> Iterator[Text]:
    names_by_note: dict[str, str] = {}
    for configuration, metrics in summary.metrics_by_configuration(report).items():
        names_by_note |= summary.collect_notes(metrics)
        prefix = f"{configuration}: " if configuration else ""
        metric = metrics.get("pass_rate")
        if metric is not None and (bounds := format_bounds(metric)):
            yield styled_text(f"{prefix}pass_rate: {bounds}", "dim")
    clustered = [note for note in names_by_note if note.startswith("clustered")]
    adjusted = ", adjusted for related results (clusters, epochs)" if clustered else ""
    few_clusters_note = next((f"; {note}" for note in clustered if "fewer" in note), "")
    yield styled_text(f"95% intervals in parentheses{adjusted}{few_clusters_note}", "dim")
    for note, names in names_by_note.items():
        if note not in clustered:
            yield styled_text(f"{names}: {note}", "dim")


def _error_lines(report: EvalReport) -> Iterator[RenderableType]:
    counts = summary.count_errors_by_type(report)
    if not counts:
        return
    yield ""
    yield styled_text("Errors", "bold red")
    examples = summary.find_error_examples(report)
    for error_type, number in counts.items():
        yield styled_text(f"  {number:>5,}  {single_line(error_type, LINE_LIMIT)}", wrap=False)
        if error_type in examples:
            yield styled_text(f"         for example {single_line(examples[error_type], LINE_LIMIT)}", "dim")


def _failure_lines(report: EvalReport) -> Iterator[RenderableType]:
    results = summary.worst_results(report, FAILURES_SHOWN)
    if results:
        errors = f", {format_count(report.errors, 'error')}" if report.errors else ""
        yield ""
        yield styled_text(
            f"Worst failures ({len(results):,} shown; {report.counts.failed:,} failed{errors})", "bold red", wrap=False
        )
    for result in results:
        name = summary.label_result(result, len(report.by_configuration) > 1)
        yield styled_text(f"  {name}  {summary.describe_verdict(result)}", "bold", wrap=False)
        for label, value in _result_facts(result):
            yield styled_text(f"    {label:<9} {value}", wrap=label in ("error", "reason"))


def _result_facts(result: EvalResult) -> Iterator[tuple[str, str]]:
    yield "input", single_line(result.trial.sample.input, LINE_LIMIT)
    if result.success:
        yield "output", single_line(result.output, LINE_LIMIT)
    if result.trial.sample.expected is not None:
        yield "expected", single_line(result.trial.sample.expected, LINE_LIMIT)
    if result.error is not None:
        yield "error", single_line(result.error, LINE_LIMIT)
    for name, score in result.scores.items():
        if not score.passed and score.status != "skipped":
            yield "reason", f"{single_line(score.reason, LINE_LIMIT) or 'it did not pass'} ({name})"
