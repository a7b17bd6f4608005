"""Run one trial: call the target within its timeout, then run every evaluator."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import copy_context
from datetime import datetime
from time import monotonic
from typing import Any, NamedTuple, Protocol

import msgspec

from proctor.core import stopwatch
from proctor.core.clock import Clock
from proctor.core.isolation import UserCall, outside_task, without_task
from proctor.core.private_copy import private_copies
from proctor.core.retry_policy import is_retryable_error, trial_backoff_seconds
from proctor.core.threads import CallThreads, compute
from proctor.engine import timeouts as limits
from proctor.engine.cache import JSON_STARTS, CachedReply, Call, OutputCache, is_data, may_hold_messages, read_reply
from proctor.engine.output_limits import OutputLimits
from proctor.engine.peer_trials import NoPeers, PeerTrials, configuration_only
from proctor.engine.plan import Setup
from proctor.engine.progress import Progress
from proctor.engine.timeouts import CallScope, CallTimer, RunningJob, WorkerSlot, current_scope
from proctor.errors import StopRun
from proctor.evaluators.score_conversion import as_error
from proctor.models.model_calls import call_context
from proctor.ports import AttachedEvaluator, ByteStore, SampleEvaluators
from proctor.records.sample import Sample
from proctor.records.score import Score, make_passed_scores
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Reply, Trial
from proctor.sessions import current as sessions

# A target cannot modify inputs of these types.
_IMMUTABLE = frozenset((str, int, float, bool, bytes, type(None)))
MESSAGE_LENGTH = 2_000
TRACEBACK_FRAMES = 6
BLOCKED = "it blocked the event loop past its timeout"


def to_ms(seconds: float) -> float:
    """Return a duration in milliseconds, to the microsecond: more digits are noise and take space.

    >>> to_ms(0.0123456789)
    12.345
    """
    return int(seconds * 1e6) / 1e3


class Runner(Protocol):
    """Runs jobs for the workers, at most `max_concurrency` concurrently if it is set."""

    @property
    def max_concurrency(self) -> int | None: ...

    def run(
        self, slot: WorkerSlot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult | Awaitable[EvalResult]: ...


class TrialRunner:
    """Runs trials in this process. Every trial returns a result, whatever user code does."""

    max_concurrency = None

    def __init__(
        self,
        plan: Setup,
        clock: Clock,
        threads: CallThreads,
        progress: Progress,
        cache: OutputCache | None = None,
        responses: ByteStore | None = None,
        rng: random.Random | None = None,
        peers: PeerTrials | None = None,
    ) -> None:
        self._peers = peers or configuration_only(plan.evaluators)
        self._is_replay = plan.target.spec.kind == "recorded"
        self._clock, self._now = clock, clock.now
        self._progress = progress
        self._options = plan.options
        self._timeout = plan.options.timeout
        call: Call = plan.target.call
        if plan.target.blocking:
            call = _call_in_thread(call, threads)
        self._call = call if cache is None else cache.wrap(call, clock)
        self._threads = threads
        self._limits = OutputLimits(plan.options, threads)
        timeout = plan.options.evaluator_timeout
        self._score = Scorer(plan.evaluators, timeout, threads, progress, responses, plan.checks)
        self._passed_scores = make_passed_scores(self._score.names)
        self._rng = rng or random.Random()

    def run(
        self, slot: WorkerSlot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult | Awaitable[EvalResult]:
        """Run one sample in one configuration, and score the output.

        Returns the result directly if nothing had to wait, which avoids most of the overhead for a fast target.
        """
        if self._peers is not None or sample.evaluators:
            return self._run_with_peers(self._peers or NoPeers(), slot, sample, configuration, epoch)
        # Python calls local names and methods faster than attributes that hold a function.
        now, monotonic = self._now, slot.monotonic
        started_at = now()
        # The same as `_start`, inlined because every trial runs it: change both.
        private = sample if type(sample.input) in _IMMUTABLE else _copy_input(sample)
        scope = CallScope(slot, self._call, private, configuration.options, epoch)
        call = UserCall(scope.call_target)
        reply = call.value
        if (
            call.ended
            and type(reply) is str
            and len(reply) <= self._limits.safe_length
            and scope.used_session is None
            and self._score.is_inline
            and not reply.startswith(JSON_STARTS)
        ):
            slot.end_call()
            seconds = monotonic() - scope.started_at
            if seconds <= slot.seconds:
                trial = Trial(sample, reply, None, to_ms(seconds), started_at, configuration.name, epoch)
                scores = self._score.score_inline(trial)
                result = EvalResult(trial, scores)
                if scores == self._passed_scores or not self._limits.needs_check(result):
                    return result
                return self._limits.limit_result(result)
        return self._run(slot, sample, configuration, epoch, started_at, call, scope)

    async def _run(
        self,
        slot: WorkerSlot,
        sample: Sample[Any, Any],
        configuration: Configuration,
        epoch: int,
        started_at: datetime,
        call: UserCall,
        scope: CallScope,
    ) -> EvalResult:
        trial, stored = await self._trial(slot, sample, configuration, epoch, started_at, call, scope)
        return await self._scored(stored, trial)

    async def _run_with_peers(
        self, peers: PeerTrials, slot: WorkerSlot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult:
        peer_slot = peers.open_slot(sample.id, configuration, epoch)
        try:
            started_at = self._clock.now()
            call, scope = self._start(slot, sample, configuration, epoch)
            trial, stored = await self._trial(slot, sample, configuration, epoch, started_at, call, scope)
            return await self._scored(stored, await peer_slot.add_peers(trial))
        finally:
            peer_slot.close()

    async def _scored(self, stored: Trial, visible: Trial) -> EvalResult:
        """Score a trial; the trial that evaluators see may contain more than the stored trial."""
        score = self._score.for_sample(stored.sample)
        if stored.error is not None:
            result = EvalResult(stored)
        elif score.is_inline and stored.output is visible.output:
            result = EvalResult(stored, score.score_inline(visible))
        else:
            in_threads = stored.output is not visible.output
            result = EvalResult(stored, *await score(visible, in_threads=in_threads))
        return await self._limits.limit_result(result) if self._limits.needs_check(result) else result

    def _start(
        self, slot: WorkerSlot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> tuple[UserCall, CallScope]:
        """Call the target; the call may have ended when this returns."""
        private = sample if type(sample.input) in _IMMUTABLE else _copy_input(sample)
        scope = CallScope(slot, self._call, private, configuration.options, epoch)
        return UserCall(scope.call_target), scope

    async def _trial(
        self,
        slot: WorkerSlot,
        sample: Sample[Any, Any],
        configuration: Configuration,
        epoch: int,
        started_at: datetime,
        call: UserCall,
        scope: CallScope,
    ) -> tuple[Trial, Trial]:
        """Wait for the target, with retries; return the trial for evaluators and the trial to store."""
        attempt, usage = 1, None
        while True:
            reply, failure, seconds = await self._finish_call(slot, sample, call, scope)
            if scope.recorded is not None:
                usage = _add_usage(usage, scope.recorded)
            if failure is None or attempt > self._options.retries or not is_retryable_error(failure):
                break
            await self._back_off(slot, attempt, failure)
            attempt += 1
            call, scope = self._start(slot, sample, configuration, epoch)
        trial = Trial(
            sample,
            reply,
            None if failure is None else describe_failure(failure, self._timeout),
            to_ms(seconds),
            started_at,
            configuration.name,
            epoch,
            attempt,
            usage,
            scope.recorded,
        )
        if type(reply) is not str or len(reply) > self._limits.safe_length:
            # isinstance would read __class__ of the user's object.
            if issubclass(type(reply), Reply):
                trial = self._apply_reply(trial, reply)
            trial, stored = await self._limits.limit_output(trial)
        else:
            stored = trial
        if trial.session is not None and trial.error is None:
            sessions.note_cut_off(trial.session)
        return trial, stored

    async def _finish_call(
        self, slot: WorkerSlot, sample: Sample[Any, Any], call: UserCall, scope: CallScope
    ) -> tuple[Any, BaseException | None, float]:
        """Wait for a call; return the reply or the failure, and the duration in seconds."""
        try:
            slot.call = call
            scope.since = monotonic()
            await call.wait()
        finally:
            slot.end_call()
        seconds = slot.monotonic() - scope.started_at
        in_time = seconds - scope.waited <= slot.seconds or self._was_delayed(call, scope, seconds)
        if call.ended and scope.seconds_in_thread is not None:
            seconds = scope.seconds_in_thread
        if call.error is not None or call.expired or not in_time:
            return None, self._get_failure(call), seconds
        reply = call.value
        failure = None if type(reply) is str else _check_reply(reply)
        if failure is not None:
            return None, failure, seconds
        if may_hold_messages(reply):
            reply = await self._read_messages(reply, sample, scope.recorded)
        return reply, None, seconds

    def _apply_reply(self, trial: Trial, reply: Reply) -> Trial:
        if reply.usage is not None:
            usage = sessions.check_usage(reply.usage, "the target")
            if usage is not reply.usage:
                reply = msgspec.structs.replace(reply, usage=None if usage == Usage() else usage)
        return msgspec.structs.replace(
            trial,
            output=reply.output,
            # The time to look up a recording is not the target's latency.
            latency_ms=reply.latency_ms if reply.latency_ms is not None or self._is_replay else trial.latency_ms,
            usage=reply.usage or trial.usage,
            # Live events contain more than an empty recorded session.
            session=reply.session or trial.session or reply.session,
            cached=type(reply) is CachedReply,
            raw_output=reply.raw_output,
        )

    def _was_delayed(self, call: UserCall, scope: CallScope, seconds: float) -> bool:
        """True if a call was late only because other code blocked the event loop."""
        blocked = limits.loop_lag().blocked(scope.since, call.ended_at)
        return seconds - scope.waited - blocked <= scope.seconds

    async def _read_messages(self, reply: Any, sample: Sample[Any, Any], recorded: Session | None) -> Any:
        """Turn the messages in an output into a session.

        User objects are read in a thread and within the timeout: reading an attribute may run any code.
        """
        if is_data(reply):
            return outside_task(read_reply, reply, sample, recorded)
        call = UserCall(self._threads.run, read_reply, reply, sample, recorded)
        if self._timeout is not None:
            call.limit(self._timeout, limits.GRACE_SECONDS)
        await call.wait()
        if call.expired:
            sessions.warn(
                f"the messages in an output could not be read within {self._timeout:g} s, so there "
                "is no session. Fix: return the messages as plain data: lists and mappings"
            )
        return reply if call.expired or call.error is not None else call.value

    async def _back_off(self, slot: WorkerSlot, attempt: int, failure: BaseException) -> None:
        delay = trial_backoff_seconds(attempt, self._options.retry_delay, failure, self._rng)
        slot.is_idle = True
        if self._progress.stopping and slot.task is not None:
            # The run is stopping and cancels jobs that wait before a retry.
            slot.task.cancel()
        await self._clock.sleep(delay)
        slot.is_idle = False

    def _get_failure(self, call: UserCall) -> BaseException:
        if isinstance(call.error, StopRun):
            raise call.error
        if call.expired:
            return TargetTimeout("it kept running after it was cancelled" if call.given_up else "")
        return TargetTimeout(BLOCKED) if call.error is None else call.error


def _copy_input(sample: Sample[Any, Any]) -> Sample[Any, Any]:
    """Copy the input, so that a target that modifies it does not change other trials or the history."""
    try:
        return msgspec.structs.replace(sample, input=private_copies([sample.input])[0])
    except Exception as error:
        sessions.warn(
            "the input of a sample cannot be copied, so a target that changes it changes it for "
            f"later trials as well ({type(error).__name__})"
        )
        return sample


def _check_reply(reply: Any) -> TypeError | None:
    # isinstance would read __class__ of the user's object.
    if issubclass(type(reply), Iterator | AsyncIterator):
        return TypeError(
            f"the target returned a {type(reply).__name__}, which can be read only once. Fix: "
            "return the text or a list, for example ''.join(...)"
        )
    if not issubclass(type(reply), Reply):
        return None
    if isinstance(reply.usage, Usage | None) and isinstance(reply.session, Session | None):
        return None
    return TypeError("a Reply's usage is a Usage and its session a Session, or None")


def _add_usage(total: Usage | None, session: Session) -> Usage | None:
    """Add the usage of one attempt; ignore a session whose usage is malformed."""
    try:
        for call in session[ModelCall]:
            sessions.check_usage(call.usage, f"a call of {call.model}")
        usage = session.known_usage()
    except (TypeError, AttributeError):
        return total
    return usage if total is None or usage is None else total + usage


def _call_in_thread(call: Callable[..., Any], threads: CallThreads) -> Call:
    run = threads.run

    def start(*args: Any) -> Awaitable[Any]:
        scope = current_scope()
        return run(call, *args) if scope is None else run(scope.call_timed, call, *args)

    return start


class Step(NamedTuple):
    """One evaluator, or one of several evaluators of a field."""

    label: str
    mode: str
    score: Callable[[Trial], Any]
    field: str | None = None


class Scorer:
    """Runs the evaluators of a plan: inline evaluators in turn, the others concurrently."""

    def __init__(
        self,
        evaluators: tuple[AttachedEvaluator, ...],
        timeout: float | None,
        threads: CallThreads,
        progress: Progress,
        responses: ByteStore | None = None,
        checks: SampleEvaluators | None = None,
    ) -> None:
        self._attached, self._checks = evaluators, checks
        self._responses = responses
        self._evaluators = [(e.spec.name, e.group) for e in evaluators]
        self.names = tuple(e.spec.name for e in evaluators)
        self._steps = [step for evaluator in evaluators for step in list_steps(evaluator)]
        self._inline = [(e.spec.name, e.score) for e in evaluators]
        self.is_inline = not progress.has_listeners and all(e.mode == "inline" for e in evaluators)
        # Built-in evaluators run no user code on strings, so they need no isolation.
        self._is_builtin = all(e.is_builtin for e in evaluators)
        self._timeout = timeout
        self._threads = threads
        self._progress = progress
        progress.expect(len(self._steps))

    def for_sample(self, sample: Sample[Any, Any]) -> Scorer:
        """Return the scorer of a sample: this one, unless the sample has evaluators of its own."""
        if not sample.evaluators or self._checks is None:
            return self
        evaluators = (*self._attached, *self._checks(sample))
        return Scorer(evaluators, self._timeout, self._threads, self._progress, self._responses)

    def score_inline(self, trial: Trial) -> dict[str, Score]:
        """Score a trial when all evaluators are inline and there are no progress callbacks."""
        if self._is_builtin and type(trial.output) is type(trial.sample.expected) is str:
            return {name: score(trial) for name, score in self._inline}  # type: ignore[misc]
        return without_task(self._score_isolated, trial)

    def _score_isolated(self, trial: Trial) -> dict[str, Score]:
        return {name: copy_context().run(score, trial) for name, score in self._inline}  # type: ignore[misc]

    async def __call__(self, trial: Trial, *, in_threads: bool = False) -> tuple[dict[str, Score], dict[str, Session]]:
        """Return the scores in the order of the evaluators, and the sessions of their model calls.

        `in_threads` also runs inline evaluators in threads, with a timeout: the output is a user
        object, and comparing or printing it may run any code.
        """
        concurrent_steps = [step for step in self._steps if in_threads or step.mode != "inline"]
        judging = {step.label: Session() for step in concurrent_steps}
        calls = {step.label: self._start(step, trial, judging[step.label]) for step in concurrent_steps}
        scores: dict[str, Score] = {}
        try:
            for step in self._steps:
                if self._progress.has_listeners:
                    self._progress.evaluator_start(trial, step.label, step.field)
                started = calls.get(step.label)
                score = outside_task(step.score, trial) if started is None else await self._finish(*started)
                scores[step.label] = score
                if self._progress.has_listeners:
                    self._progress.evaluator_end(trial, step.label, score, step.field)
        except StopRun:
            # The other calls are already paid for, so their responses go to the cache.
            for call, _ in calls.values():
                await call.wait()
            raise
        finally:
            for call, _ in calls.values():
                call.abandon()
        combined = {
            name: scores[name]
            if group is None
            else outside_task(group.rule, {part: scores[f"{name}.{part}"] for part in group.parts})
            for name, group in self._evaluators
        }
        return combined, {name: session for name, session in judging.items() if len(session)}

    def _start(self, step: Step, trial: Trial, session: Session) -> tuple[UserCall, CallTimer | None]:
        """Start an evaluator; its model calls are recorded in `session`.

        Its timer stops while it waits for a rate limit.
        """
        timer = None if self._timeout is None else CallTimer(self._timeout)
        outer = sessions.current.set(session)
        token = None
        if self._responses is not None:
            token = call_context.set(call_context.get()._replace(response_store=self._responses))
        try:
            if timer is not None:
                stopwatch.set_stopwatch(timer)
            if step.mode == "async":
                call = UserCall(step.score, trial)
            else:
                run = compute if step.mode == "compute" else self._threads.run
                call = UserCall(run, step.score, trial)
        finally:
            stopwatch.set_stopwatch(None)
            sessions.current.reset(outer)
            if token is not None:
                call_context.reset(token)
        if timer is not None:
            limits.loop_lag().note_first_step()
            if not call.ended:
                timer.start(call)
        return call, timer

    async def _finish(self, call: UserCall, timer: CallTimer | None) -> Score:
        try:
            await call.wait()
        finally:
            if timer is not None:
                timer.stop()
        if isinstance(call.error, StopRun):
            raise call.error
        if call.expired:
            return Score.error(f"TimeoutError: no verdict within {self._timeout:g} s")
        if isinstance(call.error, asyncio.CancelledError):
            return Score.error("CancelledError: the evaluator was cancelled from inside")
        if call.error is not None:
            return as_error(call.error)
        if timer is not None and timer.is_late(call):
            return Score.error(f"TimeoutError: no verdict within {self._timeout:g} s ({BLOCKED})")
        return call.value  # type: ignore[no-any-return]


def list_steps(evaluator: AttachedEvaluator) -> list[Step]:
    name, group = evaluator.spec.name, evaluator.group
    if group is None:
        return [Step(name, evaluator.mode, evaluator.score)]
    return [Step(f"{name}.{part}", member.mode, member.score, name) for part, member in group.parts.items()]


class TargetTimeout(Exception):
    """The target took longer than its timeout."""


def cancelled_result(job: RunningJob, now: float) -> EvalResult:
    """Return the result of a job whose worker was cancelled by other code in this process."""
    _, sample, configuration, epoch, started_at = job
    message = "the trial was cancelled by something else in this process, not by Proctor"
    trial = Trial(
        sample,
        error=Failure("CancelledError", message),
        latency_ms=to_ms(now - started_at),
        configuration=configuration.name,
        epoch=epoch,
    )
    return EvalResult(trial)


def describe_failure(error: BaseException, timeout: float | None) -> Failure:
    """Turn an exception into data: its type, its message and the last frames of its traceback."""
    if isinstance(error, TargetTimeout):
        note = f" ({error})" if str(error) else ""
        return Failure("TimeoutError", f"the target took longer than {timeout:g} s{note}")
    try:
        message = str(error)
    except BaseException as broken:
        message = f"(its message cannot be read: {type(broken).__name__})"
    if isinstance(error, asyncio.CancelledError) and not message:
        message = "the target was cancelled from inside, not by Proctor"
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    formatted_frames = "".join(traceback.format_list(user_frames[-TRACEBACK_FRAMES:]))
    return Failure(type(error).__name__, message[:MESSAGE_LENGTH], formatted_frames)


_PACKAGE = __file__.rpartition("engine")[0]
