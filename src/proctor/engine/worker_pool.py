"""The workers of a run: each takes the next job as soon as it is free."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import msgspec

from proctor.core.clock import Clock
from proctor.core.isolation import hide_task, settle_abandoned
from proctor.engine.ledger import Ledger
from proctor.engine.plan import Job
from proctor.engine.progress import Progress
from proctor.engine.timeouts import Deadlines, RunningJob, WorkerSlot
from proctor.engine.trial import Runner, cancelled_result
from proctor.errors import StopRun
from proctor.ports import ResultWriter
from proctor.records.run import RunOptions
from proctor.records.score import find_failures, make_passed_scores
from proctor.records.trial import ALL_PASSED, EvalResult

# Workers that never wait yield to the loop at about this interval.
YIELD_SECONDS = 0.01
WRITER_WAIT_SECONDS = 0.005
# How long cancelled workers may take before the run closes without them.
CANCEL_SECONDS = 1.0

StopReason = Literal["", "interrupted", "error", "max_errors", "stop_run", "decided"]
# Receives every result; returns the reason once the run is decided.
StopCheck = Callable[[EvalResult], str | None]


class WorkerPool:
    """A fixed number of workers, each of which runs one job after another.

    User code runs in separate tasks (`core.isolation`), so it cannot reach a worker through its
    task; a worker that still ends leaves an error result and is replaced.

    `stop_reason` is the reason why no further job starts. `failed_result` is the result that caused it, `stop_error`
    the error of a call that must not be repeated, `decision` the reason of an early stop. `still_running` counts the
    calls that ignored their cancellation. If jobs come from outside, `wait_for_jobs` waits for more and returns False
    at the end. `evaluators` are the names of the evaluators of all samples.
    """

    def __init__(
        self,
        options: RunOptions,
        jobs: Iterable[Job],
        runner: Runner,
        writer: ResultWriter,
        progress: Progress,
        clock: Clock,
        wait_for_jobs: Callable[[], Awaitable[bool]] | None = None,
        stop_check: StopCheck | None = None,
        evaluators: Iterable[str] = (),
    ) -> None:
        self._options = options
        self._jobs = iter(jobs)
        self._wait_for_jobs = wait_for_jobs
        self._stop_check = stop_check
        self._runner = runner
        self._writer = writer
        self._progress = progress
        self._monotonic = clock.monotonic
        self._yielded_at = clock.monotonic()
        self._workers: dict[asyncio.Task[None], WorkerSlot] = {}
        self._open = jobs.open if isinstance(jobs, Ledger) else {}
        self._errors, self._skipped = 0, options.skipped
        self._passed_scores = make_passed_scores(evaluators) or None
        self._counts_errors = options.on_error == "raise" or options.max_errors is not None
        self._has_observers = progress.has_listeners or self._counts_errors or stop_check is not None
        self._over: asyncio.Future[None]
        self.stop_reason: StopReason = ""
        self.failed_result: EvalResult | None = None
        self._dataset_error: Exception | None = None
        self.stop_error: StopRun | None = None
        self.decision = ""
        self.still_running = 0
        timeout = options.timeout
        self._deadlines = None if timeout is None else Deadlines(timeout, self._monotonic)

    async def work(self) -> None:
        """Run until no job is left or the run is stopped.

        If reading the dataset fails, the running jobs are finished before the error is raised.
        """
        self._over = asyncio.get_running_loop().create_future()
        concurrency = self._runner.max_concurrency or self._options.concurrency
        if self._stop_check is not None:
            # Trials that are running when the run is decided are wasted.
            concurrency = min(concurrency, self._options.concurrency)
        for _ in range(concurrency):
            self._start_worker()
        try:
            await self._over
        finally:
            if self._deadlines is not None:
                self._deadlines.close()
            remaining_workers = tuple(self._workers)
            for task in remaining_workers:
                task.cancel()
            if remaining_workers:
                await asyncio.wait(remaining_workers, timeout=CANCEL_SECONDS)
            self.still_running = await settle_abandoned(CANCEL_SECONDS)
        if self._dataset_error is not None:
            raise self._dataset_error

    def interrupt(self) -> None:
        """Handle Ctrl-C: the first finishes the running jobs, the second drops them.

        Jobs that wait before a retry are dropped immediately; a resumed run tries them again.
        """
        self._drop(running=self.stop_reason == "interrupted")
        self.stop_reason = "interrupted"

    def _drop(self, *, running: bool = False) -> None:
        """Cancel idle workers; with `running`, cancel all workers."""
        self._progress.stopping = True
        self._progress.dropping = self._progress.dropping or running
        for slot in self._progress.slots:
            if slot.task is not None and (running or slot.is_idle):
                slot.task.cancel()

    async def _work(self, slot: WorkerSlot) -> None:
        run, monotonic, progress = self._runner.run, self._monotonic, self._progress
        while True:
            try:
                job = None if self.stop_reason else next(self._jobs, None)
            except Exception as error:
                self.stop_reason, self._dataset_error, job = "error", error, None
                self._drop()
            if job is None:
                if await self._has_more(slot):
                    continue
                break
            position, sample, configuration, epoch = job
            started_at = monotonic()
            slot.job = (position, sample, configuration, epoch, started_at)
            if progress.has_listeners:
                progress.trial_start(configuration.name)
            try:
                outcome = run(slot, sample, configuration, epoch)
                if isinstance(outcome, EvalResult):
                    result, has_waited = outcome, False
                else:
                    result, has_waited = await outcome, True
            except StopRun as error:
                # The trial has no result and is left for a resumed run. The first error is the cause; later errors
                # follow from it.
                self.stop_reason, self.stop_error = self.stop_reason or "stop_run", self.stop_error or error
                self._drop()
                break
            slot.job = None
            self._store(position, result)
            if started_at - self._yielded_at > YIELD_SECONDS:
                self._yielded_at = started_at
                has_waited = True
                await asyncio.sleep(0)
            while has_waited and self._writer.is_lagging() and not self.stop_reason:
                await asyncio.sleep(WRITER_WAIT_SECONDS)
        self._remove_worker(slot)

    async def _has_more(self, slot: WorkerSlot) -> bool:
        if self._wait_for_jobs is None or self.stop_reason:
            return False
        slot.is_idle = True
        has_more = await self._wait_for_jobs()
        slot.is_idle = False
        return has_more

    def _store(self, position: int, result: EvalResult) -> None:
        """Write a result to the history, count it, and check whether to continue."""
        if self._skipped != result.skipped:
            result = msgspec.structs.replace(result, skipped=self._skipped)
        is_passed = result.scores == self._passed_scores and result.trial.error is None
        verdict = ALL_PASSED if is_passed else result.verdict()
        self._writer.add(position, result, verdict)
        self._progress.count(verdict[0])
        self._open.pop(position, None)
        if self._has_observers:
            self._notify(result)

    def _notify(self, result: EvalResult) -> None:
        if self._progress.has_listeners:
            self._progress.trial_end(result.trial)
        if self._counts_errors and not self.stop_reason and describe_error(result):
            self._count_error(result)
        if self._stop_check is not None and self.stop_reason in ("", "decided"):
            self.check_stop(result)

    def _count_error(self, result: EvalResult) -> None:
        self._errors += 1
        options = self._options
        if options.on_error == "raise":
            self.stop_reason, self.failed_result = "error", result
        elif options.max_errors is not None and self._errors >= options.max_errors:
            self.stop_reason, self.failed_result = "max_errors", result
        if self.stop_reason:
            self._drop()

    def check_stop(self, result: EvalResult) -> None:
        """Pass a result to the early-stopping rule; stop scheduling jobs once it has decided.

        Running trials are finished and stored.
        """
        assert self._stop_check is not None
        try:
            decision = self._stop_check(result)
        except StopRun as error:
            self.stop_reason, self.stop_error = "stop_run", error
            self._drop()
            return
        if decision is not None:
            self.stop_reason, self.decision = "decided", decision

    def _start_worker(self) -> None:
        slot = WorkerSlot(self._options.timeout, self._monotonic)
        slot.task = asyncio.ensure_future(self._work(slot))
        hide_task(slot.task)
        slot.task.add_done_callback(self._on_worker_end)
        self._workers[slot.task] = slot
        self._progress.slots.append(slot)
        if self._deadlines is not None:
            self._deadlines.watch(slot)

    def _on_worker_end(self, task: asyncio.Task[None]) -> None:
        """End the run with its last worker, or when a worker raises an error."""
        error = None if task.cancelled() else task.exception()
        slot = self._workers.pop(task)
        if task.cancelled() and slot.job is not None and not self._over.done():
            error = self._replace_worker(slot, slot.job)
        if self._over.done():
            return
        if error is not None:
            self._over.set_exception(error)
        elif not self._workers:
            self._over.set_result(None)

    def _remove_worker(self, slot: WorkerSlot) -> None:
        slot.job = None
        self._progress.slots.remove(slot)
        if self._deadlines is not None:
            self._deadlines.forget(slot)

    def _replace_worker(self, slot: WorkerSlot, job: RunningJob) -> BaseException | None:
        """Replace a worker that the run did not cancel; its job becomes an error result.

        Returns the error if the result cannot be stored.
        """
        if self.stop_reason not in ("", "decided"):
            return None
        self._remove_worker(slot)
        try:
            self._store(job[0], cancelled_result(job, self._monotonic()))
        except Exception as error:
            return error
        if not self.stop_reason:
            self._start_worker()
        return None


def describe_error(result: EvalResult) -> str:
    """Explain why a result is an error: the target or an evaluator failed; empty if neither failed.

    >>> from proctor.records.sample import Sample
    >>> from proctor.records.score import Score
    >>> from proctor.records.trial import Trial
    >>> describe_error(EvalResult(Trial(Sample("s", 1)), {"judge": Score.error("401: no such key")}))
    "sample 's': the evaluator 'judge' failed: 401: no such key"

    A part of a combination counts too, even if the combination has a verdict without it.
    """
    if result.trial.error is not None:
        return f"sample {result.sample_id!r} failed: {result.trial.error}"
    for name, score in result.scores.items():
        if score.status == "error":
            return f"sample {result.sample_id!r}: the evaluator {name!r} failed: {score.reason}"
        for part, failure in find_failures(score).items():
            return f"sample {result.sample_id!r}: the part {part!r} of {name!r} failed: {failure.reason}"
    return ""
