"""A mailbox on Amazon SQS, or on anything that speaks as SQS does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast
from urllib.parse import urlsplit

from proctor.core.clock import Clock, SystemClock
from proctor.errors import ConfigError, MailboxError, MessageTooLarge, ReceiptExpired
from proctor.mailboxes import limits
from proctor.mailboxes.sqs_messages import (
    REPLY_TO,
    RESERVED,
    DeadLetters,
    Delivery,
    SQSMessage,
    whole_seconds,
)
from proctor.mailboxes.sqs_queue import (
    BATCH,
    MAX_DELAY_SECONDS,
    MAX_DELIVERIES,
    MAX_POLL_SECONDS,
    Entry,
    Queue,
    QueueAttributes,
    RawMessage,
    SqsClient,
    encode_entry,
    split_batches,
)
from proctor.ports import Mailbox, Message
from proctor.records.mail import DeadLetter

T = TypeVar("T")


class WakeSignal:
    """Calls off whoever waits.

    A receiver takes the `turn` when it comes; when the bell rings, everybody's turn is over.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._turn = 0

    @property
    def turn(self) -> int:
        with self._condition:
            return self._turn

    def ring(self) -> None:
        """Let everybody who waits go on at once."""
        with self._condition:
            self._turn += 1
            self._condition.notify_all()

    def sleep(self, turn: int, seconds: float) -> bool:
        """Wait so long; True if the bell rang."""
        with self._condition:
            return self._condition.wait_for(lambda: self._turn != turn, timeout=seconds)

    def run(self, turn: int, call: Callable[[], T], too_late: Callable[[T], object]) -> T | None:
        """What a call gives; or None if the bell rings first, and `too_late` gets it later."""
        task = _Task(call)
        thread = threading.Thread(
            target=self._work, args=(task, too_late), name="proctor-sqs-wait", daemon=True
        )
        thread.start()
        with self._condition:
            try:
                self._condition.wait_for(lambda: task.done or self._turn != turn)
            finally:
                # Also when the wait itself is interrupted, by Ctrl-C.
                task.left = not task.done
        if task.error is not None:
            raise task.error
        return task.result

    def _work(self, task: _Task[T], too_late: Callable[[T], object]) -> None:
        result, error = None, None
        try:
            result = task.call()
        except Exception as raised:
            error = raised
        with self._condition:
            task.done = True
            if not task.left:
                task.result, task.error = result, error
                self._condition.notify_all()
                return
        if result is not None:
            too_late(result)


class _Task(Generic[T]):
    """A call on its way."""

    __slots__ = ("call", "done", "error", "left", "result")

    def __init__(self, call: Callable[[], T]) -> None:
        self.call = call
        self.done = False
        self.left = False
        self.result: T | None = None
        self.error: Exception | None = None


BodyT = TypeVar("BodyT")

DEAD = "-dead"
_LONGEST_NAME = 80 - len(DEAD)
# SQS counts every delivery: this many are forgiven where deliveries are provisional.
SPARE_DELIVERIES = 3
# SQS waits whole seconds; in the rest of a second it is asked so often.
_LOOK_AGAIN = 0.1


