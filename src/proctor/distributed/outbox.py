"""The outbox of a worker: sends results to a mailbox, then acknowledges their requests."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from proctor.distributed.batches import Backoff, SupervisedThread
from proctor.distributed.leased_requests import WORKER_STOPPED, LeasedRequest, LeasedRequests, Warn
from proctor.errors import (
    MailboxClosed,
    MailboxError,
    MailboxFull,
    MailboxGone,
    MessageRefused,
    ProctorError,
    UsageError,
)
from proctor.history.payload import encode_result
from proctor.ports import Mailbox
from proctor.records.trial import Delivery, EvalResult, PositionedResult, Verdict

BATCH_SIZE = 50
# A result waits this long for others, so that one round trip sends several.
BATCH_SECONDS = 0.002
MAX_QUEUED = 500
# The number of reply mailboxes that stay open.
MAX_MAILBOXES = 50
# The delay of a request whose result cannot be sent, times its deliveries.
RETURN_SECONDS, MAX_RETURN_SECONDS = 60.0, 900.0
# How long a stopping worker tries to send its results, and the pause between attempts.
LAST_SECONDS = 10.0
LAST_PAUSE_SECONDS = 0.1


class WorkerSummary(msgspec.Struct):
    """Counts of a worker: sent results, errors among them, returned requests, and results that were no longer
    needed."""

    sent: int = 0
    errors: int = 0
    returned: int = 0
    outdated: int = 0


class _BatchTooLarge(Exception):
    """The mailbox has no room for the whole batch."""


class Outbox:
    """A writer for a worker pool that sends the results in a thread.

    Results go to `results`, or to the `reply_to` of their request. `on_end` is called when nothing more can be sent; an
    unexpected error is raised when the outbox closes. If a mailbox stays full for `full_seconds`, `blocked` is set to
    the error and the worker ends.
    """

    def __init__(
        self,
        requests: Mailbox[Any],
        results: Mailbox[EvalResult] | None,
        leased: LeasedRequests,
        worker: str,
        warn: Warn,
        on_end: Callable[[], object] = lambda: None,
        *,
        last_seconds: float = LAST_SECONDS,
        full_seconds: float | None = None,
    ) -> None:
        self._requests = requests
        self._results = results
        self._leased = leased
        self._worker = worker
        self._warn = warn
        self._on_end = on_end
        self._replies: dict[str, Mailbox[EvalResult]] = {}
        self._finished: deque[tuple[int, EvalResult | None]] = deque()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._last_seconds = last_seconds
        self._full_seconds = full_seconds
        self._is_full_reported = False
        self.blocked: MailboxFull | None = None
        self._deadline = 0.0
        self.summary = WorkerSummary()
        self._thread = SupervisedThread(self._work, "proctor-outbox", lambda _: on_end())

    def __enter__(self) -> Outbox:
        self._thread.start()
        return self

    def __exit__(self, _type: object, error: object, _trace: object) -> None:
        """Send the finished results within some seconds; the other requests stay leased and are returned."""
        self._deadline = time.monotonic() + self._last_seconds
        self._ending.set()
        self._wake.set()
        self._thread.join()
        if error is None and self._thread.failure is not None:
            raise self._thread.failure

    def return_request(self, number: int) -> None:
        """Queue the return of a request whose trial was dropped."""
        self._finished.append((number, None))
        self._wake.set()

    def add(self, position: int, result: EvalResult, _verdict: Verdict | None = None) -> None:
        """Queue a finished result."""
        self._finished.append((position, result))
        self._wake.set()

    def add_batch(self, batch: Sequence[PositionedResult]) -> None:
        """Queue finished results."""
        self._finished.extend((position, result) for position, result, _ in batch)
        self._wake.set()

    def cache_output(self, _key: str, _created_at: str, _reply: bytes) -> None:
        """Ignore outputs, because a worker has no cache."""

    def is_lagging(self) -> bool:
        """True if results come faster than they can be sent."""
        return len(self._finished) > MAX_QUEUED

    def _work(self) -> None:
        while not (self._ending.is_set() and not self._finished):
            self._wake.wait()
            self._ending.wait(BATCH_SECONDS)
            self._wake.clear()
            while self._finished:
                if self._ending.is_set() and time.monotonic() > self._deadline:
                    return
                count = min(BATCH_SIZE, len(self._finished))
                self._deliver([self._finished.popleft() for _ in range(count)])

    def _deliver(self, batch: list[tuple[int, EvalResult | None]]) -> None:
        by_mailbox: dict[str | None, list[tuple[int, EvalResult]]] = {}
        for number, result in batch:
            if result is None:
                self.summary.returned += self._leased.return_request(number, reason=WORKER_STOPPED, counts=False)
                continue
            item = self._leased.get(number)
            if self._leased.is_lost(number) and not result.success:
                # Another worker has the request, and its result may be better.
                self._leased.remove(number)
                self.summary.outdated += 1
                continue
            name = None if self._results is not None else item.message.reply_to
            by_mailbox.setdefault(name, []).append((number, self._add_delivery(item, result)))
        for name, items in by_mailbox.items():
            self._deliver_to(name, items)

    def _add_delivery(self, item: LeasedRequest, result: EvalResult) -> EvalResult:
        request, count = item.request, item.message.delivery_count
        delivery = Delivery(request.run_id, request.request_id, self._worker, count)
        return encode_result(msgspec.structs.replace(result, delivery=delivery))[1]

    def _deliver_to(self, name: str | None, items: list[tuple[int, EvalResult]]) -> None:
        numbers = [number for number, _ in items]
        try:
            self._send(name, [result for _, result in items])
        except (MessageRefused, UsageError) as error:
            self._deliver_singly(name, items, error)
            return
        except _BatchTooLarge:
            half = len(items) // 2
            self._deliver_to(name, items[:half])
            self._deliver_to(name, items[half:])
            return
        except MailboxError as error:
            if isinstance(error, MailboxGone) and name is not None:
                # The run is over, so nothing waits for these results.
                self._acknowledge(numbers)
                self.summary.outdated += len(numbers)
                return
            self._warn(f"a result could not be sent, and its request was returned: {error.what}")
            for number in numbers:
                self._return(number, error)
            if isinstance(error, MailboxClosed):
                self._on_end()
            return
        self._acknowledge(numbers)
        self.summary.sent += len(items)
        self.summary.errors += sum(not result.success for _, result in items)

    def _acknowledge(self, numbers: list[int]) -> None:
        messages = [self._leased.get(number).message for number in numbers]
        try:
            self._requests.acknowledge_all(messages)
        except MailboxError as error:
            self._warn(f"requests could not be acknowledged and will be delivered again: {error.what}")
        for number in numbers:
            self._leased.remove(number)

    def _send(self, name: str | None, results: list[EvalResult]) -> None:
        """Send results; retry while the mailbox is full or its server is down."""
        mailbox = self._get_mailbox(name)
        backoff = Backoff(self._ending)
        started = time.monotonic()
        while True:
            try:
                mailbox.send_all(results)
                return
            except (MailboxClosed, MailboxGone, MessageRefused):
                raise
            except MailboxFull as error:
                # The mailbox may have room for some results, or be too small for the whole batch.
                if len(results) > 1:
                    raise _BatchTooLarge from None
                self._report_full(mailbox)
                if self._is_blocked(started, error):
                    raise
            except MailboxError:
                if self._is_too_late(started):
                    raise
            if self._ending.is_set():
                time.sleep(LAST_PAUSE_SECONDS)
            else:
                backoff.pause()

    def _is_too_late(self, started: float) -> bool:
        deadline = started + self._leased.lease
        if self._ending.is_set():
            deadline = min(deadline, self._deadline)
        return time.monotonic() > deadline

    def _is_blocked(self, started: float, error: MailboxFull) -> bool:
        """True if a mailbox stayed full for too long, which ends the worker."""
        if self._ending.is_set():
            return self._is_too_late(started)
        if self._full_seconds is None or time.monotonic() < started + self._full_seconds:
            return False
        self.blocked = error
        self._on_end()
        return True

    def _report_full(self, mailbox: Mailbox[EvalResult]) -> None:
        if not self._is_full_reported:
            self._is_full_reported = True
            self._warn(f"the mailbox {mailbox.name!r} is full; results wait until it has room")

    def _get_mailbox(self, name: str | None) -> Mailbox[EvalResult]:
        if name is None:
            assert self._results is not None  # Otherwise the request was rejected.
            return self._results
        if name not in self._replies:
            self._replies[name] = self._requests.open_mailbox(name, EvalResult)
            if len(self._replies) > MAX_MAILBOXES:
                self._replies.pop(next(iter(self._replies))).close()
        return self._replies[name]

    def _deliver_singly(self, name: str | None, items: list[tuple[int, EvalResult]], error: ProctorError) -> None:
        """Send results one by one; reject the request of a result that can never be sent."""
        if len(items) > 1:
            for item in items:
                self._deliver_to(name, [item])
            return
        ((number, _),) = items
        message = self._leased.get(number).message
        self._leased.remove(number)
        try:
            message.reject(f"its result cannot be sent: {error.what}")
        except MailboxError as rejection_error:
            self._warn(f"a request could not be rejected: {rejection_error.what}")

    def _return(self, number: int, error: MailboxError) -> None:
        count = self._leased.get(number).message.delivery_count
        delay = min(RETURN_SECONDS * count, MAX_RETURN_SECONDS)
        reason = f"its result could not be sent: {error.what}"
        # A full mailbox is not the fault of the message.
        counts = not isinstance(error, MailboxFull)
        self.summary.returned += self._leased.return_request(number, delay, reason, counts=counts)
