"""One trial: call the target within its time, then let every evaluator speak."""

from __future__ import annotations

import asyncio
import math
import random
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import copy_context
from time import monotonic
from typing import Any, NamedTuple, Protocol

import msgspec

from proctor.core import stopwatch
from proctor.core.clock import Clock
from proctor.core.isolation import UserCall, outside_task, without_task
from proctor.core.private_copy import private_copies
from proctor.core.threads import Threads
from proctor.engine import limits
from proctor.engine.beside import Beside, alone
from proctor.engine.bounds import Bounds
from proctor.engine.cache import CachedReply, Call, OutputCache, is_data, may_hold_messages, read_reply
from proctor.engine.limits import CallTimer, CallWatch, RunningJob, Slot
from proctor.engine.plan import Setup
from proctor.engine.progress import Progress
from proctor.errors import StopRun
from proctor.evaluators.verdict import as_error
from proctor.models.asking import conditions
from proctor.ports import AttachedEvaluator, FieldGroup, Kept, Target
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Reply, Trial
from proctor.sessions import current as sessions

LONGEST_WAIT = 60.0
PASSING_STATUS = (408, 425, 429)


def is_worth_it(error: BaseException) -> bool:
    """True for errors that may pass by themselves: connections, and what says so of itself
    (`retryable`, or an HTTP `status_code` of 408, 425, 429 or 5xx).

    >>> is_worth_it(ConnectionResetError()), is_worth_it(ValueError())
    (True, False)
    """
    try:
        answers = (getattr(error, "retryable", None), _status_is_worth_it(error))
    except Exception:
        # An attribute of the user's own exception failed.
        return False
    for told in answers:
        if isinstance(told, bool):
            return told
    return isinstance(error, ConnectionError | TimeoutError)


def wait_before(attempt: int, base: float, error: BaseException, chance: random.Random) -> float:
    """Seconds to wait before the next attempt: doubling, with jitter, and never under Retry-After.

    >>> 0.5 <= wait_before(1, 1.0, ConnectionError(), random.Random(0)) <= 1.0
    True
    """
    longest = min(LONGEST_WAIT, base * 2 ** (attempt - 1))
    jittered = chance.uniform(longest / 2, longest)
    try:
        asked = getattr(error, "retry_after", None)
    except Exception:
        return jittered
    if isinstance(asked, int | float) and math.isfinite(asked):
        return max(jittered, min(asked, LONGEST_WAIT))
    return jittered


def _status_is_worth_it(error: BaseException) -> bool | None:
    """What the HTTP status says that clients of model providers put on their errors."""
    status = getattr(error, "status_code", None)
    return status in PASSING_STATUS or status >= 500 if isinstance(status, int) else None


# Inputs of these types cannot be changed by a target.
_UNCHANGEABLE = frozenset((str, int, float, bool, bytes, type(None)))
MESSAGE_LENGTH = 2_000
TRACEBACK_FRAMES = 6
BLOCKED = "it blocked the event loop past its timeout"


