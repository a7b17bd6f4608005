"""A worker: takes requests out of a mailbox, runs and scores them here, and answers."""

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

from proctor.core import lifetimes
from proctor.core.clock import Clock, SystemClock
from proctor.core.threads import Threads
from proctor.distributed.expected_results import expectation
from proctor.distributed.inbox import Inbox, Until
from proctor.distributed.leased_messages import Held, Trouble
from proctor.distributed.notices import NoticeSender
from proctor.distributed.outbox import Outbox, Tally
from proctor.engine.crew import Crew
from proctor.engine.limits import Slot
from proctor.engine.plan import Setup
from proctor.engine.progress import Progress
from proctor.engine.trial import Runner, TrialRunner
from proctor.errors import ConfigError, MailboxFull, StopRun
from proctor.models.asking import Conditions, conditions
from proctor.ports import Mailbox
from proctor.records.mail import EvalRequest
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Configuration, EvalResult
from proctor.sessions import current as sessions
from proctor.sessions import telemetry

ALIVE_SECONDS = 2.0
# A worker that ends when nothing is left to do fails if the results' mailbox has no room this long.
FULL_SECONDS = 60.0


def worker_name() -> str:
    """A name that tells this worker from others: the machine's and the process's."""
    return f"{socket.gethostname()}-{os.getpid()}"


@dataclass(frozen=True)
class Post:
    """Where a worker gets its requests, where its results go, and how it holds what it takes.

    `lease` is how many seconds a request stays with a worker that gives no sign of life; `alive`
    is a file that is touched every other second.
    """

    requests: Mailbox[EvalRequest[Any, Any]]
    results: Mailbox[EvalResult] | None = None
    lease: float = 30.0
    name: str = ""
    alive: Path | None = None
    trouble: Trouble = lambda _: None

    def __post_init__(self) -> None:
        if not self.lease > 0:
            raise ConfigError(f"the lease is {self.lease!r}", fix="give a number of seconds above 0")


class _Told(list[str]):
    """Warnings that are told as soon as they arise; each is put in once."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self._trouble = trouble

    def append(self, text: str) -> None:
        super().append(text)
        self._trouble(text)


class Worker:
    """Runs trials for others, with the engine's own trial code.

    Whatever happens to a sample, its request is answered, returned, or comes back by itself when
    the lease is over.
    """

    def __init__(self, setup: Setup, post: Post, clock: Clock | None = None) -> None:
        # One failing sample is an answer, and no reason to stop; what is spent the run counts.
        options = msgspec.structs.replace(setup.options, on_error="continue", max_errors=None, budget=None)
        self._setup = Setup(target=setup.target, evaluators=setup.evaluators, options=options)
        self._post = post
        self._clock = clock or SystemClock()
        self._stop: Callable[[], None] | None = None
        self._stopped = False
        self.expects = expectation(setup)

    def stop(self) -> None:
        """Finish what is being run and return the rest; from any thread or signal handler.

        Told a second time, it drops what is being run too. Before `run` it ends the next run.
        """
        self._stopped = True
        if self._stop is not None:
            self._stop()

    def _end(self) -> None:
        """Stop because it cannot work any more, if nobody has said so yet."""
        if not self._stopped:
            self.stop()

    async def run(self, until: Until = Until()) -> Tally:  # noqa: B008 - it is frozen
        """Work until there is enough, or until `stop`; says what was done."""
        post = self._post
        name = post.name or worker_name()
        progress = Progress(name, self._clock, total=None)
        threads = Threads()
        warned = sessions.warnings.set(_Told(post.trouble))
        with Held(post.lease, post.trouble, lambda _: self._end()) as held:
            outbox = Outbox(
                post.requests,
                post.results,
                held,
                name,
                post.trouble,
                self._end,
                full_seconds=FULL_SECONDS if until.empty else None,
            )
            inbox = Inbox(
                post.requests,
                held,
                until,
                self.expects,
                post.trouble,
                needs_reply_to=post.results is None,
                notices=NoticeSender(self.expects, name),
            )
            try:
                async with telemetry.observing(self._as_run(name), for_others=True) as observed:
                    evaluators = observed.evaluators(self._setup.evaluators)
                    setup = dataclasses.replace(self._setup, evaluators=evaluators)
                    here = observed.runner(TrialRunner(setup, self._clock, threads, progress))
                    runner = _Returning(here, outbox, held)
                    crew = Crew(setup.options, inbox, runner, outbox, progress, self._clock, inbox.more)
                    async with self._at_work(crew, inbox):
                        with outbox:
                            await crew.work()
            finally:
                threads.close()
                outbox.tally.returned += held.give_back_all()
                sessions.warnings.reset(warned)
        if crew.told is not None:
            raise StopRun(crew.told.what, fix=crew.told.fix)
        if outbox.blocked is not None:
            raise MailboxFull(
                "the mailbox of the results is full and nothing collects them: "
                f"{outbox.blocked.what}; {outbox.tally.sent} results were sent, "
                f"{outbox.tally.returned} requests returned",
                where=outbox.blocked.where,
                fix="collect results in another thread or process while the loop runs, or give "
                "their mailbox a larger capacity",
            )
        return outbox.tally

    def _as_run(self, name: str) -> RunMetadata:
        """The worker as tracing tools show it: a run of its own, which lasts as long as it does."""
        return RunMetadata(name, "worker", self._clock.now(), target=self._setup.target.spec)

    @contextlib.asynccontextmanager
    async def _at_work(self, crew: Crew, inbox: Inbox) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def stop_here() -> None:
            inbox.stop()
            crew.interrupt()

        def stop() -> None:
            # In the loop, for a signal may come while this thread holds a lock of the mailbox.
            with contextlib.suppress(RuntimeError):  # the loop is closed: it has stopped already
                loop.call_soon_threadsafe(stop_here)

        told = conditions.set(Conditions(None))
        watching = asyncio.ensure_future(self._show_life())
        self._stop = stop
        if self._stopped:
            stop()
        try:
            async with lifetimes.in_use(), inbox:
                yield
        finally:
            self._stop, self._stopped = None, False
            watching.cancel()
            conditions.reset(told)
            await self._setup.target.close()

    async def _show_life(self) -> None:
        """Show that the loop turns; a file that cannot be touched is told once, and tried again."""
        is_told = False
        while self._post.alive is not None:
            try:
                self._post.alive.touch()
                is_told = False
            except OSError as error:
                if not is_told:
                    self._post.trouble(f"the alive file cannot be touched: {error}")
                is_told = True
            await asyncio.sleep(ALIVE_SECONDS)


class _Returning:
    """Runs trials; the request of one that is dropped goes back at once."""

    hands = None

    def __init__(self, runner: Runner, outbox: Outbox, held: Held) -> None:
        self._run = runner.run
        self._outbox = outbox
        self._held = held

    async def run(
        self, slot: Slot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult:
        """Run and score one sample."""
        assert slot.job is not None
        telemetry.belongs_to.set(self._held.find(slot.job[0]).request.run_id)
        try:
            return await self._run(slot, sample, configuration, epoch)
        except asyncio.CancelledError:
            if slot.job is not None:
                self._outbox.give_back(slot.job[0])
            raise
