"""The report as Markdown, for a pull request, a wiki, or an editor."""

from __future__ import annotations

import os
from collections.abc import Mapping

from proctor.comparison.report import EvalReport
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from proctor.reports import files, summary
from proctor.reports.comparison import render_markdown
from proctor.reports.format import (
    DASH,
    escape,
    excerpt,
    format_bounds,
    format_duration,
    format_interval,
    format_metric,
    format_missing,
    markdown_bullet,
    markdown_table,
    single_line,
)

METRIC_COLUMNS = ("Metric", "Value", "95% interval", "n", "Missing")
PERCENTILE_NAMES = {"p50": "P50 (Median)"}
INTERVALS = "95% intervals in parentheses."
VALUE_LIMIT, LINE_LIMIT, NAME_LIMIT = 1000, 300, 100
FLIPS_SHOWN = 3
FLAKY_SHOWN = 20


class MarkdownReporter:
    """Write a report as Markdown: the summary, the metrics, the worst failures, and comparisons with the baseline.

    `include_examples` is the number of failing samples to show; `include_distribution` adds the score
    percentiles; `verdict` is a sentence below the title, in Markdown. Data is escaped and cannot break the layout.

    >>> print(MarkdownReporter().generate(EvalReport([])))
    # Proctor Evaluation Report
    <BLANKLINE>
    ## Run Summary
    <BLANKLINE>
    - **Result**: No results
    <BLANKLINE>
    """

    extension = "md"
    signature = r"# Proctor Evaluation Report\r?\n"

    def __init__(self, include_examples: int = 10, include_distribution: bool = True, verdict: str = "") -> None:
        self.verdict = verdict
        self.include_examples = include_examples
        self.include_distribution = include_distribution

    def generate(self, report: EvalReport) -> str:
        """Return the report as text."""
        blocks = ["# Proctor Evaluation Report", *([self.verdict] if self.verdict else [])]
        blocks += [*_run_summary(report), *_metrics(report)]
        if self.include_distribution:
            blocks += _distributions(report)
        blocks += _failures(report, self.include_examples)
        blocks += _flaky_samples(report)
        blocks += _errors(report)
        blocks += [
            render_markdown(comparison, flips=FLIPS_SHOWN).rstrip() for comparison in report.compare_with_baseline()
        ]
        return "\n\n".join(blocks) + "\n"

    def save(self, report: EvalReport, path: str | os.PathLike[str]) -> None:
        """Write the report to a file."""
        files.write_file(path, [self.generate(report).encode(errors="backslashreplace")])


def _flaky_samples(report: EvalReport) -> list[str]:
    flaky = summary.find_flaky_samples(report)
    if not flaky:
        return []
    rows = [
        [
            single_line(sample.sample_id, NAME_LIMIT),
            single_line(sample.configuration, NAME_LIMIT),
            f"{sample.passed} of {sample.trials}",
        ]
        for sample in flaky[:FLAKY_SHOWN]
    ]
    more = [f"… and {len(flaky) - FLAKY_SHOWN:,} more."] if len(flaky) > FLAKY_SHOWN else []
    table = markdown_table(("Sample", "Configuration", "Passed"), rows)
    return ["## Flaky Samples", f"{summary.describe_flaky_samples(report, flaky)}.", table, *more]


def _run_summary(report: EvalReport) -> list[str]:
    results = [("Result", sentence) for sentence in summary.headlines(report)]
    facts = {} if report.metadata is None else _run_facts(report, report.metadata)
    warnings = [] if report.metadata is None else [("Warning", text) for text in report.metadata.warnings]
    bullets = [
        markdown_bullet(name, single_line(text, LINE_LIMIT))
        for name, text in [*results, *facts.items(), *warnings]
        if text
    ]
    return ["## Run Summary", "\n".join(bullets)]


def _run_facts(report: EvalReport, run: RunMetadata) -> dict[str, str]:
    dataset, target, names = run.dataset, run.target, run.configurations
    size = f" ({summary.describe_samples(run)})" if dataset.length is not None else ""
    return {
        "Run ID": run.run_id,
        "Name": run.name,
        "Rescored From": run.rescored_from or "",
        "Status": summary.describe_status(report, run) or summary.describe_early_stop(run),
        "Timestamp": run.started_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "Proctor Version": run.environment.get("proctor", ""),
        "Code": run.provenance.code,
        "Target": f"{target.name} ({target.kind})" if target.kind else target.name,
        "Dataset": f"{dataset.name}{size}",
        "Configurations": ", ".join(c.name for c in names) if len(names) > 1 else "",
        "Duration": format_duration(run.duration_seconds),
        "Cache": "" if run.cached_outputs is None else str(run.cached_outputs),
        "Tags": ", ".join(f"{key}={value}" for key, value in sorted(run.tags.items())),
    }


def _metrics(report: EvalReport) -> list[str]:
    if not report.metrics:
        return []
    if len(report.by_configuration) < 2:
        return ["## Overall Metrics", *_metric_table(report.metrics)]
    # Metrics over several configurations together would be meaningless.
    return ["## Overall Metrics", *_configuration_table(summary.metrics_by_configuration(report))]


def _metric_table(metrics: Mapping[str, MetricValue]) -> list[str]:
    shown_metrics = summary.table_metrics(metrics)
    rows = [
        [
            single_line(name, NAME_LIMIT),
            format_metric(value),
            format_interval(value),
            f"{value.n:,}",
            format_missing(value),
        ]
        for name, value in shown_metrics.items()
    ]
    return [markdown_table(METRIC_COLUMNS, rows), *_metric_notes({"": shown_metrics})]


