"""Run trials on workers: send requests to one mailbox, receive results from another."""

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
from proctor.distributed.batches import BATCH_SIZE, Backoff, SupervisedThread
from proctor.distributed.check_requests import check_arrival
from proctor.distributed.delivery_counts import (
    UNREADABLE_RESULT,
    DeadLetterPoller,
    DeliveryCounts,
    UnreadableResultPoller,
)
from proctor.distributed.expected_results import (
    describe_setup,
    failed_result,
    matches_request,
    reject_cache,
    remove_mailbox,
    restore_sample,
)
from proctor.distributed.result_collector import RESULT_LEASE_SECONDS as LEASE_SECONDS
from proctor.distributed.result_collector import ResultReceiver
from proctor.engine.early_stop import sum_spending
from proctor.engine.plan import Job, Plan
from proctor.engine.progress import Progress
from proctor.engine.timeouts import WorkerSlot
from proctor.engine.trial import Runner
from proctor.errors import MailboxError, MailboxFull, MessageRefused, StopRun
from proctor.models.spending import Spending
from proctor.ports import Mailbox
from proctor.records.mail import EvalRequest
from proctor.records.order import Positions
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Configuration, Delivery, EvalResult, Failure

# A request waits this long for others, so that one round trip sends several.
BATCH_SECONDS = 0.004


class RequestSender:
    """Queues requests and sends them in a thread.

    `on_refused` receives an error result for each request that can never be sent, `on_failure` an
    unexpected error that ends the thread.
    """

    def __init__(
        self,
        requests: Mailbox[EvalRequest[Any, Any]],
        reply_to: str,
        on_refused: Callable[[EvalResult], object],
        show_notice: Callable[[str], object],
        on_failure: Callable[[Exception], object],
    ) -> None:
        self._requests = requests
        self._reply_to = reply_to
        self._on_refused = on_refused
        self._show_notice = show_notice
        self._queue: deque[EvalRequest[Any, Any]] = deque()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._is_busy = False
        self._thread = SupervisedThread(self._work, "proctor-sending", on_failure)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and drop requests that were not sent yet."""
        self._stopped.set()
        self._wake.set()
        self._thread.join()

    def put(self, request: EvalRequest[Any, Any]) -> None:
        self._queue.append(request)
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        return not self._queue and not self._is_busy

    def _work(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait()
            self._stopped.wait(BATCH_SECONDS)
            self._wake.clear()
            while self._queue and not self._stopped.is_set():
                self._is_busy = True
                count = min(BATCH_SIZE, len(self._queue))
                self._send([self._queue.popleft() for _ in range(count)])
                self._is_busy = False

    def _send(self, batch: list[EvalRequest[Any, Any]]) -> None:
        backoff = Backoff(self._stopped)
        while not self._stopped.is_set():
            try:
                check_arrival(self._requests, batch)
                self._requests.send_all(batch, reply_to=self._reply_to)
                return
            except MessageRefused as error:
                if len(batch) == 1:
                    what = "; ".join([error.what, *(problem.what for problem in error.problems)])
                    self._on_refused(failed_result(batch[0], Failure(type(error).__name__, what)))
                    return
                for request in batch:
                    self._send([request])
                return
            except MailboxFull:
                if len(batch) > 1:
                    # The mailbox may be too small for the whole batch.
                    half = len(batch) // 2
                    self._send(batch[:half])
                    self._send(batch[half:])
                    return
                self._show_notice("the mailbox is full; waiting for workers to make room")
            except MailboxError as error:
                self._show_notice(f"requests cannot be sent: {error.what}")
            backoff.pause()


WATCH_SECONDS = 1.0
# A notice appears after this time without a result.
QUIET_SECONDS = 5.0
# A run stops after this time if all its workers run different code.
MISMATCH_SECONDS = 60.0
# Requests that have disappeared are sent again after this time; then the time doubles.
RESEND_SECONDS = 10.0
# A result that the event loop has not processed by then is not acknowledged, and is redelivered.
HAND_OVER_SECONDS = LEASE_SECONDS / 2
# The maximum number of digits of a position.
MAX_DIGITS = 18


def results_name(requests: str, run_id: str) -> str:
    """Return the name of the mailbox for the results of a run."""
    return f"{requests}-{run_id}"


def request_id(run_id: str, position: int) -> str:
    """Return the id of a trial's request; it is the same after a resume, so that results are recognized."""
    return f"{run_id}-{position}"