class Runner(Protocol):
    """What a worker does with a job; `hands` is how many jobs it takes at once, if it knows."""

    @property
    def hands(self) -> int | None: ...

    async def run(
        self, slot: Slot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult: ...


class TrialRunner:
    """Runs trials here. Whatever the target or an evaluator does, a result comes out."""

    hands = None

    def __init__(
        self,
        plan: Setup,
        clock: Clock,
        threads: Threads,
        progress: Progress,
        cache: OutputCache | None = None,
        kept: Kept | None = None,
        chance: random.Random | None = None,
        others: Beside | None = None,
    ) -> None:
        self._others = others or alone(plan.evaluators)
        self._is_replay = plan.target.spec.kind == "recorded"
        self._clock = clock
        self._monotonic = clock.monotonic
        self._progress = progress
        self._options = plan.options
        self._timeout = plan.options.timeout
        self._seconds = math.inf if self._timeout is None else self._timeout
        call = _caller(plan.target, threads)
        self._call = call if cache is None else cache.around(call, clock)
        self._threads = threads
        self._bounds = Bounds(plan.options, threads)
        timeout = plan.options.evaluator_timeout
        self._score = Scoring(plan.evaluators, timeout, threads, progress, kept)
        self._chance = chance or random.Random()

    async def run(
        self, slot: Slot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult:
        """Run one sample in one configuration, and score what comes out."""
        if self._others is None:
            trial, stored = await self._trial(slot, sample, configuration, epoch)
            if trial.session is not None and trial.error is None:
                sessions.note_cut_off(trial.session)
            if trial is stored and trial.error is None and self._score.is_quick:
                result = EvalResult(trial, self._score.at_once(trial))
                if not self._bounds.needs_a_look(result):
                    return result
                return await self._bounds.settle(result)
            return await self._scored(stored, trial)
        seat = self._others.seat(sample.id, configuration, epoch)
        try:
            trial, stored = await self._trial(slot, sample, configuration, epoch)
            if trial.session is not None and trial.error is None:
                sessions.note_cut_off(trial.session)
            return await self._scored(stored, await seat.joined(trial))
        finally:
            seat.leave()

    async def _scored(self, stored: Trial, as_seen: Trial) -> EvalResult:
        """A trial with its scores; evaluators may see more of it than what is stored."""
        if stored.error is not None:
            result = EvalResult(stored)
        elif self._score.is_quick and stored.output is as_seen.output:
            result = EvalResult(stored, self._score.at_once(as_seen))
        else:
            in_threads = stored.output is not as_seen.output
            result = EvalResult(stored, *await self._score(as_seen, in_threads=in_threads))
        return await self._bounds.settle(result) if self._bounds.needs_a_look(result) else result

    async def _trial(
        self, slot: Slot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> tuple[Trial, Trial]:
        """Call the target, again where that is worth it: the trial, and what is stored of it."""
        started_at = self._clock.now()
        attempt, spent = 1, None
        latency: float | None
        failure: BaseException | None
        while True:
            session = Session()
            sessions.current.set(session)
            began = self._monotonic()
            watch = CallWatch(slot, began, self._seconds, self._monotonic)
            stopwatch.count_with(watch)
            given = sample if type(sample.input) in _UNCHANGEABLE else _copied(sample)
            call = UserCall(self._call, given, configuration.options, epoch)
            if not call.ended:
                watch.since = monotonic()
                await self._wait(slot, call)
            watch.end()
            taken = self._monotonic() - began
            latency = taken * 1000.0
            in_time = taken - watch.waited <= self._seconds or self._was_held_up(call, watch, taken)
            if call.error is None and not call.expired and in_time:
                reply = call.value
                failure = None if type(reply) is str else _fault_of(reply)
                if failure is None and may_hold_messages(reply):
                    reply = await self._read_messages(reply, sample)
            else:
                reply, failure = None, self._failure_of(call)
            if len(session):
                spent = _sum(spent, session)
            if failure is None:
                break
            reply = None
            if attempt > self._options.retries or not is_worth_it(failure):
                break
            await self._rest(slot, attempt, failure)
            attempt += 1
        sessions.current.set(None)
        stopwatch.count_with(None)
        trial = Trial(
            sample,
            reply,
            None if failure is None else describe(failure, self._timeout),
            latency,
            started_at,
            configuration.name,
            epoch,
            attempt,
            spent,
            session if len(session) else None,
        )
        if type(reply) is str and len(reply) <= self._bounds.short:
            return trial, trial
        # Not isinstance, which asks the object itself for its class.
        if issubclass(type(reply), Reply):
            trial = self._with_reply(trial, reply)
        return await self._bounds.output_of(trial)

    def _with_reply(self, trial: Trial, reply: Reply) -> Trial:
        """A trial with what the target says of its output."""
        reply = _with_possible_usage(reply)
        return msgspec.structs.replace(
            trial,
            output=reply.output,
            latency_ms=self._told(reply, trial.latency_ms),
            usage=reply.usage or trial.usage,
            # An empty session was recorded, too; but live events tell more than it does.
            session=reply.session or trial.session or reply.session,
            cached=type(reply) is CachedReply,
            raw_output=reply.raw_output,
        )

    def _told(self, reply: Reply, measured: float | None) -> float | None:
        """How long it took: as the target says, else as measured; looking it up says nothing."""
        if reply.latency_ms is not None or self._is_replay:
            return reply.latency_ms
        return measured

    def _was_held_up(self, call: UserCall, watch: CallWatch, taken: float) -> bool:
        """True if a call was late only because others blocked the event loop."""
        blocked = limits.loop_lag().blocked(watch.since, call.ended_at)
        return taken - watch.waited - blocked <= self._seconds

    async def _read_messages(self, reply: Any, sample: Sample[Any, Any]) -> Any:
        """What a target returned, with the session that its messages tell; as it is without any.

        Objects of the user's are read in a thread, within the time of a call: to ask for an
        attribute may call anything.
        """
        if is_data(reply):
            return outside_task(read_reply, reply, sample)
        call = UserCall(self._threads.run, read_reply, reply, sample)
        if self._timeout is not None:
            call.limit(self._timeout, limits.GRACE_SECONDS)
        await call.wait()
        if call.expired:
            sessions.warn(
                f"the messages in an output could not be read within {self._timeout:g} s, so there "
                "is no session. Fix: return the messages as plain data: lists and mappings"
            )
        return reply if call.expired or call.error is not None else call.value

    async def _rest(self, slot: Slot, attempt: int, failure: BaseException) -> None:
        """Wait before another attempt; a run that stops does not wait for it."""
        delay = wait_before(attempt, self._options.retry_delay, failure, self._chance)
        slot.resting = True
        if self._progress.stopping and slot.task is not None:
            # It would have been dropped with the others, had it failed a moment earlier.
            slot.task.cancel()
        await self._clock.sleep(delay)
        slot.resting = False

    async def _wait(self, slot: Slot, call: UserCall) -> None:
        """Wait for a call of the target, until its deadline."""
        slot.call = call
        try:
            await call.wait()
        finally:
            slot.call = None

    def _failure_of(self, call: UserCall) -> BaseException:
        """Why a call of the target returned nothing, or nothing in time."""
        if isinstance(call.error, StopRun):
            raise call.error
        if call.expired:
            return TimedOut("it kept running after it was cancelled" if call.given_up else "")
        if call.error is not None:
            return call.error
        return TimedOut(BLOCKED)


def _copied(sample: Sample[Any, Any]) -> Sample[Any, Any]:
    """A sample whose input a target may change: other trials and the history keep the original."""
    try:
        return msgspec.structs.replace(sample, input=private_copies([sample.input])[0])
    except Exception as error:
        sessions.warn(
            "the input of a sample cannot be copied, so a target that changes it changes it for "
            f"later trials as well ({type(error).__name__})"
        )
        return sample


def _fault_of(reply: Any) -> TypeError | None:
    """What is wrong with a Reply that a user made by hand: that is the target's failure."""
    # Not isinstance, which asks the object itself for its class.
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


def _with_possible_usage(reply: Reply) -> Reply:
    """A reply without token counts that are impossible."""
    if reply.usage is None:
        return reply
    usage = sessions.checked_usage(reply.usage, "the target")
    if usage is reply.usage:
        return reply
    return msgspec.structs.replace(reply, usage=None if usage == Usage() else usage)


def _sum(spent: Usage | None, session: Session) -> Usage | None:
    """What all attempts used together; a model call whose usage is no Usage tells nothing."""
    try:
        for call in session[ModelCall]:
            sessions.checked_usage(call.usage, f"a call of {call.model}")
        used = session.known_usage()
    except (TypeError, AttributeError):
        return spent
    return used if spent is None or used is None else spent + used


def _caller(target: Target, threads: Threads) -> Call:
    """How the target is called: in place, or in a thread if it blocks."""
    call = target.call
    if target.blocking:
        run = threads.run
        return lambda *asked: run(call, *asked)
    return call


class Step(NamedTuple):
    """One evaluator that is heard: alone, or as one of several of a field."""

    label: str
    mode: str
    score: Callable[[Trial], Any]
    field: str | None = None


class Scoring:
    """All evaluators of a plan: quick ones run at once, those that wait run side by side."""

    def __init__(
        self,
        evaluators: tuple[AttachedEvaluator, ...],
        timeout: float | None,
        threads: Threads,
        progress: Progress,
        kept: Kept | None = None,
    ) -> None:
        self._kept = kept
        self._evaluators = [(e.spec.name, e.group) for e in evaluators]
        self.names = tuple(e.spec.name for e in evaluators)
        self._steps = [step for evaluator in evaluators for step in steps_of(evaluator)]
        self._quick = [(e.spec.name, e.score) for e in evaluators]
        self.is_quick = not progress.has_listeners and all(e.mode == "inline" for e in evaluators)
        # No code of the user's runs when these judge texts, so nothing has to be kept apart.
        self._is_own = all(e.is_own for e in evaluators)
        self._timeout = timeout
        self._threads = threads
        self._progress = progress
        progress.expect(len(self._steps))

    def at_once(self, trial: Trial) -> dict[str, Score]:
        """Every evaluator's score, where all are quick and nobody listens."""
        if self._is_own and type(trial.output) is type(trial.sample.expected) is str:
            return {name: score(trial) for name, score in self._quick}  # type: ignore[misc]
        return without_task(self._each_at_once, trial)

    def _each_at_once(self, trial: Trial) -> dict[str, Score]:
        return {name: copy_context().run(score, trial) for name, score in self._quick}  # type: ignore[misc]

    async def __call__(
        self, trial: Trial, *, in_threads: bool = False
    ) -> tuple[dict[str, Score], dict[str, Session]]:
        """Every evaluator's score, in the order of their definition, and what they asked models.

        With `in_threads` quick evaluators run in threads too, within their time: the output is an
        object of the user's, and to compare or show it calls code of the user's.
        """
        waits = [step for step in self._steps if in_threads or step.mode != "inline"]
        heard = {step.label: Session() for step in waits}
        calls = {step.label: self._begin(step, trial, heard[step.label]) for step in waits}
        scores: dict[str, Score] = {}
        try:
            for step in self._steps:
                if self._progress.has_listeners:
                    self._progress.evaluator_start(trial, step.label, step.field)
                begun = calls.get(step.label)
                scores[step.label] = (
                    outside_task(step.score, trial) if begun is None else await self._score_of(*begun)
                )
                if self._progress.has_listeners:
                    said = scores[step.label]
                    self._progress.evaluator_end(trial, step.label, said, step.field)
        except StopRun:
            # What the others are answered is paid for: it is kept, where answers are.
            for call, _ in calls.values():
                await call.wait()
            raise
        finally:
            for call, _ in calls.values():
                call.abandon()
        together = {name: _together(name, group, scores) for name, group in self._evaluators}
        return together, {name: session for name, session in heard.items() if len(session)}

    def _begin(self, step: Step, trial: Trial, session: Session) -> tuple[UserCall, CallTimer | None]:
        """Call an evaluator that waits; what it asks is noted in its own session.

        Its time stands still while it waits for its turn at a model.
        """
        timer = None if self._timeout is None else CallTimer(self._timeout)
        outer = sessions.current.set(session)
        terms = None
        if self._kept is not None:
            terms = conditions.set(conditions.get()._replace(kept=self._kept))
        try:
            if timer is not None:
                stopwatch.count_with(timer)
            if step.mode == "async":
                call = UserCall(step.score, trial)
            else:
                call = UserCall(self._threads.run, step.score, trial)
        finally:
            stopwatch.count_with(None)
            sessions.current.reset(outer)
            if terms is not None:
                conditions.reset(terms)
        if timer is not None and not call.ended:
            timer.start(call)
        return call, timer

    async def _score_of(self, call: UserCall, timer: CallTimer | None) -> Score:
        """What an evaluator that waits said, within its time."""
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


def steps_of(evaluator: AttachedEvaluator) -> list[Step]:
    """The evaluators to be heard in turn: itself, or those of its field."""
    name, group = evaluator.spec.name, evaluator.group
    if group is None:
        return [Step(name, evaluator.mode, evaluator.score)]
    return [Step(f"{name}.{part}", one.mode, one.score, name) for part, one in group.parts.items()]


def _together(name: str, group: FieldGroup | None, scores: dict[str, Score]) -> Score:
    if group is None:
        return scores[name]
    return outside_task(group.rule, {part: scores[f"{name}.{part}"] for part in group.parts})


class TimedOut(Exception):
    """The target took longer than it may."""


def cancelled_worker(job: RunningJob, now: float) -> EvalResult:
    """The result of a job whose worker was cancelled by something else than the run."""
    _, sample, configuration, epoch, began = job
    message = "the trial was cancelled by something else in this process, not by Proctor"
    trial = Trial(
        sample,
        error=Failure("CancelledError", message),
        latency_ms=(now - began) * 1000.0,
        configuration=configuration.name,
        epoch=epoch,
    )
    return EvalResult(trial)


def describe(error: BaseException, timeout: float | None) -> Failure:
    """An exception as data: what it was, what it said, and the last frames of where."""
    if isinstance(error, TimedOut):
        note = f" ({error})" if str(error) else ""
        return Failure("TimeoutError", f"the target took longer than {timeout:g} s{note}")
    kind = type(error).__name__
    try:
        message = str(error)
    except BaseException as broken:
        message = f"(its message cannot be read: {type(broken).__name__})"
    if isinstance(error, asyncio.CancelledError) and not message:
        message = "the target was cancelled from inside, not by Proctor"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_ENGINE)]
    where = "".join(traceback.format_list(own[-TRACEBACK_FRAMES:]))
    return Failure(kind, message[:MESSAGE_LENGTH], where)


_ENGINE = __file__.rpartition("engine")[0]
