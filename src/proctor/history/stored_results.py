"""Results that lie in a history file and are read as they are asked for."""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, overload

import msgspec

from proctor.history.writer import POSITION_BITS
from proctor.records.results import Column, Counts
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

BATCH = 2_000
# Up to this many results, columns that were read once are kept for the next question.
KEPT_UP_TO = 200_000

MARK_OF: dict[Outcome, str] = {
    "passed": "p",
    "failed": "f",
    "unscored": "e",
    "skipped": "s",
    "error": "x",
}

_decode = msgspec.json.Decoder(EvalResult).decode


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
                yield _decode(data)
            if len(rows) < BATCH:
                return
            last = rows[-1][0]

    @overload
    def __getitem__(self, index: int) -> EvalResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EvalResult]: ...
    def __getitem__(self, index: int | slice) -> EvalResult | Sequence[EvalResult]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._select("", "id", start, max(0, stop - start))
            return [self[position] for position in range(start, stop, step)]
        position = index + len(self) if index < 0 else index
        found = self._select("", "id", position, 1) if position >= 0 else []
        if not found:
            raise IndexError(f"result {index} of {len(self)}")
        return found[0]

    def only(self, configuration: str) -> StoredResults:
        names = [c.name for c in self._run.configurations]
        return StoredResults(
            self._connection, self._run_key, self._run, names.index(configuration), self._keep_alive
        )

    def counts(self) -> Counts:
        kept = self._kept.get("counts")
        if not isinstance(kept, Counts):
            rows = self._query("outcome, count(*)", " GROUP BY outcome")
            tally = dict(rows.fetchall())
            kept = Counts(*(tally.get(index, 0) for index in range(len(OUTCOMES))))
            if self._run.status != "running":
                self._kept["counts"] = kept
        return kept

    def column(self, evaluator: str) -> Column:
        names = [spec.name for spec in self._run.evaluators]
        if evaluator not in names:
            return Column(array("d"), skipped=len(self))
        marks, numbers = self._scores()
        which, width = names.index(evaluator), len(names)
        mine = marks[which::width]
        values = array("d", [value for value in numbers[which::width] if value == value])
        clusters = None
        if (groups := self._groups()) is not None:
            clusters = [g for g, mark in zip(groups, mine, strict=True) if mark in "pf"]
        return Column(
            values,
            passed=mine.count("p"),
            errors=mine.count("e") + mine.count("x"),
            skipped=mine.count("s"),
            clusters=clusters,
        )

    def overall(self) -> Column:
        counts = self.counts()
        rows = self._query("value", " AND value IS NOT NULL ORDER BY id")
        clusters = None
        if (groups := self._groups()) is not None:
            known = self._query("value IS NOT NULL", " ORDER BY id")
            clusters = [g for g, (is_known,) in zip(groups, known, strict=True) if is_known]
        return Column(
            array("d", (value for (value,) in rows)),
            passed=counts.passed,
            errors=counts.error + counts.unscored,
            skipped=counts.skipped,
            clusters=clusters,
        )

    def latencies(self) -> array[float]:
        return array("d", (value for (value,) in self._query("latency_ms")))

    def tokens(self) -> array[float]:
        return array("d", (value for (value,) in self._query("tokens", " AND tokens IS NOT NULL")))

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
            which = names.index(evaluator) + 1 if evaluator in names else 0
            condition = f" AND substr(marks, {which}, 1) = '{MARK_OF[outcome]}'"
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
        return [_decode(data) for (data,) in rows]

    def _select(self, condition: str, order: str, offset: int, limit: int) -> list[EvalResult]:
        rows = self._query(
            "payload", f"{condition} ORDER BY {order} LIMIT {int(limit)} OFFSET {int(offset)}"
        )
        return [_decode(data) for (data,) in rows]

    def _query(self, columns: str, rest: str = "") -> sqlite3.Cursor:
        return self._connection.execute(f"SELECT {columns} FROM results WHERE {self._where}{rest}")

    def _scores(self) -> tuple[str, array[float]]:
        """All evaluators' marks and numbers, result by result."""
        kept: tuple[str, array[float]] | None = self._kept.get("scores")
        if kept is None:
            marks: list[str] = []
            numbers = array("d")
            cursor = self._query("marks, numbers", " ORDER BY id")
            while rows := cursor.fetchmany(BATCH):
                marks.extend(mark for mark, _ in rows)
                numbers.frombytes(b"".join(data for _, data in rows))
            if sys.byteorder == "big":  # pragma: no cover - what is stored is little-endian
                numbers.byteswap()
            kept = "".join(marks), numbers
            if len(marks) <= KEPT_UP_TO and self._run.status != "running":
                self._kept["scores"] = kept
        return kept

    def _groups(self) -> list[str] | None:
        """Which cluster each result belongs to, if any share one."""
        if "groups" not in self._kept:
            named = self._query("1", " AND cluster IS NOT NULL LIMIT 1").fetchone()
            repeated = self._run.options.epochs > 1 or (
                self._configuration is None and len(self._run.configurations) > 1
            )
            groups = None
            if named or repeated:
                rows = self._query("coalesce(cluster, sample_id)", " ORDER BY id")
                groups = [name for (name,) in rows]
            self._kept["groups"] = groups
        return self._kept["groups"]  # type: ignore[no-any-return]
