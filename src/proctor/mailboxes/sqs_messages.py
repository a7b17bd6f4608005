"""Messages of an SQS mailbox, and its queue of dead letters."""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from proctor.core.clock import Clock
from proctor.errors import MailboxError
from proctor.mailboxes import limits
from proctor.mailboxes.sqs_queue import BATCH, Queue, QueueAttributes, RawMessage, encode_entry
from proctor.records.mail import DeadLetter

BodyT = TypeVar("BodyT")

REPLY_TO = "reply_to"


class Delivery:
    """The data of one delivery from SQS."""

    __slots__ = ("_raw",)

    def __init__(self, raw: RawMessage) -> None:
        self._raw = raw

    @property
    def id(self) -> str:
        return str(self._raw["MessageId"])

    @property
    def text(self) -> str:
        return str(self._raw["Body"])

    @property
    def receipt_handle(self) -> str:
        return str(self._raw["ReceiptHandle"])

    @property
    def _attributes(self) -> Mapping[str, str]:
        # Servers that imitate SQS omit some of them.
        attributes: Mapping[str, str] = self._raw.get("Attributes") or {}
        return attributes

    @property
    def delivery_count(self) -> int:
        return int(self._attributes.get("ApproximateReceiveCount", 1))

    @property
    def enqueued_at(self) -> datetime:
        return to_datetime(self._attributes.get("SentTimestamp", "0"))

    @property
    def first_received_at(self) -> datetime:
        first = self._attributes.get("ApproximateFirstReceiveTimestamp")
        return self.enqueued_at if first is None else to_datetime(first)

    def attribute(self, name: str) -> str | None:
        """The value of a message attribute."""
        value = self._raw.get("MessageAttributes", {}).get(name)
        return None if value is None else value.get("StringValue")


class Owner(Protocol):
    """The part of a mailbox that its messages use."""

    @property
    def queue(self) -> Queue: ...

    @property
    def clock(self) -> Clock: ...

    def check_open(self) -> None: ...

    def reject(self, delivery: Delivery, reason: str) -> None: ...

    def send_reply(self, name: str, body: Any) -> str: ...


class SQSMessage(Generic[BodyT]):
    """One delivery of a message, valid until its lease expires.

    SQS accepts some stale receipts, so the lease is checked here too, before SQS is called.
    """

    __slots__ = ("_delivery", "_expires_at", "_is_claimed", "_lock", "_owner", "body")

    def __init__(self, owner: Owner, delivery: Delivery, body: BodyT, lease: int) -> None:
        self.body = body
        self._owner = owner
        self._delivery = delivery
        self._expires_at = owner.clock.monotonic() + lease
        self._lock = threading.Lock()
        self._is_claimed = False

    def __repr__(self) -> str:
        return f"SQSMessage(id={self.id!r}, delivery_count={self.delivery_count})"

    @property
    def id(self) -> str:
        return self._delivery.id

    @property
    def receipt_handle(self) -> str:
        return self._delivery.receipt_handle

    @property
    def delivery_count(self) -> int:
        return self._delivery.delivery_count

    @property
    def enqueued_at(self) -> datetime:
        return self._delivery.enqueued_at

    @property
    def reply_to(self) -> str | None:
        return self._delivery.attribute(REPLY_TO)

    def acknowledge(self) -> None:
        with _Claim(self):
            self._owner.queue.delete(self.receipt_handle)

    def nack(
        self,
        visibility_timeout: float = 0,
        *,
        reason: str = "",  # noqa: ARG002
        counts: bool = True,  # noqa: ARG002
    ) -> None:
        """Return the message; SQS does not store the reason, and counts every delivery."""
        seconds = whole_seconds("visibility_timeout", visibility_timeout, self._owner.queue.where)
        with _Claim(self):
            self._owner.queue.hide(self.receipt_handle, seconds)

    def extend_visibility(self, timeout: float) -> None:
        """Extend the lease; SQS allows 12 hours in total."""
        seconds = whole_seconds("timeout", timeout, self._owner.queue.where)
        # Within the lock, because an extension after a return would hide the message again.
        with self._lock:
            self._check()
            self._owner.queue.hide(self.receipt_handle, seconds)
            self._expires_at = self._owner.clock.monotonic() + seconds

    def confirm_delivery(self) -> None:
        """Check the lease; SQS counts every delivery anyway."""
        with self._lock:
            self._check()

    def reject(self, reason: str) -> None:
        with _Claim(self):
            self._owner.reject(self._delivery, reason)

    def reply(self, body: Any) -> str:
        self._owner.check_open()
        if self.reply_to is None:
            raise limits.no_reply_to_error(f"message {self.id}")
        return self._owner.send_reply(self.reply_to, body)

    def claim(self) -> None:
        """Claim the message before SQS is called; raise `ReceiptExpired` for all but one caller."""
        with self._lock:
            self._check()
            self._is_claimed = True

    def unclaim(self) -> None:
        """Release the claim, because the call of SQS failed."""
        with self._lock:
            self._is_claimed = False

    def _check(self) -> None:
        self._owner.check_open()
        if self._is_claimed or self._owner.clock.monotonic() >= self._expires_at:
            raise limits.expired_error(self._owner.queue.where)


class _Claim:
    """A claim on a message, released if an error occurs."""

    def __init__(self, message: SQSMessage[Any]) -> None:
        self._message = message

    def __enter__(self) -> None:
        self._message.claim()

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        if error_type is not None:
            self._message.unclaim()


