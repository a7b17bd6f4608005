"""The report in the terminal: the headline, the metrics, the errors, and the worst failures."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from proctor.comparison.report import EvalReport
from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.records.trial import EvalResult
from proctor.reports import summary
from proctor.reports.format import (
    DASH,
    break_name,
    cell_width,
    fold_text,
    format_bounds,
    format_duration,
    format_interval,
    format_metric,
    format_missing,
    hanging_lines,
    join_facts,
    new_table,
    print_rendered,
    render_parts,
    single_line,
    styled_text,
    to_text,
)
from proctor.reports.summary import describe_size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

FAILURES_SHOWN = 3
FLIPS_SHOWN = 3
FLAKY_SHOWN = 10
LINE_LIMIT = 500
TEXT_LINES, REASON_LINES = 2, 6
MAX_CONFIGURATION_COLUMNS = 3
# Names of configurations are broken into lines if they leave less room for the names of metrics.
NAME_WIDTH, MIN_NAME_WIDTH = 24, 12
# The space between two columns, with values on one line and with values above their intervals.
WIDE_GAP, NARROW_GAP = 3, 2

MetricTables = Mapping[str, Mapping[str, MetricValue]]


def show_report(report: EvalReport, file: TextIO | None = None) -> None:
    """Print the report in the terminal's width and colors."""
    print_rendered(lambda width, color: render_text(report, width=width, color=color), file)


def render_report(report: EvalReport, *, width: int = 80, color: bool = False) -> str:
    """Return the report as lines of at most `width` columns."""
    return render_parts(_report_parts(report, width), width, color)


def render_text(report: EvalReport, *, width: int | None = None, color: bool = False) -> str:
    """Return what `proctor show` prints: the report, and each configuration compared with the run's baseline.

    The default width is that of the terminal.
    """
    width = width or shutil.get_terminal_size().columns
    texts = [render_report(report, width=width, color=color)]
    if comparisons := report.compare_with_baseline():
        from proctor.reports.comparison import render_comparison

        texts += [render_comparison(comparison, width, color, flips=FLIPS_SHOWN) for comparison in comparisons]
    return "\n".join(texts)


render_text.extension = "txt"  # type: ignore[attr-defined]


def _report_parts(report: EvalReport, width: int) -> Iterator[RenderableType]:
    for sentence in summary.headlines(report):
        yield styled_text(sentence, "bold")
    yield from _run_lines(report, width)
    if report.metrics:
        yield ""
        yield render_metric_table(summary.drop_redundant_metrics(summary.metrics_by_configuration(report)), width)
        yield from _metric_notes(report)
    yield from _error_lines(report, width)
    yield from _failure_lines(report, width)
    yield from _flaky_lines(report, width)


def _run_lines(report: EvalReport, width: int) -> Iterator[Text]:
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
    for line in join_facts([single_line(fact, LINE_LIMIT) for fact in facts if fact], width):
        yield styled_text(line, "dim")
    if status := summary.describe_status(report, run):
        yield styled_text(f"This run is {status}", "yellow")
    if early_stop := summary.describe_early_stop(run):
        yield styled_text(f"This run was {early_stop}")
    if run.cached_outputs is not None:
        yield styled_text(str(run.cached_outputs), "yellow" if run.cached_outputs.count else "dim", wrap=False)
    for warning in run.warnings:
        yield styled_text(f"Warning: {warning}", "yellow")


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
    missing = "".join(f"; {note}" for note in clustered if note.endswith("no interval"))
    yield styled_text(f"95% intervals in parentheses{adjusted}{missing}", "dim")
    for note, names in names_by_note.items():
        if note not in clustered:
            yield styled_text(f"{names}: {note}", "dim")


