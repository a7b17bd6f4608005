"""The pages of runs: the list, one run, and a metric over runs."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from math import inf, log10, nan
from typing import Any

import msgspec

from proctor.comparison.report import EvalReport
from proctor.comparison.slices import slice_results
from proctor.metrics.builtin import PassRateMetric
from proctor.records.grid import Grid
from proctor.records.metric import MetricValue, Trend
from proctor.records.results import Counts, Results
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import OUTCOMES
from proctor.reports.summary import (
    ERRORS_SEARCHED,
    count_errors_by_type,
    describe_early_stop,
    describe_status,
    find_flaky_samples,
    headlines,
    select_error_examples,
)

MetricTable = Mapping[str, MetricValue]
# The metrics in the list of runs, by their names there.
LISTED_METRICS = {"pass_rate": "pass_rate", "mean_score": "mean_score", "tokens": "tokens.total", "cost": "cost.total"}
# A rescored run calls judges only: the tokens and the cost of its outputs are those of the other run.
RESCORED_METRICS = LISTED_METRICS | {"tokens": "judges.tokens", "cost": "judges.cost"}
BINS = 20
FLAKY_SHOWN = 10
MAX_COMPARED_RESULTS = 50_000
# The list of runs is read every few seconds while a run is in progress.
MAX_READ_RESULTS = 20_000


def list_metrics(table: MetricTable) -> dict[str, Any]:
    """Return metrics with all their fields, also those with default values."""
    return {name: msgspec.structs.asdict(metric) for name, metric in table.items()}


def summarize_run(
    run: RunMetadata,
    tables: Mapping[str, MetricTable],
    counts: Counts,
    baselines: Iterable[str] = (),
    rates: MetricTable | None = None,
) -> dict[str, Any]:
    """Describe a run in the list of runs; `tables` are its metrics by configuration.

    `rates` are the pass rates so far of a run in progress, which has no metrics yet.
    """
    listed = RESCORED_METRICS if run.rescored_from else LISTED_METRICS
    metrics = {
        configuration: {name: msgspec.structs.asdict(table[key]) for name, key in listed.items() if key in table}
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
        "rescored_from": run.rescored_from,
        "counts": msgspec.structs.asdict(counts),
        "warnings": len(run.warnings),
        "baselines": sorted(baselines),
        "metrics": metrics,
        "so_far": list_metrics(rates or {}),
    }


def estimate_so_far(run: RunMetadata, results: Results, counts: Counts) -> dict[str, MetricValue]:
    """Estimate the pass rate of each configuration of a run in progress.

    Of many results, only the counts are read, which are those of the only configuration and have no interval.
    """
    names = [configuration.name for configuration in run.configurations]
    judged = counts.passed + counts.failed
    if not judged:
        return {}
    if counts.total <= MAX_READ_RESULTS:
        rates = {name: PassRateMetric().compute(results.for_configuration(name)) for name in names}
        return {name: rate for name, rate in rates.items() if rate.n}
    missing = counts.error + counts.unscored, counts.skipped
    return {names[0]: MetricValue(counts.passed / judged, judged, *missing, kind="rate")} if len(names) == 1 else {}


def configuration_tables(run: RunMetadata, metrics: MetricTable, tables: Mapping[str, MetricTable]) -> dict[str, Any]:
    """Return the metrics by configuration; a run with one configuration stores them only once."""
    if len(run.configurations) == 1:
        return {run.configurations[0].name: metrics}
    return dict(tables)


def run_page(report: EvalReport, baselines: Iterable[str] = ()) -> dict[str, Any]:
    """Describe a run by what needs no look at every result: sentences, metrics and warnings."""
    run = report.metadata
    assert run is not None
    tables = configuration_tables(run, report.metrics, report.by_configuration)
    return {
        "run": run,
        "summary": summarize_run(run, tables, report.counts, baselines),
        "sentences": headlines(report),
        "status_text": describe_status(report, run) or describe_early_stop(run),
        "warnings": list(run.warnings),
        "metrics": {name: list_metrics(table) for name, table in tables.items()},
        "evaluators": [_describe_spec(spec) for spec in run.evaluators],
    }


def overview_page(report: EvalReport, grid: Grid) -> dict[str, Any]:
    """Describe the results of a run: distributions of scores and latency, errors, and flaky samples."""
    run = report.metadata
    assert run is not None
    names = {name: grid.configurations.index(name) for name in report.configurations}
    flaky = find_flaky_samples(report)
    # A failed call is no answer: the metrics of latency do not count it either.
    error = OUTCOMES.index("error")
    answered = array(
        "f", (nan if mark == error else ms for ms, mark in zip(grid.latencies, grid.outcomes, strict=True))
    )
    return {
        "evaluators": [_describe_spec(spec) | _describe_scores(spec, report, grid, names) for spec in run.evaluators],
        "latency": {
            name: count_bins(_select_numbers(grid, answered, index), logarithmic=True) for name, index in names.items()
        },
        "errors": _describe_errors(report, grid),
        "flaky": flaky[:FLAKY_SHOWN],
        "flaky_count": len(flaky),
    }


def _describe_errors(report: EvalReport, grid: Grid) -> list[dict[str, Any]]:
    counts = count_errors_by_type(report)
    cells = [
        cell
        for outcome in ("error", "unscored")
        for cell in islice(_find_cells(grid.outcomes, OUTCOMES.index(outcome)), ERRORS_SEARCHED)
    ]
    examples = select_error_examples(report.results.read([grid.places[cell] for cell in cells]))
    return [{"kind": kind, "count": count, "example": examples.get(kind, "")} for kind, count in counts.items()]


def _find_cells(marks: bytes, mark: int) -> Iterator[int]:
    cell = marks.find(mark)
    while cell >= 0:
        yield cell
        cell = marks.find(mark, cell + 1)


def _count_outcomes(grid: Grid, marks: bytes, configuration: int) -> dict[str, int]:
    parts = [marks[cells] for cells in grid.cells_of(configuration)]
    return {outcome: sum(part.count(mark) for part in parts) for mark, outcome in enumerate(OUTCOMES)}


def _select_numbers(grid: Grid, numbers: array[float], configuration: int) -> array[float]:
    selected = array("f")
    for cells in grid.cells_of(configuration):
        selected.extend(numbers[cells])
    return selected


def _describe_spec(spec: EvaluatorSpec) -> dict[str, Any]:
    judges = list(spec.judges_inside)
    return {"name": spec.name, "uses": spec.uses, "parameters": spec.parameters, "judges": judges}


def _describe_scores(spec: EvaluatorSpec, report: EvalReport, grid: Grid, names: Mapping[str, int]) -> dict[str, Any]:
    evaluator = spec.name
    histograms, counts = {}, {}
    for name, index in names.items() if evaluator in grid.marks else ():
        histograms[name] = count_bins(_select_numbers(grid, grid.scores[evaluator], index), low=0.0, high=1.0)
        outcomes = _count_outcomes(grid, grid.marks[evaluator], index)
        counts[name] = {
            "passed": outcomes["passed"],
            "failed": outcomes["failed"],
            "errors": outcomes["error"] + outcomes["unscored"],
            "skipped": outcomes["skipped"],
        }
        if spec.samples is not None:
            # A sample that does not have the evaluator was not skipped.
            counts[name]["skipped"] = report.results.for_configuration(name).column(evaluator).skipped
    return {"histogram": histograms, "counts": counts}


def count_bins(
    values: array[float], *, low: float | None = None, high: float | None = None, logarithmic: bool = False
) -> dict[str, Any]:
    """Count values in bins of equal width, or of equal ratio on a logarithmic scale of positive values."""
    lowest = 0.0 if logarithmic else -inf
    known = sorted([value for value in values if lowest < value < inf])
    if not known:
        return {"edges": [], "counts": []}
    first, last = known[0] if low is None else low, known[-1] if high is None else high
    start, stop = (log10(first), log10(last)) if logarithmic else (first, last)
    edges = [start + (stop - start) * index / BINS for index in range(BINS + 1)]
    if logarithmic:
        edges = [10**edge for edge in edges]
    if stop <= start:
        return {"edges": edges, "counts": [len(known)] + [0] * (BINS - 1)}
    # A value on an edge belongs to the bin above it, and values beyond the ends to the first and last bin.
    below = [0, *(bisect_left(known, edge) for edge in edges[1:-1]), len(known)]
    return {"edges": edges, "counts": [after - before for before, after in pairwise(below)]}


def slices_page(report: EvalReport, key: str, samples: Iterable[Sample[Any, Any]] | None = None) -> dict[str, Any]:
    """Describe the pass rate by the values of a metadata key, for each configuration; `samples` are those of the run.

    The slices of a large run are not compared with each other, which would take minutes.
    """
    metric = "pass_rate"
    if report.total > MAX_COMPARED_RESULTS:
        run, names = report.metadata, report.configurations
        slices = slice_results(report.results, run, names, key, {}, metric=PassRateMetric(), samples=samples)
        note = (
            f"The pass rates count all results. The run has more than {MAX_COMPARED_RESULTS:,}, so the page does not "
            f"look for slices that say the opposite of the total: use proctor compare with --by {key}."
        )
        slices = msgspec.structs.replace(slices, notes=(note,))
    else:
        slices = report.by(key)
    tables = {name: report.by_configuration.get(name, report.metrics) for name in report.configurations}
    return {
        "key": key,
        "metric": metric,
        "configurations": list(report.configurations),
        "slices": [
            {
                "value": part.label,
                "n": part.samples,
                "metrics": {
                    name: msgspec.structs.asdict(table[metric])
                    for name, table in part.metrics.items()
                    if metric in table
                },
            }
            for part in slices
        ],
        "total": {name: msgspec.structs.asdict(table[metric]) for name, table in tables.items() if metric in table},
        "overlapping": slices.overlapping,
        "binned": slices.binned,
        "notes": list(slices.notes),
    }


def trend_page(
    trend: Trend, runs: Sequence[RunMetadata], metrics: Sequence[str], *, with_rescored: bool = False
) -> dict[str, Any]:
    """Describe a metric over runs, with what changed before each run.

    A rescored run has the outputs of another run, so it is a point only if `with_rescored`; `rescored` counts them.
    """
    by_id = {run.run_id: run for run in runs}
    previous: dict[tuple[str, str], RunMetadata] = {}
    points: list[dict[str, Any]] = []
    rescored = set()
    for point in trend.points:
        run = by_id.get(point.run_id)
        if run is not None and run.rescored_from is not None:
            rescored.add(run.run_id)
            if with_rescored:
                points.append({**msgspec.structs.asdict(point), "changes": [], "rescored_from": run.rescored_from})
            continue
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
        "rescored": len(rescored),
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
