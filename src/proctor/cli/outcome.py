"""The end of a run: reports on disk, the report on the screen, and the exit code."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import click

from proctor.cli.options import ERROR, FAILED, INCONCLUSIVE, echo_stderr, print_json, tolerate_closed_pipe
from proctor.comparison.gates.thresholds import convert_thresholds, find_shortfalls
from proctor.comparison.report import EvalReport
from proctor.records.formatting import format_count
from proctor.records.rubric import read_run_columns
from proctor.reports.format import escape

MAX_SKIPS_READ = 1_000


def report_outcome(report: EvalReport, thresholds: Mapping[str, float], options: Mapping[str, Any]) -> int:
    """Write and print the report according to --output, --quiet and --json, and return the exit code.

    1: a metric is below its threshold. 3: no result has a verdict, for example because of a wrong key or a server that
    is down; a target that always fails is below its threshold, a judge that always fails is not. 4: the thresholds are
    reached, but more than 10% of the values are missing; or they could be reached with the missing ones.
    """
    output = options.get("output")
    counts = report.counts
    has_verdict = counts.passed + counts.failed > 0
    undecided = _find_undecided(report, thresholds) if has_verdict else {}
    decided = {metric: threshold for metric, threshold in thresholds.items() if metric not in undecided}
    shortfalls = find_shortfalls(report, decided) if has_verdict or not counts.unscored else []
    thresholds = convert_thresholds(thresholds, read_run_columns(report.metadata))
    inconclusive_reasons = [] if shortfalls else [*undecided.values(), *_find_missing_values(report, decided)]
    verdict = _describe_gate(thresholds, shortfalls, inconclusive_reasons)
    paths = []
    if output:
        from proctor.reports.formats import write_reports

        paths = write_reports(report, output, options["formats"], verdict)
    with tolerate_closed_pipe():
        if options.get("as_json"):
            print_json({**summarize(report), "below_threshold": shortfalls, "inconclusive": inconclusive_reasons})
        elif not options.get("quiet"):
            show_report(report)
            for path in paths:
                click.echo(f"wrote {path}")
        else:
            _print_warnings(report)
    if report.pass_rate is None:
        echo_stderr(_describe_no_verdict(report))
    for sentence in shortfalls:
        echo_stderr(f"threshold not reached: {sentence}")
    for sentence in inconclusive_reasons:
        echo_stderr(f"inconclusive: {sentence}")
    if shortfalls:
        return FAILED
    if counts.total and not has_verdict:
        return ERROR
    return INCONCLUSIVE if inconclusive_reasons else 0


def _print_warnings(report: EvalReport) -> None:
    for warning in report.metadata.warnings if report.metadata is not None else ():
        echo_stderr(f"warning: {warning}")


def _describe_no_verdict(report: EvalReport) -> str:
    from proctor.reports.format import single_line
    from proctor.reports.summary import find_error_examples

    skipped = f", {report.counts.skipped:,} skipped" if report.counts.skipped else ""
    text = f"no sample could be scored: {format_count(report.errors, 'error')}{skipped}"
    example = next(iter(find_error_examples(report).values()), "")
    if not example:
        return text + _describe_skips(report)
    error, _, fix = example.partition("\nFix: ")
    listing = f"proctor show {report.run_id} --outcome {report.counts.first_problem()}"
    fix = f"{single_line(fix, 300)}; for all errors: {listing}" if fix else listing
    return f"{text}\nfirst error: {single_line(error, 300)}\nFix: {fix}"


def _describe_skips(report: EvalReport) -> str:
    """Return the most frequent reason of skipped results, and the fix."""
    from proctor.evaluators.score_conversion import NO_EXPECTED

    results = report.results.page(outcome="skipped", limit=MAX_SKIPS_READ)
    reasons = Counter(
        score.reason for result in results for score in result.scores.values() if score.status == "skipped"
    )
    if not reasons:
        return ""
    [(reason, count)] = reasons.most_common(1)
    text = f"\nmost frequent reason ({count:,} of {reasons.total():,} skipped scores): {reason}"
    if reason == NO_EXPECTED:
        fix = 'add "expected" to the samples, or map a column to it: --map COLUMN=expected'
        return f"{text}\nFix: {fix}; or use an evaluator that needs none, which `proctor evaluators` lists"
    return text if "Fix: " in reason else f"{text}\nFix: proctor show {report.run_id} --outcome skipped"


def show_report(report: EvalReport) -> None:
    """Print a report, and below it each configuration compared with the baseline."""
    from proctor.reports import console

    console.show_report(report)


def show_card_lines(history: Any, report: EvalReport) -> None:
    """Print one line about the card of each judge in a run."""
    run = report.metadata
    if run is not None and (any(spec.judges_inside for spec in run.evaluators) or history.labels()):
        from proctor.validity.describe_card import describe_states

        for line in describe_states(history, run):
            click.echo(line)


def _find_undecided(report: EvalReport, thresholds: Mapping[str, float]) -> dict[str, str]:
    """Return the metrics below their threshold that missing verdicts could lift to it, each with a sentence."""
    if "pass_rate" not in thresholds:
        return {}
    from proctor.comparison.gates.gaps import DEFAULT_MAX_MISSING, find_worst_gap

    threshold, shortfalls = thresholds["pass_rate"], find_shortfalls(report, {"pass_rate": thresholds["pass_rate"]})
    gap = find_worst_gap(report, "pass_rate")
    undecided = gap.undecided
    if not shortfalls or undecided is None or not gap.exceeds(DEFAULT_MAX_MISSING):
        return {}
    if not undecided.could_reach(threshold):
        return {}
    return {"pass_rate": f"{shortfalls[0]}; but {undecided.describe()}: rescore the samples"}


def _find_missing_values(report: EvalReport, thresholds: Mapping[str, float]) -> Iterator[str]:
    if not thresholds:
        return
    from proctor.comparison.gates.gaps import DEFAULT_MAX_MISSING, find_worst_gap

    for metric, threshold in thresholds.items():
        gap = find_worst_gap(report, metric)
        if gap.exceeds(DEFAULT_MAX_MISSING):
            yield (
                f"{metric} is at least {threshold:g}, but {gap.describe('this run')}: rescore the samples, or accept "
                f"the missing values: proctor gate {report.run_id} --fail-under "
                f"{shlex.quote(f'{metric}={threshold:g}')} --max-missing {gap.missing}"
            )


def _describe_gate(thresholds: Mapping[str, float], shortfalls: list[str], inconclusive_reasons: list[str]) -> str:
    if not thresholds:
        return ""
    if shortfalls:
        return f"**Gate: failed.** {escape('; '.join(shortfalls))}."
    if inconclusive_reasons:
        return f"**Gate: inconclusive.** {escape('; '.join(inconclusive_reasons))}."
    reached = ", ".join(f"{metric} at least {threshold:g}" for metric, threshold in thresholds.items())
    return f"**Gate: passed.** {escape(reached)}."


def summarize(report: EvalReport) -> dict[str, Any]:
    """Return a report without its results, for the JSON output."""
    from proctor.reports.summary import find_flaky_samples

    comparisons, flaky = report.compare_with_baseline(), find_flaky_samples(report)
    return {
        "run_id": report.run_id,
        "metadata": report.metadata,
        "total": report.total,
        "errors": report.errors,
        "pass_rate": report.pass_rate,
        "strict_pass_rate": report.strict_pass_rate,
        "mean_score": report.mean_score,
        "mean_latency_ms": report.mean_latency_ms,
        "metrics": report.metrics,
        "by_configuration": report.by_configuration,
        **({"flaky_samples": flaky} if flaky else {}),
        **({"comparisons": comparisons} if comparisons else {}),
    }
