"""Assertions for tests: about a report, and those that the contract tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from proctor.comparison.gates.thresholds import DEFAULT_METRIC, find_shortfalls, read_thresholds, require_reachable
from proctor.comparison.report import EvalReport
from proctor.metrics.estimates import estimate_rate
from proctor.records.formatting import format_count
from proctor.records.trial import EvalResult
from proctor.reports import summary
from proctor.reports.console import list_result_facts
from proctor.reports.format import fold_text, format_interval, format_metric, hanging_lines

LINE_WIDTH, TEXT_LINES = 110, 6


def assert_raises(
    error_type: type[Exception], function: Callable[..., object], *arguments: Any, **options: Any
) -> Exception:
    """Call a function that must raise an error of this type, and return the error."""
    try:
        result = function(*arguments, **options)
    except error_type as error:
        return error
    raise AssertionError(f"expected {error_type.__name__}, but the call returned {result!r}")


def assert_passes(
    report: EvalReport,
    *,
    min_pass_rate: float | str = 1.0,
    thresholds: Mapping[str, float | str] | None = None,
    max_shown: int = 5,
) -> None:
    """Fail unless enough results of a run passed; the message shows the results that did not, and why.

    `min_pass_rate` is the lowest share of results that pass; errors count as not passed, skipped results are left out.
    `thresholds` are the lowest values of other metrics, such as `{"contains.pass_rate": "90%"}`. The message shows at
    most `max_shown` results.

    >>> from proctor import evaluate, exact_match
    >>> assert_passes(evaluate(str.upper, [{"id": "1", "input": "yes", "expected": "YES"}], exact_match, history=False))
    """
    __tracebackhide__ = True
    lowest = read_thresholds({DEFAULT_METRIC: min_pass_rate, **(thresholds or {})}, "assert_passes")
    require_reachable(lowest)
    if shortfalls := find_shortfalls(report, lowest):
        raise AssertionError(describe_failures(report, shortfalls, max_shown))


def describe_failures(report: EvalReport, problems: Sequence[str], max_shown: int) -> str:
    """Describe a run that did not pass: the problems, the worst results, and the command that shows all results."""
    lines = [*(_describe_repeats(report) or summary.headlines(report)), *problems]
    results = summary.worst_results(report, max_shown, by_sample=False)
    for result in results:
        lines += describe_result(result, has_configurations=len(report.by_configuration) > 1)
    if (more := report.counts.failed + report.errors - len(results)) > 0:
        lines.append(f"  … and {more:,} more")
    run = report.metadata
    if run is not None and report.is_stored:
        lines.append(f"Look at them: proctor show {run.run_id}, or proctor view")
    return "\n".join(lines)


def _describe_repeats(report: EvalReport) -> list[str]:
    """Describe the repetitions of one sample; they are independent, unlike the repetitions of several samples."""
    counts = report.counts
    if counts.total < 2 or len({result.sample_id for result in report.results}) > 1:
        return []
    metric = estimate_rate(counts.passed, counts.total)
    interval = f"{format_metric(metric)}, 95% interval {format_interval(metric)}"
    errors = f", {format_count(report.errors, 'error')}" if report.errors else ""
    return [f"{counts.passed} of {counts.total} passed ({interval}){errors}"]


def describe_result(result: EvalResult, *, has_configurations: bool = False) -> Iterator[str]:
    """Describe a result in lines: its name and verdict, input, output, expected value, and reasons."""
    yield f"  {summary.label_result(result, has_configurations)}  {summary.describe_verdict(result)}"
    for label, value in list_result_facts(result):
        if value in ("", "null"):
            continue
        start = f"    {label:<9} "
        yield from hanging_lines(start, fold_text(value, LINE_WIDTH - len(start), TEXT_LINES))
