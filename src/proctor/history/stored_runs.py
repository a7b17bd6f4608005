"""Runs and their results in a database: create, write, find and delete."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from proctor.comparison.report import EvalReport
from proctor.errors import HistoryError, ResumeRefused, RunNotFound
from proctor.history import run_finder
from proctor.history.block import (
    RESULTS_PER_BLOCK,
    STORED_COLUMNS,
    Packed,
    ResultPacker,
    make_record_layout,
    make_rows,
    select_complete_results,
)
from proctor.history.damage import BlockChecker, damage_error, decode_stored
from proctor.history.database import Connection, Database, first_line
from proctor.history.stored_results import StoredResults
from proctor.history.writer import INSERT, GroupWriter
from proctor.records import codec
from proctor.records.label import HumanLabel, current_labels
from proctor.records.metric import MetricValue
from proctor.records.order import Positions
from proctor.records.run import HistoryInfo, PruneResult, Retention, RunMetadata
from proctor.records.trial import OUTCOMES, EvalResult


class RunImporter:
    """Stores an imported run's results and metrics block by block."""

    def __init__(self, connection: Connection, run_key: int, run: RunMetadata) -> None:
        self._connection = connection
        self._run_key = run_key
        self._packer = ResultPacker(run)
        self._pending: list[Packed] = []

    def add(self, position: int, result: EvalResult) -> None:
        """Store a result at its position in the plan."""
        self._pending.append(self._packer.pack(position, result, result.verdict()))
        if len(self._pending) >= RESULTS_PER_BLOCK:
            self.write()

    def finish(
        self, metrics: Mapping[str, MetricValue], by_configuration: Mapping[str, Mapping[str, MetricValue]]
    ) -> None:
        """Store the run's metrics."""
        tables = codec.encode({"metrics": metrics, "by_configuration": by_configuration})
        self._connection.execute("UPDATE runs SET metrics = ? WHERE id = ?", (tables, self._run_key))

    def add_labels(self, labels: Sequence[HumanLabel]) -> None:
        """Store the human labels of the run."""
        insert_labels(self._connection, labels)

    def write(self) -> None:
        """Write the pending results to the database."""
        self._connection.executemany(INSERT, make_rows(self._run_key, self._pending))
        self._pending = []


MetricTable = Mapping[str, MetricValue]
MetricTables = tuple[MetricTable, Mapping[str, MetricTable]]


class _Metrics(msgspec.Struct):
    metrics: dict[str, MetricValue] = {}
    by_configuration: dict[str, dict[str, MetricValue]] = {}


def decode_metrics(stored: bytes | None, run_id: str) -> MetricTables:
    """Decode stored metrics; a run that has not ended has none."""
    try:
        tables = msgspec.json.decode(stored, type=_Metrics) if stored else _Metrics()
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise HistoryError(
            f"the history is damaged: the metrics of run {run_id} cannot be read ({error})",
            fix=f"restore the history from a backup, or delete the run: proctor delete {run_id}",
        ) from None
    return tables.metrics, tables.by_configuration


def searchable_properties(run: RunMetadata) -> tuple[dict[str, str], set[str], set[str]]:
    """Return the searchable properties of a run: tags, evaluators and configurations."""
    evaluators = {name for spec in run.evaluators for name in (spec.name, spec.uses)}
    return run.tags, evaluators, {configuration.name for configuration in run.configurations}


def store_properties(connection: Connection, run_key: int, run: RunMetadata) -> None:
    """Store the searchable properties of a run."""
    tags, evaluators, configurations = searchable_properties(run)
    _insert(connection, "tags (run, key, value)", ((run_key, *tag) for tag in tags.items()))
    _insert(connection, "evaluators (run, name)", ((run_key, name) for name in evaluators))
    _insert(connection, "configurations (run, name)", ((run_key, name) for name in configurations))


def _insert(connection: Connection, table: str, values: Iterable[tuple[Any, ...]]) -> None:
    marks = ", ".join("?" * (table.count(",") + 1))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)


def insert_labels(connection: Connection, labels: Iterable[HumanLabel]) -> int:
    """Insert the labels that are not stored yet, and return their number."""
    inserted = 0
    for label in labels:
        values = label.label_id, label.evaluator, codec.encode(label), label.run_id
        inserted += connection.execute(
            "INSERT INTO labels (label_id, run, evaluator, label) SELECT ?, id, ?, ? FROM runs WHERE run_id = ? "
            "ON CONFLICT (label_id) DO NOTHING",
            values,
        ).rowcount
    return inserted


def encode_run(metadata: RunMetadata) -> bytes:
    """Encode a run's metadata and check that it can be decoded, because one invalid value would hide the run."""
    data = codec.encode(metadata)
    codec.decode(data, RunMetadata, where=metadata.run_id)
    return data


