"""Results out of a mailbox, on a thread of their own."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from proctor.errors import MailboxClosed, MailboxError
from proctor.fleet.aside import Aside
from proctor.fleet.backoff import WAKE_SECONDS, Backoff
from proctor.fleet.bodies import as_record
from proctor.mailboxes.limits import MOST_AT_ONCE
from proctor.ports import Mailbox, Message
from proctor.records.trial import EvalResult

# Long enough to acknowledge a batch; it comes again if this process dies before, or if the
# connection breaks while the batch is on its way: until then the run may wait for nothing else.
LEASE_SECONDS = 10
WAIT_SECONDS = 20

# Says whether results were handed over to those who want them.
Arrive = Callable[[list[EvalResult]], bool]


class Receiving:
    """Hands results over as they come, then acknowledges them.

    `fail` is told what ends it against all expectation.
    """

    def __init__(
        self,
        results: Mailbox[EvalResult],
        arrive: Arrive,
        notice: Callable[[str], object],
        fail: Callable[[Exception], object],
    ) -> None:
        self._results = results
        self._arrive = arrive
        self._notice = notice
        self._over = threading.Event()
        self._thread = Aside(self._work, "proctor-receiving", fail)

    def start(self) -> None:
        """Begin to receive."""
        self._thread.start()

    def stop(self) -> None:
        """End, also in the middle of a wait."""
        self._over.set()
        while self._thread.is_alive():
            self._results.wake()
            time.sleep(WAKE_SECONDS)

    def drain(self, arrive: Arrive) -> None:
        """Hand over everything that is there now."""
        while messages := self._receive(0):
            self._hand_over(messages, arrive)

    @staticmethod
    def count_of(mailbox: Mailbox[Any]) -> int | None:
        """How many messages a mailbox holds, or None if it cannot be asked."""
        try:
            return mailbox.approximate_count()
        except MailboxError:
            return None

    def _work(self) -> None:
        backoff = Backoff(self._over)
        while not self._over.is_set():
            try:
                messages = self._receive(WAIT_SECONDS)
            except MailboxClosed:
                return
            except MailboxError as error:
                self._notice(f"results cannot be received: {error.what}")
                backoff.pause()
                continue
            backoff.reset()
            self._hand_over(messages, self._arrive)

    def _receive(self, wait: float) -> Sequence[Message[EvalResult]]:
        return self._results.receive(
            max_messages=MOST_AT_ONCE, visibility_timeout=LEASE_SECONDS, wait_time_seconds=wait
        )

    def _hand_over(self, messages: Sequence[Message[EvalResult]], arrive: Arrive) -> None:
        found = [result for message in messages if (result := result_in(message)) is not None]
        if found and arrive(found):
            # If it fails they come again, and are recognised.
            with contextlib.suppress(MailboxError):
                self._results.acknowledge_all(messages)


def result_in(message: Message[Any]) -> EvalResult | None:
    """The result in a message; what is none is set aside."""
    try:
        return as_record(message.body, EvalResult)
    except ValueError as error:
        with contextlib.suppress(MailboxError):
            message.reject(f"it is no result: {error}")
        return None