def parse_position(run_id: str, delivery: Delivery | None) -> int | None:
    """Return the position of a result in the plan of a run, or None for a result of another run."""
    if delivery is None or delivery.run_id != run_id:
        return None
    prefix, _, number = delivery.request_id.rpartition("-")
    is_number = number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS
    return int(number) if prefix == run_id and is_number else None


def create_request(job: Job, run_id: str, now: datetime, expected_setup: str = "") -> EvalRequest[Any, Any]:
    """Create the request for one trial of a run."""
    position, sample, configuration, epoch = job
    return EvalRequest(
        sample,
        request_id=request_id(run_id, position),
        created_at=now,
        run_id=run_id,
        configuration=configuration,
        epoch=epoch,
        expects=expected_setup,
    )


@dataclass(frozen=True)
class MailboxBackend:
    """Runs the trials of a run on the workers of a mailbox.

    `window` limits the requests without a result. After `worker_timeout` seconds without a result the run
    stops and can be resumed.
    """

    requests: Mailbox[EvalRequest[Any, Any]]
    window: int = 1_000
    worker_timeout: float | None = 3_600.0
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state

    @contextlib.asynccontextmanager
    async def runner(
        self, plan: Plan, run: RunMetadata, progress: Progress, spending: Spending | None
    ) -> AsyncIterator[Runner]:
        """Send requests and receive results; remove the results' mailbox after a complete run."""
        reject_cache(run)
        name = results_name(self.requests.name, run.run_id)
        results = self.requests.open_mailbox(name, EvalResult)
        remote = RemoteRunner(self, results, plan, run, progress, spending)
        try:
            async with remote:
                yield remote
            # After a stop, the other results stay there for a resume.
            if remote.is_done:
                progress.warnings += remove_mailbox(results)
        finally:
            results.close()
            progress.notice = ""
            progress.warnings += remote.delivery_counts.warnings()


