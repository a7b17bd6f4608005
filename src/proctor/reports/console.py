"""The report in the terminal: the headline, the metrics, the errors, and the worst failures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from proctor.comparison.report import EvalReport
from proctor.records.formatting import format_count
from proctor.records.trial import EvalResult
from proctor.reports import summary
from proctor.reports.comparison import render_comparison
from proctor.reports.format import (
    fold_text,
    format_bounds,
    format_duration,
    hanging_lines,
    join_facts,
    print_rendered,
    render_parts,
    single_line,
    styled_text,
    to_text,
)
from proctor.reports.metric_table import render_metric_table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

FAILURES_SHOWN = 3
FLIPS_SHOWN = 3
FLAKY_SHOWN = 10
LINE_LIMIT = 500
TEXT_LINES, REASON_LINES = 2, 6


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
    comparisons = [
        render_comparison(comparison, width, color, flips=FLIPS_SHOWN) for comparison in report.compare_with_baseline()
    ]
    return "\n".join([render_report(report, width=width, color=color), *comparisons])


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
    few_clusters_note = next((f"; {note}" for note in clustered if "fewer" in note), "")
    yield styled_text(f"95% intervals in parentheses{adjusted}{few_clusters_note}", "dim")
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
        name = summary.label_result(result, len(report.by_configuration) > 1)
        yield styled_text(f"  {name}  {summary.describe_verdict(result)}", "bold", wrap=False)
        for label, value in _result_facts(result):
            yield from _labelled_lines(f"    {label:<9} ", value, width)


def _flaky_lines(report: EvalReport, width: int) -> Iterator[RenderableType]:
    if flaky := summary.find_flaky_samples(report):
        yield ""
        yield styled_text(f"Flaky samples: {summary.describe_flaky_samples(report, flaky)}", "bold")
        names = [
            f"{single_line(each.sample_id, LINE_LIMIT)}"
            f"{f' ({each.configuration})' if len(report.configurations) > 1 else ''} {each.passed}/{each.trials}"
            for each in flaky[:FLAKY_SHOWN]
        ]
        more = [f"… and {len(flaky) - FLAKY_SHOWN:,} more"] if len(flaky) > FLAKY_SHOWN else []
        yield from _labelled_lines("  ", ", ".join(names + more), width)


def _labelled_lines(start: str, value: str, width: int, style: str = "") -> Iterator[RenderableType]:
    """Yield a label and its text, folded to a few lines below each other."""
    lines = TEXT_LINES if start.strip() in ("input", "output", "expected") else REASON_LINES
    for line in hanging_lines(start, fold_text(value, max(20, width - len(start)), lines)):
        yield styled_text(line, style)


def _result_facts(result: EvalResult) -> Iterator[tuple[str, str]]:
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
