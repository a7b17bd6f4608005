"""Requests out of a mailbox as the jobs of a crew: taken when a worker's hands are free."""

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

from proctor.distributed.batches import WAKE_SECONDS, Backoff, as_record
from proctor.distributed.expected_results import describe_difference
from proctor.distributed.leased_messages import STOPPED, Held, Item, Trouble
from proctor.distributed.notices import NoticeSender
from proctor.engine.plan import Job
from proctor.errors import MailboxClosed, MailboxError
from proctor.mailboxes.limits import MOST_AT_ONCE
from proctor.ports import Mailbox, Message
from proctor.records.mail import EvalRequest

# A request that is meant for another kind of worker is returned at once, and the worker rests: for
# so long at first and, where it finds nothing else, for up to half a minute. A worker that must end
# after some polls leaves the request for so long instead, lest it meets the same one again.
MISFIT_SECONDS = 5.0
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 1.0, 30.0
# Only after so long does such a return count against the request: else the wrong workers, who have
# nothing to do, would make dead letters of what the right ones have not come to yet. A run that is
# sent a notice knows what is wrong: its requests are set aside only when it has abandoned them.
MISFIT_FREE_SECONDS = 300.0
ABANDONED_SECONDS = 86_400.0
# How often a mailbox is looked at again that is empty but for what is in flight.
EMPTY_SECONDS = 0.2
# A request that was lost twice may be what ends its workers: from this delivery on it is run alone,
# and only then does losing it count. So it takes no others along, and none is set aside for it.
ALONE_FROM = 3
# Others of that kind are left for about so long, each for another time, to come one by one.
APART_SECONDS = 1.0
ALONE_LOOK_SECONDS = 0.01


class Until(msgspec.Struct, frozen=True):
    """When a worker has done enough: after so many polls, once all is done, or when it is stopped.

    A poll waits up to `wait` seconds for the first message, then takes all that are waiting, at
    most `batch`.
    """

    polls: int | None = None
    empty: bool = False
    wait: float = 20.0
    batch: int = 1_000