def _configuration_table(tables: Mapping[str, Mapping[str, MetricValue]]) -> list[str]:
    """Return the configurations side by side: value, interval, and the number of samples where it is unusual."""
    sizes = {
        configuration: summary.describe_size(metrics["pass_rate"]) if "pass_rate" in metrics else ""
        for configuration, metrics in tables.items()
    }
    titles = [
        f"{single_line(configuration, NAME_LIMIT)}{f' ({size})' if size else ''}"
        for configuration, size in sizes.items()
    ]
    rows = []
    for name in dict.fromkeys(name for metrics in tables.values() for name in metrics):
        cells = [_describe_metric(metrics.get(name), sizes[configuration]) for configuration, metrics in tables.items()]
        rows.append([single_line(name, NAME_LIMIT), *cells])
    return [markdown_table(("Metric", *titles), rows), *_metric_notes(tables), INTERVALS]


def _describe_metric(metric: MetricValue | None, usual_size: str) -> str:
    if metric is None:
        return DASH
    interval = f" ({format_interval(metric)})" if metric.interval else ""
    size = summary.describe_size(metric)
    return f"{format_metric(metric)}{interval}{'' if size == usual_size else f', {size}'}"


def _metric_notes(tables: Mapping[str, Mapping[str, MetricValue]]) -> list[str]:
    notes: dict[tuple[str, str], None] = {}
    for configuration, metrics in tables.items():
        prefix = f"{configuration}: " if configuration else ""
        for name, value in metrics.items():
            if bounds := format_bounds(value):
                notes[prefix + name, bounds] = None
        notes |= dict.fromkeys((names, note) for note, names in summary.collect_notes(metrics).items())
    bullets = [markdown_bullet(single_line(names, LINE_LIMIT), single_line(note, LINE_LIMIT)) for names, note in notes]
    return ["\n".join(bullets)] if bullets else []


def _distributions(report: EvalReport) -> list[str]:
    blocks = []
    has_configurations = len(report.by_configuration) > 1
    for evaluator, percentiles in summary.score_distributions(report.metrics).items():
        if summary.has_binary_scores(report, evaluator):
            # The percentiles of yes-or-no scores say less than the pass rate.
            continue
        title = f"## Score Distribution ({_name(evaluator)})"
        if not has_configurations:
            bullets = [
                markdown_bullet(PERCENTILE_NAMES.get(name, name.upper()), format_metric(value))
                for name, value in percentiles.items()
            ]
            blocks += [title, "\n".join(bullets)]
            continue
        spreads = [
            summary.score_distributions(metrics).get(evaluator, {}) for metrics in report.by_configuration.values()
        ]
        rows = [
            [
                PERCENTILE_NAMES.get(name, name.upper()),
                *(format_metric(spread[name]) if name in spread else DASH for spread in spreads),
            ]
            for name in percentiles
        ]
        titles = [single_line(configuration, NAME_LIMIT) for configuration in report.by_configuration]
        blocks += [title, markdown_table(("Percentile", *titles), rows)]
    return blocks


def _failures(report: EvalReport, limit: int) -> list[str]:
    shown_results = summary.worst_results(report, limit)
    if not shown_results:
        return []
    has_configurations = len(report.by_configuration) > 1
    total = report.counts.failed + report.errors
    blocks = ["## Top Failing Examples"]
    if len(shown_results) < total:
        blocks.append(f"The worst {len(shown_results):,} of {total:,}.")
    for result in shown_results:
        label = summary.label_result(result, has_configurations, summary.describe_epochs(report, result))
        heading = f"{_name(label)} ({summary.describe_verdict(result)})"
        blocks += [f"### Sample: {heading}", _result_facts(result)]
    return blocks


def _result_facts(result: EvalResult) -> str:
    sample = result.trial.sample
    bullets = [markdown_bullet("Input", excerpt(sample.input, VALUE_LIMIT))]
    if result.success:
        bullets.append(markdown_bullet("Output", excerpt(result.output, VALUE_LIMIT)))
    if sample.expected is not None:
        bullets.append(markdown_bullet("Expected", excerpt(sample.expected, VALUE_LIMIT)))
    bullets += [
        markdown_bullet(single_line(name, NAME_LIMIT), single_line(_describe_score(score), LINE_LIMIT))
        for name, score in result.scores.items()
    ]
    if result.error is not None:
        bullets.append(markdown_bullet("Error", single_line(result.error, LINE_LIMIT)))
    return "\n".join(bullets)


def _describe_score(score: Score) -> str:
    verdict: str = score.status
    if score.value is not None:
        verdict = f"{score.value:.2f}, {'passed' if score.passed else 'failed'}"
    return f"{verdict}: {score.reason}" if score.reason else verdict


def _errors(report: EvalReport) -> list[str]:
    counts = summary.count_errors_by_type(report)
    if not counts:
        return []
    examples = summary.find_error_examples(report)
    rows = [
        [single_line(error_type, NAME_LIMIT), f"{number:,}", single_line(examples.get(error_type, DASH), LINE_LIMIT)]
        for error_type, number in counts.items()
    ]
    return ["## Error Breakdown", markdown_table(["Error Type", "Count", "Example"], rows)]


def _name(text: str) -> str:
    return escape(single_line(text, NAME_LIMIT))