# The number of values in one SQL statement is limited.
IDS_PER_QUERY = 500
IN_USE = "a process is working on it"


class StoredRuns(run_finder.RunFinder):
    """Runs and their results in a database; the base of `SQLiteHistory` and `PostgresHistory`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Threads may share a history, but not the transaction of a connection.
        self._open_connections: dict[int, Connection] = {}
        self._pending_outputs: dict[str, bytes] = {}

    def begin(self, metadata: RunMetadata) -> None:
        """Store a new run."""
        with self._begin(metadata):
            pass

    @contextlib.contextmanager
    def _begin(self, run: RunMetadata) -> Iterator[tuple[Connection, int]]:
        """Store a new run in a transaction; yield its connection and the key for the run's results."""
        values = run.run_id, run.name, run.status, run_finder.to_microseconds(run.started_at), encode_run(run)
        columns = "run_id, name, status, began, metadata"
        with self._changing() as connection:
            (run_key,) = connection.execute(
                f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?) RETURNING id", values
            ).fetchone()
            store_properties(connection, run_key, run)
            yield connection, run_key

    @contextlib.contextmanager
    def import_run(self, metadata: RunMetadata) -> Iterator[RunImporter]:
        """Import a complete run in one transaction; nothing is stored if the block fails.

        The run is visible only after the block; other writers wait until then.
        """
        with self._begin(metadata) as (connection, run_key):
            importer = RunImporter(connection, run_key, metadata)
            yield importer
            importer.write()

    def update(self, metadata: RunMetadata) -> None:
        """Store the current state of a run."""
        self._update(metadata, None)

    def finish(self, metadata: RunMetadata, metrics: MetricTable, by_configuration: Mapping[str, MetricTable]) -> None:
        """Store the final state and the metrics of a run."""
        self._update(metadata, codec.encode({"metrics": metrics, "by_configuration": by_configuration}))

    def _update(self, metadata: RunMetadata, metrics: bytes | None) -> None:
        data = encode_run(metadata)
        with self._changing() as connection:
            row = connection.execute("SELECT id, metadata FROM runs WHERE run_id = ?", (metadata.run_id,)).fetchone()
            if row is None:
                raise RunNotFound(f"unknown run {metadata.run_id!r}: it was deleted meanwhile")
            connection.execute(
                "UPDATE runs SET status = ?, metadata = ?, metrics = ? WHERE id = ?",
                (metadata.status, data, metrics, row[0]),
            )
            if searchable_properties(run_finder.decode_run(row[1])) != searchable_properties(metadata):
                for table in ("tags", "evaluators", "configurations"):
                    connection.execute(f"DELETE FROM {table} WHERE run = ?", (row[0],))
                store_properties(connection, row[0], metadata)

    def claim(self, run_id: str) -> AbstractContextManager[None]:
        """Claim a run for this process; raises an error while another process works on it."""
        return self._database.claim(run_id)

    def is_claimed(self, run_id: str) -> bool:
        """Return whether a process works on the run."""
        return self._database.is_claimed(run_id, self._query)

    @contextlib.contextmanager
    def writer(self, run_id: str) -> Iterator[GroupWriter]:
        """Return a writer for the run's results; all of them are durable when the block ends."""
        run_key, metadata = self._row(run_id)
        connection = self._database.connect()
        check_claim = partial(self._database.check_claim, run_id)
        positions = Positions()
        for position, *_ in self.finished_trials(run_id):
            positions.add(position)
        writer = GroupWriter(connection, run_key, metadata, positions, check_claim, self._pending_outputs)
        try:
            yield writer
        finally:
            try:
                writer.close()
            finally:
                connection.close()

    def report(self, run_id: str) -> EvalReport:
        """Return a stored run; its results are read on demand."""
        metadata = self.find(run_id)
        stored = self._query("SELECT metrics FROM runs WHERE run_id = ?", (metadata.run_id,))
        if not stored:
            raise RunNotFound(f"unknown run {run_id!r}: it was deleted meanwhile")
        results = self.results(metadata.run_id)
        is_complete = metadata.status == "completed" and metadata.stopped_early is None
        if is_complete and metadata.total and not len(results):
            # A damaged index hides rows without an error.
            raise damage_error(metadata.run_id, f"all {metadata.total:,} results are missing")
        return EvalReport(results, metadata, *decode_metrics(stored[0][0], metadata.run_id))

    def stored_metrics(self, run_ids: Sequence[str]) -> dict[str, MetricTables]:
        """Return the stored metrics of runs: overall, and by configuration."""
        tables: dict[str, MetricTables] = {}
        for start in range(0, len(run_ids), IDS_PER_QUERY):
            part = run_ids[start : start + IDS_PER_QUERY]
            marks = ", ".join("?" * len(part))
            rows = self._query(f"SELECT run_id, metrics FROM runs WHERE run_id IN ({marks})", part)
            tables |= {run_id: decode_metrics(metrics, run_id) for run_id, metrics in rows}
        return tables

    def results(self, run_id: str, metadata: RunMetadata | None = None) -> StoredResults:
        """Return a run's results, which are read on demand; pass `metadata` if you have it."""
        run_key, stored = self._row(run_id)
        return StoredResults(self._query, run_key, metadata or stored)

    def finished_trials(self, run_id: str) -> Iterator[tuple[int, str, str, int]]:
        """Yield the finished trials of a run: position, sample id, configuration, epoch."""
        return self.results(run_id).finished_trials()

    def delete_errors(self, run_id: str) -> None:
        """Delete the results in which the target or an evaluator failed, so that they run again."""
        run_key, metadata = self._row(run_id)
        size = make_record_layout(len(metadata.evaluators)).size
        with self._changing() as connection:
            keys = connection.execute(
                "SELECT id FROM blocks WHERE run = ? AND error + unscored + failed > 0", (run_key,)
            ).fetchall()
            for (key,) in keys:
                *stored, checksums = connection.execute(
                    f"SELECT {', '.join(STORED_COLUMNS)}, checksums FROM blocks WHERE id = ?", (key,)
                ).fetchone()
                BlockChecker(metadata).check_row(STORED_COLUMNS, stored, checksums)
                decode = partial(select_complete_results, stored, len(metadata.evaluators))
                remaining = decode_stored(run_id, "the results", decode)
                if len(remaining) < len(stored[0]) // size:
                    connection.execute("DELETE FROM blocks WHERE id = ?", (key,))
                    connection.executemany(INSERT, make_rows(run_key, remaining))

    def add_labels(self, labels: Sequence[HumanLabel]) -> int:
        """Store human labels of runs in this history; return how many are new."""
        for run_id in {label.run_id for label in labels}:
            self._row(run_id)
        with self._changing() as connection:
            return insert_labels(connection, labels)

    def labels(
        self, *, run_id: str | None = None, evaluator: str | None = None, name: str | None = None
    ) -> list[HumanLabel]:
        """Return the current human labels of a run, of an evaluator, or of the runs with a name, oldest first."""
        conditions = {"runs.run_id": run_id, "labels.evaluator": evaluator, "runs.name": name}
        chosen = {column: value for column, value in conditions.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in chosen) or "1 = 1"
        rows = self._query(
            f"SELECT label FROM labels JOIN runs ON runs.id = labels.run WHERE {where} ORDER BY labels.id",
            tuple(chosen.values()),
        )
        return current_labels(codec.decode(bytes(label), HumanLabel, where="a label") for (label,) in rows)

    def set_baseline(self, name: str, run_id: str) -> RunMetadata:
        """Make a run a baseline; `run_id` is any reference that `find` accepts. An existing baseline moves to this
        run."""
        run_finder.check_baseline_name(name)
        run = self.find(run_id)
        with self._changing() as connection:
            changed = connection.execute(
                "INSERT INTO baselines (name, run) SELECT ?, id FROM runs WHERE run_id = ? "
                "ON CONFLICT (name) DO UPDATE SET run = excluded.run",
                (name, run.run_id),
            )
            if not changed.rowcount:
                raise RunNotFound(f"unknown run {run_id!r}: it was deleted meanwhile")
        return run

    def drop_baseline(self, name: str) -> None:
        """Delete a baseline; its run stays."""
        self.baseline(name)
        with self._changing() as connection:
            connection.execute("DELETE FROM baselines WHERE name = ?", (name,))

    def delete(self, run_id: str) -> list[str]:
        """Delete a run with its results; return the baselines deleted with it."""
        self._row(run_id)
        return self._delete(run_id)

    def prune(
        self,
        retention: Retention,
        *,
        now: datetime,
        name: str | None = None,
        dry_run: bool = False,
        only: Collection[str] | None = None,
    ) -> PruneResult:
        """Delete the runs outside the retention limits, of one name or of all names; return them.

        Baselines and runs that a process works on are not deleted. A dry run deletes nothing. `only` restricts the
        deletion to these ids.
        """
        expired = self._expired_runs(retention, now, name)
        baselines = {run.run_id: baseline for baseline, run in self.baselines().items()} if expired else {}
        deleted, exempt = [], {}
        for run in expired:
            if run.run_id in baselines:
                exempt[run.run_id] = f"the baseline {baselines[run.run_id]}"
            elif self.is_claimed(run.run_id):
                exempt[run.run_id] = IN_USE
            elif only is None or run.run_id in only:
                deleted.append(run)
        if not dry_run:
            deleted = [run for run in deleted if self._delete_unless_needed(run, exempt)]
        if deleted and not dry_run:
            self._database.scrub(self._connection)
        return PruneResult(tuple(deleted), exempt)

    def _delete_unless_needed(self, run: RunMetadata, exempt: dict[str, str]) -> bool:
        try:
            with self.claim(run.run_id), self._changing() as connection:
                baselines = self._lock_and_list_baselines(connection, run.run_id)
                if baselines:
                    exempt[run.run_id] = f"the baseline {baselines[0]}"
                    return False
                connection.execute("DELETE FROM runs WHERE run_id = ?", (run.run_id,))
        except ResumeRefused:
            exempt[run.run_id] = IN_USE
            return False
        return True

    def _delete(self, run_id: str) -> list[str]:
        with self._changing() as connection:
            baselines = self._lock_and_list_baselines(connection, run_id)
            connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
        self._database.scrub(self._connection)
        return baselines

    def _lock_and_list_baselines(self, connection: Connection, run_id: str) -> list[str]:
        """Return the baselines of a run, and lock the run until the transaction ends."""
        lock = f"SELECT id FROM runs WHERE run_id = ?{self._database.locking}"
        connection.execute(lock, (run_id,)).fetchone()
        rows = connection.execute(
            "SELECT baselines.name FROM baselines JOIN runs ON runs.id = baselines.run WHERE run_id = ?", (run_id,)
        ).fetchall()
        return sorted(row[0] for row in rows)

    def delete_outputs(self, *, before: datetime | None = None, dry_run: bool = False) -> int:
        """Delete cached outputs and responses, or only those older than a time; return their number.

        A dry run only counts them.
        """
        condition, values = "", []
        if before is not None:
            condition, values = " WHERE created_at < ?", [before.astimezone(UTC).isoformat()]
        counted = self._query(f"SELECT count(*) FROM outputs{condition}", values)
        if dry_run or not counted or not counted[0][0]:
            return int(counted[0][0]) if counted else 0
        with self._changing() as connection:
            deleted = connection.execute(f"DELETE FROM outputs{condition}", values).rowcount
        self._database.scrub(self._connection)
        return deleted

    def describe(self) -> HistoryInfo:
        """Return the location of the history and the size of its content."""
        where = self._database.where
        if not self._database.exists():
            return HistoryInfo(where)
        all_outcomes = " + ".join(OUTCOMES)
        counted = self._query(
            "SELECT (SELECT count(*) FROM runs), "
            f"(SELECT CAST(coalesce(sum({all_outcomes}), 0) AS BIGINT) FROM blocks), "
            "(SELECT count(*) FROM outputs)"
        )
        (runs, results, outputs), (size, schema) = counted[0], self._database.measure(self._query)
        return HistoryInfo(where, runs, results, size, schema, outputs)

    def get_cached_output(self, key: str) -> bytes | None:
        """Return the cached output for a key, or None; includes outputs that are still being written."""
        # In this order, an output that is stored between the two lookups is not missed.
        if (pending_output := self._pending_outputs.get(key)) is not None:
            return pending_output or None
        rows = self._query("SELECT reply FROM outputs WHERE key = ?", (key,))
        return bytes(rows[0][0]) if rows else None

    def close(self) -> None:
        """Close the connections; they reopen when needed."""
        while self._open_connections:
            self._open_connections.popitem()[1].close()

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query; a history that does not exist yet returns no rows."""
        if not self._database.exists():
            return []
        connection = self._connection
        try:
            try:
                return connection.execute(sql, values).fetchall()
            except self._database.errors:
                if connection.usable:
                    raise
                # The server restarted or closed an idle connection; try once more.
                return self._connection.execute(sql, values).fetchall()
        except (self._database.errors, UnicodeDecodeError) as error:
            raise HistoryError(
                f"the history cannot be read: {first_line(error)}",
                where=self._database.where,
                fix=self._database.reading_fix,
            ) from error

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Connection]:
        """Open a transaction; database errors become `HistoryError`."""
        self._query("SELECT 1")
        connection = self._connection
        try:
            with connection.transaction():
                yield connection
        except self._database.errors as error:
            raise HistoryError(
                f"the history cannot be written: {first_line(error)}",
                where=self._database.where,
                fix=self._database.fix,
            ) from error

    @property
    def _connection(self) -> Connection:
        thread = threading.get_ident()
        connection = self._open_connections.get(thread)
        if connection is None or not connection.usable:
            connection = self._open_connections[thread] = self._database.connect()
            # A history that was not closed closes its connections when its last reference is gone.
            weakref.finalize(self, connection.close)
        return connection

    def _row(self, run_id: str) -> tuple[int, RunMetadata]:
        rows = self._query("SELECT id, metadata FROM runs WHERE run_id = ?", (run_id,))
        if not rows:
            raise RunNotFound(f"unknown run {run_id!r}")
        return rows[0][0], run_finder.decode_run(rows[0][1])
