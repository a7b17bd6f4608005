"""Messages in memory: waiting, delayed, leased to a receiver, or set aside."""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from proctor import codec
from proctor.clock import Clock
from proctor.mailboxes import limits
from proctor.ports import Mailbox
from proctor.records.mail import DeadLetter

_NOT_LATER = 0


class Entry:
    """A message from the moment it is sent until it is settled."""

    __slots__ = (
        "answers",
        "body",
        "count",
        "due",
        "enqueued_at",
        "forgiven",
        "history",
        "id",
        "receipt",
        "reply_to",
        "turn",
    )

    def __init__(
        self,
        body: Any,
        enqueued_at: datetime,
        reply_to: str | None,
        answers: Mailbox[Any] | None,
    ) -> None:
        self.id = uuid4().hex
        self.body = body
        self.enqueued_at = enqueued_at
        self.reply_to = reply_to
        self.answers = answers
        self.count = 0
        # True if losing the latest delivery does not count towards max_deliveries.
        self.forgiven = False
        self.receipt: str | None = None
        self.due = 0.0
        self.turn = _NOT_LATER
        self.history: list[str] = []

    def returned(self, reason: str) -> None:
        """Note that its latest delivery came to nothing; the receipt is worth nothing from now."""
        self.receipt = None
        self.history.append(limits.history_line(self.count, reason))
        del self.history[: -limits.MAX_HISTORY]


class Lease(NamedTuple):
    """One delivery, as it was when it was made."""

    entry: Entry
    receipt: str
    delivery: int


