"""Deliveries and leases of an SQS mailbox, and its queue of dead letters."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from proctor.core.clock import Clock
from proctor.errors import MailboxError
from proctor.mailboxes import core
from proctor.mailboxes.sqs_queue import BATCH, Queue, QueueAttributes, RawMessage, encode_entry
from proctor.records.mail import DeadLetter

REPLY_TO = "reply_to"


class Delivery(NamedTuple):
    """The data of one delivery from SQS; `attributes` are the sender's attributes."""

    id: str
    text: str
    receipt_handle: str
    delivery_count: int
    enqueued_at: datetime
    first_received_at: datetime
    attributes: Mapping[str, str | None]

    @classmethod
    def read(cls, raw: RawMessage) -> Delivery:
        # Servers that imitate SQS omit some of the system attributes.
        system: Mapping[str, str] = raw.get("Attributes") or {}
        sent = system.get("SentTimestamp", "0")
        return cls(
            str(raw["MessageId"]),
            str(raw["Body"]),
            str(raw["ReceiptHandle"]),
            int(system.get("ApproximateReceiveCount", 1)),
            core.to_datetime(sent),
            core.to_datetime(system.get("ApproximateFirstReceiveTimestamp", sent)),
            {name: value.get("StringValue") for name, value in raw.get("MessageAttributes", {}).items()},
        )


class SQSLease:
    """The lease of one delivery, which only one caller can end.

    SQS accepts some stale receipts, so the lease is checked here too, before SQS is called.
    """

    __slots__ = ("_clock", "_is_claimed", "_lock", "_where", "delivery", "expires_at")

    def __init__(self, delivery: Delivery, expires_at: float, clock: Clock, where: str) -> None:
        self.delivery, self.expires_at = delivery, expires_at
        self._clock, self._where = clock, where
        self._lock = threading.Lock()
        self._is_claimed = False

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Check the lease, and keep other callers from using it during the block."""
        with self._lock:
            if self._is_claimed or self._clock.monotonic() >= self.expires_at:
                raise core.expired_error(self._where)
            yield

    def claim(self) -> None:
        """Claim the lease before SQS is called; raise `ReceiptExpired` for all but one caller."""
        with self.locked():
            self._is_claimed = True

    def unclaim(self) -> None:
        """Release the claim, because the call to SQS failed."""
        with self._lock:
            self._is_claimed = False

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        self.claim()
        try:
            yield
        except BaseException:
            self.unclaim()
            raise


# Bytes reserved in every message for the attribute that dead letters get.
RESERVED_BYTES = 4096
_MAX_REASON_LENGTH = 500
_RECORD_ATTRIBUTE = "proctor"
# Long enough to read all letters before the first lease expires.
_READ_LEASE = 120
# Reuse the letters for this long while their number is unchanged.
_CACHE_SECONDS = 30.0
_TRUNCATED_NOTE = " (its body is too large for a dead letter, so the end is missing)"


class _DeadLetterRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The attribute of a dead letter that Proctor wrote; its body is unchanged."""

    id: str
    reason: str
    delivery_count: int
    enqueued_at: datetime