def whole_seconds(name: str, seconds: float, where: str, maximum: float = limits.MAX_LEASE_SECONDS) -> int:
    """Check seconds and round them up, because SQS accepts only whole ones.

    >>> whole_seconds("timeout", 0.2, "")
    1
    """
    limits.check_seconds(name, seconds, maximum, where=where)
    return math.ceil(seconds)


def to_datetime(milliseconds: str) -> datetime:
    """Convert a timestamp of SQS.

    >>> to_datetime("1500")
    datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


# Bytes reserved in every message for the record of its death.
RESERVED = 4096
_MAX_REASON_LENGTH = 500
_RECORD_ATTRIBUTE = "proctor"
# Longer than reading takes, so that none is read twice; all are returned at once.
_READ_LEASE = 120
# How long an unchanged number of letters is taken for the same letters.
_CACHE_SECONDS = 30.0
_CUT = " (its body is too large for a dead letter, so the end is missing)"


class _DeathRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The attribute of a dead letter that Proctor wrote; its body is unchanged."""

    id: str
    reason: str
    delivery_count: int
    enqueued_at: datetime


class DeadLetters:
    """The dead letters of a mailbox; the queue is created with the first one."""

    def __init__(self, queue: Queue, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.queue = queue
        self._monotonic = monotonic
        self._attributes: QueueAttributes | None = None
        # By id, in the order in which they were first read.
        self._letters: dict[str, DeadLetter] = {}
        self._count = 0
        self._valid_until = 0.0

    @property
    def attributes(self) -> QueueAttributes:
        if self._attributes is None:
            self._attributes = self.queue.read_attributes()
        return self._attributes

    def put(self, delivery: Delivery, reason: str, delivery_count: int | None = None) -> None:
        """Store a message as a dead letter."""
        count = delivery.delivery_count if delivery_count is None else delivery_count
        entry, size = _encode_letter(delivery, reason, count)
        excess = size - self.attributes.largest
        if excess > 0:
            entry, size = _encode_letter(delivery, reason + _CUT, count, cut=excess + len(_CUT))
        self.queue.send(entry)

    def read(self, limit: int, deliveries: int | None) -> list[DeadLetter]:
        """Read the dead letters, newest first; they are leased for a moment and returned.

        `deliveries` is the number of deliveries after which SQS itself moves a message. While the
        number of letters is unchanged, those of the last read are returned.
        """
        if not self.queue.exists():
            return []
        now = self._monotonic()
        if self.queue.count() != self._count or now > self._valid_until:
            self._valid_until = now + _CACHE_SECONDS
            self._update(deliveries)
        return list(itertools.islice(reversed(self._letters.values()), limit))

    def _update(self, deliveries: int | None) -> None:
        """Read all letters; new ones go to the end, by their time of death."""
        receipts: dict[str, str] = {}
        try:
            letters = [_decode_letter(delivery, deliveries) for delivery in self._receive_all(receipts)]
        finally:
            # If that fails, they return when their leases expire.
            with contextlib.suppress(MailboxError):
                self.queue.give_back(receipts.values())
        # A message that could not be deleted may have two letters: the first counts.
        current: dict[str, DeadLetter] = {}
        for letter in sorted(letters, key=lambda letter: letter.died_at):
            current.setdefault(letter.id, letter)
        self._count = len(receipts)
        known = {key: current.pop(key) for key in self._letters if key in current}
        self._letters = known | current

    def _receive_all(self, receipts: dict[str, str]) -> Iterator[Delivery]:
        """Receive each letter once, in any order; `receipts` collects those to return."""
        limit = min(limits.MAX_DEAD_LETTERS, self.queue.count())
        while len(receipts) < limit:
            # With a wait of a second, SQS queries all of its servers.
            received = [Delivery(raw) for raw in self.queue.receive(BATCH, _READ_LEASE, wait=1)]
            new = [delivery for delivery in received if delivery.id not in receipts]
            receipts.update({delivery.id: delivery.receipt_handle for delivery in received})
            yield from new
            if not new:
                return


def _encode_letter(
    delivery: Delivery, reason: str, count: int, cut: int = 0
) -> tuple[dict[str, object], int]:
    record = _DeathRecord(
        delivery.id,
        reason if len(reason) <= _MAX_REASON_LENGTH else f"{reason[: _MAX_REASON_LENGTH - 1]}…",
        count,
        delivery.enqueued_at,
    )
    attributes = {_RECORD_ATTRIBUTE: msgspec.json.encode(record).decode()}
    reply_to = delivery.attribute(REPLY_TO)
    if reply_to is not None:
        attributes[REPLY_TO] = reply_to
    body = delivery.text
    if cut:
        body = body.encode()[:-cut].decode(errors="ignore")
    return encode_entry(body, attributes)


def _decode_letter(delivery: Delivery, deliveries: int | None) -> DeadLetter:
    text, record = delivery.attribute(_RECORD_ATTRIBUTE), None
    if text is not None:
        # Other programs may write into the queue: their messages are shown like those SQS moved.
        with contextlib.suppress(msgspec.DecodeError, ValueError):
            record = msgspec.json.decode(text, type=_DeathRecord)
    # SQS does not report when it moved a message; the first receipt is its last known time.
    died_at = delivery.first_received_at if record is None else delivery.enqueued_at
    if record is None:
        count = delivery.delivery_count if deliveries is None else deliveries
        reason = limits.describe_deliveries(count)
        record = _DeathRecord(delivery.id, reason, count, delivery.enqueued_at)
    return DeadLetter(
        id=record.id,
        body=delivery.text,
        reason=record.reason,
        delivery_count=record.delivery_count,
        enqueued_at=record.enqueued_at,
        died_at=died_at,
        reply_to=delivery.attribute(REPLY_TO),
    )
