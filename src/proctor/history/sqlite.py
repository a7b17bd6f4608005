"""The history in a file: SQLite, one writer at a time, any number of readers."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from proctor import codec
from proctor.errors import HistoryError, RunNotFound, nearest
from proctor.history.block import STORED, kept, record_of, rows
from proctor.history.claim import claim, is_claimed
from proctor.history.database import connect, open_database, transaction
from proctor.history.stored_results import StoredResults
from proctor.history.writer import INSERT, GroupWriter
from proctor.records.metric import MetricValue
from proctor.records.positions import Positions
from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES

MetricTable = Mapping[str, MetricValue]


class _Metrics(msgspec.Struct):
    metrics: dict[str, MetricValue] = {}
    by_configuration: dict[str, dict[str, MetricValue]] = {}


class SQLiteHistory:
    """Runs and their results in one file, by default `.proctor/history.db`.

    The file is made when the first run begins; looking into a history that is not there shows
    an empty one.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        # Threads may share a history, but not a connection: its transaction is one for all.
        self._opened: dict[int, sqlite3.Connection] = {}

    @classmethod
    def temporary(cls) -> SQLiteHistory:
        """A history that goes away when nobody uses it any more."""
        folder = tempfile.mkdtemp(prefix="proctor-")
        history = cls(Path(folder) / "history.db")
        weakref.finalize(history, shutil.rmtree, folder, ignore_errors=True)
        return history

    def begin(self, metadata: RunMetadata) -> None:
        """Open a new run."""
        data = _encoded(metadata)
        with self._changing():
            cursor = self._connection.execute(
                "INSERT INTO runs (run_id, name, status, started_at, metadata) "
                "VALUES (?, ?, ?, ?, ?)",
                (
                    metadata.run_id,
                    metadata.name,
                    metadata.status,
                    metadata.started_at.isoformat(),
                    data,
                ),
            )
            self._connection.executemany(
                "INSERT INTO tags VALUES (?, ?, ?)",
                [(cursor.lastrowid, key, value) for key, value in metadata.tags.items()],
            )

    def update(self, metadata: RunMetadata) -> None:
        """Store how a run stands now."""
        self._update(metadata, None)

    def finish(
        self,
        metadata: RunMetadata,
        metrics: MetricTable,
        by_configuration: Mapping[str, MetricTable],
    ) -> None:
        """Store how a run ended and what it amounts to."""
        self._update(
            metadata, codec.encode({"metrics": metrics, "by_configuration": by_configuration})
        )

    def _update(self, metadata: RunMetadata, metrics: bytes | None) -> None:
        data = _encoded(metadata)
        with self._changing():
            changed = self._connection.execute(
                "UPDATE runs SET status = ?, metadata = ?, metrics = ? WHERE run_id = ?",
                (metadata.status, data, metrics, metadata.run_id),
            )
            self._connection.executemany(
                "INSERT OR REPLACE INTO tags SELECT id, ?, ? FROM runs WHERE run_id = ?",
                [(key, value, metadata.run_id) for key, value in metadata.tags.items()],
            )
        if not changed.rowcount:
            raise RunNotFound(f"there is no run {metadata.run_id!r}: it was deleted meanwhile")

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Claim a run for this process; refused while another works on it."""
        return claim(self._locks, run_id)

    def is_held(self, run_id: str) -> bool:
        """True if a living process works on the run."""
        return is_claimed(self._locks, run_id)

    @contextlib.contextmanager
    def writer(self, run_id: str) -> Iterator[GroupWriter]:
        """A place for the run's results; when the block ends all of them are durable."""
        run_key, metadata = self._row(run_id)
        connection = connect(self.path)
        taken = Positions()
        for position, *_ in self.done(run_id):
            taken.add(position)
        writer = GroupWriter(connection, run_key, metadata, taken)
        try:
            yield writer
        finally:
            try:
                writer.close()
            finally:
                connection.close()

    def find(self, reference: str) -> RunMetadata:
        """A run by its id, the beginning of its id, its name (the newest), or "latest"."""
        known = [run.run_id for run in self.runs(limit=10)]
        if not known:
            raise RunNotFound(f"there is no run {reference!r}: the history is empty")
        # An id before a name, a name before the beginning of an id; then the newest.
        rows = self._connection.execute(
            "SELECT run_id, :name IN (run_id, name, 'latest') AS exact, metadata FROM runs "
            "WHERE exact OR substr(run_id, 1, length(:name)) = :name AND :name <> '' "
            "ORDER BY run_id = :name DESC, exact DESC, id DESC LIMIT 50",
            {"name": reference},
        ).fetchall()
        if not rows:
            raise RunNotFound(f"there is no run {reference!r}", fix=nearest(reference, known))
        _, exact, metadata = rows[0]
        if not exact and len(rows) > 1:
            raise RunNotFound(
                f"{reference!r} could be any of {len(rows)} runs",
                fix="give more of the id: " + ", ".join(row[0] for row in rows[:5]),
            )
        return msgspec.json.decode(metadata, type=RunMetadata)

    def report(self, run_id: str) -> EvalReport:
        """A stored run; its results are read as they are asked for."""
        metadata = self.find(run_id)
        stored = self._connection.execute(
            "SELECT metrics FROM runs WHERE run_id = ?", (metadata.run_id,)
        ).fetchone()[0]
        tables = msgspec.json.decode(stored, type=_Metrics) if stored else _Metrics()
        results = self.results(metadata.run_id)
        return EvalReport(results, metadata, tables.metrics, tables.by_configuration)

    def results(self, run_id: str, metadata: RunMetadata | None = None) -> StoredResults:
        """A run's results, read as they are asked for; `metadata` if it is known already."""
        run_key, stored = self._row(run_id)
        return StoredResults(self._connection, run_key, metadata or stored, keep_alive=self)

    def done(self, run_id: str) -> Iterator[tuple[int, str, str, int]]:
        """What a run has finished: position, sample id, configuration, epoch."""
        return self.results(run_id).done()

    def forget_errors(self, run_id: str) -> None:
        """Drop the results that have no verdict because something failed, to run them again."""
        run_key, metadata = self._row(run_id)
        size = record_of(len(metadata.evaluators)).size
        without = {OUTCOMES.index("error"), OUTCOMES.index("unscored")}
        with self._changing():
            keys = self._connection.execute(
                "SELECT id FROM blocks WHERE run = ? AND error + unscored > 0", (run_key,)
            ).fetchall()
            for (key,) in keys:
                stored = self._connection.execute(
                    f"SELECT {', '.join(STORED)} FROM blocks WHERE id = ?", (key,)
                ).fetchone()
                left = kept(stored, size, lambda outcome: outcome not in without)
                self._connection.execute("DELETE FROM blocks WHERE id = ?", (key,))
                self._connection.executemany(INSERT, rows(run_key, left))

    def runs(
        self,
        *,
        limit: int = 20,
        tags: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> Sequence[RunMetadata]:
        """Stored runs, newest first; the name and all given tags must match."""
        if not self.path.exists():
            return []
        query = "SELECT metadata FROM runs"
        values: list[str] = []
        if name is not None:
            query += " WHERE name = ?"
            values.append(name)
        for key, value in (tags or {}).items():
            query += " AND " if values else " WHERE "
            query += "id IN (SELECT run FROM tags WHERE key = ? AND value = ?)"
            values += [key, value]
        rows = self._connection.execute(f"{query} ORDER BY id DESC LIMIT ?", (*values, limit))
        return [msgspec.json.decode(row[0], type=RunMetadata) for row in rows]

    def delete(self, run_id: str) -> None:
        """Remove a run and everything that belongs to it."""
        run_key, _ = self._row(run_id)
        with self._changing():
            self._connection.execute("DELETE FROM runs WHERE id = ?", (run_key,))

    def cached(self, key: str) -> bytes | None:
        """An output kept under a key, or None."""
        if not self.path.exists():
            return None
        row = self._connection.execute("SELECT reply FROM outputs WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def close(self) -> None:
        """Close the file. It is opened again when it is needed again."""
        while self._opened:
            self._opened.popitem()[1].close()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """A transaction; what goes wrong in the file is told as an error of the history."""
        try:
            with transaction(self._connection):
                yield
        except sqlite3.Error as error:
            raise HistoryError(
                f"the history cannot be written: {error}",
                where=str(self.path),
                fix="see that the disk has room and the file may be written",
            ) from error

    @property
    def _connection(self) -> sqlite3.Connection:
        thread = threading.get_ident()
        found = self._opened.get(thread)
        if found is None:
            found = self._opened[thread] = open_database(self.path)
            # Of a history that nobody closes, the file is closed with its last user.
            weakref.finalize(self, found.close)
        return found

    @property
    def _locks(self) -> Path:
        return self.path.with_name(self.path.name + ".locks")

    def _row(self, run_id: str) -> tuple[int, RunMetadata]:
        row = None
        if self.path.exists():
            row = self._connection.execute(
                "SELECT id, metadata FROM runs WHERE run_id = ?", (run_id,)
            ).fetchone()
        if row is None:
            raise RunNotFound(f"there is no run {run_id!r}")
        return row[0], msgspec.json.decode(row[1], type=RunMetadata)


def _encoded(metadata: RunMetadata) -> bytes:
    """A run's metadata as JSON that can be read back: one bad value would hide the whole run."""
    data = codec.encode(metadata)
    codec.decode(data, RunMetadata, where=metadata.run_id)
    return data
