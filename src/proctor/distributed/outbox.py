"""Results on their way into a mailbox: sent first, and only then is their request acknowledged."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from proctor.distributed.batches import Aside, Backoff
from proctor.distributed.leased_messages import STOPPED, Held, Item, Trouble
from proctor.errors import (
    MailboxClosed,
    MailboxError,
    MailboxFull,
    MailboxGone,
    MessageRefused,
    ProctorError,
    UsageError,
)
from proctor.history.payload import written
from proctor.ports import Mailbox
from proctor.records.trial import Delivery, EvalResult, Verdict

BATCH = 50
# How long a result waits for company, so that one round trip serves several.
COMPANY_SECONDS = 0.002
BEHIND_AT = 500
# For so many runs the way back is kept open.
MOST_PLACES = 50
# A request whose result cannot be sent is returned for so long, times its deliveries.
RETURN_SECONDS, LONGEST_RETURN_SECONDS = 60.0, 900.0
# How long a worker that ends goes on trying to get rid of its results, and how often.
LAST_SECONDS = 10.0
LAST_PAUSE_SECONDS = 0.1


class Tally(msgspec.Struct):
    """What a worker has done: results sent, requests returned, and results nobody waits for."""

    sent: int = 0
    errors: int = 0
    returned: int = 0
    outdated: int = 0


class _TooMany(Exception):
    """The mailbox has no room for so many at once."""


class Outbox:
    """Takes the results of a crew as its writer, and delivers them on a thread of its own.

    `results` is where they go; without it each goes where its request says. `end` is called once
    it turns out that nothing can be delivered any more; an error that nobody expected is raised at
    the end. A full mailbox is waited for, at most `full_seconds` without progress; then `blocked`
    has the error and the worker ends.
    """

    def __init__(
        self,
        requests: Mailbox[Any],
        results: Mailbox[EvalResult] | None,
        held: Held,
        worker: str,
        trouble: Trouble,
        end: Callable[[], object] = lambda: None,
        *,
        last_seconds: float = LAST_SECONDS,
        full_seconds: float | None = None,
    ) -> None:
        self._requests = requests
        self._results = results
        self._held = held
        self._worker = worker
        self._trouble = trouble
        self._end = end
        self._replies: dict[str, Mailbox[EvalResult]] = {}
        self._finished: deque[tuple[int, EvalResult | None]] = deque()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._last_seconds = last_seconds
        self._full_seconds = full_seconds
        self._is_full_reported = False
        self.blocked: MailboxFull | None = None
        self._last_moment = 0.0
        self.tally = Tally()
        self._thread = Aside(self._work, "proctor-outbox", lambda _: end())

    def __enter__(self) -> Outbox:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        """Deliver what is finished, for a while; the rest stays in hand, to be returned."""
        self._last_moment = time.monotonic() + self._last_seconds
        self._ending.set()
        self._wake.set()
        self._thread.join()
        if error is None and self._thread.failure is not None:
            raise self._thread.failure

    def give_back(self, number: int) -> None:
        """Return a request whose trial was dropped. Returns at once."""
        self._finished.append((number, None))
        self._wake.set()

    def add(self, position: int, result: EvalResult, _verdict: Verdict | None = None) -> None:
        """Take a finished result. Returns at once."""
        self._finished.append((position, result))
        self._wake.set()

    def keep(self, _key: str, _created_at: str, _reply: bytes) -> None:
        """Outputs are not kept here: a worker has no history."""

    def behind(self) -> bool:
        """True if results come faster than they can be sent."""
        return len(self._finished) > BEHIND_AT

    def _work(self) -> None:
        while not (self._ending.is_set() and not self._finished):
            self._wake.wait()
            self._ending.wait(COMPANY_SECONDS)
            self._wake.clear()
            while self._finished:
                if self._ending.is_set() and time.monotonic() > self._last_moment:
                    return
                count = min(BATCH, len(self._finished))
                self._deliver([self._finished.popleft() for _ in range(count)])

    def _deliver(self, batch: list[tuple[int, EvalResult | None]]) -> None:
        by_place: dict[str | None, list[tuple[int, EvalResult]]] = {}
        for number, result in batch:
            if result is None:
                self.tally.returned += self._held.give_back(number, reason=STOPPED, counts=False)
                continue
            item = self._held.find(number)
            if self._held.is_lost(number) and not result.success:
                # Another worker has the request, and its answer may be a better one.
                self._held.let_go(number)
                self.tally.outdated += 1
                continue
            place = None if self._results is not None else item.message.reply_to
            by_place.setdefault(place, []).append((number, self._signed(item, result)))
        for place, items in by_place.items():
            self._deliver_to(place, items)

    def _signed(self, item: Item, result: EvalResult) -> EvalResult:
        asked, count = item.request, item.message.delivery_count
        delivery = Delivery(asked.run_id, asked.request_id, self._worker, count)
        return written(msgspec.structs.replace(result, delivery=delivery))[1]

    def _deliver_to(self, place: str | None, items: list[tuple[int, EvalResult]]) -> None:
        numbers = [number for number, _ in items]
        try:
            self._send(place, [result for _, result in items])
        except (MessageRefused, UsageError) as error:
            self._one_by_one(place, items, error)
            return
        except _TooMany:
            half = len(items) // 2
            self._deliver_to(place, items[:half])
            self._deliver_to(place, items[half:])
            return
        except MailboxError as error:
            if isinstance(error, MailboxGone) and place is not None:
                # Their run is over, and nobody waits for them.
                self._acknowledge(numbers)
                self.tally.outdated += len(numbers)
                return
            self._trouble(f"a result cannot be sent, its request is returned: {error.what}")
            for number in numbers:
                self._return(number, error)
            if isinstance(error, MailboxClosed):
                self._end()
            return
        self._acknowledge(numbers)
        self.tally.sent += len(items)
        self.tally.errors += sum(not result.success for _, result in items)

    def _acknowledge(self, numbers: list[int]) -> None:
        messages = [self._held.find(number).message for number in numbers]
        try:
            self._requests.acknowledge_all(messages)
        except MailboxError as error:
            self._trouble(f"requests could not be acknowledged and will come again: {error.what}")
        for number in numbers:
            self._held.let_go(number)

    def _send(self, place: str | None, results: list[EvalResult]) -> None:
        """Send, and try again where that may help: a full mailbox, a server that is away."""
        mailbox = self._mailbox(place)
        backoff = Backoff(self._ending)
        began = time.monotonic()
        while True:
            try:
                mailbox.send_all(results)
                return
            except (MailboxClosed, MailboxGone, MessageRefused):
                raise
            except MailboxFull as error:
                # It may take some of them now; it may be too small ever to take all at once.
                if len(results) > 1:
                    raise _TooMany from None
                self._report_full(mailbox)
                if self._is_blocked(began, error):
                    raise
            except MailboxError:
                if self._is_too_late(began):
                    raise
            if self._ending.is_set():
                time.sleep(LAST_PAUSE_SECONDS)
            else:
                backoff.pause()

    def _is_too_late(self, began: float) -> bool:
        """True if sending has been tried for long enough."""
        until = began + self._held.lease
        if self._ending.is_set():
            until = min(until, self._last_moment)
        return time.monotonic() > until

    def _is_blocked(self, began: float, error: MailboxFull) -> bool:
        """True if a full mailbox was waited for in vain; a slow collector is waited for."""
        if self._ending.is_set():
            return self._is_too_late(began)
        if self._full_seconds is None or time.monotonic() < began + self._full_seconds:
            return False
        self.blocked = error
        self._end()
        return True

    def _report_full(self, mailbox: Mailbox[EvalResult]) -> None:
        if not self._is_full_reported:
            self._is_full_reported = True
            self._trouble(f"the mailbox {mailbox.name!r} is full: results wait until it has room")

    def _mailbox(self, place: str | None) -> Mailbox[EvalResult]:
        if place is None:
            assert self._results is not None  # else the request was set aside
            return self._results
        if place not in self._replies:
            self._replies[place] = self._requests.beside(place, EvalResult)
            if len(self._replies) > MOST_PLACES:
                self._replies.pop(next(iter(self._replies))).close()
        return self._replies[place]

    def _one_by_one(
        self, place: str | None, items: list[tuple[int, EvalResult]], error: ProctorError
    ) -> None:
        """One of several can never be delivered, such as one that is too large: it is set aside."""
        if len(items) > 1:
            for item in items:
                self._deliver_to(place, [item])
            return
        ((number, _),) = items
        message = self._held.find(number).message
        self._held.let_go(number)
        try:
            message.reject(f"its result cannot be sent: {error.what}")
        except MailboxError as again:
            self._trouble(f"a request could not be set aside: {again.what}")

    def _return(self, number: int, error: MailboxError) -> None:
        count = self._held.find(number).message.delivery_count
        delay = min(RETURN_SECONDS * count, LONGEST_RETURN_SECONDS)
        reason = f"its result could not be sent: {error.what}"
        # A mailbox is full by no fault of the message, and is given up only by one that ends.
        counts = not isinstance(error, MailboxFull)
        self.tally.returned += self._held.give_back(number, delay, reason, counts=counts)
