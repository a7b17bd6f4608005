"""A run whose trials others carry out: requests go into a mailbox, results come back by theirs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from proctor.core.clock import Clock, SystemClock
from proctor.distributed.account import UNREADABLE_RESULT, Account
from proctor.distributed.arrival import check_arrival
from proctor.distributed.batches import BATCH, Aside, Backoff
from proctor.distributed.collect import RESULT_LEASE_SECONDS as LEASE_SECONDS
from proctor.distributed.collect import Receiving
from proctor.distributed.expected_results import (
    answered,
    expectation,
    failed,
    is_answer,
    refuse_cache,
    removed,
)
from proctor.distributed.letters import Letters, LostResult, LostResults
from proctor.engine.limits import Slot
from proctor.engine.plan import Job, Plan
from proctor.engine.progress import Progress
from proctor.engine.stopping import spent_in
from proctor.engine.trial import Runner
from proctor.errors import MailboxError, MailboxFull, MessageRefused, StopRun
from proctor.models.spending import Spending
from proctor.ports import Mailbox
from proctor.records.mail import EvalRequest
from proctor.records.order import Positions
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Configuration, Delivery, EvalResult, Failure

# How long a request waits for company.
COMPANY_SECONDS = 0.004


class Sending:
    """Takes requests at once and sends them as the mailbox takes them.

    One that the mailbox can never take comes back through `refuse` as an error of its sample;
    `fail` is told what ends it against all expectation.
    """

    def __init__(
        self,
        requests: Mailbox[EvalRequest[Any, Any]],
        reply_to: str,
        refuse: Callable[[EvalResult], object],
        notice: Callable[[str], object],
        fail: Callable[[Exception], object],
    ) -> None:
        self._requests = requests
        self._reply_to = reply_to
        self._refuse = refuse
        self._notice = notice
        self._waiting: deque[EvalRequest[Any, Any]] = deque()
        self._wake = threading.Event()
        self._over = threading.Event()
        self._busy = False
        self._thread = Aside(self._work, "proctor-sending", fail)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """End: what was not sent yet is dropped."""
        self._over.set()
        self._wake.set()
        self._thread.join()

    def put(self, request: EvalRequest[Any, Any]) -> None:
        """Send a request soon."""
        self._waiting.append(request)
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """True if everything was sent."""
        return not self._waiting and not self._busy

    def _work(self) -> None:
        while not self._over.is_set():
            self._wake.wait()
            # One round trip for many: they come in as others are answered.
            self._over.wait(COMPANY_SECONDS)
            self._wake.clear()
            while self._waiting and not self._over.is_set():
                self._busy = True
                count = min(BATCH, len(self._waiting))
                self._send([self._waiting.popleft() for _ in range(count)])
                self._busy = False

    def _send(self, batch: list[EvalRequest[Any, Any]]) -> None:
        backoff = Backoff(self._over)
        while not self._over.is_set():
            try:
                check_arrival(self._requests, batch)
                self._requests.send_all(batch, reply_to=self._reply_to)
                return
            except MessageRefused as error:
                if len(batch) == 1:
                    what = "; ".join([error.what, *(problem.what for problem in error.problems)])
                    self._refuse(failed(batch[0], Failure(type(error).__name__, what)))
                    return
                for request in batch:
                    self._send([request])
                return
            except MailboxFull:
                if len(batch) > 1:
                    # It may be too small ever to take all at once.
                    half = len(batch) // 2
                    self._send(batch[:half])
                    self._send(batch[half:])
                    return
                self._notice("the mailbox is full: waiting for workers to make room")
            except MailboxError as error:
                self._notice(f"requests cannot be sent: {error.what}")
            backoff.pause()


WATCH_SECONDS = 1.0
# After so long without an answer people want to know why.
QUIET_SECONDS = 5.0
# A run whose only workers run other code is stopped after this many seconds.
MISMATCH_SECONDS = 60.0
# Requests are sent again when nothing is left of them anywhere, after so long at first.
LOST_SECONDS = 10.0
# A result that the event loop has not taken by then is not acknowledged, and comes again.
HAND_OVER_SECONDS = LEASE_SECONDS / 2
# No plan has more trials than a number of so many digits can tell.
MOST_DIGITS = 18


def results_name(requests: str, run_id: str) -> str:
    """The mailbox that the results of one run come back by."""
    return f"{requests}-{run_id}"


def request_id(run_id: str, position: int) -> str:
    """The id of a trial's request: the same in every sitting, so that answers are recognised."""
    return f"{run_id}-{position}"


