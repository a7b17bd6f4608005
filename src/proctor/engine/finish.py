"""Finish a run: compute its metrics and warnings, and store the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from proctor.comparison.report import EvalReport
from proctor.errors import EvaluatorError
from proctor.metrics.estimates import FIELD_PREFIX
from proctor.metrics.registry import MetricRegistry
from proctor.metrics.warnings import (
    warn_constant_judges,
    warn_failed_parts,
    warn_local_judges,
    warn_missing_verdicts,
    warn_ratings,
    warn_repeated_samples,
    warn_undecided,
)
from proctor.ports import History, Metric
from proctor.records.metric import MetricValue
from proctor.records.results import Results
from proctor.records.run import CachedOutputs, RunMetadata
from proctor.records.score import Score, read_parts

MetricTable = dict[str, MetricValue]


def aggregate(
    results: Results, run: RunMetadata, metrics: Sequence[Metric] = ()
) -> tuple[MetricTable, dict[str, MetricTable]]:
    """Compute all metrics of the run and, if there are several configurations, of each."""

    def compute(results: Results, epochs: int) -> MetricTable:
        registry = MetricRegistry.of_run(run.evaluators, run.fields, epochs)
        for metric in metrics:
            registry.register(metric)
        return registry.compute_all(results)

    names = [configuration.name for configuration in run.configurations]
    if len(names) == 1:
        return compute(results, run.options.epochs), {}
    tables = {name: compute(results.for_configuration(name), run.options.epochs) for name in names}
    # The trials of several configurations are not repeats of each other.
    return compute(results, 1), tables


def summarize(
    results: Results, run: RunMetadata, metrics: Sequence[Metric] = ()
) -> tuple[RunMetadata, MetricTable, dict[str, MetricTable]]:
    """Return the run with its warnings, its metrics, and those of each configuration."""
    try:
        table, by_configuration = aggregate(results, run, metrics)
    except EvaluatorError as error:
        # Two metrics have the same name; the results must still be stored.
        left_out = f"your own metrics are left out: {error.what}; {error.fix}"
        run = msgspec.structs.replace(run, warnings=(*run.warnings, left_out))
        table, by_configuration = aggregate(results, run)
    warnings = (
        *run.warnings,
        *_no_verdict_warnings(results, run, table),
        *_missing_field_warnings(results, run),
        *warn_missing_verdicts(results, run),
        *warn_undecided(results, run),
        *warn_failed_parts(results, run),
        *warn_ratings(results, run),
        *warn_constant_judges(results, run),
        *warn_local_judges(run),
        *warn_repeated_samples(results, run),
    )
    run = msgspec.structs.replace(
        run, warnings=tuple(dict.fromkeys(warnings)), cached_outputs=_cached_outputs(results, run)
    )
    return run, table, by_configuration


def finish(history: History, run: RunMetadata, metrics: Sequence[Metric] = ()) -> EvalReport:
    """Compute the metrics of the stored results, and store them with the status of the run."""
    results = history.results(run.run_id, run)
    run, table, by_configuration = summarize(results, run, metrics)
    history.finish(run, table, by_configuration)
    report = EvalReport(results, run, table, by_configuration)
    vars(report).update(is_stored=getattr(history, "is_reachable", True))
    return report


def uses_cache(run: RunMetadata) -> bool:
    """True if outputs may come from the cache; recordings are never cached."""
    return run.options.cache and run.target.kind != "recorded"


def _cached_outputs(results: Results, run: RunMetadata) -> CachedOutputs | None:
    if not uses_cache(run):
        return None
    from_cache = [result.trial.cached for result in results if result.success]
    return CachedOutputs(sum(from_cache), len(from_cache))


def _no_verdict_warnings(results: Results, run: RunMetadata, table: MetricTable) -> Iterator[str]:
    """Warn about evaluators, or their parts, without a verdict; quote the first reason."""
    labels = {
        spec.name: f"{FIELD_PREFIX}.{spec.name}" if spec.uses == FIELD_PREFIX else spec.name for spec in run.evaluators
    }
    rates = {name: table.get(f"{label}.pass_rate") for name, label in labels.items()}
    silent_evaluators = {name for name, rate in rates.items() if rate is not None and not rate.n}
    # Parts have separate metrics only where fields were selected.
    fields = {spec.name for spec in run.evaluators if run.fields and spec.uses == FIELD_PREFIX}
    if not silent_evaluators and not fields:
        return
    first = next((result for result in results if result.success), None) if results else None
    for name, score in {} if first is None else first.scores.items():
        if name in silent_evaluators:
            yield _describe_no_verdict(name, score)
        elif name in fields:
            for part, part_score in read_parts(score).items():
                metric = table.get(f"{labels[name]}.{part}")
                if metric is None or not metric.n:
                    yield _describe_no_verdict(f"{name}.{part}", part_score)


def _missing_field_warnings(results: Results, run: RunMetadata) -> Iterator[str]:
    # The error scores of evaluated fields already report a missing field.
    evaluated = {spec.name for spec in run.evaluators}
    if run.fields.keys() <= evaluated:
        return
    report = EvalReport(results, run)
    for name, error in report.missing_fields.items():
        if name not in evaluated:
            hint = f" ({error.fix})" if error.fix else ""
            yield (
                f"the selected field {name!r} is missing in all {report.total - report.counts.error} results: "
                f"{error.where}: {error.what}{hint}"
            )


def _describe_no_verdict(name: str, score: Score) -> str:
    outcome = "failed" if score.status == "error" else "was skipped"
    return f"{name} gave no verdict on any result; on the first it {outcome}: {score.reason}"
