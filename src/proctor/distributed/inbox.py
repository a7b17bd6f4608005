"""The inbox of a worker: turns requests from a mailbox into jobs, when the worker can start them."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

import msgspec

from proctor.distributed.batches import WAKE_SECONDS, Backoff, SupervisedThread, decode_body
from proctor.distributed.expected_results import describe_difference
from proctor.distributed.leased_requests import WORKER_STOPPED, LeasedRequest, LeasedRequests, Warn
from proctor.distributed.notices import NoticeSender
from proctor.engine.plan import Job
from proctor.errors import MailboxClosed, MailboxError
from proctor.mailboxes.core import MAX_MESSAGES
from proctor.ports import Mailbox, Message
from proctor.records.mail import EvalRequest

# A request for different code is returned immediately, and the worker pauses: for one second at first, then
# for up to half a minute while it finds no other requests. A worker with a limited number of polls delays
# the request instead, so that it does not receive the same request again.
MISMATCH_SECONDS = 5.0
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 30.0
# Such a return counts as a delivery only after this time; otherwise idle workers with different code would turn waiting
# requests into dead letters. A run that gets notices knows about the mismatch; its requests count only after the run
# has abandoned them.
UNCOUNTED_SECONDS = 300.0
ABANDONED_SECONDS = 86_400.0
# The polling interval of a mailbox whose messages are all leased.
EMPTY_SECONDS = 0.2
# A request that was lost twice may kill its workers: from this delivery on it runs alone, and a loss counts only then.
# So no other request is lost or rejected because of it.
ISOLATE_FROM = 3
# Other suspect requests are delayed by a random time up to this limit, so that they arrive one by one.
SPREAD_SECONDS = 1.0
ISOLATION_POLL_SECONDS = 0.01


class StopCondition(msgspec.Struct, frozen=True):
    """When a worker ends: after `polls` polls, with `empty` once no message is left, otherwise by `stop`.

    A poll waits up to `wait` seconds for the first message, then takes all waiting messages, at most `batch`.
    """

    polls: int | None = None
    empty: bool = False
    wait: float = 20.0
    batch: int = 1_000


class Inbox:
    """Iterates over the received jobs; `wait_for_jobs` waits for more.

    It takes only jobs that this worker can start immediately, and leaves the rest to other workers.
    A request that was lost repeatedly runs alone.
    """

    def __init__(
        self,
        requests: Mailbox[EvalRequest[Any, Any]],
        leased: LeasedRequests,
        until: StopCondition,
        expected_setup: str,
        warn: Warn,
        rng: random.Random | None = None,
        *,
        needs_reply_to: bool = False,
        notices: NoticeSender | None = None,
    ) -> None:
        self._rng = rng or random.Random()
        # Also at the start, because this worker may replace one that the next request killed.
        self._receives_single = True
        self._requests = requests
        self._leased = leased
        self._stop_condition = until
        self._expected_setup = expected_setup
        self._warn = warn
        self._needs_reply_to = needs_reply_to
        self._notices = notices
        limit = requests.max_deliveries
        self._isolate_from = ISOLATE_FROM if limit is None else min(ISOLATE_FROM, limit + 1)
        self._numbers = count()
        self._ready: deque[Job] = deque()
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._free_slots = threading.Semaphore(0)
        self._has_ended = False
        self._stopped = threading.Event()
        self._polls = self._received = 0
        self._has_warned = self._has_mismatch = False
        self._pause = FIRST_PAUSE_SECONDS
        # An unexpected error, such as an invalid lease, ends the worker.
        self._thread = SupervisedThread(self._fetch, "proctor-inbox", lambda _: None)

    async def __aenter__(self) -> Inbox:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        while self._thread.is_alive():
            # Repeat, because it may have been about to wait.
            self._requests.wake()
            await asyncio.sleep(WAKE_SECONDS)
        if self._thread.failure is not None:
            raise self._thread.failure

    def __iter__(self) -> Iterator[Job]:
        return self

    def __next__(self) -> Job:
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    async def wait_for_jobs(self) -> bool:
        """Wait for a job; return False once no more jobs will come."""
        if self._ready or self._has_ended:
            return bool(self._ready)
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiting.append(waiter)
        self._free_slots.release()
        return await waiter

    def stop(self) -> None:
        """Stop receiving; may be called from any thread."""
        self._stopped.set()
        self._free_slots.release()
        self._requests.wake()

    def _fetch(self) -> None:
        backoff = Backoff(self._stopped)
        try:
            while (slots := self._take_slots()) and not self._stopped.is_set():
                try:
                    messages = self._receive(slots)
                except MailboxClosed:
                    break
                except MailboxError as error:
                    self._warn(f"requests cannot be received: {error.what}")
                    self._return_slots(slots)
                    backoff.pause()
                    continue
                backoff.reset()
                started = self._process(messages)
                self._return_slots(slots - started)
                if self._is_enough(len(messages)):
                    break
                self._pause_on_mismatch(started)
        finally:
            self._call_in_loop(self._end)

    def _pause_on_mismatch(self, started: int) -> None:
        """Pause so that other workers take the requests for different code."""
        if started:
            self._pause = FIRST_PAUSE_SECONDS
        elif self._has_mismatch and self._stop_condition.polls is None:
            self._stopped.wait(self._pause)
            self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)

    def _take_slots(self) -> int:
        """Wait for a free slot; return the number of free ones."""
        self._free_slots.acquire()
        slots = 1
        while slots < MAX_MESSAGES and self._free_slots.acquire(blocking=False):
            slots += 1
        return slots

    def _return_slots(self, slots: int) -> None:
        if slots:
            self._free_slots.release(slots)

    def _receive(self, slots: int) -> Sequence[Message[Any]]:
        wait = 0.0 if self._received else self._stop_condition.wait
        if self._stop_condition.empty:
            wait = min(wait, EMPTY_SECONDS)
        return self._requests.receive(
            max_messages=1 if self._receives_single else min(slots, self._stop_condition.batch - self._received),
            visibility_timeout=self._leased.lease,
            wait_time_seconds=wait,
            provisional=True,
        )

    def _is_enough(self, received: int) -> bool:
        """Count the poll; return True once the stop condition is met."""
        until = self._stop_condition
        self._received += received
        if received and self._received < until.batch:
            return False
        self._polls += 1
        self._received = 0
        if until.polls is not None and self._polls >= until.polls:
            return True
        try:
            return until.empty and not received and self._requests.approximate_count() == 0
        except MailboxClosed:
            return True
        except MailboxError:
            return False

    def _process(self, messages: Sequence[Message[Any]]) -> int:
        jobs: list[Job] = []
        suspects: list[Job] = []
        self._has_mismatch = False
        for message in messages:
            request = self._read(message)
            if request is None:
                continue
            if self._notices is not None:
                self._notices.send(message, request)
            number = next(self._numbers)
            self._leased.add(number, LeasedRequest(message, request))
            if self._stopped.is_set():
                self._leased.return_request(number, reason=WORKER_STOPPED, counts=False)
            elif request.expects and request.expects != self._expected_setup:
                self._has_mismatch = True
                reason = self._describe_mismatch(request.expects)
                delay = 0.0 if self._stop_condition.polls is None else MISMATCH_SECONDS
                self._leased.return_request(number, delay, reason, counts=_is_old(message))
            else:
                group = suspects if message.delivery_count >= self._isolate_from else jobs
                group.append((number, request.sample, request.configuration, request.epoch))
        if jobs:
            self._call_in_loop(self._add_jobs, jobs)
        self._receives_single = bool(suspects) or self._has_mismatch
        return len(jobs) + (self._run_isolated(suspects) if suspects else 0)

    def _run_isolated(self, suspects: list[Job]) -> int:
        """Run one suspect while no other job runs, and return the others for later."""
        job = suspects.pop(self._rng.randrange(len(suspects)))
        for number, *_ in suspects:
            delay = self._rng.uniform(0, SPREAD_SECONDS)
            self._leased.return_request(number, delay, "it is postponed, because it must run alone", counts=False)
        if not (self._wait_until_leased(1) and self._confirm(job[0])):
            self._leased.return_request(job[0], reason=WORKER_STOPPED, counts=False)
            return 0
        self._call_in_loop(self._add_jobs, [job])
        self._wait_until_leased(0)
        return 1

    def _confirm(self, number: int) -> bool:
        """Count the delivery, because no other job can be the cause; False if it is already lost."""
        try:
            self._leased.get(number).message.confirm_delivery()
        except MailboxError as error:
            self._warn(f"a request could not be started and was returned: {error.what}")
            return False
        return True

    def _wait_until_leased(self, count: int) -> bool:
        """Wait until at most this many messages are leased; False if the worker stops first."""
        while len(self._leased) > count:
            if self._stopped.wait(ISOLATION_POLL_SECONDS):
                return False
        return True

    def _read(self, message: Message[Any]) -> EvalRequest[Any, Any] | None:
        """Read the request in a message; reject a message that cannot be answered."""
        try:
            request = decode_body(message.body, EvalRequest)
        except ValueError as error:
            self._reject(message, f"it is not a valid evaluation request: {error}")
            return None
        if self._needs_reply_to and message.reply_to is None:
            self._reject(message, "it has no reply_to")
            return None
        return request

    def _reject(self, message: Message[Any], reason: str) -> None:
        self._warn(f"message {message.id} was rejected: {reason}")
        with contextlib.suppress(MailboxError):
            message.reject(reason)

    def _describe_mismatch(self, expected: str) -> str:
        reason = f"this worker runs {self._expected_setup!r}, the request is for {expected!r}"
        if not self._has_warned:
            self._has_warned = True
            difference = describe_difference(expected, self._expected_setup)
            self._warn(f"{reason}: {difference}; start this worker with the code and the Python version of the run")
        return reason

    def _call_in_loop(self, function: Callable[..., object], *args: object) -> None:
        # If the loop is closed, the messages return when their leases expire.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *args)

    def _add_jobs(self, jobs: list[Job]) -> None:
        self._ready.extend(jobs)
        for _ in jobs:
            self._wake_one()

    def _end(self) -> None:
        self._has_ended = True
        while self._ready and self._stopped.is_set():
            # No worker will start the request.
            self._leased.return_request(self._ready.popleft()[0], reason=WORKER_STOPPED)
        while self._waiting:
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(bool(self._ready))
                return


def _is_old(message: Message[Any]) -> bool:
    """True if the message is so old that a worker with the right code would have taken it."""
    limit = UNCOUNTED_SECONDS if message.reply_to is None else ABANDONED_SECONDS
    return (datetime.now(UTC) - message.enqueued_at).total_seconds() > limit
