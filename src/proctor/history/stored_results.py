"""Results that lie in a history file and are read as they are asked for."""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

from proctor.history.payload import read
from proctor.history.writer import POSITION_BITS
from proctor.records.results import Column, Counts, shared_clusters
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

BATCH = 2_000
# Up to this many results, columns that were read once are kept for the next question.
KEPT_UP_TO = 200_000
NO_CONFIGURATION = -1
CLUSTER = "coalesce(cluster, sample_id)"

MARK_OF: dict[Outcome, str] = {
    "passed": "p",
    "failed": "f",
    "unscored": "e",
    "skipped": "s",
    "error": "x",
}


class _Scores(NamedTuple):
    """All evaluators' marks and numbers, result by result, and the results' clusters if wanted."""

    marks: str
    numbers: array[float]
    clusters: list[str] | None


class StoredResults:
    """A run's results on disk: a sequence in the order of the plan, and its columns as numbers."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        run_key: int,
        run: RunMetadata,
        configuration: int | None = None,
        keep_alive: object = None,
    ) -> None:
        self._connection = connection
        # A temporary history goes away with its last user, and that may be these results.
        self._keep_alive = keep_alive
        self._run_key = run_key
        self._run = run
        self._configuration = configuration
        self._kept: dict[str, Any] = {}
        low = run_key << POSITION_BITS
        self._where = f"id >= {low} AND id < {low + (1 << POSITION_BITS)}"
        if configuration is not None:
            self._where += f" AND configuration = {configuration}"

    def __len__(self) -> int:
        return self.counts().total

    def __iter__(self) -> Iterator[EvalResult]:
        last = -1
        while True:
            rows = self._connection.execute(
                f"SELECT id, payload FROM results WHERE {self._where} AND id > ? "
                f"ORDER BY id LIMIT {BATCH}",
                (last,),
            ).fetchall()
            for _, data in rows:
                yield read(data)
            if len(rows) < BATCH:
                return
            last = rows[-1][0]

    @overload
    def __getitem__(self, index: int) -> EvalResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EvalResult]: ...
    def __getitem__(self, index: int | slice) -> EvalResult | Sequence[EvalResult]:
        if isinstance(index, slice):
            positions = range(*index.indices(len(self)))
            first, last = min(positions, default=0), max(positions, default=-1)
            rows = self._payloads("", "id", first, last - first + 1)
            return [read(rows[position - first]) for position in positions]
        length = len(self)
        position = index + length if index < 0 else index
        if not 0 <= position < length:
            raise IndexError(f"result {index} of {length}")
        return self._select("", "id", position, 1)[0]

    def only(self, configuration: str) -> StoredResults:
        names = [c.name for c in self._run.configurations]
        which = names.index(configuration) if configuration in names else NO_CONFIGURATION
        return StoredResults(self._connection, self._run_key, self._run, which, self._keep_alive)

    def counts(self) -> Counts:
        kept = self._kept.get("counts")
        if not isinstance(kept, Counts):
            rows = self._query("outcome, count(*)", " GROUP BY outcome")
            kept = _counts(dict(rows.fetchall()))
            if self._run.status != "running":
                self._kept["counts"] = kept
        return kept

    def column(self, evaluator: str) -> Column:
        names = [spec.name for spec in self._run.evaluators]
        if evaluator not in names:
            counts = self.counts()
            return Column(array("d"), errors=counts.error, skipped=counts.total - counts.error)
        marks, numbers, clusters = self._scores()
        which, width = names.index(evaluator), len(names)
        mine = marks[which::width]
        if clusters is not None:
            known = (name for name, mark in zip(clusters, mine, strict=True) if mark in "pf")
            clusters = shared_clusters(known)
        return Column(
            array("d", [value for value in numbers[which::width] if value == value]),
            passed=mine.count("p"),
            errors=mine.count("e") + mine.count("x"),
            skipped=mine.count("s"),
            clusters=clusters,
        )

    def overall(self) -> Column:
        # One query, so that all figures are of the same moment while a run goes on.
        grouped = self._is_grouped()
        cursor = self._query(f"outcome, value, {CLUSTER if grouped else 'NULL'}", " ORDER BY id")
        tally: Counter[int] = Counter()
        values, clusters = array("d"), []
        while rows := cursor.fetchmany(BATCH):
            tally.update([outcome for outcome, _, _ in rows])
            values.extend([value for _, value, _ in rows if value is not None])
            if grouped:
                clusters += [cluster for _, value, cluster in rows if value is not None]
        counts = _counts(tally)
        return Column(
            values,
            passed=counts.passed,
            errors=counts.error + counts.unscored,
            skipped=counts.skipped,
            clusters=shared_clusters(clusters) if grouped else None,
        )

    def latencies(self) -> array[float]:
        return array("d", (value for (value,) in self._query("latency_ms", " ORDER BY id")))

    def tokens(self) -> array[float]:
        rows = self._query("tokens", " AND tokens IS NOT NULL ORDER BY id")
        return array("d", (value for (value,) in rows))

    def error_kinds(self) -> dict[str, int]:
        return dict(
            self._query(
                "error_kind, count(*)",
                " AND error_kind IS NOT NULL GROUP BY error_kind ORDER BY 2 DESC, 1",
            ).fetchall()
        )

    def page(
        self,
        *,
        outcome: Outcome | None = None,
        evaluator: str | None = None,
        offset: int = 0,
        limit: int = 50,
    ) -> Sequence[EvalResult]:
        condition = ""
        if outcome is not None and evaluator is not None:
            names = [spec.name for spec in self._run.evaluators]
            condition = f" AND {_mark_of(evaluator, names)} = '{MARK_OF[outcome]}'"
        elif outcome is not None:
            condition = f" AND run = {self._run_key} AND outcome = {OUTCOMES.index(outcome)}"
            if outcome != "passed":
                condition += " AND outcome <> 0"
        return self._select(condition, "value IS NOT NULL, value, id", offset, limit)

    def of_sample(self, sample_id: str) -> Sequence[EvalResult]:
        rows = self._connection.execute(
            f"SELECT payload FROM results WHERE run = ? AND sample_id = ? AND {self._where} "
            "ORDER BY id",
            (self._run_key, sample_id),
        )
        return [read(data) for (data,) in rows]

    def _select(self, condition: str, order: str, offset: int, limit: int) -> list[EvalResult]:
        return [read(data) for data in self._payloads(condition, order, offset, limit)]

    def _payloads(self, condition: str, order: str, offset: int, limit: int) -> list[bytes]:
        part = f"LIMIT {max(0, limit)} OFFSET {max(0, offset)}"
        rows = self._query("payload", f"{condition} ORDER BY {order} {part}")
        return [data for (data,) in rows]

    def _query(self, columns: str, rest: str = "") -> sqlite3.Cursor:
        return self._connection.execute(f"SELECT {columns} FROM results WHERE {self._where}{rest}")

    def _scores(self) -> _Scores:
        kept: _Scores | None = self._kept.get("scores")
        if kept is None:
            marks: list[str] = []
            numbers = array("d")
            clusters: list[str] | None = [] if self._is_grouped() else None
            columns = "marks, numbers" if clusters is None else f"marks, numbers, {CLUSTER}"
            cursor = self._query(columns, " ORDER BY id")
            while rows := cursor.fetchmany(BATCH):
                marks.append("".join([row[0] for row in rows]))
                numbers.frombytes(b"".join([row[1] for row in rows]))
                if clusters is not None:
                    clusters += [row[2] for row in rows]
            if sys.byteorder == "big":  # pragma: no cover - what is stored is little-endian
                numbers.byteswap()
            kept = _Scores("".join(marks), numbers, clusters)
            if len(kept.marks) <= KEPT_UP_TO and self._run.status != "running":
                self._kept["scores"] = kept
        return kept

    def _is_grouped(self) -> bool:
        """True if two results may belong to one cluster."""
        several = self._configuration is None and len(self._run.configurations) > 1
        if several or self._run.options.epochs > 1:
            return True
        kept: bool | None = self._kept.get("grouped")
        if kept is None:
            named = self._query("1", " AND (epoch > 0 OR cluster IS NOT NULL) LIMIT 1")
            kept = named.fetchone() is not None
            if self._run.status != "running":
                self._kept["grouped"] = kept
        return kept


def _counts(tally: Mapping[int, int]) -> Counts:
    return Counts(*(tally.get(index, 0) for index in range(len(OUTCOMES))))


def _mark_of(evaluator: str, names: Sequence[str]) -> str:
    """The SQL for one evaluator's mark; one that the run does not have said nothing."""
    if evaluator in names:
        return f"substr(marks, {names.index(evaluator) + 1}, 1)"
    return "iif(error_kind IS NULL, 's', 'x')"
