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
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import uuid4

from proctor.core.clock import Clock, SystemClock
from proctor.errors import ConfigError, ReceiptExpired
from proctor.mailboxes import limits
from proctor.ports import Mailbox, Message
from proctor.records import codec
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
        self, body: Any, enqueued_at: datetime, reply_to: str | None, answers: Mailbox[Any] | None
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
                raise limits.full_error(self.name, capacity)
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
                    self._bury(entry, limits.describe_deliveries(entry.count))
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
            entry.returned(reason or limits.RETURNED)
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
            raise limits.expired_error(self.name)
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
                entry.returned(limits.LEASE_EXPIRED)
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
    if isinstance(body, EncodedBody):
        return body.decode("utf-8", "replace")
    try:
        return codec.encode(body).decode()
    except codec.UNWRITABLE as error:
        return f"<{type(body).__qualname__}, which cannot be written: {error}>"


class EncodedBody(bytes):
    """A body that was written when it was sent, as it would be for a server."""

    __slots__ = ()


BodyT = TypeVar("BodyT")


class MemoryBroker:
    """Where mailboxes in memory find each other by name.

    Bodies are written as JSON and read back, as on their way through a server, or, with
    `writes=False`, handed over as the objects they are.
    """

    def __init__(self, *, writes: bool, clock: Clock | None = None) -> None:
        self._writes = writes
        self._clock = clock or SystemClock()
        self._queues: dict[str, Queue] = {}
        self._lock = threading.Lock()

    def queue(self, name: str) -> Queue:
        """The queue of that name; a new one if there is none."""
        with self._lock:
            if name not in self._queues:
                self._queues[name] = Queue(name, self._clock, writes=self._writes)
            return self._queues[name]

    def introduce(self, queue: Queue) -> None:
        """Let a queue from elsewhere be found here too."""
        with self._lock:
            if self._queues.setdefault(queue.name, queue) is not queue:
                raise ConfigError(
                    f"another mailbox is known here by the name {queue.name!r}",
                    fix="give each mailbox a name of its own",
                )

    def forget(self, queue: Queue) -> None:
        """Let the name be free for a new one."""
        with self._lock:
            if self._queues.get(queue.name) is queue:
                del self._queues[queue.name]


# What is at memory:// addresses stays for the life of the process, as it would on a server,
# until it is taken or removed.
_PROCESS_BROKER = MemoryBroker(writes=True)


class InMemoryMessage(Generic[BodyT]):
    """One delivery from a mailbox in memory."""

    __slots__ = (
        "_lease",
        "_mailbox",
        "body",
        "delivery_count",
        "enqueued_at",
        "id",
        "receipt_handle",
        "reply_to",
    )

    def __init__(self, body: BodyT, lease: Lease, mailbox: InMemoryMailbox[Any]) -> None:
        self._lease = lease
        self._mailbox = mailbox
        self.body = body
        self.id = lease.entry.id
        self.receipt_handle = lease.receipt
        self.delivery_count = lease.delivery
        self.enqueued_at = lease.entry.enqueued_at
        self.reply_to = lease.entry.reply_to

    def acknowledge(self) -> None:
        """It is done: it goes for good."""
        self._mailbox._open_queue().acknowledge(self._lease)

    def nack(self, visibility_timeout: float = 0, *, reason: str = "", counts: bool = True) -> None:
        """Give it back, to be seen again after so many seconds."""
        limits.check_seconds("visibility_timeout", visibility_timeout, where=self._mailbox.name)
        queue = self._mailbox._open_queue()
        queue.give_back(self._lease, visibility_timeout, reason, counts=counts)

    def extend_visibility(self, timeout: float) -> None:
        """Keep it for so many seconds from now."""
        limits.check_seconds("timeout", timeout, where=self._mailbox.name)
        self._mailbox._open_queue().extend(self._lease, timeout)

    def confirm_delivery(self) -> None:
        """Make a provisional delivery count: from now on losing it is held against the message."""
        self._mailbox._open_queue().confirm(self._lease)

    def reject(self, reason: str) -> None:
        """Set it aside as a dead letter at once."""
        self._mailbox._open_queue().set_aside(self._lease, reason)

    def reply(self, body: Any) -> str:
        """Send an answer to `reply_to`; gives the id of the answer."""
        self._mailbox._open_queue()
        if self.reply_to is None:
            raise limits.no_reply_to_error(self._mailbox.name)
        answers = self._lease.entry.answers or self._mailbox.beside(self.reply_to, None)
        return answers.send(body)