def position_in(run_id: str, delivery: Delivery | None) -> int | None:
    """The place in a run's plan of the trial that a result is of, or None if it is of none.

    >>> position_in("r1", Delivery("r1", "r1-7")), position_in("r2", Delivery("r1", "r1-7"))
    (7, None)
    """
    if delivery is None or delivery.run_id != run_id:
        return None
    before, _, number = delivery.request_id.rpartition("-")
    is_number = number.isascii() and number.isdecimal() and len(number) <= MOST_DIGITS
    return int(number) if before == run_id and is_number else None


def request_of(job: Job, run_id: str, now: datetime, expects: str = "") -> EvalRequest[Any, Any]:
    """The request for one trial of a run."""
    position, sample, configuration, epoch = job
    return EvalRequest(
        sample,
        request_id=request_id(run_id, position),
        created_at=now,
        run_id=run_id,
        configuration=configuration,
        epoch=epoch,
        expects=expects,
    )


@dataclass(frozen=True)
class Workers:
    """The workers behind a mailbox, as the place where a run's trials are carried out.

    `window` is how many requests are out at once; after `patience` seconds without any answer the
    run is stopped, to be resumed.
    """

    requests: Mailbox[EvalRequest[Any, Any]]
    window: int = 1_000
    patience: float | None = 3_600.0
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state

    @contextlib.asynccontextmanager
    async def runner(
        self, plan: Plan, run: RunMetadata, progress: Progress, spending: Spending | None
    ) -> AsyncIterator[Runner]:
        """Send and collect while the run lasts; the results' mailbox goes with a complete run."""
        refuse_cache(run)
        name = results_name(self.requests.name, run.run_id)
        results = self.requests.beside(name, EvalResult)
        errands = Errands(self, results, plan, run, progress, spending)
        try:
            async with errands:
                yield errands
            # What a stopped run has not taken stays there for the next sitting.
            if errands.is_done:
                progress.warnings += removed(results)
        finally:
            results.close()
            progress.notice = ""
            progress.warnings += errands.account.sentences()


