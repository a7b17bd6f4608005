"""The end of a run: what its results amount to."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.metrics.registry import MetricRegistry
from proctor.ports import History, Metric
from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport
from proctor.records.results import Results
from proctor.records.run import RunMetadata

MetricTable = dict[str, MetricValue]


def aggregate(
    results: Results, run: RunMetadata, metrics: Sequence[Metric] = ()
) -> tuple[MetricTable, dict[str, MetricTable]]:
    """All metrics over the whole run and, where there are several, for each configuration."""
    registry = MetricRegistry.standard([spec.name for spec in run.evaluators])
    for metric in metrics:
        registry.register(metric)
    names = [configuration.name for configuration in run.configurations]
    if len(names) == 1:
        return registry.compute_all(results), {}
    tables = {name: registry.compute_all(results.only(name)) for name in names}
    return registry.compute_all(results), tables


def finish(history: History, run: RunMetadata, metrics: Sequence[Metric] = ()) -> EvalReport:
    """Compute what a run amounts to from what is stored, and store that with how it stands."""
    results = history.results(run.run_id, run)
    table, by_configuration = aggregate(results, run, metrics)
    history.finish(run, table, by_configuration)
    return EvalReport(results, run, table, by_configuration)
