"""The content that all reports share: headlines, run status, worst results, errors, and metrics to display."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from proctor.comparison.report import EvalReport
from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.records.results import Counts, Results, tally_passes
from proctor.records.rubric import TOTAL_SCORE, read_run_columns
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult, Outcome
from proctor.reports.format import format_interval, format_missing, format_percent

ERRORS_SEARCHED = 200
EVALUATION_FAILED = "evaluation failed (no verdict)"
# pass^k or pass@k of one evaluator: the same metric of all evaluators, and k.
_EVALUATOR_PASS_K = re.compile(r".+\.(pass_(?:hat|at)_k\.(\d+))")


def headlines(report: EvalReport, counts: Mapping[str, Counts] | None = None) -> list[str]:
    """Summarize the run in one sentence, or in one sentence for each configuration, whose counts may be known."""
    if len(report.by_configuration) < 2:
        return [*_rubric_headline(report), _headline(report.counts, report.metrics)]
    return [
        f"{name}: {_headline(counts[name] if counts else report.results.for_configuration(name).counts(), metrics)}"
        for name, metrics in report.by_configuration.items()
    ]


def _rubric_headline(report: EvalReport) -> list[str]:
    columns, total = read_run_columns(report.metadata), report.metrics.get(TOTAL_SCORE)
    if not columns.columns or total is None or total.value is None:
        return []
    interval = f" (95% interval {format_interval(total)})" if total.interval else ""
    sessions = format_count(total.n, "session")
    partial = f"; {describe_partial(total)}" if total.partial else ""
    return [f"Average score {total.value:.2f} of {columns.scale[1]:g} over {sessions}{interval}{partial}"]


def describe_partial(metric: MetricValue) -> str:
    """Describe how many totals were computed without all rubrics."""
    return f"{metric.partial:,} of {format_count(metric.n, 'total')} leave out the score of a rubric"


def _headline(counts: Counts, metrics: Mapping[str, MetricValue]) -> str:
    if not counts.total:
        return "No results"
    facts = ["No result has a verdict"]
    if judged := counts.passed + counts.failed:
        metric = metrics.get("pass_rate")
        interval = ""
        if metric is not None and metric.interval is not None:
            interval = f", 95% interval {format_interval(metric)}"
        judged_text = f"{judged:,}" if judged == counts.total else f"{judged:,} judged"
        facts = [f"{counts.passed:,} of {judged_text} passed ({format_percent(counts.passed / judged)}{interval})"]
    if errors := counts.error + counts.unscored:
        facts.append(format_count(errors, "error"))
    if counts.skipped:
        facts.append(f"{counts.skipped:,} skipped")
    return ", ".join(facts)


def describe_status(report: EvalReport, run: RunMetadata) -> str:
    """Describe the status of an incomplete run; empty for a completed run."""
    if run.status == "completed":
        return ""
    total = f"{report.total:,} of {run.total:,} results" if run.total else format_count(report.total, "result")
    return f"{run.status}, with {total}"


def describe_early_stop(run: RunMetadata) -> str:
    """Describe after how many trials a run stopped early, and why; empty if it did not stop early."""
    if (stopped := run.stopped_early) is None:
        return ""
    total = "" if stopped.total is None else f" of {stopped.total:,}"
    return f"stopped early after {stopped.after:,}{total}: {stopped.reason}"


def describe_samples(run: RunMetadata) -> str:
    """Describe how many samples the run uses, and which ones if it was limited."""
    total = format_count(run.dataset.length or 0, "sample")
    limit = run.options.limit
    if run.selected is not None:
        return f"{run.planned_length or 0:,} of {total}"
    if limit is None or run.dataset.length is None or limit >= run.dataset.length:
        return total
    if run.options.shuffle is not None:
        return f"{limit:,} of {total}, drawn with seed {run.options.shuffle}"
    return f"the first {limit:,} of {total}"


def worst_results(report: EvalReport, limit: int, *, by_sample: bool = True) -> list[EvalResult]:
    """Return the worst results: failures with the lowest score first, then errors.

    Failures come first, because errors are counted by type elsewhere and many timeouts would hide wrong answers.
    With `by_sample`, only the worst epoch of each sample is returned.
    """
    results: dict[Any, EvalResult] = {}
    outcomes: tuple[Outcome, ...] = ("failed", "unscored", "error")
    for outcome in outcomes:
        for result in _read_pages(report.results, outcome, limit):
            if len(results) >= limit:
                return list(results.values())
            trial = result.trial
            results.setdefault((trial.sample.id, trial.configuration, by_sample or trial.epoch), result)
    return list(results.values())


def _read_pages(results: Results, outcome: Outcome, size: int) -> Iterator[EvalResult]:
    offset = 0
    while page := results.page(outcome=outcome, offset=offset, limit=size):
        yield from page
        offset += len(page)


def count_epochs(report: EvalReport) -> int:
    """Return how often a run repeats each sample."""
    return 1 if report.metadata is None else report.metadata.options.epochs


def describe_epochs(report: EvalReport, result: EvalResult) -> str:
    """Describe how many epochs of a sample have the outcome of a result: "2 of 3 epochs failed"; or return ""."""
    if count_epochs(report) < 2:
        return ""
    configuration = result.trial.configuration
    epochs = [r for r in report.results.for_sample(result.sample_id) if r.trial.configuration == configuration]
    count = sum(epoch.outcome == result.outcome for epoch in epochs)
    verbs = {"error": "had an error", "unscored": "have no verdict", "skipped": "were skipped"}
    return f"{count} of {format_count(len(epochs), 'epoch')} {verbs.get(result.outcome, result.outcome)}"


class FlakySample(msgspec.Struct, frozen=True):
    """A sample that passed some of its epochs but not all, in one configuration."""

    sample_id: str
    configuration: str
    passed: int
    trials: int


def find_flaky_samples(report: EvalReport) -> list[FlakySample]:
    """Return the samples that passed some epochs but not all, the least reliable first; empty for a single epoch."""
    if report.metadata is None or report.metadata.options.epochs < 2:
        return []
    flaky = [
        FlakySample(sample, name, passed, trials)
        for name in report.configurations
        for sample, (trials, passed) in tally_passes(report.results.for_configuration(name)).items()
        if 0 < passed < trials
    ]
    return sorted(flaky, key=lambda sample: sample.passed / sample.trials)


def describe_flaky_samples(report: EvalReport, flaky: Sequence[FlakySample]) -> str:
    """Describe how many of the samples are flaky, such as "3 of 20 samples passed some epochs but not all"."""
    repeated = sum(
        trials > 1
        for name in report.configurations
        for trials, _ in tally_passes(report.results.for_configuration(name)).values()
    )
    configurations = f" in {len(report.configurations)} configurations" if len(report.configurations) > 1 else ""
    return (
        f"{len(flaky):,} of {format_count(repeated, 'repeated sample')}{configurations} passed some epochs but not all"
    )


def count_errors_by_type(report: EvalReport) -> dict[str, int]:
    """Count errors by type, including failed evaluations."""
    counts = report.results.error_kinds()
    return {**counts, EVALUATION_FAILED: report.counts.unscored} if report.counts.unscored else counts


def find_error_examples(report: EvalReport) -> dict[str, str]:
    """Return one example for each error type: the sample and the message."""
    pages = (report.results.page(outcome=outcome, limit=ERRORS_SEARCHED) for outcome in ("error", "unscored"))
    return select_error_examples(chain.from_iterable(pages))


def select_error_examples(results: Iterable[EvalResult]) -> dict[str, str]:
    """Return the first of some failed results for each error type: the sample and the message."""
    examples: dict[str, str] = {}
    for result in results:
        if (failure := result.trial.error) is None:
            examples.setdefault(EVALUATION_FAILED, f"{result.sample_id}: {result.score.reason}")
        else:
            examples.setdefault(failure.kind, f"{result.sample_id}: {failure.message}")
    return examples


def label_result(result: EvalResult, has_configurations: bool, epochs: str = "") -> str:
    """Name a result by its sample, and by configuration and epoch (or a description of all epochs) if needed."""
    configuration = f"configuration {result.trial.configuration}" if has_configurations else ""
    epochs = epochs or name_epoch(result, result.trial.epoch + 1)
    return ", ".join(filter(None, (result.sample_id, configuration, epochs)))


def name_epoch(result: EvalResult, epochs: int) -> str:
    """Name the epoch of a result; empty if the run has only one."""
    return f"epoch {result.trial.epoch + 1}" if epochs > 1 else ""


def describe_verdict(result: EvalResult) -> str:
    """Return the score of a result, or its outcome if it has no score."""
    outcome, value = result.verdict()
    return outcome if value is None else f"score {value:.2f}"


def score_distributions(metrics: Mapping[str, MetricValue]) -> dict[str, dict[str, MetricValue]]:
    """Group the score percentiles by evaluator."""
    distributions: dict[str, dict[str, MetricValue]] = {}
    for name, metric in metrics.items():
        if is_distribution(metric):
            evaluator, _, percentile = name.rpartition(".")
            distributions.setdefault(evaluator, {})[percentile] = metric
    return distributions


def has_binary_scores(report: EvalReport, evaluator: str) -> bool:
    """True if every score of an evaluator is 0 or 1."""
    values = set(report.results.column(evaluator).values)
    return bool(values) and values <= {0.0, 1.0}


def describe_size(metric: MetricValue) -> str:
    """Describe how many samples a metric has, and how many are missing."""
    return f"n = {metric.n:,}{f', {format_missing(metric)}' if metric.missing else ''}"


def table_metrics(metrics: Mapping[str, MetricValue]) -> dict[str, MetricValue]:
    """Return the metrics that a table shows: without score percentiles and unmeasured quantities.

    An evaluator's own pass^k and pass@k are shown for the largest k only.
    """
    sizes = {name: int(match[2]) for name in metrics if (match := _EVALUATOR_PASS_K.fullmatch(name))}
    largest = max(sizes.values(), default=0)
    return {
        name: metric
        for name, metric in metrics.items()
        if not is_distribution(metric)
        and (metric.n or not (metric.unit or name in sizes))
        and sizes.get(name, largest) == largest
    }


def metrics_by_configuration(report: EvalReport) -> dict[str, dict[str, MetricValue]]:
    """Return the metrics that a table shows by configuration; the name of a single configuration is empty."""
    if len(report.by_configuration) < 2:
        return {"": table_metrics(report.metrics)}
    return {name: table_metrics(metrics) for name, metrics in report.by_configuration.items()}


def drop_redundant_metrics(tables: Mapping[str, Mapping[str, MetricValue]]) -> dict[str, dict[str, MetricValue]]:
    """Drop metrics that repeat another metric in every configuration.

    The mean of yes-or-no scores equals their pass rate, the strict pass rate equals the pass rate if there are no
    errors, and a success rate of 100% is not informative.
    """
    names = {name for metrics in tables.values() for name in metrics}
    redundant = {name for name in names if all(_is_redundant(name, metrics) for metrics in tables.values())}
    return {
        configuration: {name: metric for name, metric in metrics.items() if name not in redundant}
        for configuration, metrics in tables.items()
    }


def _is_redundant(name: str, metrics: Mapping[str, MetricValue]) -> bool:
    metric = metrics.get(name)
    if metric is None or name == "latency_ms.max":
        return True
    if name == "success_rate":
        return metric.value == 1.0
    equivalent = metrics.get(_name_equivalent(name, metrics))
    return equivalent is not None and (equivalent.value, equivalent.n) == (metric.value, metric.n)


def _name_equivalent(name: str, metrics: Mapping[str, MetricValue]) -> str:
    """Return the name of the metric that may have the same value, or an empty string."""
    if name in ("strict_pass_rate", "mean_score"):
        return "pass_rate"
    if match := _EVALUATOR_PASS_K.fullmatch(name):
        return match[1]
    stem, _, last = name.rpartition(".")
    if last in ("mean", "score"):
        return f"{stem}.pass_rate"
    # A field with one evaluator has the evaluator's score.
    return f"{stem}.score" if f"{stem}.score" in metrics and last != "pass_rate" else ""


def collect_notes(metrics: Mapping[str, MetricValue]) -> dict[str, str]:
    """Return each note once, with the names of its metrics."""
    names_by_note: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        for note in (metric.note, describe_partial(metric) if metric.partial else ""):
            if note:
                names_by_note.setdefault(note, []).append(name)
    intervals = sum(metric.interval is not None for metric in metrics.values())
    return {
        note: "all intervals" if 1 < len(names) >= intervals else ", ".join(names)
        for note, names in names_by_note.items()
    }


def is_distribution(metric: MetricValue) -> bool:
    """Return whether a metric is a percentile of scores."""
    return metric.kind == "quantile" and not metric.unit
