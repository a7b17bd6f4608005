"""The Ray actor: runs trials for a run in another process."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from proctor.core import imports as importing
from proctor.core import resource_scope
from proctor.core.clock import SystemClock
from proctor.core.threads import CallThreads
from proctor.distributed.expected_results import describe_setup
from proctor.distributed.worker import worker_name
from proctor.engine.plan import Setup
from proctor.engine.progress import Progress
from proctor.engine.timeouts import Deadlines, WorkerSlot
from proctor.engine.trial import TrialRunner
from proctor.errors import StopRun
from proctor.history.payload import encode_result
from proctor.models.model_calls import CallContext, call_context
from proctor.models.spending import Spending
from proctor.records import codec
from proctor.records.lossless import tag_result
from proctor.records.mail import EvalRequest
from proctor.records.run import RunMetadata, Spent
from proctor.records.trial import EvalResult
from proctor.sessions import current as sessions
from proctor.sessions import telemetry
from proctor.sessions.telemetry.run_tracer import current_run_id


class ActorInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The report of a new actor: its name and code, or the error that prevents it from running."""

    name: str
    expects: str = ""
    problem: str = ""


class TrialResponse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of a request, tagged as in the history, or the reason to stop the run.

    `spent` is the usage of its model calls, if the run has a budget.
    """

    result: EvalResult | None = None
    stop: str = ""
    fix: str = ""
    spent: Spent | None = None
    warnings: list[str] = []


class TrialActor:
    """Runs trials with their timeouts, several concurrently.

    All messages are JSON. `build` is the address of the function that builds the setup from a
    recipe, so that no code is sent.
    """

    def __init__(self, build: str, recipe: bytes) -> None:
        self._build = build
        self._recipe = recipe
        self._clock = SystemClock()
        self._exit_stack = contextlib.AsyncExitStack()

    async def ping(self) -> None:
        """Return once the process runs, which shows that Ray has resources for it."""

    async def prepare(self) -> bytes:
        """Build the setup once; return an `ActorInfo`."""
        name = worker_name()
        try:
            setup: Setup = importing.import_object(self._build)(self._recipe)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            return codec.encode(ActorInfo(name, problem=problem))
        await self._exit_stack.enter_async_context(resource_scope.ResourceScope())
        self._exit_stack.push_async_callback(setup.target.close)
        run = RunMetadata(name, "actor", self._clock.now(), target=setup.target.spec)
        observed = await self._exit_stack.enter_async_context(telemetry.observe_run(run, for_other_runs=True))
        progress, threads = Progress(name, self._clock, total=None), CallThreads()
        self._options = setup.options
        self._runner = observed.make_runner(setup, lambda setup: TrialRunner(setup, self._clock, threads, progress))
        self._timeout = timeout = setup.options.timeout
        self._deadlines = None if timeout is None else Deadlines(timeout, self._clock.monotonic)
        return codec.encode(ActorInfo(name, describe_setup(setup)))

    async def trial(self, data: bytes) -> bytes:
        """Run and score the sample of an `EvalRequest`; return a `TrialResponse`."""
        request: EvalRequest[Any, Any] = codec.decode(data, EvalRequest)
        current_run_id.set(request.run_id)
        budget = self._options.budget
        # Tracked separately for each trial: the response contains its total, and the run adds them up.
        spending = None if budget is None else Spending(budget)
        call_context.set(CallContext(spending))
        warnings: list[str] = []
        sessions.warnings.set(warnings)
        stop_error = None
        try:
            result = tag_result(encode_result(await self._run_with_timeout(request))[1])
        except StopRun as error:
            result, stop_error = None, error
        return codec.encode(
            TrialResponse(
                result,
                stop_error.what if stop_error else "",
                stop_error.fix if stop_error else "",
                None if spending is None else spending.so_far,
                warnings,
            )
        )

    async def close(self) -> None:
        """Close the target and the models."""
        await self._exit_stack.aclose()

    async def _run_with_timeout(self, request: EvalRequest[Any, Any]) -> EvalResult:
        slot = WorkerSlot(self._timeout, self._clock.monotonic)
        sample, configuration, epoch = request.sample, request.configuration, request.epoch
        slot.job = (0, sample, configuration, epoch, self._clock.monotonic())
        if self._deadlines is not None:
            self._deadlines.watch(slot)
        try:
            result = self._runner.run(slot, sample, configuration, epoch)
            return result if isinstance(result, EvalResult) else await result
        finally:
            if self._deadlines is not None:
                self._deadlines.forget(slot)