class RemoteRunner:
    """Sends a request for each job and waits for its result; counts each result once."""

    def __init__(
        self,
        backend: MailboxBackend,
        results: Mailbox[EvalResult],
        plan: Plan,
        run: RunMetadata,
        progress: Progress,
        spending: Spending | None,
    ) -> None:
        self.max_concurrency = backend.window
        self.delivery_counts = DeliveryCounts()
        self._backend = backend
        self._run_id = run.run_id
        self._expected_setup = describe_setup(plan)
        self._progress = progress
        self._spending = spending
        self._unanswered = 0
        self._pending_requests: dict[str, tuple[asyncio.Future[EvalResult], EvalRequest[Any, Any]]] = {}
        self._early_results: dict[str, EvalResult] = {}
        # The positions of requested trials; jobs may come in any order.
        self._requested_positions = Positions()
        # Errors of requests that were delivered more than once; another worker may still send a success. New errors
        # arrived after the last check.
        self._new_errors: list[EvalResult] = []
        self._old_errors: list[EvalResult] = []
        self._failure: Exception | None = None
        self._last_result_at = backend.clock.monotonic()
        self._resend_after = RESEND_SECONDS
        # The last notice about waiting, which changes each second.
        self._waiting_notice = ""
        self._results = results
        self._sender = RequestSender(
            backend.requests, results.name, lambda result: self._receive([result]), self._show_notice, self._fail_soon
        )
        self._receiver = ResultReceiver(results, self._receive, self._show_notice, self._fail_soon)
        self._dead_letters = DeadLetterPoller(backend.requests, self._is_pending)
        self._unreadable_results = UnreadableResultPoller(results)
        self._mismatch_since: float | None = None

    @property
    def is_done(self) -> bool:
        """True if every request has a result and no more requests will be sent."""
        return not (self._unanswered or self._progress.stopping)

    async def __aenter__(self) -> RemoteRunner:
        self._loop = asyncio.get_running_loop()
        # Trials that workers finished in the meantime are not requested again.
        await asyncio.to_thread(self._receiver.drain)
        # Unreadable results from before a resume are skipped: their trials are requested again.
        await asyncio.to_thread(self._unreadable_results.poll)
        self._sender.start()
        self._receiver.start()
        self._watch_task = asyncio.ensure_future(self._watch())
        return self

    async def __aexit__(self, _type: object, error: object, _trace: object) -> None:
        self._watch_task.cancel()
        await asyncio.to_thread(self._sender.stop)
        await asyncio.to_thread(self._receiver.stop)
        if self.is_done:
            # The trials of these results already had a result.
            self.delivery_counts.duplicates += len(self._early_results) + len(self._new_errors) + len(self._old_errors)
        if error is None and self._failure is not None:
            raise self._failure

    async def run(
        self, slot: WorkerSlot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult:
        """Run and score one sample on a worker."""
        assert slot.job is not None
        if self._failure is not None:
            raise self._failure
        if self._spending is not None:
            self._spending.check()
        job = (slot.job[0], sample, configuration, epoch)
        request = create_request(job, self._run_id, self._backend.clock.now(), self._expected_setup)
        self._requested_positions.add(slot.job[0])
        result = self._early_results.pop(request.request_id, None)
        if result is not None and not matches_request(result, request):
            self.delivery_counts.foreign += 1
            result = None
        if result is None:
            # Ctrl-C does not wait for the result: a resumed run collects it or requests it again.
            slot.is_idle = True
            result = await self._request_result(request)
            slot.is_idle = False
        self.delivery_counts.add(result)
        if self._spending is not None:
            self._spending.add(sum_spending([result]))
        return restore_sample(result, sample, self._progress)

    async def _request_result(self, request: EvalRequest[Any, Any]) -> EvalResult:
        waiter: asyncio.Future[EvalResult] = self._loop.create_future()
        self._pending_requests[request.request_id] = (waiter, request)
        self._sender.put(request)
        self._unanswered += 1
        result = await waiter
        self._unanswered -= 1
        del self._pending_requests[request.request_id]
        return result

    def _receive(self, results: list[EvalResult]) -> bool:
        """Pass results from another thread to the loop; True once it has processed them."""
        is_processed = threading.Event()

        def process() -> None:
            try:
                self._process(results)
            except Exception as error:
                self._fail(error)
            else:
                is_processed.set()

        with contextlib.suppress(RuntimeError):  # The loop is closed, so nothing waits for results.
            self._loop.call_soon_threadsafe(process)
            return is_processed.wait(HAND_OVER_SECONDS)
        return False

    def _process(self, results: list[EvalResult]) -> None:
        # Each result also identifies a live worker.
        answers = [result for result in results if not self.delivery_counts.workers.record(result)]
        if len(answers) < len(results):
            self._report_mismatches()
        if not answers:
            return
        self._last_result_at, self._resend_after = self._backend.clock.monotonic(), RESEND_SECONDS
        self._progress.notice = ""
        for result in sorted(answers, key=lambda answer: not answer.success):
            position = parse_position(self._run_id, result.delivery)
            if result.delivery is None or position is None:
                self.delivery_counts.foreign += 1
            elif position not in self._requested_positions:
                self._store_early_result(result.delivery.request_id, result)
            elif result.delivery.count > 1 and not result.success:
                self._new_errors.append(result)
            else:
                self._deliver(result)

    def _report_mismatches(self) -> None:
        if mismatches := self.delivery_counts.workers.mismatches:
            if self._mismatch_since is None:
                self._mismatch_since = self._backend.clock.monotonic()
            self._show_notice(f"workers run different code from this run: {mismatches}")

    def _store_early_result(self, key: str, result: EvalResult) -> None:
        """Store one result for each request; a success replaces an error."""
        earlier_result = self._early_results.get(key)
        self.delivery_counts.duplicates += earlier_result is not None
        if earlier_result is None or not earlier_result.success:
            self._early_results[key] = result

    def _deliver(self, result: EvalResult) -> None:
        """Pass a result to the job that waits for it."""
        assert result.delivery is not None
        _, request = self._pending_requests.get(result.delivery.request_id, (None, None))
        if request is not None and not matches_request(result, request):
            self.delivery_counts.foreign += 1
        else:
            self.delivery_counts.duplicates += not self._resolve(result)

    def _resolve(self, result: EvalResult) -> bool:
        assert result.delivery is not None
        waiter, _ = self._pending_requests.get(result.delivery.request_id, (None, None))
        if waiter is None or waiter.done():
            return False
        waiter.set_result(result)
        return True

    def _is_pending(self, request: EvalRequest[Any, Any]) -> bool:
        """True for a request that this process sent; requests from before a resume were sent again."""
        _, sent = self._pending_requests.get(request.request_id, (None, None))
        return sent is not None and sent.created_at == request.created_at

    def _show_notice(self, text: str) -> None:
        self._progress.notice = text

    async def _watch(self) -> None:
        """Check for missing results every second; an error ends the run."""
        try:
            while True:
                await asyncio.sleep(WATCH_SECONDS)
                await self._check_errors()
                await self._check_progress()
        except Exception as error:
            self._fail(error)

    async def _check_errors(self) -> None:
        """Accept errors without a later success, dead letters and unreadable results."""
        letters = await asyncio.to_thread(self._dead_letters.poll)
        self.delivery_counts.unreadable = self._dead_letters.unreadable
        errors, self._old_errors, self._new_errors = self._old_errors, self._new_errors, []
        for result in errors:
            self._deliver(result)
        for result in letters:
            if self._resolve(result):
                self._last_result_at = self._backend.clock.monotonic()
        for unreadable in await asyncio.to_thread(self._unreadable_results.poll):
            _, request = self._pending_requests.get(unreadable.request_id, (None, None))
            if request is None:
                self.delivery_counts.unreadable_results += 1
            else:
                # Fail the trial: sending the request again would not help.
                self._resolve(failed_result(request, Failure(UNREADABLE_RESULT, unreadable.reason)))

    async def _check_progress(self) -> None:
        """Handle requests that have disappeared, absent workers and closed mailboxes."""
        if self._backend.requests.closed or self._results.closed:
            self._give_up("the mailbox is closed")
        silence = self._backend.clock.monotonic() - self._last_result_at
        worker_timeout = self._backend.worker_timeout
        if worker_timeout is not None and silence > worker_timeout:
            self._give_up(f"no worker has answered for {silence:.0f} s")
        self._check_mismatches()
        if not self._pending_requests or silence < QUIET_SECONDS:
            return
        if self._progress.notice in ("", self._waiting_notice):
            count = len(self._pending_requests)
            waiting = "1 request is waiting" if count == 1 else f"{count:,} requests are waiting"
            self._waiting_notice = f"no worker has answered for {silence:.0f} s; {waiting}"
            self._show_notice(self._waiting_notice)
        if silence > self._resend_after and await asyncio.to_thread(self._have_all_disappeared):
            self._resend_after *= 2
            self.delivery_counts.resent += len(self._pending_requests)
            for _, request in self._pending_requests.values():
                self._sender.put(request)

    def _check_mismatches(self) -> None:
        """Stop if all known workers run different code, because none of them will ever answer."""
        workers, since = self.delivery_counts.workers, self._mismatch_since
        if since is None or workers.has_match:
            return
        if self._backend.clock.monotonic() - since > MISMATCH_SECONDS:
            self._raise_in_waiter(
                StopRun(
                    f"all workers run different code from this run: {workers.mismatches}",
                    fix="start them again from the same code, with the same target and evaluators, "
                    f"on {self._backend.requests.name!r}; then resume the run",
                )
            )

    def _have_all_disappeared(self) -> bool:
        """True if the mailboxes hold neither requests nor results, so that no result will ever come."""
        if self._dead_letters.has_pending or not self._sender.is_idle:
            return False
        mailboxes = (self._backend.requests, self._results)
        return all(self._receiver.count_messages(mailbox) == 0 for mailbox in mailboxes)

    def _give_up(self, reason: str) -> None:
        fix = f"start workers on {self._backend.requests.name!r} and resume the run"
        self._raise_in_waiter(StopRun(reason, fix=fix))

    def _fail_soon(self, error: Exception) -> None:
        """Handle an unexpected error of a thread."""
        with contextlib.suppress(RuntimeError):  # The loop is closed, so the run is over.
            self._loop.call_soon_threadsafe(self._fail, error)

    def _fail(self, error: Exception) -> None:
        """End the run with an error, even if no job waits now."""
        self._failure = self._failure or error
        self._raise_in_waiter(error)

    def _raise_in_waiter(self, error: Exception) -> None:
        """Raise an error in one waiting job; the run then drops the others."""
        for waiter, _ in self._pending_requests.values():
            if not waiter.done():
                waiter.set_exception(error)
                return
