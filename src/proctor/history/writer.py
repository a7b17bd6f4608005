"""Results on their way to the disk: many in one transaction, each durable soon after."""

from __future__ import annotations

import sqlite3
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from proctor.errors import HistoryError
from proctor.history.database import transaction
from proctor.history.payload import written
from proctor.records.run import RunMetadata
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import OUTCOMES, EvalResult, Verdict

# A result waits a moment for company, and a longer moment when they come thick and fast.
FEW_SECONDS, MANY_SECONDS, MANY_ROWS = 0.0005, 0.05, 256
BEHIND_AT = 5_000
POSITION_BITS = 32
LARGEST_INTEGER = 2**63 - 1

COLUMNS = (
    "id, run, sample_id, configuration, epoch, cluster, outcome, value, marks, numbers, "
    "error_kind, latency_ms, tokens, payload"
)
WIDTH = COLUMNS.count(",") + 1
# Many rows in one statement: sqlite3 lets go of the interpreter at every statement, and under load
# a writer that did so for every row would wait for its turn each time.
ROWS_A_STATEMENT = (512, 64, 8, 1)
# A second result for the same trial counts only if the first has no verdict and the second is no
# worse: a success wins over an error, and nothing is ever counted twice.
ON_CONFLICT = (
    " ON CONFLICT DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS.split(", ")[5:])
    + f" WHERE results.outcome = {OUTCOMES.index('error')} OR "
    + f"(results.outcome = {OUTCOMES.index('unscored')} "
    + f"AND excluded.outcome <> {OUTCOMES.index('error')})"
)

_OUTCOME_INDEX = {outcome: index for index, outcome in enumerate(OUTCOMES)}
_MISSING = float("nan")


class GroupWriter:
    """Takes results from the event loop and commits them in groups on a thread of its own."""

    def __init__(self, connection: sqlite3.Connection, run_key: int, run: RunMetadata) -> None:
        self._connection = connection
        self._pending: deque[tuple[Any, ...]] = deque()
        self._outputs: deque[tuple[str, str, bytes]] = deque()
        self._row = _row_maker(run_key, run)
        self._wake = threading.Event()
        self._idle = threading.Condition()
        self._busy = self._closing = self._hurry = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="proctor-history", daemon=True)
        self._thread.start()

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        """Take a finished result, with its verdict if it is known already. Returns at once."""
        if self._failure is not None:
            self._raise()
        self._pending.append(self._row(position, result, verdict or result.verdict()))
        if not self._wake.is_set():
            self._wake.set()

    def keep(self, key: str, created_at: str, reply: bytes) -> None:
        """Take an output to be reused."""
        self._outputs.append((key, created_at, reply))
        self._wake.set()

    def behind(self) -> bool:
        """True if results come faster than they can be kept."""
        if self._failure is not None:
            self._raise()
        return len(self._pending) > BEHIND_AT

    def flush(self) -> None:
        """Return when everything taken so far is durable."""
        with self._idle:
            self._hurry = True
            self._wake.set()
            self._idle.wait_for(
                lambda: (
                    self._failure is not None or not (self._pending or self._outputs or self._busy)
                )
            )
            self._hurry = False
        self._raise()

    def close(self) -> None:
        """Commit what is pending and end the thread."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._failure is not None:
            raise HistoryError(
                f"results can no longer be written: {self._failure}",
                fix="see that the disk has room and the history is on a local file system, "
                "then resume the run: what was committed is kept",
            ) from self._failure

    def _work(self) -> None:
        rows = 0
        while not (self._closing and not self._pending and not self._outputs):
            self._wake.wait()
            if not (self._closing or self._hurry):
                time.sleep(MANY_SECONDS if rows >= MANY_ROWS else FEW_SECONDS)
            self._wake.clear()
            self._busy = True
            try:
                rows = self._commit()
            except BaseException as error:
                self._failure = error
            with self._idle:
                self._busy = False
                self._idle.notify_all()
            if self._failure is not None:
                return

    def _commit(self) -> int:
        rows = [self._pending.popleft() for _ in range(len(self._pending))]
        outputs = [self._outputs.popleft() for _ in range(len(self._outputs))]
        if rows or outputs:
            with transaction(self._connection):
                insert_rows(self._connection, rows)
                self._connection.executemany(
                    "INSERT OR IGNORE INTO outputs VALUES (?, ?, ?)", outputs
                )
        return len(rows)


def insert_rows(connection: sqlite3.Connection, rows: Sequence[Any]) -> None:
    """Insert result rows with as few statements as can be."""
    one = "(" + ", ".join("?" * WIDTH) + ")"
    start = 0
    for size in ROWS_A_STATEMENT:
        statement = (
            f"INSERT INTO results ({COLUMNS}) VALUES " + ", ".join([one] * size) + ON_CONFLICT
        )
        while len(rows) - start >= size:
            chunk = rows[start : start + size]
            connection.execute(statement, [value for row in chunk for value in row])
            start += size


def _row_maker(
    run_key: int, run: RunMetadata
) -> Callable[[int, EvalResult, Verdict], tuple[Any, ...]]:
    """The function that turns a result into a row; what is the same for all is settled here."""
    base = run_key << POSITION_BITS
    names = tuple(spec.name for spec in run.evaluators)
    configurations = {c.name: index for index, c in enumerate(run.configurations)}
    pack = struct.Struct(f"<{len(names)}d").pack
    no_marks, no_numbers = "x" * len(names), pack(*[_MISSING] * len(names))

    def row(position: int, result: EvalResult, verdict: Verdict) -> tuple[Any, ...]:
        data, result = written(result)
        trial = result.trial
        sample = trial.sample
        if trial.error is None:
            get = result.scores.get
            scores = [get(name) for name in names]
            marks = "".join([_mark(score) for score in scores])
            numbers = pack(*[_number(score) for score in scores])
            error_kind = None
        else:
            marks, numbers, error_kind = no_marks, no_numbers, trial.error.kind
        return (
            base + position,
            run_key,
            sample.id,
            configurations[trial.configuration],
            trial.epoch,
            sample.cluster or None,
            _OUTCOME_INDEX[verdict[0]],
            verdict[1],
            marks,
            numbers,
            error_kind,
            trial.latency_ms,
            None if trial.usage is None else _tokens(trial.usage),
            data,
        )

    return row


def _mark(score: Score | None) -> str:
    if score is None:
        return "s"
    if score.value is None:
        return "e" if score.status == "error" else "s"
    return "p" if score.passed else "f"


def _number(score: Score | None) -> float:
    return _MISSING if score is None or score.value is None else score.value


def _tokens(usage: Usage) -> int | None:
    total = usage.total_tokens
    return None if total is None or abs(total) > LARGEST_INTEGER else total
