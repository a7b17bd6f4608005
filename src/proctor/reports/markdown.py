"""The report as Markdown, for people: in a pull request, a wiki, or an editor."""

from __future__ import annotations

import os
from collections.abc import Mapping

from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from proctor.reports import files, summary
from proctor.reports.format import (
    DASH,
    bounds,
    bullet,
    duration,
    escape,
    excerpt,
    figure,
    interval,
    line,
    missing,
    table,
)

METRIC_COLUMNS = ("Metric", "Value", "95 % interval", "n", "Missing")
PERCENTILE_NAMES = {"p50": "P50 (Median)"}
VALUE_LIMIT, LINE_LIMIT, NAME_LIMIT = 1000, 300, 100


class MarkdownReporter:
    """Writes a report that people read: the summary, the metrics, and the worst failures.

    `include_examples` is how many failing samples to show, `include_distribution` whether to
    show how the scores are spread. Nothing in the data can break the layout.

    >>> print(MarkdownReporter().generate(EvalReport([])))
    # Proctor Evaluation Report
    <BLANKLINE>
    ## Run Summary
    <BLANKLINE>
    - **Result**: No results
    <BLANKLINE>
    """

    def __init__(self, include_examples: int = 10, include_distribution: bool = True) -> None:
        self.include_examples = include_examples
        self.include_distribution = include_distribution

    def generate(self, report: EvalReport) -> str:
        """The report as text."""
        blocks = ["# Proctor Evaluation Report", *_run_summary(report), *_metrics(report)]
        if self.include_distribution:
            blocks += _distributions(report)
        blocks += _failures(report, self.include_examples)
        blocks += _errors(report)
        return "\n\n".join(blocks) + "\n"

    def save(self, report: EvalReport, path: str | os.PathLike[str]) -> None:
        """Write the report to a file."""
        files.write(path, [self.generate(report).encode()])


def _run_summary(report: EvalReport) -> list[str]:
    results = [("Result", sentence) for sentence in summary.headlines(report)]
    facts = {} if report.metadata is None else _run_facts(report, report.metadata)
    told = [(name, text) for name, text in [*results, *facts.items()] if text]
    bullets = [bullet(name, line(text, LINE_LIMIT)) for name, text in told]
    if report.metadata is not None:
        bullets += [bullet("Warning", line(text, LINE_LIMIT)) for text in report.metadata.warnings]
    return ["## Run Summary", "\n".join(bullets)]


def _run_facts(report: EvalReport, run: RunMetadata) -> dict[str, str]:
    dataset, target, names = run.dataset, run.target, run.configurations
    size = f" ({summary.samples(run)})" if dataset.length is not None else ""
    return {
        "Run ID": run.run_id,
        "Name": run.name,
        "Status": summary.status(report, run) or summary.early(run),
        "Timestamp": run.started_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "Proctor Version": run.environment.get("proctor", ""),
        "Code": run.provenance.code,
        "Target": f"{target.name} ({target.kind})" if target.kind else target.name,
        "Dataset": f"{dataset.name}{size}",
        "Configurations": ", ".join(c.name for c in names) if len(names) > 1 else "",
        "Duration": duration(run.duration_seconds),
        "Cache": "" if run.cached_outputs is None else str(run.cached_outputs),
        "Tags": ", ".join(f"{key}={value}" for key, value in sorted(run.tags.items())),
    }


def _metrics(report: EvalReport) -> list[str]:
    if not report.metrics:
        return []
    if len(report.by_configuration) < 2:
        return ["## Overall Metrics", *_metric_table(report.metrics)]
    # Numbers over several configurations together would be about none of them.
    blocks = ["## Overall Metrics"]
    for name, metrics in report.by_configuration.items():
        blocks += [f"### Configuration: {_name(name)}", *_metric_table(metrics)]
    return blocks


def _metric_table(metrics: Mapping[str, MetricValue]) -> list[str]:
    """The table, and below it what must be said of single metrics."""
    shown = summary.table_metrics(metrics)
    rows = [
        [line(name, NAME_LIMIT), figure(value), interval(value), f"{value.n:,}", missing(value)]
        for name, value in shown.items()
    ]
    remarks = [
        bullet(line(name, NAME_LIMIT), text) for name, value in shown.items() if (text := bounds(value))
    ]
    remarks += [
        bullet(line(names, LINE_LIMIT), line(note, LINE_LIMIT))
        for note, names in summary.notes(shown).items()
    ]
    return [table(METRIC_COLUMNS, rows), *(["\n".join(remarks)] if remarks else [])]


def _distributions(report: EvalReport) -> list[str]:
    blocks = []
    several = len(report.by_configuration) > 1
    for evaluator, percentiles in summary.distributions(report.metrics).items():
        bullets = [
            bullet(PERCENTILE_NAMES.get(name, name.upper()), figure(value))
            for name, value in percentiles.items()
        ]
        for configuration, metrics in report.by_configuration.items() if several else ():
            spread = summary.distributions(metrics).get(evaluator, {})
            text = ", ".join(f"{name.upper()} {figure(value)}" for name, value in spread.items())
            bullets.append(bullet(line(configuration, NAME_LIMIT), text or DASH))
        blocks += [f"## Score Distribution ({_name(evaluator)})", "\n".join(bullets)]
    return blocks


def _failures(report: EvalReport, limit: int) -> list[str]:
    shown = summary.failures(report, limit)
    if not shown:
        return []
    several = len(report.by_configuration) > 1
    total = report.counts.failed + report.errors
    blocks = ["## Top Failing Examples"]
    if len(shown) < total:
        blocks.append(f"The worst {len(shown):,} of {total:,}.")
    for result in shown:
        heading = f"{_name(summary.label(result, several))} ({summary.verdict(result)})"
        blocks += [f"### Sample: {heading}", _facts_of(result)]
    return blocks


def _facts_of(result: EvalResult) -> str:
    sample = result.trial.sample
    bullets = [bullet("Input", excerpt(sample.input, VALUE_LIMIT))]
    if result.success:
        bullets.append(bullet("Output", excerpt(result.output, VALUE_LIMIT)))
    if sample.expected is not None:
        bullets.append(bullet("Expected", excerpt(sample.expected, VALUE_LIMIT)))
    bullets += [
        bullet(line(name, NAME_LIMIT), line(_opinion(score), LINE_LIMIT))
        for name, score in result.scores.items()
    ]
    if result.error is not None:
        bullets.append(bullet("Error", line(result.error, LINE_LIMIT)))
    return "\n".join(bullets)


def _opinion(score: Score) -> str:
    """One evaluator's say: the value, whether it passed, and why."""
    said: str = score.status
    if score.value is not None:
        said = f"{score.value:.2f}, {'passed' if score.passed else 'failed'}"
    return f"{said}: {score.reason}" if score.reason else said


def _errors(report: EvalReport) -> list[str]:
    kinds = summary.error_kinds(report)
    if not kinds:
        return []
    examples = summary.error_examples(report)
    rows = [
        [line(kind, NAME_LIMIT), f"{number:,}", line(examples.get(kind, DASH), LINE_LIMIT)]
        for kind, number in kinds.items()
    ]
    return ["## Error Breakdown", table(["Error Type", "Count", "Example"], rows)]


def _name(text: str) -> str:
    return escape(line(text, NAME_LIMIT))