class SQSMailbox(Generic[BodyT]):
    """A mailbox on a standard queue of SQS; the queue is made if it is not there.

    `name` is the queue's name, or its URL if it is there already. `client` is a client of boto3;
    without one the endpoint, the region and the credentials are found as boto3 finds them. What
    comes back after `max_deliveries` is set aside, in a queue NAME-dead beside it.

    What SQS does in its own way: the order is nearly that of sending; leases and delays are whole
    seconds, rounded up; a delay is 900 seconds at most; `receive` without a wait asks only some of
    its servers and may miss what is there; a reason given to `nack` is not kept, so dead letters
    have no history; there is no capacity. A message that comes while a waiting receiver is called
    off is given back, and counts as delivered once more. SQS cannot forgive single deliveries, so
    receivers of provisional ones get a message up to three times more than `max_deliveries`; then
    SQS itself sets it aside.

    SQSMailbox("eval-requests", boto3.client("sqs"), EvalRequest, max_deliveries=5)
    """

    def __init__(
        self,
        name: str,
        client: Any = None,
        body_type: type[BodyT] | None = None,
        *,
        endpoint_url: str | None = None,
        region: str | None = None,
        max_deliveries: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._name, url = _parse_name(name)
        _check_deliveries(max_deliveries, self._name)
        if client is None and url is not None:
            told = _parse_url(url)
            endpoint_url, region = endpoint_url or told[0], region or told[1]
        access = client if isinstance(client, SqsClient) else SqsClient(client, endpoint_url, region)
        self.clock: Clock = SystemClock() if clock is None else clock
        self.queue = Queue(access, self._name, url)
        self._access = access
        self._url = url
        self._dead = DeadLetters(Queue(access, self._name + DEAD))
        self._bodies = limits.BodyCodec(body_type)
        self._max_deliveries = max_deliveries
        self._bell = WakeSignal()
        self._closed = False
        self._lock = threading.Lock()
        self._facts: QueueAttributes | None = None
        self._others: dict[str, SQSMailbox[Any]] = {}

    def __repr__(self) -> str:
        return f"SQSMailbox({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def max_deliveries(self) -> int | None:
        """After how many deliveries a message is set aside; None for never."""
        return self._max_deliveries

    def send(
        self, body: BodyT, *, reply_to: str | Mailbox[Any] | None = None, delay_seconds: float = 0
    ) -> str:
        """Put a message in; gives its id. Raises `MessageTooLarge`."""
        delay = whole_seconds("delay_seconds", delay_seconds, self.queue.where, MAX_DELAY_SECONDS)
        facts = self._open()
        entry, _ = self._entry(body, limits.reply_name(reply_to), facts)
        if delay:
            entry["DelaySeconds"] = delay
        return self.queue.send(entry)

    def send_all(self, bodies: Iterable[BodyT], *, reply_to: str | Mailbox[Any] | None = None) -> list[str]:
        """Put several messages in, ten at a time; if it fails half-way some may be in already."""
        facts = self._open()
        reply_name = limits.reply_name(reply_to)
        entries = (self._entry(body, reply_name, facts) for body in bodies)
        ids: list[str] = []
        for batch in split_batches(entries, facts.largest):
            ids += self.queue.send_all(batch)
        return ids

    def as_received(self, body: BodyT) -> BodyT:
        """The body as a receiver gets it; raises `MessageRefused` or ValueError if it cannot."""
        return self._bodies.read(self._bodies.write(body))

    def receive(
        self,
        *,
        max_messages: int = 1,
        visibility_timeout: float = 30,
        wait_time_seconds: float = 0,
        provisional: bool = False,
    ) -> Sequence[SQSMessage[BodyT]]:
        """Lease up to `max_messages` (1 to 10) for `visibility_timeout` seconds (0 to 43200).

        With nothing there it waits up to `wait_time_seconds`, and returns as soon as something is.
        With `provisional` a message comes up to three times more than `max_deliveries`.
        """
        limits.check_receive(max_messages, visibility_timeout, wait_time_seconds, where=self.queue.where)
        # Before the queue is opened, which takes a while the first time: who is called off then
        # must not wait afterwards.
        turn = self._bell.turn
        self._open()
        lease = whole_seconds("visibility_timeout", visibility_timeout, self.queue.where)
        for got in self._polls(turn, max_messages, lease, wait_time_seconds):
            messages = self._readable(got, lease, None if provisional else self._max_deliveries)
            if messages:
                return messages
        return []

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        """Acknowledge several, ten at a time; says how many were still one's own."""
        self._open()
        own: list[SQSMessage[Any]] = []
        for message in cast("Sequence[SQSMessage[BodyT]]", messages):
            with contextlib.suppress(ReceiptExpired):
                message.claim()
                own.append(message)
        done = 0
        for start in range(0, len(own), BATCH):
            try:
                told = self.queue.delete_all([m.receipt_handle for m in own[start : start + BATCH]])
            except BaseException:
                for message in own[start:]:
                    message.unclaim()
                raise
            done += sum(told)
        return done

    def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """What was set aside, the newest first; what someone else looks at just now may be missing.

        SQS gives them in no order, so all are read, up to 10,000 of them, ten at a time. For those
        that SQS moved itself, `died_at` is when SQS says that it was first received.
        """
        limits.check_bound("limit", limit, where=self._name)
        facts = self._open()
        return self._dead.look(limit, facts.deliveries)

    def purge(self) -> int:
        """Drop every message, those in flight too; says about how many. Once a minute at most."""
        count = self.approximate_count()
        self.queue.purge()
        return count

    def approximate_count(self) -> int:
        """How many there are: waiting, delayed and in flight, as far as SQS knows by now."""
        self._open()
        return self.queue.count()

    def beside(self, name: str, body_type: type[Any] | None) -> SQSMailbox[Any]:
        """Another mailbox at the same place, or, by the own name, a second handle of this one."""
        self.check_open()
        same = name == self._name
        return SQSMailbox(
            self._url if same and self._url else name,
            self._access,
            body_type,
            max_deliveries=self._max_deliveries if same else None,
            clock=self.clock,
        )

    def wake(self) -> None:
        """Let those who wait in `receive` of this object return at once, with nothing."""
        self._bell.ring()

    def close(self) -> None:
        """Use it no more from here: waiting receivers return, further use is `MailboxClosed`."""
        self._closed = True
        self._bell.ring()

    def remove(self, *, for_good: bool = False) -> None:  # noqa: ARG002
        """Take the queue and its -dead queue from SQS with all that is in them, and close it.

        Handles that are open elsewhere find it gone; one that is opened later makes it anew.
        """
        self.check_open()
        self.queue.remove()
        self._dead.queue.remove()
        self.close()

    def set_aside(self, received: Delivery, reason: str, delivery_count: int | None = None) -> None:
        """Move a message to the dead letters; first it is there, then it is gone here."""
        self._dead.put(received, reason, delivery_count)
        self.queue.delete(received.receipt_handle)

    def answer(self, name: str, body: Any) -> str:
        """Send an answer to another mailbox at the same place."""
        with self._lock:
            other = self._others.get(name)
            if other is None:
                other = self._others[name] = self.beside(name, None)
        return other.send(body)

    def check_open(self) -> None:
        """Raise `MailboxClosed` if it was closed."""
        if self._closed:
            raise limits.closed_error(self._name)

    def _open(self) -> QueueAttributes:
        """What is known of the queue; it is found, made and set up when it is first used."""
        self.check_open()
        with self._lock:
            if self._facts is None:
                facts, most = self.queue.facts(), self._max_deliveries
                if most is not None:
                    most = min(most + SPARE_DELIVERIES, MAX_DELIVERIES)
                wanted = QueueAttributes(facts.arn, facts.largest, most, self._name + DEAD)
                if most is not None and facts != wanted:
                    self.queue.set_aside_after(most, self._dead.facts.arn)
                    facts = wanted
                self._facts = facts
            return self._facts

    def _entry(self, body: BodyT, reply_to: str | None, facts: QueueAttributes) -> tuple[Entry, int]:
        text = self._bodies.write(body).decode()
        # Two characters that JSON may hold and SQS may not; written as escapes they are the same.
        text = text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
        entry, size = encode_entry(text, {} if reply_to is None else {REPLY_TO: reply_to})
        most = facts.largest - min(RESERVED, facts.largest // 2)
        if size > most:
            raise MessageTooLarge(
                f"the message has {size} bytes, and {most} are taken",
                where=self.queue.where,
                fix="send less, or send where it can be found; a mailbox on Redis takes more",
            )
        return entry, size

    def _polls(self, turn: int, most: int, lease: int, wait: float) -> Iterator[list[RawMessage]]:
        """What SQS gives, time after time, until the wait is over or called off."""
        until = self.clock.monotonic() + wait
        got: list[RawMessage] | None
        while True:
            left = until - self.clock.monotonic()
            if left >= 1:
                got = self._long_poll(turn, most, lease, min(MAX_POLL_SECONDS, int(left)))
            else:
                got = self.queue.receive(most, lease)
            if got is None:
                return
            yield got
            left = until - self.clock.monotonic()
            # What could not be read is no reason to stop; nothing at all is, when time is over.
            if not got and (left <= 0 or self._bell.sleep(turn, min(left, _LOOK_AGAIN))):
                return

    def _long_poll(self, turn: int, most: int, lease: int, wait: int) -> list[RawMessage] | None:
        def too_late(got: list[RawMessage]) -> None:
            # If it cannot be given back, it comes back when its lease is over.
            with contextlib.suppress(MailboxError):
                self.queue.give_back(one["ReceiptHandle"] for one in got)

        return self._bell.run(turn, lambda: self.queue.receive(most, lease, wait), too_late)

    def _readable(self, got: Sequence[RawMessage], lease: int, most: int | None) -> list[SQSMessage[BodyT]]:
        """The messages that can be read and came `most` times at most; others are set aside."""
        messages: list[SQSMessage[BodyT]] = []
        trouble: MailboxError | None = None
        for one in got:
            received = Delivery(one)
            try:
                if most is not None and received.delivery_count > most:
                    self.set_aside(received, limits.describe_deliveries(most), most)
                    continue
                try:
                    body = self._bodies.read(received.text)
                except ValueError as why:
                    self.set_aside(received, limits.describe_unreadable(why))
                    continue
            except MailboxError as error:
                trouble = error
            else:
                messages.append(SQSMessage(self, received, body, lease))
        if trouble is not None and not messages:
            raise trouble
        return messages


def connect(address: str, body_type: type[Any], **options: Any) -> SQSMailbox[Any]:
    """The mailbox at `sqs://NAME`; where and as whom is found as boto3 finds it."""
    name = address.partition("://")[2]
    unknown = sorted(options.keys() - {"endpoint_url", "region", "max_deliveries"})
    if unknown:
        raise ConfigError(
            f"its options do not fit: there is no {', '.join(map(repr, unknown))}",
            where=address,
            fix="it takes endpoint_url, region and max_deliveries",
        )
    return SQSMailbox(name, None, body_type, **options)


def _parse_name(name: str) -> tuple[str, str | None]:
    """A queue's name, and its URL if that was given."""
    url = name if name.startswith(("http://", "https://")) else None
    bare = urlsplit(name).path.rpartition("/")[2] if url else name
    if bare.endswith(".fifo"):
        raise ConfigError(
            f"{bare!r} is a FIFO queue, which cannot serve as a mailbox",
            fix="use a standard queue; FIFO queues know no delay of one message",
        )
    limits.check_name(bare)
    if len(bare) > _LONGEST_NAME:
        raise ConfigError(
            f"{bare!r} is too long for a queue of SQS with its {DEAD} queue beside it",
            fix=f"use {_LONGEST_NAME} characters at most",
        )
    return bare, url


def _check_deliveries(most: int | None, where: str) -> None:
    limits.check_bound("max_deliveries", most, where=where)
    if most is not None and most > MAX_DELIVERIES:
        raise ConfigError(
            f"max_deliveries is {most}",
            where=where,
            fix=f"SQS counts up to {MAX_DELIVERIES}; give less, or None for any number",
        )


def _parse_url(url: str) -> tuple[str | None, str | None]:
    """The endpoint that a queue's URL tells, or the region if the endpoint is Amazon's own.

    >>> _place_of("https://sqs.eu-west-1.amazonaws.com/123456789012/letters")
    (None, 'eu-west-1')
    """
    parts = urlsplit(url)
    host = parts.netloc.split(".")
    if "amazonaws" in host:
        return None, host[1] if host[0] == "sqs" else None
    return f"{parts.scheme}://{parts.netloc}", None
