"""Mailboxes on Amazon SQS, or on a server with the same API."""

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
    """Interrupts waiting receivers.

    A receiver remembers the `turn` when it starts; `ring` ends the waits of all earlier turns.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._turn = 0

    @property
    def turn(self) -> int:
        with self._condition:
            return self._turn

    def ring(self) -> None:
        """End all waits."""
        with self._condition:
            self._turn += 1
            self._condition.notify_all()

    def sleep(self, turn: int, seconds: float) -> bool:
        """Wait for some seconds; True if the wait was ended."""
        with self._condition:
            return self._condition.wait_for(lambda: self._turn != turn, timeout=seconds)

    def run(self, turn: int, call: Callable[[], T], too_late: Callable[[T], object]) -> T | None:
        """Run a call in a thread; None if the wait ends first: then `too_late` gets the result."""
        task = _Task(call)
        thread = threading.Thread(
            target=self._work, args=(task, too_late), name="proctor-sqs-wait", daemon=True
        )
        thread.start()
        with self._condition:
            try:
                self._condition.wait_for(lambda: task.done or self._turn != turn)
            finally:
                # Also after Ctrl-C during the wait.
                task.is_abandoned = not task.done
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
            if not task.is_abandoned:
                task.result, task.error = result, error
                self._condition.notify_all()
                return
        if result is not None:
            too_late(result)


class _Task(Generic[T]):
    """A running call."""

    __slots__ = ("call", "done", "error", "is_abandoned", "result")

    def __init__(self, call: Callable[[], T]) -> None:
        self.call = call
        self.done = False
        self.is_abandoned = False
        self.result: T | None = None
        self.error: Exception | None = None


BodyT = TypeVar("BodyT")

DEAD = "-dead"
_MAX_NAME_LENGTH = 80 - len(DEAD)
# SQS counts every delivery: provisional receivers get this many more.
SPARE_DELIVERIES = 3
# SQS waits whole seconds; the rest of a wait polls this often.
_POLL_SECONDS = 0.1


class SQSMailbox(Generic[BodyT]):
    """A mailbox on a standard SQS queue, which is created if it does not exist.

    `name` is the name of the queue, or the URL of an existing one. `client` is a boto3 client; without
    one, boto3 finds the endpoint, the region and the credentials. A message that returns after
    `max_deliveries` becomes a dead letter, in the queue NAME-dead.

    Differences of SQS: the order is approximate; leases and delays are whole seconds, rounded up; a
    delay is at most 900 seconds; `receive` without a wait queries only some servers and may miss
    messages; the reason of a `nack` is not stored, so dead letters have no history; there is no
    capacity. A message that arrives while a wait is interrupted is returned, and counts as one more
    delivery. SQS counts every delivery, so provisional receivers get a message up to three times more
    than `max_deliveries`; then SQS itself moves it.

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
            url_endpoint, url_region = _parse_url(url)
            endpoint_url, region = endpoint_url or url_endpoint, region or url_region
        access = client if isinstance(client, SqsClient) else SqsClient(client, endpoint_url, region)
        self.clock: Clock = SystemClock() if clock is None else clock
        self.queue = Queue(access, self._name, url)
        self._access = access
        self._url = url
        self._dead = DeadLetters(Queue(access, self._name + DEAD))
        self._bodies = limits.BodyCodec(body_type)
        self._max_deliveries = max_deliveries
        self._wake_signal = WakeSignal()
        self._closed = False
        self._lock = threading.Lock()
        self._attributes: QueueAttributes | None = None
        self._reply_mailboxes: dict[str, SQSMailbox[Any]] = {}

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
        return self._max_deliveries

    def send(
        self, body: BodyT, *, reply_to: str | Mailbox[Any] | None = None, delay_seconds: float = 0
    ) -> str:
        delay = whole_seconds("delay_seconds", delay_seconds, self.queue.where, MAX_DELAY_SECONDS)
        attributes = self._open()
        entry, _ = self._encode(body, limits.reply_name(reply_to), attributes)
        if delay:
            entry["DelaySeconds"] = delay
        return self.queue.send(entry)

    def send_all(self, bodies: Iterable[BodyT], *, reply_to: str | Mailbox[Any] | None = None) -> list[str]:
        """Send several messages, ten at a time; after an error, some may already be sent."""
        attributes = self._open()
        reply_name = limits.reply_name(reply_to)
        entries = (self._encode(body, reply_name, attributes) for body in bodies)
        ids: list[str] = []
        for batch in split_batches(entries, attributes.largest):
            ids += self.queue.send_all(batch)
        return ids

    def as_received(self, body: BodyT) -> BodyT:
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

        `provisional` receivers get a message up to three times more than `max_deliveries`.
        """
        limits.check_receive(max_messages, visibility_timeout, wait_time_seconds, where=self.queue.where)
        # Before the queue is opened, which takes a while the first time: a `wake` during that time
        # must end this wait.
        turn = self._wake_signal.turn
        self._open()
        lease = whole_seconds("visibility_timeout", visibility_timeout, self.queue.where)
        for batch in self._poll(turn, max_messages, lease, wait_time_seconds):
            messages = self._decode(batch, lease, None if provisional else self._max_deliveries)
            if messages:
                return messages
        return []

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        """Acknowledge messages, ten at a time; return how many were still leased."""
        self._open()
        claimed: list[SQSMessage[Any]] = []
        for message in cast("Sequence[SQSMessage[BodyT]]", messages):
            with contextlib.suppress(ReceiptExpired):
                message.claim()
                claimed.append(message)
        count = 0
        for start in range(0, len(claimed), BATCH):
            try:
                count += sum(
                    self.queue.delete_all([m.receipt_handle for m in claimed[start : start + BATCH]])
                )
            except BaseException:
                for message in claimed[start:]:
                    message.unclaim()
                raise
        return count

    def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """The dead letters, newest first, except those that another process reads just now.

        SQS has no order, so up to 10,000 are read, ten at a time. For those that SQS itself moved,
        `died_at` is the time of the first receipt.
        """
        limits.check_bound("limit", limit, where=self._name)
        return self._dead.read(limit, self._open().deliveries)

    def purge(self) -> int:
        """Drop all messages, including leased ones; return about how many. At most once a minute."""
        count = self.approximate_count()
        self.queue.purge()
        return count

    def approximate_count(self) -> int:
        """Count waiting, delayed and leased messages, approximately."""
        self._open()
        return self.queue.count()

    def open_mailbox(self, name: str, body_type: type[Any] | None) -> SQSMailbox[Any]:
        """Open another mailbox with the same client, or a second handle of this one."""
        self.check_open()
        is_same = name == self._name
        return SQSMailbox(
            self._url if is_same and self._url else name,
            self._access,
            body_type,
            max_deliveries=self._max_deliveries if is_same else None,
            clock=self.clock,
        )

    def wake(self) -> None:
        """Make waiting `receive` calls of this object return without messages."""
        self._wake_signal.ring()

    def close(self) -> None:
        """Close this object: waiting receivers return, further calls raise `MailboxClosed`."""
        self._closed = True
        self._wake_signal.ring()

    def remove(self, *, for_good: bool = False) -> None:  # noqa: ARG002
        """Delete the queue and its -dead queue with all messages, and close this object.

        Other open handles find no queue; a new handle creates it again.
        """
        self.check_open()
        self.queue.remove()
        self._dead.queue.remove()
        self.close()

    def reject(self, delivery: Delivery, reason: str, delivery_count: int | None = None) -> None:
        """Move a message to the dead letters: store it there first, then delete it here."""
        self._dead.put(delivery, reason, delivery_count)
        self.queue.delete(delivery.receipt_handle)

    def send_reply(self, name: str, body: Any) -> str:
        with self._lock:
            mailbox = self._reply_mailboxes.get(name)
            if mailbox is None:
                mailbox = self._reply_mailboxes[name] = self.open_mailbox(name, None)
        return mailbox.send(body)

    def check_open(self) -> None:
        if self._closed:
            raise limits.closed_error(self._name)

    def _open(self) -> QueueAttributes:
        """Return the attributes of the queue; find, create and configure it on the first use."""
        self.check_open()
        with self._lock:
            if self._attributes is None:
                attributes, limit = self.queue.read_attributes(), self._max_deliveries
                if limit is not None:
                    limit = min(limit + SPARE_DELIVERIES, MAX_DELIVERIES)
                expected = QueueAttributes(attributes.arn, attributes.largest, limit, self._name + DEAD)
                if limit is not None and attributes != expected:
                    self.queue.set_redrive_policy(limit, self._dead.attributes.arn)
                    attributes = expected
                self._attributes = attributes
            return self._attributes

    def _encode(self, body: BodyT, reply_to: str | None, attributes: QueueAttributes) -> tuple[Entry, int]:
        text = self._bodies.write(body).decode()
        # JSON allows these two characters and SQS does not; as escapes they are equivalent.
        text = text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
        entry, size = encode_entry(text, {} if reply_to is None else {REPLY_TO: reply_to})
        limit = attributes.largest - min(RESERVED, attributes.largest // 2)
        if size > limit:
            raise MessageTooLarge(
                f"the message has {size} bytes, the limit is {limit}",
                where=self.queue.where,
                fix="send less, or a reference to the data; a mailbox on Redis accepts more",
            )
        return entry, size

    def _poll(self, turn: int, limit: int, lease: int, wait: float) -> Iterator[list[RawMessage]]:
        """Receive repeatedly, until the wait is over or interrupted."""
        deadline = self.clock.monotonic() + wait
        batch: list[RawMessage] | None
        while True:
            rest = deadline - self.clock.monotonic()
            if rest >= 1:
                batch = self._long_poll(turn, limit, lease, min(MAX_POLL_SECONDS, int(rest)))
            else:
                batch = self.queue.receive(limit, lease)
            if batch is None:
                return
            yield batch
            rest = deadline - self.clock.monotonic()
            # Continue after a batch of unreadable messages, even at the end of the wait.
            if not batch and (rest <= 0 or self._wake_signal.sleep(turn, min(rest, _POLL_SECONDS))):
                return

    def _long_poll(self, turn: int, limit: int, lease: int, wait: int) -> list[RawMessage] | None:
        def return_batch(batch: list[RawMessage]) -> None:
            # If that fails, the messages return when their leases expire.
            with contextlib.suppress(MailboxError):
                self.queue.give_back(raw["ReceiptHandle"] for raw in batch)

        return self._wake_signal.run(turn, lambda: self.queue.receive(limit, lease, wait), return_batch)

    def _decode(
        self, batch: Sequence[RawMessage], lease: int, max_deliveries: int | None
    ) -> list[SQSMessage[BodyT]]:
        """Decode messages; reject those that are unreadable or were delivered too often."""
        messages: list[SQSMessage[BodyT]] = []
        failure: MailboxError | None = None
        for raw in batch:
            delivery = Delivery(raw)
            try:
                if max_deliveries is not None and delivery.delivery_count > max_deliveries:
                    self.reject(delivery, limits.describe_deliveries(max_deliveries), max_deliveries)
                    continue
                try:
                    body = self._bodies.read(delivery.text)
                except ValueError as error:
                    self.reject(delivery, limits.describe_unreadable(error))
                    continue
            except MailboxError as error:
                failure = error
            else:
                messages.append(SQSMessage(self, delivery, body, lease))
        if failure is not None and not messages:
            raise failure
        return messages


def connect(address: str, body_type: type[Any], **options: Any) -> SQSMailbox[Any]:
    """Open the mailbox at `sqs://NAME`; boto3 finds the region and the credentials."""
    name = address.partition("://")[2]
    unknown = sorted(options.keys() - {"endpoint_url", "region", "max_deliveries"})
    if unknown:
        raise ConfigError(
            f"unknown options: {', '.join(map(repr, unknown))}",
            where=address,
            fix="use endpoint_url, region or max_deliveries",
        )
    return SQSMailbox(name, None, body_type, **options)


def _parse_name(name: str) -> tuple[str, str | None]:
    """Split a name or URL into the name and the URL, if any."""
    url = name if name.startswith(("http://", "https://")) else None
    bare = urlsplit(name).path.rpartition("/")[2] if url else name
    if bare.endswith(".fifo"):
        raise ConfigError(
            f"{bare!r} is a FIFO queue, which cannot serve as a mailbox",
            fix="use a standard queue; FIFO queues cannot delay a single message",
        )
    limits.check_name(bare)
    if len(bare) > _MAX_NAME_LENGTH:
        raise ConfigError(
            f"{bare!r} is too long for an SQS queue with a {DEAD} queue",
            fix=f"use at most {_MAX_NAME_LENGTH} characters",
        )
    return bare, url


def _check_deliveries(max_deliveries: int | None, where: str) -> None:
    limits.check_bound("max_deliveries", max_deliveries, where=where)
    if max_deliveries is not None and max_deliveries > MAX_DELIVERIES:
        raise ConfigError(
            f"max_deliveries is {max_deliveries}",
            where=where,
            fix=f"SQS counts up to {MAX_DELIVERIES}; give less, or None for any number",
        )


def _parse_url(url: str) -> tuple[str | None, str | None]:
    """The endpoint in the URL of a queue, or the region if it is an endpoint of Amazon.

    >>> _parse_url("https://sqs.eu-west-1.amazonaws.com/123456789012/letters")
    (None, 'eu-west-1')
    """
    parts = urlsplit(url)
    host = parts.netloc.split(".")
    if "amazonaws" in host:
        return None, host[1] if host[0] == "sqs" else None
    return f"{parts.scheme}://{parts.netloc}", None
