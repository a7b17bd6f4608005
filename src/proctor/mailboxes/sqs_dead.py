"""The queue beside a mailbox's own where dead letters lie: ours, and those SQS moved itself."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from proctor.errors import MailboxError
from proctor.mailboxes import limits
from proctor.mailboxes.sqs_message import REPLY_TO, Received
from proctor.mailboxes.sqs_queue import BATCH, Facts, Queue, written
from proctor.records.mail import DeadLetter

# Bytes kept free in every message for what is written beside a dead letter.
RESERVED = 4096
_LONGEST_REASON = 500
_FATE = "proctor"
# Longer than reading them takes, so that none is seen twice; they are given back at once.
_LOOK = 120
# For how long an equal number of letters is taken for the same letters, at most.
_TRUSTED = 30.0
_CUT = " (its body is too large to be set aside whole, so the end is missing)"


class _Fate(msgspec.Struct, frozen=True, omit_defaults=True):
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
        self._facts: Facts | None = None
        # By id, in the order in which they were first seen.
        self._seen: dict[str, DeadLetter] = {}
        self._number = 0
        self._look_again = 0.0

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            self._facts = self.queue.facts()
        return self._facts

    def put(self, received: Received, reason: str, delivery_count: int | None = None) -> None:
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

    def _taken(self, receipts: dict[str, str]) -> Iterator[Received]:
        """Everything, each once, for SQS gives no order; `receipts` is what to give back."""
        most = min(limits.MAX_DEAD_LETTERS, self.queue.count())
        while len(receipts) < most:
            # A wait of a second makes SQS ask all of its servers, not some.
            got = [Received(one) for one in self.queue.receive(BATCH, _LOOK, wait=1)]
            new = [one for one in got if one.id not in receipts]
            receipts.update({one.id: one.receipt_handle for one in got})
            yield from new
            if not new:
                return


def _dead(
    received: Received, reason: str, count: int, less: int = 0
) -> tuple[dict[str, object], int]:
    fate = _Fate(
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
    return written(body, attributes)


def _fate(text: str | None) -> _Fate | None:
    """What was written beside a dead letter; None if nothing was, or nothing that can be read."""
    try:
        return None if text is None else msgspec.json.decode(text, type=_Fate)
    except (msgspec.DecodeError, ValueError):
        # Strangers may write into the queue: their messages are shown like those SQS has moved.
        return None


def _letter(received: Received, deliveries: int | None) -> DeadLetter:
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
        reason=limits.too_often(count),
        delivery_count=count,
        enqueued_at=received.enqueued_at,
        # SQS does not tell when it moved a message; this is the last that it tells.
        died_at=received.first_received_at,
        reply_to=received.attribute(REPLY_TO),
    )
