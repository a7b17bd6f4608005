"""The queue beside a mailbox's own where dead letters lie: ours, and those SQS moved itself."""

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
    """What SQS says of one delivery."""

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
        # Servers that only speak as SQS does leave some of them out.
        found: Mapping[str, str] = self._raw.get("Attributes") or {}
        return found

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
        """What was sent beside the body under a name."""
        told = self._raw.get("MessageAttributes", {}).get(name)
        return None if told is None else told.get("StringValue")


class Owner(Protocol):
    """What a message needs of the mailbox that it came from."""

    @property
    def queue(self) -> Queue: ...

    @property
    def clock(self) -> Clock: ...

    def check_open(self) -> None: ...

    def set_aside(self, received: Delivery, reason: str) -> None: ...

    def answer(self, name: str, body: Any) -> str: ...


class SQSMessage(Generic[BodyT]):
    """One delivery of a message; yours until its lease is over.

    SQS lets a stale receipt delete a message, or says nothing, so the end of the lease is kept
    here too, and what is over is refused without asking SQS.
    """

    __slots__ = ("_ends", "_home", "_lock", "_received", "_settled", "body")

    def __init__(self, home: Owner, received: Delivery, body: BodyT, lease: int) -> None:
        self.body = body
        self._home = home
        self._received = received
        self._ends = home.clock.monotonic() + lease
        self._lock = threading.Lock()
        self._settled = False

    def __repr__(self) -> str:
        return f"SQSMessage(id={self.id!r}, delivery_count={self.delivery_count})"

    @property
    def id(self) -> str:
        return self._received.id

    @property
    def receipt_handle(self) -> str:
        return self._received.receipt_handle

    @property
    def delivery_count(self) -> int:
        return self._received.delivery_count

    @property
    def enqueued_at(self) -> datetime:
        return self._received.enqueued_at

    @property
    def reply_to(self) -> str | None:
        return self._received.attribute(REPLY_TO)

    def acknowledge(self) -> None:
        """It is done: it goes for good. Raises `ReceiptExpired` if the lease is over."""
        with _Claim(self):
            self._home.queue.delete(self.receipt_handle)

    def nack(
        self,
        visibility_timeout: float = 0,
        *,
        reason: str = "",  # noqa: ARG002
        counts: bool = True,  # noqa: ARG002
    ) -> None:
        """Give it back, to be seen again after so many seconds.

        SQS has no place for the reason, and counts every delivery.
        """
        seconds = whole_seconds("visibility_timeout", visibility_timeout, self._home.queue.where)
        with _Claim(self):
            self._home.queue.hide(self.receipt_handle, seconds)

    def extend_visibility(self, timeout: float) -> None:
        """Keep it for so many seconds from now; SQS allows 12 hours in all."""
        seconds = whole_seconds("timeout", timeout, self._home.queue.where)
        # Within the lock, for an extension after the message was given back would hide it again.
        with self._lock:
            self._check()
            self._home.queue.hide(self.receipt_handle, seconds)
            self._ends = self._home.clock.monotonic() + seconds

    def confirm_delivery(self) -> None:
        """Check that the message is still one's own; SQS counts every delivery anyway."""
        with self._lock:
            self._check()

    def reject(self, reason: str) -> None:
        """Set it aside as a dead letter at once."""
        with _Claim(self):
            self._home.set_aside(self._received, reason)

    def reply(self, body: Any) -> str:
        """Send an answer to `reply_to`; gives the id of the answer."""
        self._home.check_open()
        if self.reply_to is None:
            raise limits.no_reply_to_error(f"message {self.id}")
        return self._home.answer(self.reply_to, body)

    def claim(self) -> None:
        """Settle it here and now, before SQS is told; raises `ReceiptExpired` for all but one."""
        with self._lock:
            self._check()
            self._settled = True

    def unclaim(self) -> None:
        """Take the claim back, for SQS could not be told."""
        with self._lock:
            self._settled = False

    def _check(self) -> None:
        self._home.check_open()
        if self._settled or self._home.clock.monotonic() >= self._ends:
            raise limits.expired_error(self._home.queue.where)


class _Claim:
    """A claim on a message, taken back if what should settle it fails."""

    def __init__(self, message: SQSMessage[Any]) -> None:
        self._message = message

    def __enter__(self) -> None:
        self._message.claim()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._message.unclaim()


def whole_seconds(name: str, seconds: float, where: str, most: float = limits.MAX_LEASE_SECONDS) -> int:
    """Seconds as SQS counts them: whole ones, never less than asked.

    >>> whole_seconds("timeout", 0.2, "")
    1
    """
    limits.check_seconds(name, seconds, most, where=where)
    return math.ceil(seconds)


