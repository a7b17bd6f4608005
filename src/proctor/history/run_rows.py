"""A run as a row of its table, and as rows of the tables it is found by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from proctor import codec
from proctor.errors import HistoryError
from proctor.history import finding
from proctor.history.database import Connection
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata

MetricTable = Mapping[str, MetricValue]
MetricTables = tuple[MetricTable, Mapping[str, MetricTable]]


class _Metrics(msgspec.Struct):
    metrics: dict[str, MetricValue] = {}
    by_configuration: dict[str, dict[str, MetricValue]] = {}


def tables_of(stored: bytes | None) -> MetricTables:
    """Metrics as they were stored; none of a run that has not ended."""
    try:
        tables = msgspec.json.decode(stored, type=_Metrics) if stored else _Metrics()
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise HistoryError(
            f"the history is damaged: the metrics of a run cannot be read ({error})",
            fix="restore the history from a backup, or delete the run: proctor delete RUN",
        ) from None
    return tables.metrics, tables.by_configuration


def values_of(run: RunMetadata) -> tuple[Any, ...]:
    """A run as a row; what cannot be stored is refused before anything is."""
    return run.run_id, run.name, run.status, finding.moment(run.started_at), encoded(run)


def begin(connection: Connection, values: Sequence[Any], run: RunMetadata) -> int:
    """Store a new run; gives the key under which its results go."""
    (run_key,) = connection.execute(
        "INSERT INTO runs (run_id, name, status, began, metadata) "
        "VALUES (?, ?, ?, ?, ?) RETURNING id",
        values,
    ).fetchone()
    describe(connection, run_key, run)
    return int(run_key)


def described(run: RunMetadata) -> tuple[dict[str, str], set[str], set[str]]:
    """What a run is found by: its tags, and the names of its evaluators and configurations."""
    evaluators = {name for spec in run.evaluators for name in (spec.name, spec.uses)}
    return run.tags, evaluators, {configuration.name for configuration in run.configurations}


def describe(connection: Connection, run_key: int, run: RunMetadata) -> None:
    """Store what a run is found by."""
    tags, evaluators, configurations = described(run)
    _insert(connection, "tags (run, key, value)", ((run_key, *tag) for tag in tags.items()))
    _insert(connection, "evaluators (run, name)", ((run_key, name) for name in evaluators))
    _insert(connection, "configurations (run, name)", ((run_key, name) for name in configurations))


def _insert(connection: Connection, into: str, values: Iterable[tuple[Any, ...]]) -> None:
    marks = ", ".join("?" * (into.count(",") + 1))
    connection.executemany(f"INSERT INTO {into} VALUES ({marks})", values)


def encoded(metadata: RunMetadata) -> bytes:
    """A run's metadata as JSON that can be read back: one bad value would hide the whole run."""
    data = codec.encode(metadata)
    codec.decode(data, RunMetadata, where=metadata.run_id)
    return data