class DeadLetters:
    """The dead letters of a mailbox; the queue is created for the first letter."""

    def __init__(self, queue: Queue, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.queue = queue
        self._monotonic = monotonic
        self._attributes: QueueAttributes | None = None
        # Letters by id, in the order in which they were first read.
        self._letters: dict[str, DeadLetter] = {}
        self._count = 0
        self._valid_until = 0.0

    @property
    def attributes(self) -> QueueAttributes:
        if self._attributes is None:
            self._attributes = self.queue.read_attributes()
        return self._attributes

    def put(self, delivery: Delivery, reason: str, delivery_count: int | None = None) -> None:
        count = delivery.delivery_count if delivery_count is None else delivery_count
        entry, size = _encode_letter(delivery, reason, count)
        excess = size - self.attributes.max_bytes
        if excess > 0:
            entry, size = _encode_letter(delivery, reason + _TRUNCATED_NOTE, count, cut=excess + len(_TRUNCATED_NOTE))
        self.queue.send(entry)

    def read(self, limit: int, max_deliveries: int | None) -> list[DeadLetter]:
        """Read the dead letters, newest first; they are leased briefly, then released.

        After `max_deliveries`, SQS itself moves a message. While the number of letters is unchanged, the letters of the
        last read are returned.
        """
        if not self.queue.exists():
            return []
        now = self._monotonic()
        if self.queue.count() != self._count or now > self._valid_until:
            self._valid_until = now + _CACHE_SECONDS
            self._update(max_deliveries)
        return list(itertools.islice(reversed(self._letters.values()), limit))

    def _update(self, max_deliveries: int | None) -> None:
        """Read all letters; append new ones, ordered by the time at which they became dead letters."""
        receipts: dict[str, str] = {}
        try:
            letters = [_decode_letter(delivery, max_deliveries) for delivery in self._receive_all(receipts)]
        finally:
            # If the release fails, the letters return when their leases expire.
            with contextlib.suppress(MailboxError):
                self.queue.release(receipts.values())
        # A message that could not be deleted may have two letters: the first counts.
        current: dict[str, DeadLetter] = {}
        for letter in sorted(letters, key=lambda letter: letter.died_at):
            current.setdefault(letter.id, letter)
        self._count = len(receipts)
        known_letters = {key: current.pop(key) for key in self._letters if key in current}
        self._letters = known_letters | current

    def _receive_all(self, receipts: dict[str, str]) -> Iterator[Delivery]:
        """Receive each letter once, in any order; `receipts` collects the receipts to release."""
        limit = min(core.MAX_DEAD_LETTERS, self.queue.count())
        while len(receipts) < limit:
            # With a wait of a second, SQS queries all of its servers.
            received = [Delivery.read(raw) for raw in self.queue.receive(BATCH, _READ_LEASE, wait=1)]
            new = [delivery for delivery in received if delivery.id not in receipts]
            receipts.update({delivery.id: delivery.receipt_handle for delivery in received})
            yield from new
            if not new:
                return


def _encode_letter(delivery: Delivery, reason: str, count: int, cut: int = 0) -> tuple[dict[str, object], int]:
    record = _DeadLetterRecord(
        delivery.id,
        reason if len(reason) <= _MAX_REASON_LENGTH else f"{reason[: _MAX_REASON_LENGTH - 1]}…",
        count,
        delivery.enqueued_at,
    )
    attributes = {_RECORD_ATTRIBUTE: msgspec.json.encode(record).decode()}
    reply_to = delivery.attributes.get(REPLY_TO)
    if reply_to is not None:
        attributes[REPLY_TO] = reply_to
    body = delivery.text
    if cut:
        body = body.encode()[:-cut].decode(errors="ignore")
    return encode_entry(body, attributes)


def _decode_letter(delivery: Delivery, max_deliveries: int | None) -> DeadLetter:
    text, record = delivery.attributes.get(_RECORD_ATTRIBUTE), None
    if text is not None:
        # Other programs may write into the queue: their messages are shown like messages that SQS moved.
        with contextlib.suppress(msgspec.DecodeError, ValueError):
            record = msgspec.json.decode(text, type=_DeadLetterRecord)
    # SQS does not report when it moved a message; use the time of the first receipt instead.
    died_at = delivery.first_received_at if record is None else delivery.enqueued_at
    if record is None:
        count = delivery.delivery_count if max_deliveries is None else max_deliveries
        reason = core.describe_deliveries(count)
        record = _DeadLetterRecord(delivery.id, reason, count, delivery.enqueued_at)
    return DeadLetter(
        id=record.id,
        body=delivery.text,
        reason=record.reason,
        delivery_count=record.delivery_count,
        enqueued_at=record.enqueued_at,
        died_at=died_at,
        reply_to=delivery.attributes.get(REPLY_TO),
    )