def to_datetime(milliseconds: str) -> datetime:
    """A time as SQS writes it.

    >>> moment("1500")
    datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


# Bytes kept free in every message for what is written beside a dead letter.
RESERVED = 4096
_LONGEST_REASON = 500
_FATE = "proctor"
# Longer than reading them takes, so that none is seen twice; they are given back at once.
_LOOK = 120
# For how long an equal number of letters is taken for the same letters, at most.
_TRUSTED = 30.0
_CUT = " (its body is too large to be set aside whole, so the end is missing)"


class _DeathRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is written beside a body that is set aside by us; the body itself stays as it was."""

    id: str
    reason: str
    delivery_count: int
    enqueued_at: datetime


class DeadLetters:
    """Dead letters of one mailbox; the queue is made when there is a first one."""

    def __init__(self, queue: Queue, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.queue = queue
        self._monotonic = monotonic
        self._facts: QueueAttributes | None = None
        # By id, in the order in which they were first seen.
        self._seen: dict[str, DeadLetter] = {}
        self._number = 0
        self._look_again = 0.0

    @property
    def facts(self) -> QueueAttributes:
        if self._facts is None:
            self._facts = self.queue.facts()
        return self._facts

    def put(self, received: Delivery, reason: str, delivery_count: int | None = None) -> None:
        """Keep a message as a dead letter."""
        count = received.delivery_count if delivery_count is None else delivery_count
        entry, size = _dead(received, reason, count)
        over = size - self.facts.largest
        if over > 0:
            entry, size = _dead(received, reason + _CUT, count, less=over + len(_CUT))
        self.queue.send(entry)

    def look(self, limit: int, deliveries: int | None) -> list[DeadLetter]:
        """What lies there, what this object saw last first; taken for a moment and given back.

        `deliveries` is how often SQS delivers before it moves a message by itself. As long as
        their number stays the same, what was seen before is told again without taking any.
        """
        if not self.queue.is_there():
            return []
        now = self._monotonic()
        if self.queue.count() != self._number or now > self._look_again:
            self._look_again = now + _TRUSTED
            self._read(deliveries)
        return list(itertools.islice(reversed(self._seen.values()), limit))

    def _read(self, deliveries: int | None) -> None:
        """Bring what was seen up to date; what is new goes to the end, by the time it died."""
        receipts: dict[str, str] = {}
        try:
            found = [_letter(one, deliveries) for one in self._taken(receipts)]
        finally:
            # If they cannot be given back now, they come back by themselves.
            with contextlib.suppress(MailboxError):
                self.queue.give_back(receipts.values())
        # One that could not be deleted where it came from may lie here twice: the first counts.
        there: dict[str, DeadLetter] = {}
        for letter in sorted(found, key=lambda one: one.died_at):
            there.setdefault(letter.id, letter)
        self._number = len(receipts)
        known = {key: there.pop(key) for key in self._seen if key in there}
        self._seen = known | there

    def _taken(self, receipts: dict[str, str]) -> Iterator[Delivery]:
        """Everything, each once, for SQS gives no order; `receipts` is what to give back."""
        most = min(limits.MAX_DEAD_LETTERS, self.queue.count())
        while len(receipts) < most:
            # A wait of a second makes SQS ask all of its servers, not some.
            got = [Delivery(one) for one in self.queue.receive(BATCH, _LOOK, wait=1)]
            new = [one for one in got if one.id not in receipts]
            receipts.update({one.id: one.receipt_handle for one in got})
            yield from new
            if not new:
                return


def _dead(received: Delivery, reason: str, count: int, less: int = 0) -> tuple[dict[str, object], int]:
    fate = _DeathRecord(
        received.id,
        reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…",
        count,
        received.enqueued_at,
    )
    attributes = {_FATE: msgspec.json.encode(fate).decode()}
    reply_to = received.attribute(REPLY_TO)
    if reply_to is not None:
        attributes[REPLY_TO] = reply_to
    body = received.text
    if less:
        body = body.encode()[:-less].decode(errors="ignore")
    return encode_entry(body, attributes)


def _fate(text: str | None) -> _DeathRecord | None:
    """What was written beside a dead letter; None if nothing was, or nothing that can be read."""
    try:
        return None if text is None else msgspec.json.decode(text, type=_DeathRecord)
    except (msgspec.DecodeError, ValueError):
        # Strangers may write into the queue: their messages are shown like those SQS has moved.
        return None


def _letter(received: Delivery, deliveries: int | None) -> DeadLetter:
    told = _fate(received.attribute(_FATE))
    if told is not None:
        return DeadLetter(
            id=told.id,
            body=received.text,
            reason=told.reason,
            delivery_count=told.delivery_count,
            enqueued_at=told.enqueued_at,
            died_at=received.enqueued_at,
            reply_to=received.attribute(REPLY_TO),
        )
    count = received.delivery_count if deliveries is None else deliveries
    return DeadLetter(
        id=received.id,
        body=received.text,
        reason=limits.describe_deliveries(count),
        delivery_count=count,
        enqueued_at=received.enqueued_at,
        # SQS does not tell when it moved a message; this is the last that it tells.
        died_at=received.first_received_at,
        reply_to=received.attribute(REPLY_TO),
    )
