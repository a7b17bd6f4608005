"""Mailboxes on Amazon SQS, or on a server with the same API."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from proctor.core.clock import Clock, SystemClock
from proctor.errors import ConfigError, MailboxError, MessageTooLarge, ReceiptExpired
from proctor.mailboxes import core
from proctor.mailboxes.core import BodyT, LeasedMessage, StoredMailbox
from proctor.mailboxes.sqs_messages import REPLY_TO, RESERVED_BYTES, DeadLetters, Delivery, SQSLease
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
        self.turn = 0

    def ring(self) -> None:
        with self._condition:
            self.turn += 1
            self._condition.notify_all()

    def sleep(self, turn: int, seconds: float) -> bool:
        """Wait for `seconds`; return True if `ring` ended the wait."""
        with self._condition:
            return self._condition.wait_for(lambda: self.turn != turn, timeout=seconds)

    def run(self, turn: int, call: Callable[[], T], on_late_result: Callable[[T], object]) -> T | None:
        """Run a call in a thread; if `ring` comes first, return None and later pass the result to `on_late_result`."""
        outcome: list[T | Exception] = []
        is_abandoned = False

        def work() -> None:
            result: T | Exception
            try:
                result = call()
            except Exception as error:
                result = error
            with self._condition:
                outcome.append(result)
                self._condition.notify_all()
                is_late = is_abandoned
            if is_late and not isinstance(result, Exception):
                on_late_result(result)

        threading.Thread(target=work, name="proctor-sqs-wait", daemon=True).start()
        with self._condition:
            try:
                self._condition.wait_for(lambda: outcome or self.turn != turn)
            finally:
                # This also runs after Ctrl-C during the wait.
                is_abandoned = not outcome
        if is_abandoned:
            return None
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]


DEAD_SUFFIX = "-dead"
_MAX_NAME_LENGTH = 80 - len(DEAD_SUFFIX)
# SQS counts every delivery, so provisional receivers get this many extra deliveries.
SPARE_DELIVERIES = 3
# SQS waits whole seconds; the rest of a wait polls at this interval.
_POLL_SECONDS = 0.1


class SQSMailbox(StoredMailbox[BodyT]):
    """A mailbox on a standard SQS queue, which is created if it does not exist.

    `name` is the name of the queue, or the URL of an existing queue. `client` is a boto3 client; without a client,
    boto3 finds the endpoint, the region and the credentials. A message that returns after `max_deliveries` becomes a
    dead letter, in the queue NAME-dead.

    Differences of SQS: the order is approximate; leases and delays are whole seconds, rounded up; a delay is at most
    900 seconds; `receive` without a wait queries only some servers and may miss messages; the reason for a `nack` is
    not stored, so dead letters have no history; there is no capacity. A message that arrives while a wait is
    interrupted is returned, and counts as one more delivery. SQS counts every delivery, so provisional receivers get a
    message up to three times more than `max_deliveries`; then SQS itself moves it.

    SQSMailbox("eval-requests", boto3.client("sqs"), EvalRequest, max_deliveries=5)
    """

    max_delay_seconds = MAX_DELAY_SECONDS

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
        name, url = _parse_name(name)
        super().__init__(name, body_type, max_deliveries, where=f"queue {name!r}")
        if max_deliveries is not None and max_deliveries > MAX_DELIVERIES:
            raise ConfigError(
                f"invalid max_deliveries: {max_deliveries}",
                where=name,
                fix=f"use at most {MAX_DELIVERIES}, the limit of SQS, or None for no limit",
            )
        if client is None and url is not None:
            url_endpoint, url_region = _parse_url(url)
            endpoint_url, region = endpoint_url or url_endpoint, region or url_region
        self._client = client if isinstance(client, SqsClient) else SqsClient(client, endpoint_url, region)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._queue = Queue(self._client, name, url)
        self._url = url
        self._dead = DeadLetters(Queue(self._client, name + DEAD_SUFFIX))
        self._wake_signal = WakeSignal()
        self._lock = threading.Lock()
        self._attributes: QueueAttributes | None = None
        self._reply_mailboxes: dict[str, SQSMailbox[Any]] = {}

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        """Acknowledge messages, ten at a time; return how many were still leased."""
        self.check_open()
        claimed: list[SQSLease] = []
        for message in cast("Sequence[LeasedMessage[BodyT]]", messages):
            with contextlib.suppress(ReceiptExpired):
                message.lease.claim()
                claimed.append(message.lease)
        count = 0
        for start in range(0, len(claimed), BATCH):
            receipts = [lease.delivery.receipt_handle for lease in claimed[start : start + BATCH]]
            try:
                count += sum(self._queue.delete_all(receipts))
            except BaseException:
                for lease in claimed[start:]:
                    lease.unclaim()
                raise
        return count

    def purge(self) -> int:
        """Drop all messages, including leased ones, and return about how many; SQS allows it once a minute."""
        count = self.approximate_count()
        self._queue.purge()
        return count

    def approximate_count(self) -> int:
        self._open()
        return self._queue.count()

    def open_mailbox(self, name: str, body_type: type[Any] | None) -> SQSMailbox[Any]:
        """Open another mailbox with the same client, or a second handle of this mailbox."""
        self.check_open()
        is_same = name == self._name
        return SQSMailbox(
            self._url if is_same and self._url else name,
            self._client,
            body_type,
            max_deliveries=self._max_deliveries if is_same else None,
            clock=self._clock,
        )

    def wake(self) -> None:
        self._wake_signal.ring()

    def close(self) -> None:
        self._closed = True
        self._wake_signal.ring()

    def remove(self, *, for_good: bool = False) -> None:  # noqa: ARG002
        """Delete the queue and its -dead queue with all messages, and close this object.

        Other open handles find no queue; a new handle creates it again.
        """
        self.check_open()
        self._queue.remove()
        self._dead.queue.remove()
        self.close()

    def _put(self, bodies: Iterable[BodyT], reply_to: str | Mailbox[Any] | None, delay: float) -> list[str]:
        """Send messages, ten at a time; after an error, some may already be sent."""
        attributes, name = self._open(), core.get_reply_name(reply_to)
        ids: list[str] = []
        entries = (self._encode(body, name, attributes) for body in bodies)
        for batch in core.split_batches(entries, BATCH, attributes.max_bytes):
            if delay:
                batch = [{**entry, "DelaySeconds": math.ceil(delay)} for entry in batch]
            ids += self._queue.send_all(batch)
        return ids

    def _receive(self, limit: int, lease_seconds: float, wait: float, provisional: bool) -> Sequence[Message[BodyT]]:
        """Lease messages; provisional receivers get a message up to three times more than `max_deliveries`."""
        # Read before the queue is opened, which takes a while the first time: a `wake` during that time must end this
        # wait.
        turn = self._wake_signal.turn
        self._open()
        lease = math.ceil(lease_seconds)
        for batch, leased_at in self._poll(turn, limit, lease, wait):
            messages = self._decode(batch, leased_at + lease, None if provisional else self._max_deliveries)
            if messages:
                return messages
        return []

    def _read_dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Return the newest dead letters, except letters that another process is reading.

        SQS has no order, so up to 10,000 are read, ten at a time. For letters that SQS itself moved, `died_at` is the
        time of the first receipt.
        """
        return self._dead.read(limit, self._open().deliveries)

    def _acknowledge(self, message: LeasedMessage[Any]) -> None:
        with message.lease.claimed():
            self._queue.delete(message.receipt_handle)

    def _give_back(
        self,
        message: LeasedMessage[Any],
        delay: float,
        reason: str,  # noqa: ARG002 - SQS does not store it
        counts: bool,  # noqa: ARG002 - SQS counts every delivery
    ) -> None:
        with message.lease.claimed():
            self._queue.set_visibility(message.receipt_handle, math.ceil(delay))

    def _extend(self, message: LeasedMessage[Any], seconds: float) -> None:
        """Extend the lease; SQS allows 12 hours in total."""
        # The lock is held, because an extension after a return would hide the message again.
        with message.lease.locked():
            # Computed before the request, because the new lease starts while SQS handles it.
            started = self._clock.monotonic()
            self._queue.set_visibility(message.receipt_handle, math.ceil(seconds))
            message.lease.expires_at = started + math.ceil(seconds)

    def _confirm(self, message: LeasedMessage[Any]) -> None:
        """Check only the lease, because SQS counts every delivery."""
        with message.lease.locked():
            pass

    def _reject(self, message: LeasedMessage[Any], reason: str) -> None:
        with message.lease.claimed():
            self._move_to_dead_letters(message.lease.delivery, reason)

    def _move_to_dead_letters(self, delivery: Delivery, reason: str, delivery_count: int | None = None) -> None:
        """Move a message to the dead letters: store it there first, then delete it here."""
        self._dead.put(delivery, reason, delivery_count)
        self._queue.delete(delivery.receipt_handle)

    def _reply(self, message: LeasedMessage[Any], name: str, body: Any) -> str:  # noqa: ARG002
        with self._lock:
            mailbox = self._reply_mailboxes.get(name)
            if mailbox is None:
                mailbox = self._reply_mailboxes[name] = self.open_mailbox(name, None)
        return mailbox.send(body)

    def _open(self) -> QueueAttributes:
        """Return the attributes of the queue; find, create and configure it on the first use."""
        self.check_open()
        with self._lock:
            if self._attributes is None:
                attributes, limit = self._queue.read_attributes(), self._max_deliveries
                if limit is not None:
                    limit = min(limit + SPARE_DELIVERIES, MAX_DELIVERIES)
                expected = QueueAttributes(attributes.arn, attributes.max_bytes, limit, self._name + DEAD_SUFFIX)
                if limit is not None and attributes != expected:
                    self._queue.set_redrive_policy(limit, self._dead.attributes.arn)
                    attributes = expected
                self._attributes = attributes
            return self._attributes

    def _encode(self, body: BodyT, reply_to: str | None, attributes: QueueAttributes) -> tuple[Entry, int]:
        text = self._bodies.write(body).decode()
        # JSON allows these two characters, but SQS does not; their escapes are equivalent.
        text = text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
        entry, size = encode_entry(text, {} if reply_to is None else {REPLY_TO: reply_to})
        limit = attributes.max_bytes - min(RESERVED_BYTES, attributes.max_bytes // 2)
        if size > limit:
            raise MessageTooLarge(
                f"the message has {size} bytes, the limit is {limit}",
                where=self.where,
                fix="send less, or a reference to the data, or use a Redis mailbox, which accepts more",
            )
        return entry, size

    def _poll(self, turn: int, limit: int, lease: int, wait: float) -> Iterator[tuple[list[RawMessage], float]]:
        """Receive repeatedly, until the wait is over or interrupted; yield batches and their lease times."""
        deadline = self._clock.monotonic() + wait
        batch: list[RawMessage] | None
        while True:
            started = self._clock.monotonic()
            rest = deadline - started
            if rest >= 1:
                batch = self._long_poll(turn, limit, lease, min(MAX_POLL_SECONDS, int(rest)))
                # A long poll waits at the server, so the leases start with its response.
                started = self._clock.monotonic()
            else:
                batch = self._queue.receive(limit, lease)
            if batch is None:
                return
            yield batch, started
            rest = deadline - self._clock.monotonic()
            # Continue after a batch of unreadable messages, even at the end of the wait.
            if not batch and (rest <= 0 or self._wake_signal.sleep(turn, min(rest, _POLL_SECONDS))):
                return

    def _long_poll(self, turn: int, limit: int, lease: int, wait: int) -> list[RawMessage] | None:
        def return_batch(batch: list[RawMessage]) -> None:
            # If that fails, the messages return when their leases expire.
            with contextlib.suppress(MailboxError):
                self._queue.release(raw["ReceiptHandle"] for raw in batch)

        return self._wake_signal.run(turn, lambda: self._queue.receive(limit, lease, wait), return_batch)

    def _decode(
        self, batch: Sequence[RawMessage], expires_at: float, max_deliveries: int | None
    ) -> list[LeasedMessage[BodyT]]:
        """Decode messages; reject messages that are unreadable or were delivered too often."""
        messages: list[LeasedMessage[BodyT]] = []
        failure: MailboxError | None = None
        for delivery in map(Delivery.read, batch):
            try:
                if max_deliveries is not None and delivery.delivery_count > max_deliveries:
                    self._move_to_dead_letters(delivery, core.describe_deliveries(max_deliveries), max_deliveries)
                    continue
                try:
                    body = self._bodies.read(delivery.text)
                except ValueError as error:
                    self._move_to_dead_letters(delivery, core.describe_unreadable(error))
                    continue
            except MailboxError as error:
                failure = error
                continue
            messages.append(
                LeasedMessage(
                    self,
                    SQSLease(delivery, expires_at, self._clock, self.where),
                    body,
                    delivery.id,
                    delivery.receipt_handle,
                    delivery.delivery_count,
                    delivery.enqueued_at,
                    delivery.attributes.get(REPLY_TO),
                )
            )
        if failure is not None and not messages:
            raise failure
        return messages


def connect(
    address: str,
    body_type: type[BodyT] | None = None,
    *,
    endpoint_url: str | None = None,
    region: str | None = None,
    max_deliveries: int | None = None,
) -> SQSMailbox[BodyT]:
    """Open the mailbox at `sqs://NAME`; boto3 finds the region and the credentials."""
    name = address.partition("://")[2]
    return SQSMailbox(name, None, body_type, endpoint_url=endpoint_url, region=region, max_deliveries=max_deliveries)


def _parse_name(name: str) -> tuple[str, str | None]:
    """Split a name or URL into the name and the URL, if any."""
    url = name if name.startswith(("http://", "https://")) else None
    queue_name = urlsplit(name).path.rpartition("/")[2] if url else name
    if queue_name.endswith(".fifo"):
        raise ConfigError(
            f"{queue_name!r} is a FIFO queue, which cannot be used as a mailbox",
            fix="use a standard queue; FIFO queues cannot delay a single message",
        )
    core.check_name(queue_name)
    if len(queue_name) > _MAX_NAME_LENGTH:
        raise ConfigError(
            f"{queue_name!r} is too long for an SQS queue with a {DEAD_SUFFIX} queue",
            fix=f"use at most {_MAX_NAME_LENGTH} characters",
        )
    return queue_name, url


def _parse_url(url: str) -> tuple[str | None, str | None]:
    """Return the endpoint in the URL of a queue, or the region if the endpoint is Amazon's."""
    parts = urlsplit(url)
    host = parts.netloc.split(".")
    if "amazonaws" in host:
        return None, host[1] if host[0] == "sqs" else None
    return f"{parts.scheme}://{parts.netloc}", None
