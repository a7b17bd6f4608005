"""What lives in a Ray actor: the engine's own trials, for a run that is somewhere else."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import msgspec

from proctor.core import imports as importing
from proctor.core import lifetimes
from proctor.core.clock import SystemClock
from proctor.core.threads import Threads
from proctor.distributed.expected_results import expectation
from proctor.distributed.worker import worker_name
from proctor.engine.limits import Deadlines, Slot
from proctor.engine.plan import Setup
from proctor.engine.progress import Progress
from proctor.engine.trial import TrialRunner
from proctor.errors import StopRun
from proctor.history.payload import written
from proctor.models.asking import Conditions, conditions
from proctor.models.spending import Spending
from proctor.records import codec
from proctor.records.lossless import tagged_result
from proctor.records.mail import EvalRequest
from proctor.records.run import RunMetadata, Spent
from proctor.records.trial import EvalResult
from proctor.sessions import current as sessions
from proctor.sessions import telemetry


class Introduction(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an actor says of itself when it starts: what it runs, or why it cannot."""

    name: str
    expects: str = ""
    problem: str = ""


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What became of a request: its result, tagged as in the history, or why the run must end.

    `spent` is what its model calls used, where the run has a budget.
    """

    result: EvalResult | None = None
    stop: str = ""
    fix: str = ""
    spent: Spent | None = None
    warnings: list[str] = []


class TrialActor:
    """Runs trials within their time, several at once.

    All that goes in and out is JSON. `build` is the address of the function that makes a recipe
    ready, so that no code travels.
    """

    def __init__(self, build: str, recipe: bytes) -> None:
        self._build = build
        self._recipe = recipe
        self._clock = SystemClock()
        self._open = contextlib.AsyncExitStack()

    async def arrive(self) -> None:
        """Answer as soon as there is a process: Ray has found room for it."""

    async def introduce(self) -> bytes:
        """Make the recipe ready, once; gives an `Introduction`."""
        name = worker_name()
        try:
            setup: Setup = importing.load(self._build)(self._recipe)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            return codec.encode(Introduction(name, problem=problem))
        await self._open.enter_async_context(lifetimes.in_use())
        self._open.push_async_callback(setup.target.close)
        run = RunMetadata(name, "actor", self._clock.now(), target=setup.target.spec)
        observed = await self._open.enter_async_context(telemetry.observing(run, for_others=True))
        watched = dataclasses.replace(setup, evaluators=observed.evaluators(setup.evaluators))
        progress = Progress(name, self._clock, total=None)
        self._options = setup.options
        self._runner = observed.runner(TrialRunner(watched, self._clock, Threads(), progress))
        timeout = setup.options.timeout
        self._deadlines = None if timeout is None else Deadlines(timeout, self._clock.monotonic)
        return codec.encode(Introduction(name, expectation(setup)))

    async def trial(self, request: bytes) -> bytes:
        """Run and score the sample of an `EvalRequest`; gives an `Answer`."""
        asked: EvalRequest[Any, Any] = codec.decode(request, EvalRequest)
        telemetry.belongs_to.set(asked.run_id)
        budget = self._options.budget
        # Of its own, for what it adds up to is told with the answer: the run counts.
        spending = None if budget is None else Spending(budget)
        conditions.set(Conditions(spending))
        warned: list[str] = []
        sessions.warnings.set(warned)
        stopped = None
        try:
            result = tagged_result(written(await self._within_its_time(asked))[1])
        except StopRun as told:
            result, stopped = None, told
        return codec.encode(
            Answer(
                result,
                stopped.what if stopped else "",
                stopped.fix if stopped else "",
                None if spending is None else spending.so_far,
                warned,
            )
        )

    async def close(self) -> None:
        """Give back what the target and the models hold."""
        await self._open.aclose()

    async def _within_its_time(self, asked: EvalRequest[Any, Any]) -> EvalResult:
        slot = Slot()
        sample, configuration, epoch = asked.sample, asked.configuration, asked.epoch
        slot.job = (0, sample, configuration, epoch, self._clock.monotonic())
        if self._deadlines is not None:
            self._deadlines.watch(slot)
        try:
            return await self._runner.run(slot, sample, configuration, epoch)
        finally:
            if self._deadlines is not None:
                self._deadlines.forget(slot)
