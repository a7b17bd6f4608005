"""The protocols of mailboxes: queues that deliver at least once, with leases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from proctor.records.mail import DeadLetter

BodyT = TypeVar("BodyT")
ReceivedT = TypeVar("ReceivedT", covariant=True)


class Message(Protocol[ReceivedT]):
    """One delivery of a message from a mailbox, leased to its receiver."""

    @property
    def id(self) -> str: ...

    @property
    def body(self) -> ReceivedT: ...

    @property
    def receipt_handle(self) -> str:
        """The unique id of this delivery."""

    @property
    def delivery_count(self) -> int:
        """The number of deliveries so far: 1 for the first."""

    @property
    def enqueued_at(self) -> datetime: ...

    @property
    def reply_to(self) -> str | None:
        """The name of the mailbox for replies, at the same server."""

    def acknowledge(self) -> None:
        """Remove the message for good. Raises `ReceiptExpired` if the lease is over."""

    def nack(self, visibility_timeout: float = 0, *, reason: str = "", counts: bool = True) -> None:
        """Return the message, visible again after a timeout in seconds; `reason` goes into its history.

        With `counts=False` the delivery does not count, if the server supports that. Use it if the message did not
        cause the problem.
        """

    def extend_visibility(self, timeout: float) -> None:
        """Extend the lease to `timeout` seconds from now."""

    def confirm_delivery(self) -> None:
        """Make a provisional delivery count, when work on the message starts.

        A lost lease then counts towards `max_deliveries`. Other deliveries are not affected. Raises
        `ReceiptExpired` if the lease is over.
        """

    def reject(self, reason: str) -> None:
        """Move the message to the dead letters immediately."""

    def reply(self, body: Any) -> str:
        """Send a reply to `reply_to` and return its id."""


class Mailbox(Protocol[BodyT]):
    """A queue that delivers at least once: received messages are leased, and removed when acknowledged.

    New messages arrive in the order they were sent. All times are measured by the server. All methods may be
    called from any thread; errors of the server or network are `MailboxError`s.
    """

    @property
    def name(self) -> str: ...

    @property
    def closed(self) -> bool: ...

    @property
    def max_deliveries(self) -> int | None:
        """The number of counted deliveries after which a message becomes a dead letter; None means no limit."""

    def send(self, body: BodyT, *, reply_to: str | Mailbox[Any] | None = None, delay_seconds: float = 0) -> str:
        """Send a message and return its id. Raises `MailboxFull`, `MessageTooLarge`."""

    def send_all(self, bodies: Iterable[BodyT], *, reply_to: str | Mailbox[Any] | None = None) -> list[str]:
        """Send several messages in order, in as few round trips as possible.

        After an error some messages may have been sent. Sending them again is safe if their bodies have
        ids by which receivers recognize duplicates.
        """

    def as_received(self, body: BodyT) -> BodyT:
        """Return the body as a receiver of the same type gets it, to detect changes before sending.

        Raises `MessageRefused` if it cannot be sent, ValueError if it cannot be read again.
        """

    def receive(
        self,
        *,
        max_messages: int = 1,
        visibility_timeout: float = 30,
        wait_time_seconds: float = 0,
        provisional: bool = False,
    ) -> Sequence[Message[BodyT]]:
        """Lease up to `max_messages` (1 to 10) for `visibility_timeout` seconds (0 to 43200).

        An empty mailbox waits up to `wait_time_seconds` for a message. Messages that cannot be read, or were delivered
        too often, become dead letters. The lease of a `provisional` delivery that ends before `confirm_delivery` does
        not count towards `max_deliveries`: another message may have caused the loss.
        """

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        """Acknowledge several messages, and return how many of their leases were still valid."""

    def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """Return dead letters without removing them, newest first if the server keeps an order."""

    def purge(self) -> int:
        """Delete every message, including leased messages, and return how many. Dead letters are not deleted."""

    def approximate_count(self) -> int:
        """Return the number of messages: waiting, delayed and leased."""

    def open_mailbox(self, name: str, body_type: type[Any]) -> Mailbox[Any]:
        """Return another mailbox at the same server, with the same connection."""

    def wake(self) -> None:
        """Make waiting `receive` calls of this object return immediately, without messages."""

    def close(self) -> None:
        """Stop using the mailbox: waiting receivers return, further calls raise `MailboxClosed`.

        Its messages stay on the server.
        """

    def remove(self, *, for_good: bool = False) -> None:
        """Delete the mailbox from the server with all messages and dead letters, and close it.

        With `for_good`, messages sent to it later are refused with `MailboxGone`, for a day or until
        someone receives from it again, so that a late reply does not create it again.
        """
