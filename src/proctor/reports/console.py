"""The report in the terminal: the verdict first, then the numbers, then the worst failures."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport
from proctor.records.trial import EvalResult
from proctor.reports import summary
from proctor.reports.excerpts import line
from proctor.reports.figures import bounds, count, duration, figure, interval, missing

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

FAILURES_SHOWN = 3
LINE_LIMIT = 500


def show(report: EvalReport, file: TextIO | None = None) -> None:
    """Print the report; colours and width are those of the terminal, if it is one."""
    from rich.console import Console

    out = file or sys.stdout
    terminal = Console(file=out)
    colored = terminal.is_terminal and not terminal.no_color
    out.write(render(report, width=terminal.width, color=colored))


def render(report: EvalReport, *, width: int = 80, color: bool = False) -> str:
    """The report as lines of at most `width` columns.

    >>> print(render(EvalReport([])), end="")
    No results
    """
    from rich.console import Console, Group

    # An empty environment: the same report gives the same text wherever it is rendered.
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as captured:
        console.print(Group(*_parts(report)))
    return "".join(text.rstrip() + "\n" for text in captured.get().splitlines())


def _parts(report: EvalReport) -> Iterator[RenderableType]:
    yield _text(summary.headline(report), "bold", wrap=True)
    yield from _run_lines(report)
    if report.metrics:
        yield ""
        yield _metric_table(report)
        yield from _remarks(report)
    yield from _error_lines(report)
    yield from _failure_lines(report)


def _run_lines(report: EvalReport) -> Iterator[Text]:
    run = report.metadata
    if run is None:
        return
    size = f" ({count(run.dataset.length, 'sample')})" if run.dataset.length is not None else ""
    facts = (
        f"run {run.run_id}",
        f"target {run.target.name}" if run.target.name else "",
        f"dataset {run.dataset.name}{size}" if run.dataset.name else "",
        duration(run.duration_seconds),
    )
    yield _text(" · ".join(fact for fact in facts if fact), "dim", wrap=True)
    if status := summary.status(report, run):
        yield _text(f"This run is {status}", "yellow", wrap=True)
    for warning in run.warnings:
        yield _text(f"Warning: {warning}", "yellow", wrap=True)


def _metric_table(report: EvalReport) -> Table:
    """One row a metric; with several configurations, one for each of them below it."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    tables = _tables(report)
    several = len(tables) > 1
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    grid.add_column("Metric", overflow="fold")
    if several:
        grid.add_column("Configuration", overflow="fold")
    for title in ("Value", "95 % interval", "n", "Missing"):
        grid.add_column(title, justify="right")
    names = dict.fromkeys(name for metrics in tables.values() for name in metrics)
    for name in names:
        shown = name
        for configuration, metrics in tables.items():
            if name in metrics:
                first = [shown, configuration] if several else [shown]
                grid.add_row(*(_text(cell) for cell in (*first, *_cells(metrics[name]))))
                shown = ""
    return grid


def _tables(report: EvalReport) -> dict[str, Mapping[str, MetricValue]]:
    """The metrics to show, by configuration; all together where there is only one."""
    if len(report.by_configuration) < 2:
        return {"": summary.table_metrics(report.metrics)}
    tables = report.by_configuration.items()
    return {name: summary.table_metrics(metrics) for name, metrics in tables}


def _cells(metric: MetricValue) -> tuple[str, ...]:
    return figure(metric), interval(metric), f"{metric.n:,}", missing(metric)


def _remarks(report: EvalReport) -> Iterator[Text]:
    """What is noted of any metric; of what is missing, only what the pass rate would make of it."""
    for configuration, metrics in _tables(report).items():
        prefix = f"{configuration}: " if configuration else ""
        rate = metrics.get("pass_rate")
        if rate is not None and (said := bounds(rate)):
            yield _text(f"{prefix}pass_rate: {said}", "dim", wrap=True)
        for note, names in summary.notes(metrics).items():
            yield _text(f"{prefix}{names}: {note}", "dim", wrap=True)


def _error_lines(report: EvalReport) -> Iterator[RenderableType]:
    kinds = summary.error_kinds(report)
    if kinds:
        yield ""
        yield _text("Errors", "bold red")
    for kind, number in kinds.items():
        yield _text(f"  {number:>5,}  {line(kind, LINE_LIMIT)}")


def _failure_lines(report: EvalReport) -> Iterator[RenderableType]:
    shown = summary.failures(report, FAILURES_SHOWN)
    total = report.counts.failed + report.errors
    if shown:
        yield ""
        yield _text(f"Worst failures ({len(shown):,} of {total:,})", "bold red")
    for result in shown:
        name = summary.label(result, len(report.by_configuration) > 1)
        yield _text(f"  {name}  {summary.verdict(result)}", "bold")
        for label, value in _facts(result):
            yield _text(f"    {label:<9} {value}")


def _facts(result: EvalResult) -> Iterator[tuple[str, str]]:
    sample = result.trial.sample
    yield "input", line(sample.input, LINE_LIMIT)
    if result.success:
        yield "output", line(result.output, LINE_LIMIT)
    if sample.expected is not None:
        yield "expected", line(sample.expected, LINE_LIMIT)
    if result.error is not None:
        yield "error", line(result.error, LINE_LIMIT)
    for name, score in result.scores.items():
        if not score.passed and score.reason:
            yield "because", f"{line(score.reason, LINE_LIMIT)} ({name})"


def _text(content: str, style: str = "", *, wrap: bool = False) -> Text:
    """Text that is shown as it is: no markup in it counts, and no control character."""
    from rich.text import Text

    shown = line(content, LINE_LIMIT)
    indent = " " * (len(content) - len(content.lstrip(" ")))
    return Text(
        indent + shown, style=style, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis"
    )
