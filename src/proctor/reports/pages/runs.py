"""The pages of runs: the list, one run, and a metric over runs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, log10
from typing import Any

import msgspec

from proctor.comparison.report import EvalReport
from proctor.records.metric import MetricValue, Trend
from proctor.records.results import Counts, Results
from proctor.records.run import RunMetadata
from proctor.reports.summary import (
    count_errors_by_type,
    describe_early_stop,
    describe_status,
    find_error_examples,
    find_flaky_samples,
    headlines,
)

MetricTable = Mapping[str, MetricValue]
# The metrics in the list of runs, by their names there.
LISTED_METRICS = {"pass_rate": "pass_rate", "mean_score": "mean_score", "tokens": "tokens.total", "cost": "cost.total"}
BINS = 20
FLAKY_SHOWN = 100


def list_metrics(table: MetricTable) -> dict[str, Any]:
    """Return metrics with all their fields, also those with default values."""
    return {name: msgspec.structs.asdict(metric) for name, metric in table.items()}


def summarize_run(
    run: RunMetadata, tables: Mapping[str, MetricTable], counts: Counts, baselines: Iterable[str] = ()
) -> dict[str, Any]:
    """Describe a run in the list of runs; `tables` are its metrics by configuration."""
    metrics = {
        configuration: {
            name: msgspec.structs.asdict(table[metric]) for name, metric in LISTED_METRICS.items() if metric in table
        }
        for configuration, table in tables.items()
    }
    return {
        "run_id": run.run_id,
        "name": run.name,
        "status": run.status,
        "started_at": run.started_at.isoformat(),
        "duration_seconds": run.duration_seconds,
        "finished": counts.total,
        "planned": run.total,
        "tags": run.tags,
        "dataset": {"name": run.dataset.name, "length": run.dataset.length},
        "target": run.target.name,
        "configurations": [configuration.name for configuration in run.configurations],
        "evaluators": [spec.name for spec in run.evaluators],
        "code": run.provenance.code,
        "counts": msgspec.structs.asdict(counts),
        "warnings": len(run.warnings),
        "baselines": sorted(baselines),
        "metrics": metrics,
    }


def configuration_tables(run: RunMetadata, metrics: MetricTable, tables: Mapping[str, MetricTable]) -> dict[str, Any]:
    """Return the metrics by configuration; a run with one configuration stores them only once."""
    if len(run.configurations) == 1:
        return {run.configurations[0].name: metrics}
    return dict(tables)


def run_page(report: EvalReport, baselines: Iterable[str] = ()) -> dict[str, Any]:
    """Describe a run: sentences, metrics, distributions, warnings and errors."""
    run = report.metadata
    assert run is not None
    tables = configuration_tables(run, report.metrics, report.by_configuration)
    parts = {name: report.results.for_configuration(name) for name in report.configurations}
    counts = {name: msgspec.structs.asdict(part.counts()) for name, part in parts.items()}
    examples = find_error_examples(report)
    return {
        "run": run,
        "summary": summarize_run(run, tables, report.counts, baselines),
        "sentences": headlines(report),
        "status_text": describe_status(report, run) or describe_early_stop(run),
        "warnings": list(run.warnings),
        "metrics": {name: list_metrics(table) for name, table in tables.items()},
        "counts": counts,
        "evaluators": [_describe_evaluator(spec, parts) for spec in run.evaluators],
        "latency": {name: count_bins(part.latencies().values, logarithmic=True) for name, part in parts.items()},
        "errors": [
            {"kind": kind, "count": count, "example": examples.get(kind, "")}
            for kind, count in count_errors_by_type(report).items()
        ],
        "flaky": find_flaky_samples(report)[:FLAKY_SHOWN],
        "comparisons": [*report.compare_with_baseline()],
    }


def _describe_evaluator(spec: Any, parts: Mapping[str, Results]) -> dict[str, Any]:
    histograms, counts = {}, {}
    for name, part in parts.items():
        column = part.column(spec.name)
        histograms[name] = count_bins(column.values, low=0.0, high=1.0)
        passed = sum(column.passes)
        counts[name] = {
            "passed": passed,
            "failed": len(column.passes) - passed,
            "errors": column.errors,
            "skipped": column.skipped,
        }
    return {
        "name": spec.name,
        "uses": spec.uses,
        "parameters": spec.parameters,
        "judges": list(spec.judges_inside),
        "histogram": histograms,
        "counts": counts,
    }


def count_bins(
    values: array[float], *, low: float | None = None, high: float | None = None, logarithmic: bool = False
) -> dict[str, Any]:
    """Count values in bins of equal width, or of equal ratio on a logarithmic scale of positive values."""
    known = [value for value in values if isfinite(value) and (value > 0 or not logarithmic)]
    if not known:
        return {"edges": [], "counts": []}
    first, last = min(known) if low is None else low, max(known) if high is None else high
    if logarithmic:
        start, stop = log10(first), log10(last)
        edges = [10 ** (start + (stop - start) * index / BINS) for index in range(BINS + 1)]
        scaled = [(log10(value) - start) / (stop - start) if stop > start else 0.0 for value in known]
    else:
        edges = [first + (last - first) * index / BINS for index in range(BINS + 1)]
        scaled = [(value - first) / (last - first) if last > first else 0.0 for value in known]
    counts = [0] * BINS
    for share in scaled:
        counts[min(BINS - 1, max(0, int(share * BINS)))] += 1
    return {"edges": edges, "counts": counts}


def slices_page(report: EvalReport, key: str, metric: str = "pass_rate") -> dict[str, Any]:
    """Describe a metric by the values of a metadata key, for each configuration."""
    slices = report.by(key)
    return {
        "key": key,
        "metric": metric,
        "configurations": list(report.configurations),
        "slices": [
            {
                "value": each.label,
                "n": each.samples,
                "metrics": {
                    name: msgspec.structs.asdict(table[metric])
                    for name, table in each.metrics.items()
                    if metric in table
                },
            }
            for each in slices
        ],
        "overlapping": slices.overlapping,
        "binned": slices.binned,
        "notes": list(slices.notes),
    }


def trend_page(trend: Trend, runs: Sequence[RunMetadata], metrics: Sequence[str]) -> dict[str, Any]:
    """Describe a metric over runs, with what changed before each run."""
    by_id = {run.run_id: run for run in runs}
    previous: dict[tuple[str, str], RunMetadata] = {}
    points = []
    for point in trend.points:
        run = by_id.get(point.run_id)
        changes: list[str] = []
        if run is not None:
            before = previous.get((run.name, point.configuration))
            changes = [] if before is None else list_changed_parts(before, run)
            previous[run.name, point.configuration] = run
        points.append({**msgspec.structs.asdict(point), "changes": changes})
    return {
        "metric": trend.field,
        "kind": trend.kind,
        "unit": trend.unit,
        "points": points,
        "metrics": list(metrics),
        "names": list(dict.fromkeys(run.name for run in runs)),
    }


def list_changed_parts(before: RunMetadata, after: RunMetadata) -> list[str]:
    """Name the parts of a run that changed since another: target, dataset, evaluators, options."""
    parts = {
        "target": (before.target.identity, after.target.identity),
        "dataset": (before.dataset.fingerprint, after.dataset.fingerprint),
        "evaluators": (_identify(before), _identify(after)),
        "options": (before.configurations, after.configurations),
    }
    return [name for name, (old, new) in parts.items() if old != new]


def _identify(run: RunMetadata) -> list[tuple[str, str]]:
    return [(spec.name, spec.identity) for spec in run.evaluators]
