"""Write results to the database in groups, from a background thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from proctor.errors import HistoryError
from proctor.history.block import COLUMNS, Packed, ResultPacker, make_rows
from proctor.history.database import Connection, first_line
from proctor.records.order import Positions
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult, PositionedResult, Verdict

# The writer collects results for a short time before it commits, and longer if there are many.
FEW_SECONDS, MANY_SECONDS, MANY_RESULTS = 0.0005, 0.05, 256
MAX_QUEUED_RESULTS = 2_500

INSERT = f"INSERT INTO blocks ({COLUMNS}) VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))})"
STORE_OUTPUT = "INSERT INTO outputs (key, created_at, reply) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
DELETE_OUTPUT = "DELETE FROM outputs WHERE key = ?"


class GroupWriter:
    """Takes results from the event loop and commits them in groups in a background thread."""

    def __init__(
        self,
        connection: Connection,
        run_key: int,
        run: RunMetadata,
        positions: Positions | None = None,
        check_claim: Callable[[], None] = lambda: None,
        pending_outputs: dict[str, bytes] | None = None,
    ) -> None:
        self._connection = connection
        self._run_key = run_key
        self._packer = ResultPacker(run)
        self._positions = positions or Positions()
        self._check_claim = check_claim
        self._pending: deque[Packed] = deque()
        self._outputs: deque[tuple[str, str, bytes]] = deque()
        self._pending_outputs = {} if pending_outputs is None else pending_outputs
        self._wake = threading.Event()
        self._idle = threading.Condition()
        self._busy = self._closing = self._hurry = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="proctor-history", daemon=True)
        self._thread.start()

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        """Queue a finished result, with its verdict if it is known, and return immediately.

        A second result for the same position in the plan is ignored.
        """
        if self._failure is not None:
            self._raise()
        if not self._positions.add(position):
            return
        self._pending.append(self._packer.pack(position, result, verdict or result.verdict()))
        if not self._wake.is_set():
            self._wake.set()

    def add_batch(self, batch: Sequence[PositionedResult]) -> None:
        """Queue several finished results; the same as `add` for each of them, but faster."""
        if self._failure is not None:
            self._raise()
        is_new = self._positions.add
        self._pending.extend(self._packer.pack_batch([item for item in batch if is_new(item[0])]))
        self._wake.set()

    def cache_output(self, key: str, created_at: str, reply: bytes) -> None:
        """Queue an output for the cache under its key.

        An existing output stays; an empty reply deletes it.
        """
        if not reply or not self._pending_outputs.get(key):
            self._pending_outputs[key] = reply
        self._outputs.append((key, created_at, reply))
        self._wake.set()

    def is_lagging(self) -> bool:
        """Return whether results arrive faster than they can be stored."""
        if self._failure is not None:
            self._raise()
        return len(self._pending) > MAX_QUEUED_RESULTS

    def flush(self) -> None:
        """Wait until everything queued so far is durable."""
        with self._idle:
            self._hurry = True
            self._wake.set()
            self._idle.wait_for(lambda: self._failure is not None or not (self._pending or self._outputs or self._busy))
            self._hurry = False
        self._raise()

    def close(self) -> None:
        """Commit all pending results and stop the thread."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._failure is not None:
            raise HistoryError(
                f"results can no longer be written: {first_line(self._failure)}",
                fix="check that the disk has free space, and that the history file is on a local file "
                "system or its server is reachable; then resume the run: committed results are kept",
            ) from self._failure

    def _work(self) -> None:
        results = 0
        while not (self._closing and not self._pending and not self._outputs):
            self._wake.wait()
            if not (self._closing or self._hurry):
                time.sleep(MANY_SECONDS if results >= MANY_RESULTS else FEW_SECONDS)
            self._wake.clear()
            self._busy = True
            try:
                results = self._commit()
            except BaseException as error:
                self._failure = error
            with self._idle:
                self._busy = False
                self._idle.notify_all()
            if self._failure is not None:
                return

    def _commit(self) -> int:
        results = [self._pending.popleft() for _ in range(len(self._pending))]
        outputs = [self._outputs.popleft() for _ in range(len(self._outputs))]
        if results or outputs:
            # If another process has claimed the run, it writes these results again.
            self._check_claim()
            with self._connection.transaction():
                self._connection.executemany(INSERT, make_rows(self._run_key, results))
                self._store(outputs)
            for key, _, reply in outputs:
                # A newer output may have arrived in the meantime.
                if self._pending_outputs.get(key) is reply:
                    self._pending_outputs.pop(key, None)
        return len(results)

    def _store(self, outputs: list[tuple[str, str, bytes]]) -> None:
        """Store the first output of each key after its last deletion."""
        deleted: set[str] = set()
        stored: dict[str, tuple[str, str, bytes]] = {}
        for output in outputs:
            key, _, reply = output
            if reply:
                stored.setdefault(key, output)
            else:
                deleted.add(key)
                stored.pop(key, None)
        self._connection.executemany(DELETE_OUTPUT, [(key,) for key in sorted(deleted)])
        self._connection.executemany(STORE_OUTPUT, list(stored.values()))