def _error_lines(report: EvalReport, width: int) -> Iterator[RenderableType]:
    counts = summary.count_errors_by_type(report)
    if not counts:
        return
    yield ""
    yield styled_text("Errors", "bold red")
    examples = summary.find_error_examples(report)
    for error_type, number in counts.items():
        yield styled_text(f"  {number:>5,}  {single_line(error_type, LINE_LIMIT)}", wrap=False)
        if error_type in examples:
            yield from _labelled_lines(f"{' ' * 9}for example ", examples[error_type], width, "dim")


def _failure_lines(report: EvalReport, width: int) -> Iterator[RenderableType]:
    results = summary.worst_results(report, FAILURES_SHOWN)
    if results:
        errors = f", {format_count(report.errors, 'error')}" if report.errors else ""
        yield ""
        yield styled_text(
            f"Worst failures ({len(results):,} shown; {report.counts.failed:,} failed{errors})", "bold red", wrap=False
        )
    for result in results:
        epochs = summary.describe_epochs(report, result)
        name = summary.label_result(result, len(report.by_configuration) > 1, epochs)
        yield styled_text(f"  {name}  {summary.describe_verdict(result)}", "bold", wrap=False)
        for label, value in list_result_facts(result):
            yield from _labelled_lines(f"    {label:<9} ", value, width)


def _flaky_lines(report: EvalReport, width: int) -> Iterator[RenderableType]:
    if flaky := summary.find_flaky_samples(report):
        yield ""
        yield styled_text(f"Flaky samples: {summary.describe_flaky_samples(report, flaky)}", "bold")
        names = [
            f"{single_line(sample.sample_id, LINE_LIMIT)}"
            f"{f' ({sample.configuration})' if len(report.configurations) > 1 else ''} {sample.passed}/{sample.trials}"
            for sample in flaky[:FLAKY_SHOWN]
        ]
        more = [f"… and {len(flaky) - FLAKY_SHOWN:,} more"] if len(flaky) > FLAKY_SHOWN else []
        yield from _labelled_lines("  ", ", ".join(names + more), width)


def _labelled_lines(start: str, value: str, width: int, style: str = "") -> Iterator[RenderableType]:
    """Yield a label and its text, folded to a few lines below each other."""
    lines = TEXT_LINES if start.strip() in ("input", "output", "expected") else REASON_LINES
    for line in hanging_lines(start, fold_text(value, max(20, width - len(start)), lines)):
        yield styled_text(line, style)


def list_result_facts(result: EvalResult) -> Iterator[tuple[str, str]]:
    """Return what explains a result: input, output, expected value, error, and reasons of scores that fail."""
    yield "input", to_text(result.trial.sample.input)
    if result.success:
        yield "output", to_text(result.output)
    if result.trial.sample.expected is not None:
        yield "expected", to_text(result.trial.sample.expected)
    if result.error is not None:
        yield "error", result.error
    for name, score in result.scores.items():
        if not score.passed and score.status != "skipped":
            yield "reason", f"{score.reason or 'it did not pass'} ({name})"


def render_metric_table(tables: MetricTables, width: int) -> Table:
    """Return the metrics: one column per configuration, or one row per metric and configuration if there are many."""
    if len(tables) <= MAX_CONFIGURATION_COLUMNS:
        return _column_per_configuration(tables, width)
    return _row_per_configuration(tables)


def _column_per_configuration(tables: MetricTables, width: int) -> Table:
    """Return one column per configuration; intervals are below the values if they do not fit next to them."""
    names = list(_metric_names(tables))
    headings = [[single_line(name, LINE_LIMIT), _usual_sample_size(metrics)] for name, metrics in tables.items()]
    columns = [
        [_metric_cell(metrics.get(name), _usual_sample_size(metrics)) for name in names] for metrics in tables.values()
    ]
    single_lines = [[[_join_cell(cell)] for cell in column] for column in columns]
    name_width = max(map(cell_width, ("Metric", *names)))
    if name_width + _total_width(headings, single_lines, WIDE_GAP) <= width:
        return _build_table(names, headings, single_lines, name_width, WIDE_GAP)
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
