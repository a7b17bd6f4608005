"""A message from SQS, and who may still settle it."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from proctor.clock import Clock
from proctor.mailboxes import limits
from proctor.mailboxes.sqs_queue import Queue, Raw

BodyT = TypeVar("BodyT")

REPLY_TO = "reply_to"


class Received:
    """What SQS says of one delivery."""

    __slots__ = ("_raw",)

    def __init__(self, raw: Raw) -> None:
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
        return moment(self._attributes.get("SentTimestamp", "0"))

    @property
    def first_received_at(self) -> datetime:
        first = self._attributes.get("ApproximateFirstReceiveTimestamp")
        return self.enqueued_at if first is None else moment(first)

    def attribute(self, name: str) -> str | None:
        """What was sent beside the body under a name."""
        told = self._raw.get("MessageAttributes", {}).get(name)
        return None if told is None else told.get("StringValue")


class Home(Protocol):
    """What a message needs of the mailbox that it came from."""

    @property
    def queue(self) -> Queue: ...

    @property
    def clock(self) -> Clock: ...

    def check_open(self) -> None: ...

    def set_aside(self, received: Received, reason: str) -> None: ...

    def answer(self, name: str, body: Any) -> str: ...


class SQSMessage(Generic[BodyT]):
    """One delivery of a message; yours until its lease is over.

    SQS lets a stale receipt delete a message, or says nothing, so the end of the lease is kept
    here too, and what is over is refused without asking SQS.
    """

    __slots__ = ("_ends", "_home", "_lock", "_received", "_settled", "body")

    def __init__(self, home: Home, received: Received, body: BodyT, lease: int) -> None:
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
        with _Settling(self):
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
        with _Settling(self):
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
        with _Settling(self):
            self._home.set_aside(self._received, reason)

    def reply(self, body: Any) -> str:
        """Send an answer to `reply_to`; gives the id of the answer."""
        self._home.check_open()
        if self.reply_to is None:
            raise limits.no_reply_to(f"message {self.id}")
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
            raise limits.not_ones_own(self._home.queue.where)


class _Settling:
    """A claim on a message, taken back if what should settle it fails."""

    def __init__(self, message: SQSMessage[Any]) -> None:
        self._message = message

    def __enter__(self) -> None:
        self._message.claim()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._message.unclaim()


def whole_seconds(name: str, seconds: float, where: str, most: float = limits.LONGEST_LEASE) -> int:
    """Seconds as SQS counts them: whole ones, never less than asked.

    >>> whole_seconds("timeout", 0.2, "")
    1
    """
    limits.check_seconds(name, seconds, most, where=where)
    return math.ceil(seconds)


def moment(milliseconds: str) -> datetime:
    """A time as SQS writes it.

    >>> moment("1500")
    datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
