"""Mailboxes in memory: for tests, examples, and loops whose threads share one process."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from proctor.core.clock import Clock, SystemClock
from proctor.errors import ConfigError, ReceiptExpired
from proctor.mailboxes import core
from proctor.mailboxes.core import BodyT, LeasedMessage, StoredMailbox
from proctor.ports import Mailbox, Message
from proctor.records import codec
from proctor.records.mail import DeadLetter

_NOT_SCHEDULED = 0


@dataclass(eq=False, slots=True)
class Entry:
    """A message, from the time it is sent until it is acknowledged or rejected.

    `is_uncounted` is True if losing the latest delivery does not count towards `max_deliveries`.
    """

    body: Any
    enqueued_at: datetime
    reply_to: str | None
    reply_mailbox: Mailbox[Any] | None
    id: str = field(default_factory=lambda: uuid4().hex)
    count: int = 0
    is_uncounted: bool = False
    receipt: str | None = None
    due: float = 0.0
    turn: int = _NOT_SCHEDULED
    history: list[str] = field(default_factory=list)

    def record_return(self, reason: str) -> None:
        """Record that the latest delivery was returned, and invalidate its receipt."""
        self.receipt = None
        self.history.append(core.format_history_line(self.count, reason))
        del self.history[: -core.MAX_HISTORY]


class Lease(NamedTuple):
    entry: Entry
    receipt: str
    delivery: int


class Queue:
    """The messages of a mailbox; every method is atomic. `changed` is the lock, and notifies waiting receivers."""

    def __init__(self, name: str, clock: Clock, *, encodes: bool) -> None:
        self.name = name
        self.clock = clock
        self.encodes = encodes
        self.changed = threading.Condition()
        self._entries: set[Entry] = set()
        self._waiting: deque[Entry] = deque()
        # Delayed and leased entries by due time. An item whose turn differs from the turn of its entry is outdated and
        # ignored.
        self._scheduled: list[tuple[float, int, Entry]] = []
        self._turns = itertools.count(1)
        self._dead: deque[DeadLetter] = deque(maxlen=core.MAX_DEAD_LETTERS)
        self.is_removed = False

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entries: Iterable[Entry], delay: float, capacity: int | None) -> None:
        """Add all entries in order, or none if they exceed the capacity."""
        added = list(entries)
        with self.changed:
            if capacity is not None and len(self._entries) + len(added) > capacity:
                raise core.full_error(self.name, capacity)
            self._entries.update(added)
            if delay <= 0:
                self._waiting.extend(added)
                self.changed.notify(len(added))
                return
            due = self.clock.monotonic() + delay
            for entry in added:
                self._schedule(entry, due)

    def take(self, limit: int, seconds: float, max_deliveries: int | None, *, provisional: bool = False) -> list[Lease]:
        """Lease waiting messages; messages that were delivered too often become dead letters.

        Losing a `provisional` delivery does not count until it is confirmed.
        """
        with self.changed:
            # A receiver makes a removed mailbox usable again.
            self.is_removed = False
            now = self.clock.monotonic()
            self._release_due(now)
            leases: list[Lease] = []
            while self._waiting and len(leases) < limit:
                entry = self._waiting.popleft()
                is_exhausted = max_deliveries is not None and entry.count >= max_deliveries
                if is_exhausted and not entry.is_uncounted:
                    self._move_to_dead_letters(entry, core.describe_deliveries(entry.count))
                    continue
                entry.count += 1
                entry.is_uncounted = provisional
                # A separate counter, because the delivery count may decrease.
                entry.receipt = f"{entry.id}.{next(self._turns)}"
                self._schedule(entry, now + seconds)
                leases.append(Lease(entry, entry.receipt, entry.count))
            return leases

    def seconds_to_next(self) -> float:
        return self._scheduled[0][0] - self.clock.monotonic() if self._scheduled else math.inf

    def acknowledge(self, message: LeasedMessage[Any]) -> None:
        with self.changed:
            self._drop(self._leased_entry(message.lease))

    def release(self, message: LeasedMessage[Any], delay: float, reason: str, counts: bool) -> None:
        with self.changed:
            entry = self._leased_entry(message.lease)
            entry.record_return(reason)
            entry.count -= not counts
            entry.is_uncounted = not counts
            if delay > 0:
                self._schedule(entry, self.clock.monotonic() + delay)
                return
            entry.turn = _NOT_SCHEDULED
            self._waiting.append(entry)
            self.changed.notify()

    def confirm(self, message: LeasedMessage[Any]) -> None:
        with self.changed:
            self._leased_entry(message.lease).is_uncounted = False

    def extend(self, message: LeasedMessage[Any], seconds: float) -> None:
        with self.changed:
            self._schedule(self._leased_entry(message.lease), self.clock.monotonic() + seconds)

    def reject(self, message: LeasedMessage[Any], reason: str) -> None:
        with self.changed:
            self._move_to_dead_letters(self._leased_entry(message.lease), reason)

    def reject_unreadable(self, lease: Lease, reason: str) -> None:
        """Reject a message, even if its lease (possibly of 0 seconds) has expired, unless another receiver has it."""
        with self.changed:
            self._move_to_dead_letters(self._leased_entry(lease, even_if_expired=True), reason)

    def dead_letters(self, limit: int) -> list[DeadLetter]:
        with self.changed:
            return list(itertools.islice(reversed(self._dead), limit))

    def clear(self, *, dead_letters: bool = False) -> int:
        """Drop all messages and invalidate all receipts."""
        with self.changed:
            dropped = len(self._entries)
            for entry in self._entries:
                entry.receipt = None
            self._entries.clear()
            self._waiting.clear()
            self._scheduled.clear()
            if dead_letters:
                self._dead.clear()
            return dropped

    def _leased_entry(self, lease: Lease, *, even_if_expired: bool = False) -> Entry:
        entry = lease.entry
        has_expired = entry.due <= self.clock.monotonic() and not even_if_expired
        if entry.receipt != lease.receipt or has_expired:
            raise core.expired_error(self.name)
        return entry

    def _schedule(self, entry: Entry, due: float) -> None:
        entry.due, entry.turn = due, next(self._turns)
        heapq.heappush(self._scheduled, (due, entry.turn, entry))
        if self._scheduled[0][2] is entry:
            # Receivers wait for a later time, or without a limit.
            self.changed.notify_all()
        active = len(self._entries) - len(self._waiting)
        if len(self._scheduled) > 2 * active + 64:
            # Remove outdated items; otherwise acknowledged messages would stay until their leases expire.
            self._scheduled = [item for item in self._scheduled if item[2].turn == item[1]]
            heapq.heapify(self._scheduled)

    def _release_due(self, now: float) -> None:
        """Move due messages to the end of the waiting messages."""
        while self._scheduled and self._scheduled[0][0] <= now:
            _, turn, entry = heapq.heappop(self._scheduled)
            if entry.turn != turn:
                continue
            if entry.receipt is not None:
                entry.record_return(core.LEASE_EXPIRED)
            entry.turn = _NOT_SCHEDULED
            self._waiting.append(entry)

    def _move_to_dead_letters(self, entry: Entry, reason: str) -> None:
        self._dead.append(
            DeadLetter(
                id=entry.id,
                body=_body_to_text(entry.body),
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
        entry.turn = _NOT_SCHEDULED


def _body_to_text(body: Any) -> str:
    if isinstance(body, EncodedBody):
        return body.decode("utf-8", "replace")
    try:
        return codec.encode(body).decode()
    except codec.ENCODE_ERRORS as error:
        return f"<{type(body).__qualname__}, which cannot be encoded: {error}>"


class EncodedBody(bytes):
    """A body that was encoded when it was sent, as on a server."""

    __slots__ = ()


class MemoryBroker:
    """Connects mailboxes in memory by name.

    With `encodes`, bodies are stored as JSON, as on a server; otherwise objects are passed on unchanged.
    """

    def __init__(self, *, encodes: bool, clock: Clock | None = None) -> None:
        self._writes = encodes
        self._clock = clock or SystemClock()
        self._queues: dict[str, Queue] = {}
        self._lock = threading.Lock()

    def queue(self, name: str) -> Queue:
        with self._lock:
            if name not in self._queues:
                self._queues[name] = Queue(name, self._clock, encodes=self._writes)
            return self._queues[name]

    def register(self, queue: Queue) -> None:
        with self._lock:
            if self._queues.setdefault(queue.name, queue) is not queue:
                raise ConfigError(
                    f"another mailbox is already named {queue.name!r}", fix="use a unique name for each mailbox"
                )

    def forget(self, queue: Queue) -> None:
        with self._lock:
            if self._queues.get(queue.name) is queue:
                del self._queues[queue.name]


# Mailboxes at memory:// addresses exist as long as the process, as on a server.
_PROCESS_BROKER = MemoryBroker(encodes=True)


class InMemoryMailbox(StoredMailbox[BodyT]):
    """A mailbox within this process.

    With a `body_type`, bodies are stored as JSON, as on a server; without a type, objects are passed on unchanged. A
    message that returns after `max_deliveries` becomes a dead letter. Mailboxes with the same `broker` find each other
    by name; each is a separate handle, so closing one handle leaves the others open.

    >>> requests = InMemoryMailbox("requests")
    >>> _ = requests.send("2 + 2", reply_to="results")
    >>> [message] = requests.receive()
    >>> _ = message.reply(4)
    >>> message.acknowledge()
    >>> [answer.body for answer in requests.open_mailbox("results", int).receive()]
    [4]
    """

    def __init__(
        self,
        name: str = "mailbox",
        body_type: type[BodyT] | None = None,
        *,
        capacity: int | None = None,
        max_deliveries: int | None = None,
        clock: Clock | None = None,
        broker: MemoryBroker | None = None,
    ) -> None:
        core.check_bound("capacity", capacity, where=name)
        super().__init__(name, body_type, max_deliveries)
        self._capacity = capacity
        self._broker = broker or MemoryBroker(encodes=body_type is not None, clock=clock)
        self._queue = queue = self._broker.queue(name)
        self._acknowledge, self._give_back, self._extend = queue.acknowledge, queue.release, queue.extend
        self._confirm, self._reject, self._read_dead_letters = queue.confirm, queue.reject, queue.dead_letters
        self._wakes = 0

    def as_received(self, body: BodyT) -> BodyT:
        return super().as_received(body) if self._queue.encodes else body

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        self.check_open()
        return sum(map(_try_acknowledge, messages))

    def purge(self) -> int:
        self.check_open()
        return self._queue.clear()

    def approximate_count(self) -> int:
        self.check_open()
        return len(self._queue)

    def open_mailbox(self, name: str, body_type: type[Any] | None) -> InMemoryMailbox[Any]:
        """Open another mailbox by name, or a second handle of this mailbox."""
        self.check_open()
        return InMemoryMailbox(name, body_type, broker=self._broker)

    def wake(self) -> None:
        with self._queue.changed:
            self._wakes += 1
            self._queue.changed.notify_all()

    def close(self) -> None:
        """Close this handle; the messages stay for other handles."""
        self._closed = True
        self.wake()

    def remove(self, *, for_good: bool = False) -> None:
        """Drop all messages and dead letters, close the mailbox and free its name."""
        self.check_open()
        self._queue.clear(dead_letters=True)
        self._queue.is_removed = for_good
        if not for_good:
            self._broker.forget(self._queue)
        self.close()

    def _put(self, bodies: Iterable[BodyT], reply_to: str | Mailbox[Any] | None, delay: float) -> list[str]:
        """Send all messages, or none if one cannot be sent."""
        queue = self._queue
        if queue.is_removed:
            raise core.removed_error(self._name)
        name, reply_mailbox = core.get_reply_name(reply_to), None
        if isinstance(reply_to, InMemoryMailbox):
            self._broker.register(reply_to._queue)
        elif not isinstance(reply_to, str):
            reply_mailbox = reply_to
        now = queue.clock.now()
        encoded = (EncodedBody(self._bodies.write(body)) if queue.encodes else body for body in bodies)
        entries = [Entry(body, now, name, reply_mailbox) for body in encoded]
        queue.put(entries, delay, self._capacity)
        return [entry.id for entry in entries]

    def _receive(self, limit: int, lease_seconds: float, wait: float, provisional: bool) -> Sequence[Message[BodyT]]:
        wakes, deadline = self._wakes, time.monotonic() + wait

        def take() -> list[Lease]:
            return self._queue.take(limit, lease_seconds, self._max_deliveries, provisional=provisional)

        while True:
            leases = self._wait_for_leases(take, deadline, wakes)
            messages = [message for lease in leases if (message := self._read(lease)) is not None]
            if messages or not leases:
                return messages

    def _wait_for_leases(self, take: Callable[[], list[Lease]], deadline: float, wakes: int) -> list[Lease]:
        changed = self._queue.changed
        with changed:
            while not self._closed:
                leases = take()
                rest = deadline - time.monotonic()
                if leases or rest <= 0 or self._wakes != wakes:
                    return leases
                changed.wait(min(rest, self._queue.seconds_to_next(), threading.TIMEOUT_MAX))
        return []

    def _read(self, lease: Lease) -> LeasedMessage[BodyT] | None:
        """Decode a message; None if it was rejected because it cannot be decoded."""
        entry, receipt, delivery = lease
        body = entry.body
        if isinstance(body, EncodedBody):
            try:
                body = self._bodies.read(body)
            except ValueError as error:
                with contextlib.suppress(ReceiptExpired):
                    self._queue.reject_unreadable(lease, core.describe_unreadable(error))
                return None
        return LeasedMessage(self, lease, body, entry.id, receipt, delivery, entry.enqueued_at, entry.reply_to)

    def _reply(self, message: LeasedMessage[Any], name: str, body: Any) -> str:
        reply_mailbox = message.lease.entry.reply_mailbox or self.open_mailbox(name, None)
        return reply_mailbox.send(body)


def connect(
    address: str, body_type: type[BodyT], *, capacity: int | None = None, max_deliveries: int | None = None
) -> InMemoryMailbox[BodyT]:
    """Open the mailbox at `memory://NAME`, shared within this process."""
    name = address.removeprefix("memory:").removeprefix("//")
    return InMemoryMailbox(name, body_type, capacity=capacity, max_deliveries=max_deliveries, broker=_PROCESS_BROKER)


def _try_acknowledge(message: Message[Any]) -> bool:
    try:
        message.acknowledge()
    except ReceiptExpired:
        return False
    return True
