"""The report in the terminal: the verdict first, then the numbers, then the worst failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport
from proctor.records.trial import EvalResult
from proctor.reports import summary
from proctor.reports.format import (
    DASH,
    bounds,
    count,
    duration,
    figure,
    interval,
    line,
    missing,
    printed,
    rendered,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

FAILURES_SHOWN = 3
LINE_LIMIT = 500
SIDE_BY_SIDE = 3

Tables = dict[str, dict[str, MetricValue]]


def show(report: EvalReport, file: TextIO | None = None) -> None:
    """Print the report; colours and width are those of the terminal, if it is one."""
    printed(lambda width, color: render(report, width=width, color=color), file)


def render(report: EvalReport, *, width: int = 80, color: bool = False) -> str:
    """The report as lines of at most `width` columns.

    >>> print(render(EvalReport([])), end="")
    No results
    """
    return rendered(_parts(report), width, color)


def _parts(report: EvalReport) -> Iterator[RenderableType]:
    for sentence in summary.headlines(report):
        yield _text(sentence, "bold", wrap=True)
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
    size = f" ({summary.samples(run)})" if run.dataset.length is not None else ""
    facts = (
        f"run {run.run_id}",
        f"target {run.target.name}" if run.target.name else "",
        f"dataset {run.dataset.name}{size}" if run.dataset.name else "",
        duration(run.duration_seconds),
        f"code {run.provenance.code}" if run.provenance.code else "",
    )
    yield _text(" · ".join(fact for fact in facts if fact), "dim", wrap=True)
    if status := summary.status(report, run):
        yield _text(f"This run is {status}", "yellow", wrap=True)
    if early := summary.early(run):
        yield _text(f"This run was {early}", wrap=True)
    if run.cached_outputs is not None:
        yield _text(str(run.cached_outputs), "yellow" if run.cached_outputs.count else "dim")
    for warning in run.warnings:
        yield _text(f"Warning: {warning}", "yellow", wrap=True)


def _metric_table(report: EvalReport) -> Table:
    """One row a metric, one column a configuration; too many of those get a row each instead."""
    tables = summary.essential(_tables(report))
    if len(tables) <= SIDE_BY_SIDE:
        return _side_by_side(tables)
    return _one_below_the_other(tables)


def _side_by_side(tables: Tables) -> Table:
    from rich.text import Text

    grid = _grid("Metric")
    usual = {name: _basis(metrics) for name, metrics in tables.items()}
    for name in tables:
        shown = line(name, LINE_LIMIT)
        heading = f"{shown}\n{usual[name]}" if shown else usual[name]
        grid.add_column(Text(heading), justify="right")
    for metric in dict.fromkeys(name for metrics in tables.values() for name in metrics):
        cells = [
            _cell(metrics[metric], usual[name]) if metric in metrics else DASH
            for name, metrics in tables.items()
        ]
        grid.add_row(*(_text(cell, wrap=True) for cell in (metric, *cells)))
    return grid


def _one_below_the_other(tables: Tables) -> Table:
    grid = _grid("Metric", "Configuration")
    for title in ("Value", "95 % interval", "n", "Missing"):
        grid.add_column(title, justify="right")
    for metric in dict.fromkeys(name for metrics in tables.values() for name in metrics):
        shown = metric
        for name, metrics in tables.items():
            if (value := metrics.get(metric)) is not None:
                cells = (figure(value), interval(value), f"{value.n:,}", missing(value))
                grid.add_row(*(_text(cell) for cell in (shown, name, *cells)))
                shown = ""
    return grid


def _grid(*titles: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in titles:
        grid.add_column(title, overflow="fold")
    return grid


def _tables(report: EvalReport) -> Tables:
    """The metrics to show, by configuration; all together where there is only one."""
    if len(report.by_configuration) < 2:
        return {"": summary.table_metrics(report.metrics)}
    tables = report.by_configuration.items()
    return {name: summary.table_metrics(metrics) for name, metrics in tables}


def _basis(metrics: Mapping[str, MetricValue]) -> str:
    """What the numbers of a column rest on, where they do not say otherwise."""
    usual = metrics.get("pass_rate") or next(iter(metrics.values()), None)
    return "" if usual is None else _rests_on(usual)


def _cell(metric: MetricValue, usual: str) -> str:
    """Value and interval; what they rest on, where that is not what is usual in the column."""
    span = f" ({interval(metric)})" if metric.interval else ""
    own = _rests_on(metric)
    return f"{figure(metric)}{span}{'' if own == usual else f', {own}'}"


def _rests_on(metric: MetricValue) -> str:
    absent = f", {missing(metric)}" if metric.missing else ""
    return f"n = {metric.n:,}{absent}"


def _remarks(report: EvalReport) -> Iterator[Text]:
    """What is noted of any metric; of what is missing, only what the pass rate would make of it."""
    tables = _tables(report)
    for configuration, metrics in tables.items():
        prefix = f"{configuration}: " if configuration else ""
        rate = metrics.get("pass_rate")
        if rate is not None and (said := bounds(rate)):
            yield _text(f"{prefix}pass_rate: {said}", "dim", wrap=True)
    told = [summary.notes(metrics) for metrics in tables.values()]
    yield _text(_about_intervals(told), "dim", wrap=True)
    for note, names in {note: names for notes in told for note, names in notes.items()}.items():
        if not note.startswith("clustered"):
            yield _text(f"{names}: {note}", "dim", wrap=True)


def _about_intervals(told: Sequence[Mapping[str, str]]) -> str:
    notes = {note for notes in told for note in notes if note.startswith("clustered")}
    allowing = ", allowing for results that belong together (clusters, epochs)" if notes else ""
    few = next((f"; {note}" for note in notes if "fewer" in note), "")
    return f"In brackets: 95 % intervals{allowing}{few}"


def _error_lines(report: EvalReport) -> Iterator[RenderableType]:
    kinds = summary.error_kinds(report)
    if not kinds:
        return
    yield ""
    yield _text("Errors", "bold red")
    examples = summary.error_examples(report)
    for kind, number in kinds.items():
        yield _text(f"  {number:>5,}  {line(kind, LINE_LIMIT)}")
        if kind in examples:
            yield _text(f"         such as {line(examples[kind], LINE_LIMIT)}", "dim", wrap=True)


def _failure_lines(report: EvalReport) -> Iterator[RenderableType]:
    shown = summary.failures(report, FAILURES_SHOWN)
    failed, errors = report.counts.failed, report.errors
    if shown:
        beside = f", and {count(errors, 'error')}" if errors else ""
        yield ""
        yield _text(f"Worst failures ({len(shown):,} shown; {failed:,} failed{beside})", "bold red")
    for result in shown:
        name = summary.label(result, len(report.by_configuration) > 1)
        yield _text(f"  {name}  {summary.verdict(result)}", "bold")
        for label, value in _facts(result):
            yield _text(f"    {label:<9} {value}", wrap=label in ("error", "because"))


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
        if not score.passed and score.status != "skipped":
            yield "because", f"{line(score.reason, LINE_LIMIT) or 'it did not pass'} ({name})"


def _text(content: str, style: str = "", *, wrap: bool = False) -> Text:
    """Text that is shown as it is: no markup in it counts, and no control character."""
    from rich.text import Text

    shown = line(content, LINE_LIMIT)
    indent = " " * (len(content) - len(content.lstrip(" ")))
    return Text(indent + shown, style=style, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
