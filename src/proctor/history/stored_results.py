"""Results that lie in a history file and are read as they are asked for."""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import compress
from operator import itemgetter
from typing import Any, TypeVar, overload

from proctor.history.payload import read
from proctor.history.writer import POSITION_BITS
from proctor.records.results import Column, Counts, shared_clusters
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

BATCH = 2_000
# Up to this many results, columns that were read once are kept for the next question.
KEPT_UP_TO = 200_000
NO_CONFIGURATION = -1

MARK_OF: dict[Outcome, str] = {
    "passed": "p",
    "failed": "f",
    "unscored": "e",
    "skipped": "s",
    "error": "x",
}


# The marks of whole results, by their place in OUTCOMES; and of an evaluator the run did not have.
LETTERS = bytes.maketrans(bytes(range(len(OUTCOMES))), b"pfxes")
STRANGER = bytes.maketrans(bytes(range(len(OUTCOMES))), b"ssxss")

NAN = float("nan")
T = TypeVar("T")


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
        self._known: dict[str, Any] = {}
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
        rows = dict(self._query("outcome, count(*)", " GROUP BY outcome").fetchall())
        return Counts(*(rows.get(index, 0) for index in range(len(OUTCOMES))))

    def outcomes(self) -> bytes:
        return self._kept("outcomes", lambda: bytes(self._numbers("outcome")))

    def clusters(self) -> list[str] | None:
        return self._kept("clusters", self._read_clusters)

    def column(self, evaluator: str | None = None) -> Column:
        with self._one_moment():
            marks, numbers = self._combined() if evaluator is None else self._scores(evaluator)
            clusters = self.clusters()
        if clusters is not None:
            clusters = list(compress(clusters, [mark in "pf" for mark in marks]))
        return Column(
            array("d", [number for number in numbers if number == number]),
            bytes([mark == "p" for mark in marks if mark in "pf"]),
            errors=marks.count("e") + marks.count("x"),
            skipped=marks.count("s"),
            clusters=clusters,
        )

    def latencies(self) -> Column:
        with self._one_moment():
            return Column(array("d", self._numbers("latency_ms")), clusters=self.clusters())

    def tokens(self) -> Column:
        with self._one_moment():
            told, clusters = list(self._numbers("tokens")), self.clusters()
        known = [number is not None for number in told]
        return Column(
            array("d", compress(told, known)),
            skipped=known.count(False),
            clusters=None if clusters is None else list(compress(clusters, known)),
        )

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

    def _numbers(self, column: str) -> Iterator[Any]:
        """One column of all results, in their order."""
        return map(itemgetter(0), self._query(column, " ORDER BY id"))

    def _combined(self) -> tuple[str, Sequence[float]]:
        """The marks and combined scores of whole results; NaN where there is no score."""
        marks = self.outcomes().translate(LETTERS).decode()
        values = [NAN if value is None else value for value in self._numbers("value")]
        return marks, values

    def _scores(self, evaluator: str) -> tuple[str, Sequence[float]]:
        """One evaluator's marks and scores; NaN where there is no score."""
        names = [spec.name for spec in self._run.evaluators]
        if evaluator not in names:
            return self.outcomes().translate(STRANGER).decode(), ()
        which, width = names.index(evaluator), len(names)
        marks, numbers = self._kept("scores", self._read_scores)
        return marks[which::width], numbers[which::width]

    def _read_scores(self) -> tuple[str, array[float]]:
        """All evaluators' marks and numbers, result by result."""
        marks: list[str] = []
        numbers = array("d")
        cursor = self._query("marks, numbers", " ORDER BY id")
        while rows := cursor.fetchmany(BATCH):
            marks.append("".join([mark for mark, _ in rows]))
            numbers.frombytes(b"".join([data for _, data in rows]))
        if sys.byteorder == "big":  # pragma: no cover - what is stored is little-endian
            numbers.byteswap()
        return "".join(marks), numbers

    def _read_clusters(self) -> list[str] | None:
        named = self._query("1", " AND cluster IS NOT NULL LIMIT 1").fetchone()
        repeated = self._run.options.epochs > 1 or (
            self._configuration is None and len(self._run.configurations) > 1
        )
        if not (named or repeated):
            return None
        return shared_clusters(self._numbers("coalesce(cluster, sample_id)"))

    def _kept(self, name: str, read: Callable[[], T]) -> T:
        """What was read is kept for the next question, if the run is over and not too large."""
        if name in self._known:
            found: T = self._known[name]
            return found
        found = read()
        if self._run.status != "running" and self._is_small:
            self._known[name] = found
        return found

    @contextmanager
    def _one_moment(self) -> Iterator[None]:
        """What is read inside is of one moment, also while the run goes on."""
        if self._run.status != "running" or self._connection.in_transaction:
            yield
            return
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("COMMIT")

    @cached_property
    def _is_small(self) -> bool:
        return len(self) <= KEPT_UP_TO


def _mark_of(evaluator: str, names: Sequence[str]) -> str:
    """SQL for the mark that an evaluator left, also for one that the run did not have."""
    if evaluator not in names:
        return f"CASE outcome WHEN {OUTCOMES.index('error')} THEN 'x' ELSE 's' END"
    return f"substr(marks, {names.index(evaluator) + 1}, 1)"
