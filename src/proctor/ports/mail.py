"""The seam of mailboxes: queues that deliver at least once, with leases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from proctor.records.mail import DeadLetter

BodyT = TypeVar("BodyT")
ReceivedT = TypeVar("ReceivedT", covariant=True)


class Message(Protocol[ReceivedT]):
    """One delivery of what was sent to a mailbox; the receiver's own until its lease is over."""

    @property
    def id(self) -> str: ...

    @property
    def body(self) -> ReceivedT: ...

    @property
    def receipt_handle(self) -> str:
        """What tells this delivery from every other."""
        ...

    @property
    def delivery_count(self) -> int:
        """1 at first."""
        ...

    @property
    def enqueued_at(self) -> datetime: ...

    @property
    def reply_to(self) -> str | None:
        """The name of the mailbox that answers go to, beside the one it came from."""
        ...

    def acknowledge(self) -> None:
        """It is done: it goes for good. Raises `ReceiptExpired` if the lease is over."""
        ...

    def nack(self, visibility_timeout: float = 0, *, reason: str = "", counts: bool = True) -> None:
        """Give it back, to be seen again after so many seconds; `reason` goes into its history.

        With `counts=False` it was no fault of the message: the delivery is not counted, where the
        place can do that.
        """
        ...

    def extend_visibility(self, timeout: float) -> None:
        """Keep it for so many seconds from now."""
        ...

    def confirm_delivery(self) -> None:
        """Make a provisional delivery count, as soon as the message is really begun.

        From now on losing the lease counts towards `max_deliveries`. On other deliveries it does
        nothing. Raises `ReceiptExpired` if the lease is over.
        """
        ...

    def reject(self, reason: str) -> None:
        """Set it aside as a dead letter at once."""
        ...

    def reply(self, body: Any) -> str:
        """Send an answer to `reply_to`; gives the id of the answer."""
        ...


class Mailbox(Protocol[BodyT]):
    """A queue that delivers at least once: what is received is leased, and gone when acknowledged.

    Fresh messages come in the order they were sent. Time is the server's. Everything may be called
    from any thread; what the server or the network refuses is a `MailboxError`.
    """

    @property
    def name(self) -> str: ...

    @property
    def closed(self) -> bool: ...

    @property
    def max_deliveries(self) -> int | None:
        """After how many deliveries that count a message is set aside; None for never."""
        ...

    def send(
        self, body: BodyT, *, reply_to: str | Mailbox[Any] | None = None, delay_seconds: float = 0
    ) -> str:
        """Put a message in; gives its id. Raises `MailboxFull`, `MessageTooLarge`."""
        ...

    def send_all(self, bodies: Iterable[BodyT], *, reply_to: str | Mailbox[Any] | None = None) -> list[str]:
        """Put several messages in, in order and in as few round trips as may be.

        If it fails half-way, some may be in already; sending them again is safe where what is done
        with them is told by an id of their own.
        """
        ...

    def as_received(self, body: BodyT) -> BodyT:
        """The body as a receiver of the same type gets it, so that changes can be seen before.

        Raises `MessageRefused` if it cannot be sent, ValueError if it could not be read again.
        """
        ...

    def receive(
        self,
        *,
        max_messages: int = 1,
        visibility_timeout: float = 30,
        wait_time_seconds: float = 0,
        provisional: bool = False,
    ) -> Sequence[Message[BodyT]]:
        """Lease up to `max_messages` (1 to 10) for `visibility_timeout` seconds (0 to 43200).

        With nothing there it waits up to `wait_time_seconds`, and returns as soon as something is.
        What cannot be read, or came too often, is set aside and not given. A lease of a
        `provisional` delivery that runs out before `confirm_delivery` does not count towards
        `max_deliveries`: the message may have been lost together with another that is to blame.
        """
        ...

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        """Acknowledge several in as few round trips as may be; says how many were still one's own.

        Those that are not are passed over.
        """
        ...

    def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """What was set aside, the newest first where the place keeps an order; not taken out."""
        ...

    def purge(self) -> int:
        """Drop every message, those in flight too; says how many. Dead letters stay."""
        ...

    def approximate_count(self) -> int:
        """How many there are: waiting, delayed and in flight."""
        ...

    def beside(self, name: str, body_type: type[Any]) -> Mailbox[Any]:
        """Another mailbox at the same place, reached in the same way."""
        ...

    def wake(self) -> None:
        """Let those who wait in `receive` of this object return at once, with nothing."""
        ...

    def close(self) -> None:
        """Use it no more from here: waiting receivers return, further use is `MailboxClosed`.

        What is in it stays there.
        """
        ...

    def remove(self, *, for_good: bool = False) -> None:
        """Take it from the server with all that is in it, dead letters too, and close it.

        With `for_good` what is sent to it later is refused with `MailboxGone`, for a day or until
        somebody receives from it again, so that an answer that comes too late does not bring it
        back.
        """
        ...