class Errands:
    """Sends a request for each job and waits for its result; each is counted once."""

    def __init__(
        self,
        workers: Workers,
        results: Mailbox[EvalResult],
        plan: Plan,
        run: RunMetadata,
        progress: Progress,
        spending: Spending | None,
    ) -> None:
        self.hands = workers.window
        self.account = Account()
        self._workers = workers
        self._run_id = run.run_id
        self._expects = expectation(plan)
        self._progress = progress
        self._spending = spending
        self._unanswered = 0
        self._awaited: dict[str, tuple[asyncio.Future[EvalResult], EvalRequest[Any, Any]]] = {}
        self._early: dict[str, EvalResult] = {}
        # Jobs need not come in the order of the plan.
        self._asked = Positions()
        # Errors of requests that others had too, who may have done better: those of this look of
        # the watch, and those of the last.
        self._doubted: list[EvalResult] = []
        self._ripe: list[EvalResult] = []
        self._failure: Exception | None = None
        self._heard = workers.clock.monotonic()
        self._resend_after = LOST_SECONDS
        # What was told of it last, which goes stale each second.
        self._waiting = ""
        self._results = results
        self._sending = Sending(workers.requests, results.name, self._refuse, self._notice, self._fail_soon)
        self._receiving = Receiving(results, self._arrive, self._notice, self._fail_soon)
        self._letters = Letters(workers.requests, self._is_awaited)
        self._lost_results = LostResults(results)
        self._misfit_since: float | None = None

    @property
    def is_done(self) -> bool:
        """True if every request was answered, and no other will be made."""
        return not (self._unanswered or self._progress.stopping)

    async def __aenter__(self) -> Errands:
        self._loop = asyncio.get_running_loop()
        # What was finished while nobody listened is not asked for again.
        await asyncio.to_thread(self._receiving.drain, self._arrive)
        # Those of an earlier sitting: their trials are asked for again.
        await asyncio.to_thread(self._lost_results.look)
        self._sending.start()
        self._receiving.start()
        self._watching = asyncio.ensure_future(self._watch())
        return self

    async def __aexit__(self, _kind: object, error: object, _trace: object) -> None:
        self._watching.cancel()
        await asyncio.to_thread(self._sending.stop)
        await asyncio.to_thread(self._receiving.stop)
        if self.is_done:
            # Of trials that had their answers, in an earlier sitting or since the last look.
            self.account.repeated += len(self._early) + len(self._doubted) + len(self._ripe)
        if error is None and self._failure is not None:
            raise self._failure

    async def run(
        self, slot: Slot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult:
        """Let a worker run and score one sample."""
        assert slot.job is not None
        if self._failure is not None:
            raise self._failure
        if self._spending is not None:
            self._spending.check()
        job = (slot.job[0], sample, configuration, epoch)
        request = request_of(job, self._run_id, self._workers.clock.now(), self._expects)
        self._asked.add(slot.job[0])
        result = self._early.pop(request.request_id, None)
        if result is not None and not is_answer(result, request):
            self.account.strangers += 1
            result = None
        if result is None:
            # Ctrl-C need not wait for it: a resumed run collects it, or asks again.
            slot.resting = True
            result = await self._answer(request)
            slot.resting = False
        self.account.count(result)
        if self._spending is not None:
            self._spending.add(spent_in([result]))
        return answered(result, sample, self._progress)

    async def _answer(self, request: EvalRequest[Any, Any]) -> EvalResult:
        waiter: asyncio.Future[EvalResult] = self._loop.create_future()
        self._awaited[request.request_id] = (waiter, request)
        self._sending.put(request)
        self._unanswered += 1
        result = await waiter
        self._unanswered -= 1
        del self._awaited[request.request_id]
        return result

    def _arrive(self, results: list[EvalResult]) -> bool:
        """Results have come, on another thread; True once they are handed over."""
        handed = threading.Event()

        def take() -> None:
            try:
                self._take(results)
            except Exception as error:
                self._fail(error)
            else:
                handed.set()

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(take)
            return handed.wait(HAND_OVER_SECONDS)
        return False

    def _take(self, results: list[EvalResult]) -> None:
        # Each one is heard, for it tells which workers there are.
        answers = [result for result in results if not self.account.roster.hear(result)]
        if len(answers) < len(results):
            self._notice_misfits()
        if not answers:
            return
        self._heard, self._resend_after = self._workers.clock.monotonic(), LOST_SECONDS
        self._progress.notice = ""
        for result in sorted(answers, key=lambda one: not one.success):
            position = position_in(self._run_id, result.delivery)
            if result.delivery is None or position is None:
                self.account.strangers += 1
            elif position not in self._asked:
                self._keep_early(result.delivery.request_id, result)
            elif result.delivery.count > 1 and not result.success:
                self._doubted.append(result)
            else:
                self._give(result)

    def _notice_misfits(self) -> None:
        if misfit := self.account.roster.misfit:
            if self._misfit_since is None:
                self._misfit_since = self._workers.clock.monotonic()
            self._notice(f"workers run other code than this run: {misfit}")

    def _keep_early(self, key: str, result: EvalResult) -> None:
        """One result for each request, a success before an error."""
        known = self._early.get(key)
        self.account.repeated += known is not None
        if known is None or not known.success:
            self._early[key] = result

    def _give(self, result: EvalResult) -> None:
        """Give a result to the job that asked for it; each is counted once."""
        assert result.delivery is not None
        _, request = self._awaited.get(result.delivery.request_id, (None, None))
        if request is not None and not is_answer(result, request):
            self.account.strangers += 1
        elif not self._settle(result):
            self.account.repeated += 1

    def _settle(self, result: EvalResult) -> bool:
        assert result.delivery is not None
        waiter, _ = self._awaited.get(result.delivery.request_id, (None, None))
        if waiter is None or waiter.done():
            return False
        waiter.set_result(result)
        return True

    def _is_awaited(self, request: EvalRequest[Any, Any]) -> bool:
        """True for what was sent in this sitting: what died before was asked for anew."""
        _, sent = self._awaited.get(request.request_id, (None, None))
        return sent is not None and sent.created_at == request.created_at

    def _refuse(self, result: EvalResult) -> None:
        """A request that cannot be sent, on the sending thread."""
        self._arrive([result])

    def _notice(self, text: str) -> None:
        self._progress.notice = text

    async def _watch(self) -> None:
        """Look after what does not come; what is in the way of that ends the run."""
        try:
            while True:
                await asyncio.sleep(WATCH_SECONDS)
                await self._look_at_errors()
                await self._look_for_answers()
        except Exception as error:
            self._fail(error)

    async def _look_at_errors(self) -> None:
        """Errors that nothing better has come for since the last look, and dead letters."""
        letters = await asyncio.to_thread(self._letters.look)
        self.account.unreadable = self._letters.unreadable
        ripe, self._ripe, self._doubted = self._ripe, self._doubted, []
        for result in ripe:
            self._give(result)
        for result in letters:
            if self._settle(result):
                self._heard = self._workers.clock.monotonic()
        for lost in await asyncio.to_thread(self._lost_results.look):
            self._lose(lost)

    def _lose(self, lost: LostResult) -> None:
        """A result that cannot be read is an error of its trial: asking again would not help."""
        _, request = self._awaited.get(lost.request_id, (None, None))
        if request is None:
            self.account.unreadable_results += 1
        else:
            self._settle(failed(request, Failure(UNREADABLE_RESULT, lost.reason)))

    async def _look_for_answers(self) -> None:
        """Requests that were lost, workers that are away, mailboxes that are closed."""
        if self._workers.requests.closed or self._results.closed:
            self._give_up("the mailbox was closed")
        quiet = self._workers.clock.monotonic() - self._heard
        patience = self._workers.patience
        if patience is not None and quiet > patience:
            self._give_up(f"no worker has answered for {quiet:.0f} s")
        self._look_at_misfits()
        if not self._awaited or quiet < QUIET_SECONDS:
            return
        if self._progress.notice in ("", self._waiting):
            number = f"{len(self._awaited):,} requests"
            self._waiting = f"no worker has answered for {quiet:.0f} s; {number} are waiting"
            self._notice(self._waiting)
        if quiet > self._resend_after and await asyncio.to_thread(self._is_all_gone):
            self._resend_after *= 2
            self.account.resent += len(self._awaited)
            for _, request in self._awaited.values():
                self._sending.put(request)

    def _look_at_misfits(self) -> None:
        """Stop if all workers that were heard of run other code: none will ever answer."""
        roster, since = self.account.roster, self._misfit_since
        if since is None or roster.has_fitting:
            return
        if self._workers.clock.monotonic() - since > MISMATCH_SECONDS:
            self._tell_one(
                StopRun(
                    f"all workers run other code than this run: {roster.misfit}",
                    fix="start them again from the same code, with the same target and evaluators, "
                    f"on {self._workers.requests.name!r}; then resume the run",
                )
            )

    def _is_all_gone(self) -> bool:
        """True if neither requests nor results are anywhere, so that no answer will ever come."""
        boxes = (self._workers.requests, self._results)
        if self._letters.has_found or not self._sending.is_idle:
            return False
        return all(self._receiving.count_of(box) == 0 for box in boxes)

    def _give_up(self, why: str) -> None:
        """Stop the run, to be resumed."""
        fix = f"start workers on {self._workers.requests.name!r} and resume the run"
        self._tell_one(StopRun(why, fix=fix))

    def _fail_soon(self, error: Exception) -> None:
        """A thread has ended against all expectation."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
            self._loop.call_soon_threadsafe(self._fail, error)

    def _fail(self, error: Exception) -> None:
        """End the run with an error, whether or not somebody waits just now."""
        self._failure = self._failure or error
        self._tell_one(error)

    def _tell_one(self, error: Exception) -> None:
        """One waiter is told, and the others are dropped with it."""
        for waiter, _ in self._awaited.values():
            if not waiter.done():
                waiter.set_exception(error)
                return