class InMemoryMailbox(Generic[BodyT]):
    """A mailbox within this process.

    With a `body_type` bodies are written as JSON and read back, so that a test finds what a server
    would make of them; without one they are handed over as they are. A message that was delivered
    `max_deliveries` times and comes back is set aside. Mailboxes made with one `place` know each
    other by name; each is a handle of its own, so that closing one leaves the others open.

    >>> requests = InMemoryMailbox("requests")
    >>> _ = requests.send("2 + 2", reply_to="results")
    >>> [message] = requests.receive()
    >>> _ = message.reply(4)
    >>> message.acknowledge()
    >>> [answer.body for answer in requests.beside("results", int).receive()]
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
        place: MemoryBroker | None = None,
    ) -> None:
        limits.check_bound("capacity", capacity, where=name)
        limits.check_bound("max_deliveries", max_deliveries, where=name)
        self._name = limits.check_name(name)
        self._bodies = limits.BodyCodec(body_type)
        self._capacity = capacity
        self._max_deliveries = max_deliveries
        self._place = place or MemoryBroker(writes=body_type is not None, clock=clock)
        self._queue = self._place.queue(name)
        self._closed = False
        self._wakes = 0

    @property
    def name(self) -> str:
        """The name it is known by at its place."""
        return self._name

    @property
    def closed(self) -> bool:
        """True once it was closed."""
        return self._closed

    @property
    def max_deliveries(self) -> int | None:
        """After how many deliveries a message is set aside; None for never."""
        return self._max_deliveries

    def send(
        self, body: BodyT, *, reply_to: str | Mailbox[Any] | None = None, delay_seconds: float = 0
    ) -> str:
        """Put a message in, to be seen after so many seconds; gives its id."""
        limits.check_seconds("delay_seconds", delay_seconds, where=self._name)
        return self._send([body], reply_to, delay_seconds)[0]

    def send_all(self, bodies: Iterable[BodyT], *, reply_to: str | Mailbox[Any] | None = None) -> list[str]:
        """Put several messages in, in order; all of them, or none if one is refused."""
        return self._send(bodies, reply_to, 0)

    def as_received(self, body: BodyT) -> BodyT:
        """The body as a receiver gets it; raises `MessageRefused` or ValueError if it cannot."""
        return self._bodies.read(self._bodies.write(body)) if self._queue.writes else body

    def receive(
        self,
        *,
        max_messages: int = 1,
        visibility_timeout: float = 30,
        wait_time_seconds: float = 0,
        provisional: bool = False,
    ) -> Sequence[Message[BodyT]]:
        """Lease up to `max_messages` for `visibility_timeout` seconds.

        With nothing there it waits up to `wait_time_seconds`, and returns as soon as something is.
        Losing a `provisional` delivery does not count towards `max_deliveries` until it is
        confirmed.
        """
        limits.check_receive(max_messages, visibility_timeout, wait_time_seconds, where=self._name)
        self._open_queue()
        wakes = self._wakes
        until = time.monotonic() + wait_time_seconds

        def take() -> list[Lease]:
            limit = self._max_deliveries
            return self._queue.take(max_messages, visibility_timeout, limit, provisional=provisional)

        while True:
            leases = self._taken(take, until, wakes)
            messages = [read for lease in leases if (read := self._read(lease)) is not None]
            if messages or not leases:
                return messages

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        """Acknowledge several, passing over those that are no longer one's own; says how many."""
        self._open_queue()
        return sum(map(_acknowledged, messages))

    def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """What was set aside, the newest first; the newest 10,000 are kept."""
        limits.check_bound("limit", limit, where=self._name)
        return self._open_queue().dead_letters(limit)

    def purge(self) -> int:
        """Drop every message, those in flight too; says how many. Dead letters stay."""
        return self._open_queue().clear()

    def approximate_count(self) -> int:
        """How many there are: waiting, delayed and in flight; here the number is exact."""
        return len(self._open_queue())

    def beside(self, name: str, body_type: type[Any] | None) -> InMemoryMailbox[Any]:
        """The mailbox of another name at the same place, or, by the own name, a second handle."""
        self._open_queue()
        return InMemoryMailbox(name, body_type, place=self._place)

    def wake(self) -> None:
        """Let those who wait in `receive` of this handle look once more and return."""
        with self._queue.changed:
            self._wakes += 1
            self._queue.changed.notify_all()

    def close(self) -> None:
        """Use it no more from here; what is in it stays there for other handles."""
        with self._queue.changed:
            self._closed = True
            self._queue.changed.notify_all()

    def remove(self, *, for_good: bool = False) -> None:
        """Drop everything in it, dead letters too, and close it; then its name is free again."""
        queue = self._open_queue()
        queue.clear(dead_too=True)
        queue.gone = for_good
        if not for_good:
            self._place.forget(queue)
        self.close()

    def _open_queue(self) -> Queue:
        if self._closed:
            raise limits.closed_error(self._name)
        return self._queue

    def _send(self, bodies: Iterable[BodyT], reply_to: str | Mailbox[Any] | None, delay: float) -> list[str]:
        queue = self._open_queue()
        if queue.gone:
            raise limits.removed_error(self._name)
        name = limits.reply_name(reply_to)
        answers = self._introduced(reply_to)
        now = queue.clock.now()
        kept = (EncodedBody(self._bodies.write(body)) if queue.writes else body for body in bodies)
        entries = [Entry(body, now, name, answers) for body in kept]
        queue.put(entries, delay, self._capacity)
        return [entry.id for entry in entries]

    def _introduced(self, reply_to: str | Mailbox[Any] | None) -> Mailbox[Any] | None:
        """Where answers go if a mailbox was given and not a name; it may be of any kind."""
        if not isinstance(reply_to, InMemoryMailbox):
            return None if isinstance(reply_to, str) else reply_to
        self._place.introduce(reply_to._queue)
        return None

    def _taken(self, take: Callable[[], list[Lease]], until: float, wakes: int) -> list[Lease]:
        changed = self._queue.changed
        with changed:
            while not self._closed:
                leases = take()
                rest = until - time.monotonic()
                if leases or rest <= 0 or self._wakes != wakes:
                    return leases
                changed.wait(min(rest, self._queue.seconds_to_next(), threading.TIMEOUT_MAX))
        return []

    def _read(self, lease: Lease) -> InMemoryMessage[BodyT] | None:
        """The message, or None if it was set aside because it cannot be read."""
        body = lease.entry.body
        if isinstance(body, EncodedBody):
            try:
                body = self._bodies.read(body)
            except ValueError as error:
                with contextlib.suppress(ReceiptExpired):
                    self._queue.set_aside(lease, limits.describe_unreadable(error), even_if_over=True)
                return None
        return InMemoryMessage(body, lease, self)


def connect(
    address: str, body_type: type[BodyT], *, capacity: int | None = None, max_deliveries: int | None = None
) -> InMemoryMailbox[BodyT]:
    """The mailbox at `memory://NAME`, which all of this process find there.

    >>> connect("memory://an-example", int).name
    'an-example'
    """
    name = address.removeprefix("memory:").removeprefix("//")
    return InMemoryMailbox(
        name, body_type, capacity=capacity, max_deliveries=max_deliveries, place=_PROCESS_BROKER
    )


def _acknowledged(message: Message[Any]) -> bool:
    try:
        message.acknowledge()
    except ReceiptExpired:
        return False
    return True