class Inbox:
    """An iterator of jobs that runs dry; `more` waits for the next ones.

    Nothing is taken in advance: what this worker could not begin at once is left to others. What
    was lost again and again is run with nothing else in hand.
    """

    def __init__(
        self,
        requests: Mailbox[EvalRequest[Any, Any]],
        held: Held,
        until: Until,
        expects: str,
        trouble: Trouble,
        chance: random.Random | None = None,
        *,
        needs_reply_to: bool = False,
        notices: NoticeSender | None = None,
    ) -> None:
        self._chance = chance or random.Random()
        # At first too: it may stand in for one that has just died of what comes next.
        self._is_careful = True
        self._requests = requests
        self._held = held
        self._until = until
        self._expects = expects
        self._trouble = trouble
        self._needs_reply_to = needs_reply_to
        self._notices = notices
        limit = requests.max_deliveries
        self._alone_from = ALONE_FROM if limit is None else min(ALONE_FROM, limit + 1)
        self._failure: Exception | None = None
        self._numbers = count()
        self._ready: deque[Job] = deque()
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._wanted = threading.Semaphore(0)
        self._ended = False
        self._over = threading.Event()
        self._polls = self._taken = 0
        self._told_misfit = self._is_misplaced = False
        self._rest = FIRST_REST_SECONDS
        self._thread = threading.Thread(target=self._fetch, name="proctor-inbox", daemon=True)

    async def __aenter__(self) -> Inbox:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        while self._thread.is_alive():
            # Again, for it may have been about to wait when it was woken.
            self._requests.wake()
            await asyncio.sleep(WAKE_SECONDS)
        if self._failure is not None:
            raise self._failure

    def __iter__(self) -> Iterator[Job]:
        return self

    def __next__(self) -> Job:
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    async def more(self) -> bool:
        """Wait for a job; False once there will be none."""
        if self._ready or self._ended:
            return bool(self._ready)
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiting.append(waiter)
        self._wanted.release()
        return await waiter

    def stop(self) -> None:
        """Take nothing any more; from any thread."""
        self._over.set()
        self._wanted.release()
        self._requests.wake()

    def _fetch(self) -> None:
        backoff = Backoff(self._over)
        try:
            while (room := self._room()) and not self._over.is_set():
                try:
                    messages = self._receive(room)
                except MailboxClosed:
                    break
                except MailboxError as error:
                    self._trouble(f"requests cannot be received: {error.what}")
                    self._give_room(room)
                    backoff.pause()
                    continue
                backoff.reset()
                taken = self._hand_over(messages)
                self._give_room(room - taken)
                if self._is_enough(len(messages)):
                    break
                self._rest_if_misplaced(taken)
        except Exception as error:
            # Such as a lease that no mailbox grants: the worker ends with it.
            self._failure = error
        finally:
            self._tell(self._end)

    def _rest_if_misplaced(self, taken: int) -> None:
        """Where all that is there is for others, let them find it first."""
        if taken:
            self._rest = FIRST_REST_SECONDS
        elif self._is_misplaced and self._until.polls is None:
            self._over.wait(self._rest)
            self._rest = min(2 * self._rest, LONGEST_REST_SECONDS)

    def _room(self) -> int:
        """How many hands are free; waits until one is."""
        self._wanted.acquire()
        room = 1
        while room < MOST_AT_ONCE and self._wanted.acquire(blocking=False):
            room += 1
        return room

    def _give_room(self, room: int) -> None:
        if room:
            self._wanted.release(room)

    def _receive(self, room: int) -> Sequence[Message[Any]]:
        wait = 0.0 if self._taken else self._until.wait
        if self._until.empty:
            wait = min(wait, EMPTY_SECONDS)
        return self._requests.receive(
            max_messages=1 if self._is_careful else min(room, self._until.batch - self._taken),
            visibility_timeout=self._held.lease,
            wait_time_seconds=wait,
            provisional=True,
        )

    def _is_enough(self, received: int) -> bool:
        """Count polls; True once there were enough of them, or nothing is left anywhere."""
        until = self._until
        self._taken += received
        if received and self._taken < until.batch:
            return False
        self._polls += 1
        self._taken = 0
        if until.polls is not None and self._polls >= until.polls:
            return True
        try:
            return until.empty and not received and self._requests.approximate_count() == 0
        except MailboxClosed:
            return True
        except MailboxError:
            return False

    def _hand_over(self, messages: Sequence[Message[Any]]) -> int:
        jobs: list[Job] = []
        suspects: list[Job] = []
        self._is_misplaced = False
        for message in messages:
            request = self._read(message)
            if request is None:
                continue
            if self._notices is not None:
                self._notices.send(message, request)
            number = next(self._numbers)
            self._held.take(number, Item(message, request))
            if self._over.is_set():
                self._held.give_back(number, reason=STOPPED, counts=False)
            elif request.expects and request.expects != self._expects:
                self._is_misplaced = True
                said = self._misfit(request.expects)
                delay = 0.0 if self._until.polls is None else MISFIT_SECONDS
                self._held.give_back(number, delay, said, counts=_is_old(message))
            else:
                kind = suspects if message.delivery_count >= self._alone_from else jobs
                kind.append((number, request.sample, request.configuration, request.epoch))
        if jobs:
            self._tell(self._arrive, jobs)
        self._is_careful = bool(suspects) or self._is_misplaced
        return len(jobs) + (self._run_alone(suspects) if suspects else 0)

    def _run_alone(self, suspects: list[Job]) -> int:
        """Run one of them with nothing else in hand, and leave the others for later."""
        one = suspects.pop(self._chance.randrange(len(suspects)))
        for number, *_ in suspects:
            delay = self._chance.uniform(0, APART_SECONDS)
            self._held.give_back(number, delay, "it waits its turn to be run alone", counts=False)
        if not (self._is_held_down_to(1) and self._is_confirmed(one[0])):
            self._held.give_back(one[0], reason=STOPPED, counts=False)
            return 0
        self._tell(self._arrive, [one])
        self._is_held_down_to(0)
        return 1

    def _is_confirmed(self, number: int) -> bool:
        """Let the delivery count, for nothing else can be to blame; False if it is lost already."""
        try:
            self._held.find(number).message.confirm_delivery()
        except MailboxError as error:
            self._trouble(f"a request could not be begun and is returned: {error.what}")
            return False
        return True

    def _is_held_down_to(self, most: int) -> bool:
        """Wait until so many are in hand; False if it is over before."""
        while len(self._held) > most:
            if self._over.wait(ALONE_LOOK_SECONDS):
                return False
        return True

    def _read(self, message: Message[Any]) -> EvalRequest[Any, Any] | None:
        """What a message asks for; what cannot be answered is set aside before it costs a call."""
        try:
            request = as_record(message.body, EvalRequest)
        except ValueError as error:
            self._set_aside(message, f"it is no request for an evaluation: {error}")
            return None
        if self._needs_reply_to and message.reply_to is None:
            self._set_aside(message, "it does not say where its answer goes")
            return None
        return request

    def _set_aside(self, message: Message[Any], reason: str) -> None:
        self._trouble(f"message {message.id} is set aside: {reason}")
        with contextlib.suppress(MailboxError):
            message.reject(reason)

    def _misfit(self, expected: str) -> str:
        said = f"this worker runs {self._expects!r}, the request is for {expected!r}"
        if not self._told_misfit:
            self._told_misfit = True
            difference = describe_difference(expected, self._expects)
            self._trouble(f"{said}: {difference}; start it from the same code, on the same Python")
        return said

    def _tell(self, what: Callable[..., object], *about: object) -> None:
        # A closed loop is not told: what is in hand comes back when its lease is over.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what, *about)

    def _arrive(self, jobs: list[Job]) -> None:
        self._ready.extend(jobs)
        for _ in jobs:
            self._wake_one()

    def _end(self) -> None:
        self._ended = True
        while self._ready and self._over.is_set():
            # Taken, but nobody will begin it any more.
            self._held.give_back(self._ready.popleft()[0], reason=STOPPED)
        while self._waiting:
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(bool(self._ready))
                return


def _is_old(message: Message[Any]) -> bool:
    """True if so much time has passed that a worker who fits would have come."""
    free = MISFIT_FREE_SECONDS if message.reply_to is None else ABANDONED_SECONDS
    return (datetime.now(UTC) - message.enqueued_at).total_seconds() > free
