"""A worker: receives requests from a mailbox, runs and scores the samples, and sends the results."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from proctor.core import resource_scope
from proctor.core.clock import Clock, SystemClock
from proctor.core.threads import CallThreads
from proctor.distributed.expected_results import describe_setup
from proctor.distributed.inbox import Inbox, StopCondition
from proctor.distributed.leased_requests import LeasedRequests, Warn
from proctor.distributed.notices import NoticeSender
from proctor.distributed.outbox import Outbox, WorkerSummary
from proctor.engine.plan import Setup
from proctor.engine.progress import Progress
from proctor.engine.timeouts import WorkerSlot
from proctor.engine.trial import Runner, TrialRunner
from proctor.engine.worker_pool import WorkerPool
from proctor.errors import ConfigError, MailboxFull, StopRun
from proctor.models.model_calls import CallContext, call_context
from proctor.ports import Mailbox
from proctor.records.formatting import format_count
from proctor.records.mail import EvalRequest
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Configuration, EvalResult
from proctor.sessions import current as sessions
from proctor.sessions import telemetry
from proctor.sessions.telemetry.run_tracer import current_run_id

ALIVE_SECONDS = 2.0
# A worker that stops when its mailbox is empty fails if the results' mailbox stays full for this long.
FULL_SECONDS = 60.0


def worker_name() -> str:
    """Return a unique name for this worker, from host and process id."""
    return f"{socket.gethostname()}-{os.getpid()}"


@dataclass(frozen=True)
class WorkerConfig:
    """The mailboxes of a worker, and how it leases requests.

    `lease` is the time in seconds until a request of a dead worker returns; `alive` is a file that
    the worker touches every two seconds; `warn` receives warnings.
    """

    requests: Mailbox[EvalRequest[Any, Any]]
    results: Mailbox[EvalResult] | None = None
    lease: float = 30.0
    name: str = ""
    alive: Path | None = None
    warn: Warn = lambda _: None

    def __post_init__(self) -> None:
        if not self.lease > 0:
            raise ConfigError(f"invalid lease: {self.lease!r}", fix="pass a number of seconds greater than 0")


class _ImmediateWarnings(list[str]):
    """A list that passes on each warning immediately."""

    def __init__(self, warn: Warn) -> None:
        super().__init__()
        self._warn = warn

    def append(self, text: str) -> None:
        super().append(text)
        self._warn(text)


class Worker:
    """Runs trials for other processes, with the engine's trial code.

    Every request is answered, is returned, or becomes available again when its lease expires.
    """

    def __init__(self, setup: Setup, config: WorkerConfig, clock: Clock | None = None) -> None:
        # A failed sample is a result, not a reason to stop; the run itself tracks the budget.
        options = msgspec.structs.replace(setup.options, on_error="continue", max_errors=None, budget=None)
        self._setup = dataclasses.replace(setup, options=options)
        self._config = config
        self._clock = clock or SystemClock()
        self._stop: Callable[[], None] | None = None
        self._stopped = False
        self.expects = describe_setup(setup)

    def stop(self) -> None:
        """Finish the running trials and return the rest; from any thread or signal handler.

        A second call also drops the running trials. A call before `run` ends the next run.
        """
        self._stopped = True
        if self._stop is not None:
            self._stop()

    def _end(self) -> None:
        """Stop because of an error, unless the worker is already stopping."""
        if not self._stopped:
            self.stop()

    async def run(self, until: StopCondition = StopCondition()) -> WorkerSummary:  # noqa: B008 - it is frozen
        """Work until the condition is met or until `stop`; return a summary."""
        config = self._config
        name = config.name or worker_name()
        progress = Progress(name, self._clock, total=None)
        threads = CallThreads()
        warnings_token = sessions.warnings.set(_ImmediateWarnings(config.warn))
        with LeasedRequests(config.lease, config.warn, lambda _: self._end()) as leased:
            outbox = Outbox(
                config.requests,
                config.results,
                leased,
                name,
                config.warn,
                self._end,
                full_seconds=FULL_SECONDS if until.empty else None,
            )
            inbox = Inbox(
                config.requests,
                leased,
                until,
                self.expects,
                config.warn,
                needs_reply_to=config.results is None,
                notices=NoticeSender(self.expects, name),
            )
            try:
                async with telemetry.observe_run(self._describe(name), for_other_runs=True) as observed:
                    local = observed.make_runner(
                        self._setup, lambda setup: TrialRunner(setup, self._clock, threads, progress)
                    )
                    pool = WorkerPool(
                        self._setup.options,
                        inbox,
                        _ReturningRunner(local, outbox, leased),
                        outbox,
                        progress,
                        self._clock,
                        inbox.wait_for_jobs,
                    )
                    async with self._working(pool, inbox):
                        with outbox:
                            await pool.work()
            finally:
                threads.close()
                outbox.summary.returned += leased.return_all()
                sessions.warnings.reset(warnings_token)
        if pool.stop_error is not None:
            raise StopRun(pool.stop_error.what, fix=pool.stop_error.fix)
        if outbox.blocked is not None:
            raise MailboxFull(
                "the mailbox for results is full, and nothing collects them: "
                f"{outbox.blocked.what}; {format_count(outbox.summary.sent, 'result')} sent, "
                f"{format_count(outbox.summary.returned, 'request')} returned",
                where=outbox.blocked.where,
                fix="collect results in another thread or process while the loop runs, or increase the "
                "capacity of their mailbox",
            )
        return outbox.summary

    def _describe(self, name: str) -> RunMetadata:
        """Describe the worker as a run, for tracing tools."""
        return RunMetadata(name, "worker", self._clock.now(), target=self._setup.target.spec)

    @contextlib.asynccontextmanager
    async def _working(self, pool: WorkerPool, inbox: Inbox) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def stop_here() -> None:
            inbox.stop()
            pool.interrupt()

        def stop() -> None:
            # Runs in the loop, because a signal may arrive while this thread holds a lock of the mailbox.
            with contextlib.suppress(RuntimeError):  # The loop is closed: the worker has already stopped.
                loop.call_soon_threadsafe(stop_here)

        token = call_context.set(CallContext(None))
        touching = asyncio.ensure_future(self._touch_alive_file())
        self._stop = stop
        if self._stopped:
            stop()
        try:
            async with resource_scope.ResourceScope(), inbox:
                yield
        finally:
            self._stop, self._stopped = None, False
            touching.cancel()
            call_context.reset(token)
            await self._setup.target.close()

    async def _touch_alive_file(self) -> None:
        """Show that the loop is running; warn once about a file that cannot be touched."""
        has_warned = False
        while self._config.alive is not None:
            try:
                self._config.alive.touch()
                has_warned = False
            except OSError as error:
                if not has_warned:
                    self._config.warn(f"the alive file cannot be touched: {error}")
                has_warned = True
            await asyncio.sleep(ALIVE_SECONDS)


class _ReturningRunner:
    """Runs trials, and returns the request of a dropped trial immediately."""

    max_concurrency = None

    def __init__(self, runner: Runner, outbox: Outbox, leased: LeasedRequests) -> None:
        self._run, self._outbox, self._leased = runner.run, outbox, leased

    async def run(
        self, slot: WorkerSlot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult:
        assert slot.job is not None
        current_run_id.set(self._leased.get(slot.job[0]).request.run_id)
        try:
            result = self._run(slot, sample, configuration, epoch)
            return result if isinstance(result, EvalResult) else await result
        except asyncio.CancelledError:
            if slot.job is not None:
                self._outbox.return_request(slot.job[0])
            raise
