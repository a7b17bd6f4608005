"""How a number went from run to run, read from the metrics that were stored with the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from proctor.errors import ConfigError, suggest_name
from proctor.ports import History
from proctor.records.metric import MetricValue, Trend, TrendPoint
from proctor.records.run import RunMetadata

__all__ = ["Trend", "TrendPoint", "trend"]

ALL = 2**31
FIELD = "field."

Table = Mapping[str, MetricValue]
Told = tuple[RunMetadata, str, Table]


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
    """A metric, or the mean of a field or evaluator, run by run, the oldest first.

    Only what was stored with the runs is read, no results; a run that was killed before its
    metrics were stored is not in it.
    """
    runs = history.runs(limit=ALL, name=name, since=since, until=until, tags=tags)
    stored = history.metrics_of([run.run_id for run in runs])
    told = [one for run in reversed(runs) for one in _tables(run, stored)]
    found = [
        (run, configuration, value)
        for run, configuration, table in told
        if configurations is None or configuration in configurations
        if (value := _called(metric, table)) is not None
    ]
    _refuse_unknown(metric, configurations, told, known=bool(found))
    points = tuple(
        TrendPoint(
            run.started_at,
            run.run_id,
            configuration,
            value.value,
            value.n,
            value.interval,
            run.name,
            _unfinished(run),
        )
        for run, configuration, value in found
        if value.value is not None
    )
    if not found:
        return Trend(metric, ())
    return Trend(metric, points, found[-1][2].kind, found[-1][2].unit)


def _called(metric: str, table: Table) -> MetricValue | None:
    """A metric by its name; the name of a field or of an evaluator alone means its mean."""
    for name in (FIELD + metric, metric, f"{metric}.mean", f"{FIELD}{metric}.mean"):
        if name in table:
            return table[name]
    return None


def _unfinished(run: RunMetadata) -> str:
    """How a run ended that did not run all that was planned."""
    if run.stopped_early is not None:
        return "stopped early"
    return "" if run.status == "completed" else run.status


def _tables(run: RunMetadata, stored: Mapping[str, tuple[Table, Mapping[str, Table]]]) -> Iterator[Told]:
    """A run's metrics by configuration; of a run with one configuration, all there are."""
    metrics, by_configuration = stored.get(run.run_id, ({}, {}))
    tables = by_configuration or {run.configurations[0].name: metrics}
    for configuration, table in tables.items():
        if table:
            yield run, configuration, table


def _refuse_unknown(
    metric: str, configurations: Sequence[str] | None, told: Sequence[Told], *, known: bool
) -> None:
    """A misspelt name would look like a number that nobody ever took."""
    if not told:
        return
    seen = {configuration for _, configuration, _ in told}
    for configuration in configurations or ():
        if configuration not in seen:
            raise ConfigError(
                f"no run has a configuration {configuration!r}",
                where="trend",
                fix=suggest_name(configuration, seen),
            )
    if not known:
        names = {name.removeprefix(FIELD) for _, _, table in told for name in table}
        raise ConfigError(
            f"no run has a number for {metric!r}", where="trend", fix=suggest_name(metric, names)
        )
