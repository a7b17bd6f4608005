"""The trend of a metric over runs, read from the metrics that are stored with the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from proctor.errors import ConfigError, suggest_name
from proctor.ports import History
from proctor.records.metric import MetricValue, Trend, TrendPoint
from proctor.records.run import RunMetadata

__all__ = ["Trend", "TrendPoint", "trend"]

NO_LIMIT = 2**31
FIELD_PREFIX = "field."

MetricTable = Mapping[str, MetricValue]
# A run, the name of a configuration, and the metrics of that configuration.
ConfigurationMetrics = tuple[RunMetadata, str, MetricTable]


def trend(
    history: History,
    metric: str,
    *,
    name: str | None = None,
    configurations: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    tags: Mapping[str, str] | None = None,
) -> Trend:
    """Return a metric, or the mean of a field or evaluator, for each run, oldest first.

    Only the stored metrics are read, not the results; a run that was killed before its metrics were stored is missing.
    A rescored run is left out, because its outputs are those of another run.
    """
    every = history.runs(limit=NO_LIMIT, name=name, since=since, until=until, tags=tags)
    runs = [run for run in every if run.rescored_from is None]
    stored = history.stored_metrics([run.run_id for run in runs])
    tables = [table for run in reversed(runs) for table in _configuration_metrics(run, stored)]
    matches = [
        (run, configuration, value)
        for run, configuration, table in tables
        if configurations is None or configuration in configurations
        if (value := _find_metric(metric, table)) is not None
    ]
    _check_names(metric, configurations, tables, has_metric=bool(matches))
    points = tuple(
        TrendPoint(
            run.started_at,
            run.run_id,
            configuration,
            value.value,
            value.n,
            value.interval,
            run.name,
            _incomplete_status(run),
        )
        for run, configuration, value in matches
        if value.value is not None
    )
    if not matches:
        return Trend(metric, ())
    newest = matches[-1][2]
    return Trend(metric, points, newest.kind, newest.unit)


def _find_metric(metric: str, table: MetricTable) -> MetricValue | None:
    """Return a metric by its name; the name of a field or evaluator selects its mean."""
    for name in (FIELD_PREFIX + metric, metric, f"{metric}.mean", f"{FIELD_PREFIX}{metric}.mean"):
        if name in table:
            return table[name]
    return None


def _incomplete_status(run: RunMetadata) -> str:
    if run.stopped_early is not None:
        return "stopped early"
    return "" if run.status == "completed" else run.status


def _configuration_metrics(
    run: RunMetadata, stored: Mapping[str, tuple[MetricTable, Mapping[str, MetricTable]]]
) -> Iterator[ConfigurationMetrics]:
    """Yield a run's metrics by configuration; a run with one configuration has only overall metrics."""
    metrics, by_configuration = stored.get(run.run_id, ({}, {}))
    tables = by_configuration or {run.configurations[0].name: metrics}
    for configuration, table in tables.items():
        if table:
            yield run, configuration, table


def _check_names(
    metric: str, configurations: Sequence[str] | None, tables: Sequence[ConfigurationMetrics], *, has_metric: bool
) -> None:
    """Raise `ConfigError` for an unknown name, which would otherwise result in an empty trend."""
    if not tables:
        return
    known_configurations = {configuration for _, configuration, _ in tables}
    for configuration in configurations or ():
        if configuration not in known_configurations:
            raise ConfigError(
                f"no run has a configuration {configuration!r}",
                where="trend",
                fix=suggest_name(configuration, known_configurations),
            )
    if not has_metric:
        names = {name.removeprefix(FIELD_PREFIX) for _, _, table in tables for name in table}
        raise ConfigError(f"no run has a metric {metric!r}", where="trend", fix=suggest_name(metric, names))
