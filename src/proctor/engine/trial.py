"""One trial: call the target within its time, then let every evaluator speak."""

from __future__ import annotations

import asyncio
import math
import random
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from proctor import sessions
from proctor.asking.conditions import conditions
from proctor.clock import Clock
from proctor.engine.beside import Beside, alone
from proctor.engine.cache import CachedReply, Call, OutputCache
from proctor.engine.limits import Slot
from proctor.engine.plan import Setup
from proctor.engine.progress import Progress
from proctor.engine.retry import is_worth_it, wait_before
from proctor.errors import StopRun
from proctor.ports import AttachedEvaluator, FieldGroup, Kept, Target
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Reply, Trial
from proctor.threads import Threads

MESSAGE_LENGTH = 2_000
TRACEBACK_FRAMES = 6


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
        call = _caller(plan.target, threads)
        self._call = call if cache is None else cache.around(call, clock)
        timeout = plan.options.evaluator_timeout
        self._score = Scoring(plan.evaluators, timeout, threads, progress, kept)
        self._chance = chance or random.Random()

    async def run(
        self, slot: Slot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult:
        """Run one sample in one configuration, and score what comes out."""
        if self._others is None:
            return await self._scored(await self._trial(slot, sample, configuration, epoch))
        seat = self._others.seat(slot, sample.id, configuration, epoch)
        try:
            trial = await self._trial(slot, sample, configuration, epoch)
            return await self._scored(trial, await seat.joined(trial))
        finally:
            seat.leave()

    async def _scored(self, trial: Trial, as_seen: Trial | None = None) -> EvalResult:
        """A trial with its scores; evaluators may see more of it than what is kept."""
        if trial.error is not None:
            return EvalResult(trial)
        if self._score.is_quick:
            return EvalResult(trial, self._score.at_once(as_seen or trial))
        return EvalResult(trial, *await self._score(as_seen or trial))

    async def _trial(
        self, slot: Slot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> Trial:
        """Call the target, again where that is worth it: what is left behind in the end."""
        started_at = self._clock.now()
        attempt, spent = 1, None
        latency: float | None
        while True:
            session = Session()
            sessions.current.set(session)
            began = self._monotonic()
            reply, failure = await self._attempt(slot, sample, configuration, epoch, began)
            latency = (self._monotonic() - began) * 1000.0
            if len(session):
                spent = _sum(spent, session)
            if failure is None or attempt > self._options.retries or not is_worth_it(failure):
                break
            delay = wait_before(attempt, self._options.retry_delay, failure, self._chance)
            slot.resting = True
            if self._progress.stopping and slot.task is not None:
                # It would have been dropped with the others, had it failed a moment earlier.
                slot.task.cancel()
            await self._clock.sleep(delay)
            slot.resting = False
            attempt += 1
        sessions.current.set(None)
        cached = False
        if isinstance(reply, Reply):
            cached = type(reply) is CachedReply
            spent, session = reply.usage or spent, reply.session or session
            latency = self._told(reply, latency)
            reply = reply.output
        return Trial(
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
            cached,
        )

    def _told(self, reply: Reply, measured: float) -> float | None:
        """How long it took: as the target says, else as measured; looking it up says nothing."""
        if reply.latency_ms is not None or self._is_replay:
            return reply.latency_ms
        return measured

    async def _attempt(
        self,
        slot: Slot,
        sample: Sample[Any, Any],
        configuration: Configuration,
        epoch: int,
        began: float,
    ) -> tuple[Any, BaseException | None]:
        """Call the target once: what it gave, or why it gave nothing."""
        timeout = self._timeout
        slot.expired = False
        slot.until = math.inf if timeout is None else began + timeout
        reply: Any = None
        failure: BaseException | None = None
        try:
            reply = await self._call(sample, configuration.options, epoch)
            if isinstance(reply, Reply):
                reply = _checked(reply)
        except asyncio.CancelledError as error:
            if slot.abandoned or (not slot.expired and _is_cancelled()):
                raise
            failure = error
        except (KeyboardInterrupt, GeneratorExit, StopRun):
            raise
        except BaseException as error:
            reply, failure = None, error
        finally:
            slot.until = math.inf
        if slot.expired:
            # The time-out was asked of the task; it has been dealt with here.
            _current_task().uncancel()
            return None, TimedOut()
        if failure is None and timeout is not None and self._monotonic() - began > timeout:
            return None, TimedOut(
                "it could not be stopped in time: it blocked the event loop, or came back late"
            )
        return reply, failure


def _checked(reply: Reply) -> Reply:
    """Users make replies by hand; one that does not hold together is the target's failure."""
    if not isinstance(reply.usage, Usage | None) or not isinstance(reply.session, Session | None):
        raise TypeError("a Reply's usage is a Usage and its session a Session, or None")
    if reply.usage is not None:
        usage = sessions.checked_usage(reply.usage, "the target")
        if usage is not reply.usage:
            return msgspec.structs.replace(reply, usage=None if usage == Usage() else usage)
    return reply


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
        self._timeout = timeout
        self._threads = threads
        self._progress = progress
        progress.expect(len(self._steps))

    def at_once(self, trial: Trial) -> dict[str, Score]:
        """Every evaluator's score, where all are quick and nobody listens."""
        return {name: score(trial) for name, score in self._quick}  # type: ignore[misc]

    async def __call__(self, trial: Trial) -> tuple[dict[str, Score], dict[str, Session]]:
        """Every evaluator's score, in the order of their definition, and what they asked models."""
        waits = [step for step in self._steps if step.mode != "inline"]
        heard = {step.label: Session() for step in waits}
        waiting = {
            step.label: asyncio.ensure_future(self._wait(step, trial, heard[step.label]))
            for step in waits
        }
        scores: dict[str, Score] = {}
        try:
            for step in self._steps:
                if self._progress.has_listeners:
                    self._progress.evaluator_start(trial, step.label, step.field)
                task = waiting.get(step.label)
                scores[step.label] = step.score(trial) if task is None else await task
                if self._progress.has_listeners:
                    said = scores[step.label]
                    self._progress.evaluator_end(trial, step.label, said, step.field)
        except StopRun:
            # What the others are answered is paid for: it is kept, where answers are.
            await asyncio.gather(*waiting.values(), return_exceptions=True)
            raise
        finally:
            for task in waiting.values():
                task.cancel()
        together = {name: _together(name, group, scores) for name, group in self._evaluators}
        return together, {name: session for name, session in heard.items() if len(session)}

    async def _wait(self, step: Step, trial: Trial, session: Session) -> Score:
        """One evaluator that waits, within its time; what it asks is noted in its own session."""
        sessions.current.set(session)
        if self._kept is not None:
            conditions.set(conditions.get()._replace(kept=self._kept))
        try:
            async with asyncio.timeout(self._timeout):
                if step.mode == "thread":
                    return await self._threads.run(step.score, trial)  # type: ignore[no-any-return]
                return await step.score(trial)  # type: ignore[no-any-return]
        except TimeoutError:
            return Score.error(f"TimeoutError: no verdict within {self._timeout:g} s")
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return Score.error("CancelledError: the evaluator was cancelled from inside")


def steps_of(evaluator: AttachedEvaluator) -> list[Step]:
    """The evaluators to be heard in turn: itself, or those of its field."""
    name, group = evaluator.spec.name, evaluator.group
    if group is None:
        return [Step(name, evaluator.mode, evaluator.score)]
    return [Step(f"{name}.{part}", one.mode, one.score, name) for part, one in group.parts.items()]


def _together(name: str, group: FieldGroup | None, scores: dict[str, Score]) -> Score:
    if group is None:
        return scores[name]
    return group.rule({part: scores[f"{name}.{part}"] for part in group.parts})


class TimedOut(Exception):
    """The target took longer than it may."""


def overrun(slot: Slot, timeout: float | None, now: float) -> EvalResult:
    """The result of a call that went on after it was told to stop."""
    assert slot.job is not None
    _, sample, configuration, epoch, began = slot.job
    trial = Trial(
        sample,
        error=describe(TimedOut("it went on after it was told to stop"), timeout),
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
    except Exception as broken:
        message = f"(its message cannot be read: {type(broken).__name__})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_ENGINE)]
    where = "".join(traceback.format_list(own[-TRACEBACK_FRAMES:]))
    return Failure(kind, message[:MESSAGE_LENGTH], where)


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _is_cancelled() -> bool:
    """True if this task was told to end, rather than its work having cancelled itself."""
    return _current_task().cancelling() > 0


_ENGINE = __file__.rpartition("engine")[0]
