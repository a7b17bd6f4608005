"""Results on their way to the disk: many in one transaction, each durable soon after."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from proctor.errors import HistoryError
from proctor.history.block import COLUMNS, Packed, packer, rows
from proctor.history.database import Connection, first_line
from proctor.records.order import Positions
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult, Verdict

# A result waits a moment for company, and a longer moment when they come thick and fast.
FEW_SECONDS, MANY_SECONDS, MANY_RESULTS = 0.0005, 0.05, 256
BEHIND_AT = 5_000

INSERT = f"INSERT INTO blocks ({COLUMNS}) VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))})"
KEEP = "INSERT INTO outputs (key, created_at, reply) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
FORGET = "DELETE FROM outputs WHERE key = ?"


class GroupWriter:
    """Takes results from the event loop and commits them in groups on a thread of its own."""

    def __init__(
        self,
        connection: Connection,
        run_key: int,
        run: RunMetadata,
        taken: Positions | None = None,
        still_mine: Callable[[], None] = lambda: None,
        on_their_way: dict[str, bytes] | None = None,
    ) -> None:
        self._connection = connection
        self._run_key = run_key
        self._pack = packer(run)
        self._taken = taken or Positions()
        self._still_mine = still_mine
        self._pending: deque[Packed] = deque()
        self._outputs: deque[tuple[str, str, bytes]] = deque()
        self._on_their_way = {} if on_their_way is None else on_their_way
        self._wake = threading.Event()
        self._idle = threading.Condition()
        self._busy = self._closing = self._hurry = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="proctor-history", daemon=True)
        self._thread.start()

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        """Take a finished result, with its verdict if it is known already. Returns at once.

        A second result for the same place in the plan is not counted.
        """
        if self._failure is not None:
            self._raise()
        if not self._taken.add(position):
            return
        self._pending.append(self._pack(position, result, verdict or result.verdict()))
        if not self._wake.is_set():
            self._wake.set()

    def keep(self, key: str, created_at: str, reply: bytes) -> None:
        """Take an output to be reused, under its key; until it is stored it is on its way.

        An older one stays; without a byte this one only takes that away.
        """
        if not reply or not self._on_their_way.get(key):
            self._on_their_way[key] = reply
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
                lambda: self._failure is not None or not (self._pending or self._outputs or self._busy)
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
                f"results can no longer be written: {first_line(self._failure)}",
                fix="see that the disk has room, and that the history's file is on a local file "
                "system or its server answers; then resume the run: what was committed is kept",
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
            # Whoever has the run now would run these samples too: they must not count twice.
            self._still_mine()
            with self._connection.transaction():
                self._connection.executemany(INSERT, rows(self._run_key, results))
                self._store(outputs)
            for key, _, reply in outputs:
                # Another one may have come meanwhile.
                if self._on_their_way.get(key) is reply:
                    self._on_their_way.pop(key, None)
        return len(results)

    def _store(self, outputs: list[tuple[str, str, bytes]]) -> None:
        """Of each key the first that comes after what takes it away."""
        gone: set[str] = set()
        kept: dict[str, tuple[str, str, bytes]] = {}
        for one in outputs:
            if one[2]:
                kept.setdefault(one[0], one)
            else:
                gone.add(one[0])
                kept.pop(one[0], None)
        self._connection.executemany(FORGET, [(key,) for key in sorted(gone)])
        self._connection.executemany(KEEP, list(kept.values()))
