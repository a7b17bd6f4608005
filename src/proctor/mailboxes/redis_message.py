"""What a receiver gets from a mailbox on Redis."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from proctor.mailboxes import limits
from proctor.mailboxes.redis_letters import Letter, in_ms, moment, one_line, text_of
from proctor.ports import Mailbox

BodyT = TypeVar("BodyT")


class Home(Protocol):
    """The mailbox of a message, as far as the message needs it."""

    @property
    def name(self) -> str: ...

    def settle(self, move: str, args: Sequence[Any]) -> None:
        """Run a script that says whether the message was still the caller's."""
        ...

    def beside(self, name: str, body_type: type[Any] | None) -> Mailbox[Any]: ...


class RedisMessage(Generic[BodyT]):
    """One delivery from a mailbox on Redis."""

    __slots__ = (
        "_mailbox",
        "_sent_ms",
        "body",
        "delivery_count",
        "id",
        "receipt_handle",
        "reply_to",
    )

    def __init__(
        self,
        mailbox: Home,
        letter: Letter,
        deliveries: int,
        receipt: str,
        body: BodyT,
    ) -> None:
        self._mailbox = mailbox
        self._sent_ms = letter.sent_ms
        self.id = letter.id
        self.receipt_handle = f"{letter.id}:{receipt}"
        self.delivery_count = deliveries
        self.reply_to = letter.reply_to
        self.body = body

    @property
    def enqueued_at(self) -> datetime:
        """When the server took it in."""
        return moment(self._sent_ms)

    @property
    def _receipt(self) -> list[str]:
        return self.receipt_handle.split(":")

    def acknowledge(self) -> None:
        """It is done: it goes for good."""
        self._mailbox.settle("acknowledge", [self.receipt_handle])

    def nack(self, visibility_timeout: float = 0, *, reason: str = "", counts: bool = True) -> None:
        """Give it back, to be seen again after so many seconds."""
        limits.check_seconds("visibility_timeout", visibility_timeout, where=self._mailbox.name)
        told = one_line(reason) or limits.GIVEN_BACK
        delay = in_ms(visibility_timeout)
        self._mailbox.settle("nack", [*self._receipt, delay, told, int(counts)])

    def extend_visibility(self, timeout: float) -> None:
        """Keep it for so many seconds from now."""
        limits.check_seconds("timeout", timeout, where=self._mailbox.name)
        self._mailbox.settle("extend", [*self._receipt, in_ms(timeout)])

    def confirm_delivery(self) -> None:
        """Make a provisional delivery count: from now on losing it is held against the message."""
        self._mailbox.settle("confirm", self._receipt)

    def reject(self, reason: str) -> None:
        """Set it aside as a dead letter at once."""
        self._mailbox.settle("reject", [*self._receipt, text_of(reason), 1])

    def reply(self, body: Any) -> str:
        """Send an answer to `reply_to`; gives the id of the answer."""
        if self.reply_to is None:
            raise limits.no_reply_to(self._mailbox.name)
        answers = self._mailbox.beside(self.reply_to, None)
        try:
            return answers.send(body)
        finally:
            answers.close()
