"""The workers of a run: each takes the next job as soon as it is free."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import msgspec

from proctor.core.clock import Clock
from proctor.core.isolation import hide, settle_abandoned
from proctor.engine.ledger import Ledger
from proctor.engine.limits import Deadlines, RunningJob, Slot
from proctor.engine.plan import Job
from proctor.engine.progress import Progress
from proctor.engine.trial import Runner, cancelled_worker
from proctor.errors import StopRun
from proctor.ports import ResultWriter
from proctor.records.run import RunOptions
from proctor.records.trial import EvalResult

# Workers that never wait still let the loop turn about this often.
TURN_SECONDS = 0.01
BEHIND_SECONDS = 0.005
# How long workers that were told to end may take before the run is closed over them.
LEFTOVER_SECONDS = 1.0

StopReason = Literal["", "interrupted", "error", "max_errors", "told", "settled"]
# Hears every result; gives the reason, in words, once what the run is for is settled.
Hear = Callable[[EvalResult], str | None]


class Crew:
    """A fixed number of workers, each of which takes one job after the other.

    User code runs in tasks of its own (`core.isolation`), so nothing that it does to its task
    reaches a worker; a worker that ends all the same leaves an error result and is replaced.

    `stopped` says why no further job was begun, `cause` which result was the reason, `told` what
    a call said that must not be made any more, `settled` why no more are needed. Where jobs come
    in from outside, `more` waits for the next ones once there are none, and says whether there are.
    """

    def __init__(
        self,
        options: RunOptions,
        jobs: Iterable[Job],
        runner: Runner,
        writer: ResultWriter,
        progress: Progress,
        clock: Clock,
        more: Callable[[], Awaitable[bool]] | None = None,
        decide: Hear | None = None,
    ) -> None:
        self._options = options
        self._jobs = iter(jobs)
        self._more = more
        self._decide = decide
        self._runner = runner
        self._writer = writer
        self._progress = progress
        self._monotonic = clock.monotonic
        self._turned = clock.monotonic()
        self._workers: dict[asyncio.Task[None], Slot] = {}
        self._open = jobs.open if isinstance(jobs, Ledger) else {}
        self._errors = 0
        self._counts_errors = options.on_error == "raise" or options.max_errors is not None
        self._over: asyncio.Future[None]
        self.stopped: StopReason = ""
        self.cause: EvalResult | None = None
        self.told: StopRun | None = None
        self.settled = ""
        timeout = options.timeout
        self._deadlines = None if timeout is None else Deadlines(timeout, self._monotonic)

    async def work(self) -> None:
        """Run until no job is left or the run is stopped."""
        self._over = asyncio.get_running_loop().create_future()
        hands = self._runner.hands or self._options.concurrency
        if self._decide is not None:
            # What is under way when it is settled was run in vain.
            hands = min(hands, self._options.concurrency)
        for _ in range(hands):
            self._hire()
        try:
            await self._over
        finally:
            if self._deadlines is not None:
                self._deadlines.close()
            leftovers = tuple(self._workers)
            for task in leftovers:
                task.cancel()
            if leftovers:
                await asyncio.wait(leftovers, timeout=LEFTOVER_SECONDS)
            await settle_abandoned(LEFTOVER_SECONDS)

    def interrupt(self) -> None:
        """Ctrl-C: once to finish what is being run and stop, twice to drop it.

        What only waits before another attempt is dropped at once: a resumed run tries it again.
        """
        self._drop(all_of_them=self.stopped == "interrupted")
        self.stopped = "interrupted"

    def _drop(self, *, all_of_them: bool = False) -> None:
        """End what only waits, or everything: a resumed run does it again."""
        self._progress.stopping = True
        self._progress.dropping = self._progress.dropping or all_of_them
        for slot in self._progress.slots:
            if slot.task is not None and (all_of_them or slot.resting):
                slot.task.cancel()

    async def _labour(self, slot: Slot) -> None:
        run, monotonic, progress = self._runner.run, self._monotonic, self._progress
        while True:
            job = None if self.stopped else next(self._jobs, None)
            if job is None:
                if await self._has_more(slot):
                    continue
                break
            position, sample, configuration, epoch = job
            began = monotonic()
            slot.job = (position, sample, configuration, epoch, began)
            if progress.has_listeners:
                progress.trial_start(configuration.name)
            try:
                result = await run(slot, sample, configuration, epoch)
            except StopRun as told:
                # Not data: the trial is left for a resumed run.
                # The first one is the reason; others are not begun because of it.
                self.stopped, self.told = self.stopped or "told", self.told or told
                self._drop()
                break
            slot.job = None
            self._keep(position, result)
            if began - self._turned > TURN_SECONDS:
                self._turned = began
                await asyncio.sleep(0)
            while self._writer.behind() and not self.stopped:
                await asyncio.sleep(BEHIND_SECONDS)
        self._dismiss(slot)

    async def _has_more(self, slot: Slot) -> bool:
        """Wait for jobs from outside, if any can come; a run that stops does not wait for it."""
        if self._more is None or self.stopped:
            return False
        slot.resting = True
        more = await self._more()
        slot.resting = False
        return more

    def _keep(self, position: int, result: EvalResult) -> None:
        """Give a result to the history, count it, and decide whether to go on."""
        if self._options.skipped != result.skipped:
            result = msgspec.structs.replace(result, skipped=self._options.skipped)
        verdict = result.verdict()
        self._writer.add(position, result, verdict)
        outcome = verdict[0]
        progress = self._progress
        progress.count(outcome)
        if progress.has_listeners:
            progress.trial_end(result.trial)
        self._open.pop(position, None)
        if self._counts_errors and not self.stopped and failure_of(result):
            self._count_error(result)
        if self._decide is not None and self.stopped in ("", "settled"):
            self.hear(result)

    def _count_error(self, result: EvalResult) -> None:
        """Stop the run if this error, of the target or an evaluator, is one too many."""
        self._errors += 1
        options = self._options
        if options.on_error == "raise":
            self.stopped, self.cause = "error", result
        elif options.max_errors is not None and self._errors >= options.max_errors:
            self.stopped, self.cause = "max_errors", result
        if self.stopped:
            self._drop()

    def hear(self, result: EvalResult) -> None:
        """Let who decides hear a result: once it is settled, no further job is begun.

        What is under way then is finished and kept.
        """
        assert self._decide is not None
        try:
            reason = self._decide(result)
        except StopRun as told:
            self.stopped, self.told = "told", told
            self._drop()
            return
        if reason is not None:
            self.stopped, self.settled = "settled", reason

    def _hire(self) -> None:
        slot = Slot()
        slot.task = asyncio.ensure_future(self._labour(slot))
        hide(slot.task)
        slot.task.add_done_callback(self._ended)
        self._workers[slot.task] = slot
        self._progress.slots.append(slot)
        if self._deadlines is not None:
            self._deadlines.watch(slot)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """The run is over when its last worker is, or when one fails in a way that is not data."""
        error = None if task.cancelled() else task.exception()
        slot = self._workers.pop(task)
        if task.cancelled() and slot.job is not None and not self._over.done():
            error = self._replace(slot, slot.job)
        if self._over.done():
            return
        if error is not None:
            self._over.set_exception(error)
        elif not self._workers:
            self._over.set_result(None)

    def _dismiss(self, slot: Slot) -> None:
        slot.job = None
        self._progress.slots.remove(slot)
        if self._deadlines is not None:
            self._deadlines.forget(slot)

    def _replace(self, slot: Slot, job: RunningJob) -> BaseException | None:
        """Unless the run cancelled it, replace a worker; its job becomes an error result.

        Returns why the result cannot be kept, if so.
        """
        if self.stopped not in ("", "settled"):
            return None
        self._dismiss(slot)
        try:
            self._keep(job[0], cancelled_worker(job, self._monotonic()))
        except Exception as error:
            return error
        if not self.stopped:
            self._hire()
        return None


def failure_of(result: EvalResult) -> str:
    """Why a result is an error: its target's failure, or that of an evaluator; empty if it is none.

    >>> from proctor.records.sample import Sample
    >>> from proctor.records.score import Score
    >>> from proctor.records.trial import Trial
    >>> failure_of(EvalResult(Trial(Sample("s", 1)), {"judge": Score.error("401: no such key")}))
    "sample 's': the evaluator 'judge' failed: 401: no such key"
    """
    if result.trial.error is not None:
        return f"sample {result.sample_id!r} failed: {result.trial.error}"
    for name, score in result.scores.items():
        if score.status == "error":
            return f"sample {result.sample_id!r}: the evaluator {name!r} failed: {score.reason}"
    return ""
