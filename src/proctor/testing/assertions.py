"""Assertions for tests: about a report, and those that the contract tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from proctor.comparison.gates.thresholds import (
    DEFAULT_METRIC,
    find_shortfalls,
    read_threshold,
    read_thresholds,
    require_reachable,
)
from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError, UsageError
from proctor.records.trial import EvalResult
from proctor.reports import summary
from proctor.reports.console import list_result_facts
from proctor.reports.format import fold_text, hanging_lines

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
    if problems := find_problems(report, min_pass_rate, thresholds):
        raise AssertionError(describe_failures(report, problems, max_shown))


def find_problems(
    report: EvalReport, min_pass_rate: float | str = 1.0, thresholds: Mapping[str, float | str] | None = None
) -> list[str]:
    """Describe the metrics that are below their thresholds."""
    lowest = {DEFAULT_METRIC: read_pass_rate(min_pass_rate), **read_thresholds(thresholds or {}, "thresholds")}
    try:
        require_reachable(lowest)
        return find_shortfalls(report, lowest)
    except ConfigError as error:
        raise rename_thresholds(error) from None


def read_pass_rate(value: float | str) -> float:
    """Read the lowest pass rate: a number from 0 to 1, or a percentage."""
    rate = read_threshold(value, "min_pass_rate")
    if not 0 <= rate <= 1:
        fix = f'write "{value}%" or {rate / 100:g}' if 1 < rate <= 100 else "write 0.8 or 80%"
        raise ConfigError(f"must be from 0 to 1, or a percentage, got {value!r}", where="min_pass_rate", fix=fix)
    return rate


def rename_thresholds(error: UsageError) -> UsageError:
    """Let an error about thresholds name the argument `thresholds` instead of the option of eval files."""
    if error.where == "fail_under":
        error.where = "thresholds"
    return error


def describe_failures(report: EvalReport, problems: Sequence[str], max_shown: int, options: str = "") -> str:
    """Describe a run that did not pass: the problems, the worst results, and the command that shows all results."""
    lines = [*_describe_outcomes(report), *problems]
    results = summary.worst_results(report, max_shown, by_sample=False)
    results += report.results.page(outcome="skipped", limit=max_shown - len(results))
    for result in results:
        lines += _describe_result(result, report)
    if (more := report.counts.total - report.counts.passed - len(results)) > 0:
        lines.append(f"  … and {more:,} more")
    run = report.metadata
    if run is not None and report.is_stored:
        lines.append(f"Look at them: proctor show {run.run_id}{options}, or proctor view{options}")
    return "\n".join(lines)


def _describe_outcomes(report: EvalReport) -> list[str]:
    """Return the headlines of the report, and the reason if the pass rate has no interval."""
    lines, rate = summary.headlines(report), report.metrics.get("pass_rate")
    if len(lines) == 1 and rate is not None and rate.interval is None and rate.n and rate.note:
        return [f"{lines[0]}, {rate.note}"]
    return lines


def _describe_result(result: EvalResult, report: EvalReport) -> Iterator[str]:
    """Describe a result in lines: its name and verdict, input, output, expected value, and reasons."""
    epoch = summary.name_epoch(result, summary.count_epochs(report))
    label = summary.label_result(result, len(report.by_configuration) > 1, epoch)
    yield f"  {label}  {summary.describe_verdict(result)}"
    reason = [("reason", result.score.reason)] if result.outcome == "skipped" else []
    for label, value in [*list_result_facts(result), *reason]:
        if value in ("", "null"):
            continue
        start = f"    {label:<9} "
        yield from hanging_lines(start, fold_text(value, LINE_WIDTH - len(start), TEXT_LINES))