class Queue:
    """The moves of a mailbox's messages, each atomic; `changed` is the lock, and tells waiters."""

    def __init__(self, name: str, clock: Clock, *, writes: bool) -> None:
        self.name = name
        self.clock = clock
        self.writes = writes
        self.changed = threading.Condition()
        self._entries: set[Entry] = set()
        self._waiting: deque[Entry] = deque()
        # Delayed and leased ones by when they are due. An entry whose turn is another one has
        # moved since; what stands here is then passed over.
        self._later: list[tuple[float, int, Entry]] = []
        self._turns = itertools.count(1)
        self._dead: deque[DeadLetter] = deque(maxlen=limits.MAX_DEAD_LETTERS)
        # True once it was removed for good.
        self.gone = False

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entries: Iterable[Entry], delay: float, capacity: int | None) -> None:
        """Take all of them in, in order, or none if they would be too many."""
        added = list(entries)
        with self.changed:
            if capacity is not None and len(self._entries) + len(added) > capacity:
                raise limits.full(self.name, capacity)
            self._entries.update(added)
            if delay <= 0:
                self._waiting.extend(added)
                self.changed.notify(len(added))
                return
            due = self.clock.monotonic() + delay
            for entry in added:
                self._schedule(entry, due)

    def take(
        self, most: int, seconds: float, max_deliveries: int | None, *, provisional: bool = False
    ) -> list[Lease]:
        """Lease what is waiting; what came back too often is set aside instead.

        Losing a `provisional` delivery is forgiven until it is confirmed.
        """
        with self.changed:
            # Who receives waits for what is sent.
            self.gone = False
            now = self.clock.monotonic()
            self._surface(now)
            leases: list[Lease] = []
            while self._waiting and len(leases) < most:
                entry = self._waiting.popleft()
                is_spent = max_deliveries is not None and entry.count >= max_deliveries
                if is_spent and not entry.forgiven:
                    self._bury(entry, limits.too_often(entry.count))
                    continue
                entry.count += 1
                entry.forgiven = provisional
                # Not by the count, which may be taken back.
                entry.receipt = f"{entry.id}.{next(self._turns)}"
                self._schedule(entry, now + seconds)
                leases.append(Lease(entry, entry.receipt, entry.count))
            return leases

    def seconds_to_next(self) -> float:
        """How long until something that is delayed or leased may be there again."""
        return self._later[0][0] - self.clock.monotonic() if self._later else math.inf

    def acknowledge(self, lease: Lease) -> None:
        with self.changed:
            self._drop(self._held(lease))

    def give_back(self, lease: Lease, delay: float, reason: str, *, counts: bool = True) -> None:
        with self.changed:
            entry = self._held(lease)
            entry.returned(reason or limits.GIVEN_BACK)
            entry.count -= not counts
            entry.forgiven = not counts
            if delay > 0:
                self._schedule(entry, self.clock.monotonic() + delay)
                return
            entry.turn = _NOT_LATER
            self._waiting.append(entry)
            self.changed.notify()

    def confirm(self, lease: Lease) -> None:
        with self.changed:
            self._held(lease).forgiven = False

    def extend(self, lease: Lease, seconds: float) -> None:
        with self.changed:
            self._schedule(self._held(lease), self.clock.monotonic() + seconds)

    def set_aside(self, lease: Lease, reason: str, *, even_if_over: bool = False) -> None:
        """Make it a dead letter; `even_if_over` if nobody else has it, though the lease is over.

        So a message that nobody can read goes at once, also when it is leased for no time at all.
        """
        with self.changed:
            self._bury(self._held(lease, even_if_over=even_if_over), reason)

    def dead_letters(self, limit: int) -> list[DeadLetter]:
        with self.changed:
            return list(itertools.islice(reversed(self._dead), limit))

    def clear(self, *, dead_too: bool = False) -> int:
        """Drop everything; receipts that are out are worth nothing from now."""
        with self.changed:
            dropped = len(self._entries)
            for entry in self._entries:
                entry.receipt = None
            self._entries.clear()
            self._waiting.clear()
            self._later.clear()
            if dead_too:
                self._dead.clear()
            return dropped

    def _held(self, lease: Lease, *, even_if_over: bool = False) -> Entry:
        entry = lease.entry
        over = entry.due <= self.clock.monotonic() and not even_if_over
        if entry.receipt != lease.receipt or over:
            raise limits.not_ones_own(self.name)
        return entry

    def _schedule(self, entry: Entry, due: float) -> None:
        entry.due, entry.turn = due, next(self._turns)
        heapq.heappush(self._later, (due, entry.turn, entry))
        if self._later[0][2] is entry:
            # Those who wait had planned to look again at a later time, or never.
            self.changed.notify_all()
        alive = len(self._entries) - len(self._waiting)
        if len(self._later) > 2 * alive + 64:
            # Or every message that was ever acknowledged would be kept until its lease is over.
            self._later = [place for place in self._later if place[2].turn == place[1]]
            heapq.heapify(self._later)

    def _surface(self, now: float) -> None:
        """What is due goes behind what is waiting already."""
        while self._later and self._later[0][0] <= now:
            _, turn, entry = heapq.heappop(self._later)
            if entry.turn != turn:
                continue
            if entry.receipt is not None:
                entry.returned(limits.LEASE_RAN_OUT)
            entry.turn = _NOT_LATER
            self._waiting.append(entry)

    def _bury(self, entry: Entry, reason: str) -> None:
        self._dead.append(
            DeadLetter(
                id=entry.id,
                body=_text(entry.body),
                reason=reason,
                delivery_count=entry.count,
                enqueued_at=entry.enqueued_at,
                died_at=self.clock.now(),
                history=tuple(entry.history),
                reply_to=entry.reply_to,
            )
        )
        self._drop(entry)

    def _drop(self, entry: Entry) -> None:
        self._entries.discard(entry)
        entry.receipt = None
        entry.turn = _NOT_LATER


def _text(body: Any) -> str:
    """A body as the text it was sent as, or would have been."""
    if isinstance(body, Written):
        return body.decode("utf-8", "replace")
    try:
        return codec.encode(body).decode()
    except codec.UNWRITABLE as error:
        return f"<{type(body).__qualname__}, which cannot be written: {error}>"


class Written(bytes):
    """A body that was written when it was sent, as it would be for a server."""

    __slots__ = ()
