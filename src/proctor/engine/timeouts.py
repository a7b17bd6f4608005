"""Timeouts: one timer watches all workers, so watching a call costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from proctor.core import stopwatch
from proctor.core.isolation import UserCall
from proctor.records.sample import Sample
from proctor.records.session import Session
from proctor.records.trial import Configuration
from proctor.sessions import current as sessions

T = TypeVar("T")

# How long a call may continue after it was cancelled before the run abandons it.
GRACE_SECONDS = 5.0
# The interval between checks of the loop, and the delay after which it counts as blocked.
BEAT_SECONDS = 0.05
BLOCKED_SECONDS = 0.05
_MAX_BLOCKS = 1_000

# Called for every sample.
_set_session, _set_stopwatch = sessions.current.set, stopwatch.set_stopwatch

# The position, sample, configuration, epoch and start time of a job.
RunningJob = tuple[int, Sample[Any, Any], Configuration, int, float]


class LoopLag:
    """Measures how long the event loop was blocked, so that timeouts of waiting calls do not include this time.

    It ticks while calls are watched. A late tick means that something blocked the loop since the previous tick. One
    instance serves all calls of a loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time, self._call_later = loop.time, loop.call_later
        self._watchers = 0
        self._is_ticking = False
        self._last_tick = 0.0
        # When each block ended, and its maximum duration.
        self._blocks: deque[tuple[float, float]] = deque(maxlen=_MAX_BLOCKS)

    def watch(self) -> None:
        """Measure until `forget` has been called as often as `watch`."""
        self._watchers += 1
        if not self._is_ticking:
            self._is_ticking = True
            self._last_tick = self._time()
            self._call_later(BEAT_SECONDS, self._tick)

    def forget(self) -> None:
        self._watchers -= 1

    def look(self) -> None:
        """Record a block that has just ended, before a timeout is decided."""
        now = self._time()
        since = now - self._last_tick
        if since > BEAT_SECONDS + BLOCKED_SECONDS:
            self._blocks.append((now, since))
            self._last_tick = now

    def note_first_step(self) -> None:
        """Record the block of a call that has just taken its first step: calls that wait did not cause it."""
        if self._is_ticking:
            self.look()

    def blocked(self, since: float, until: float) -> float:
        """Return the seconds for which other code blocked the loop between two times.

        A call that blocks the loop itself ends before its block is recorded.
        """
        total = 0.0
        for ended, seconds in reversed(self._blocks):
            if ended <= since:
                break
            if ended <= until:
                total += min(seconds, ended - since)
        return total

    def _tick(self) -> None:
        self.look()
        self._last_tick = self._time()
        self._is_ticking = self._watchers > 0
        if self._is_ticking:
            self._call_later(BEAT_SECONDS, self._tick)


_lags: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopLag] = WeakKeyDictionary()


def loop_lag() -> LoopLag:
    """Return the `LoopLag` of the running loop."""
    loop = asyncio.get_running_loop()
    lag = _lags.get(loop)
    if lag is None:
        lag = _lags[loop] = LoopLag(loop)
    return lag


class WorkerSlot:
    """The state of one worker: its task, its job, and the running call with its deadline.

    `left` is the remaining time of a call that waits for a rate limit.
    """

    __slots__ = ("call", "is_idle", "job", "left", "monotonic", "scope", "seconds", "task", "until")

    def __init__(self, seconds: float | None = None, monotonic: Callable[[], float] = time.perf_counter) -> None:
        # The timeout of each call, and the clock that measures it.
        self.seconds = math.inf if seconds is None else seconds
        self.monotonic = monotonic
        self.task: asyncio.Task[Any] | None = None
        self.job: RunningJob | None = None
        self.call: UserCall | None = None
        self.scope: CallScope | None = None
        self.until = self.left = math.inf
        # True while the worker waits before a retry, or for more jobs.
        self.is_idle = False

    def end_call(self) -> None:
        self.call = self.scope = None
        self.until = self.left = math.inf


class CallScope:
    """The session and the timer of one call of a target, for the code inside the call.

    The timer pauses while the call waits for a rate limit; `waited` counts the paused seconds. After `since`, the end
    of the call's first step, other code may block the loop; `credit` counts the seconds added for that. An abandoned
    call cannot change the deadline of the slot's current call.
    """

    last_failure = ""
    since = waited = credit = _paused_at = 0.0
    _pauses = 0
    # None until something uses the session.
    used_session: Session | None = None
    # The seconds of a blocking call in its thread, without the waits for a thread and for the event loop.
    seconds_in_thread: float | None = None

    def __init__(self, slot: WorkerSlot, *request: Any) -> None:
        # The function of the target, the sample, the options and the epoch.
        self._slot, self._request = slot, request
        slot.scope = self
        monotonic = slot.monotonic
        self.started_at = started_at = monotonic()
        slot.until = started_at + slot.seconds

    def call_target(self) -> Awaitable[Any]:
        """Call the target; its events go to this session and its pauses to this timer.

        The context variables stay set, so this must run in a separate context.
        """
        _set_session(self)
        _set_stopwatch(self)
        # Not `*request`, which Python calls more slowly.
        call, sample, options, epoch = self._request
        return call(sample, options, epoch)  # type: ignore[no-any-return]

    def call_timed(self, function: Callable[..., T], *args: Any) -> T:
        """Call a blocking function and measure it; for the thread of the call."""
        started_at = self._slot.monotonic()
        try:
            return function(*args)
        finally:
            self.seconds_in_thread = self._slot.monotonic() - started_at

    @property
    def seconds(self) -> float:
        """The timeout of the call."""
        return self._slot.seconds

    @property
    def session(self) -> Session:
        """The session, created by the first access from any thread."""
        if self.used_session is None:
            return self.__dict__.setdefault("used_session", Session())  # type: ignore[no-any-return]
        return self.used_session

    @property
    def recorded(self) -> Session | None:
        """The session, or None if it has no events."""
        return self.used_session or None

    def pause(self) -> None:
        """Pause the timer; may be called from any thread."""
        self._pauses += 1
        slot = self._slot
        if self._pauses == 1 and self._is_active():
            self._paused_at = slot.monotonic()
            slot.left, slot.until = slot.until - self._paused_at, math.inf

    def resume(self) -> None:
        """Undo one pause; the timer runs again after the last one."""
        self._pauses -= 1
        slot = self._slot
        if self._pauses == 0 and self._is_active():
            now = slot.monotonic()
            self.waited += now - self._paused_at
            slot.until, slot.left = now + slot.left, math.inf

    def _is_active(self) -> bool:
        slot = self._slot
        return slot.scope is self and (slot.call is None or not slot.call.expired)


def current_scope() -> CallScope | None:
    """Return the scope of the target's call that is running in this context."""
    scope = sessions.current.get()
    return scope if isinstance(scope, CallScope) else None


class CallTimer:
    """Limits the time of one call of an evaluator; pauses while the call waits for a rate limit.

    It cancels the call at its timeout, and abandons it if it still continues.
    """

    __slots__ = (
        "_call",
        "_credit",
        "_lag",
        "_left",
        "_loop",
        "_paused_at",
        "_pauses",
        "_since",
        "_started_at",
        "_timer",
        "_waited",
        "last_failure",
        "seconds",
    )  # fmt: skip

    def __init__(self, seconds: float) -> None:
        self.seconds = self._left = seconds
        self.last_failure = ""
        self._pauses = 0
        self._paused_at = self._waited = self._credit = 0.0
        self._lag: LoopLag | None = None
        self._call: UserCall | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._started_at = self._since = self._loop.time()

    def start(self, call: UserCall) -> None:
        """Watch a call that has taken its first step."""
        self._call = call
        self._since = self._loop.time()
        self._lag = loop_lag()
        self._lag.watch()
        if self._pauses == 0:
            spent = self._since - self._started_at - self._waited
            self._timer = self._loop.call_later(max(0.0, self._left - spent), self._expire)

    def is_late(self, call: UserCall) -> bool:
        """True if a call exceeded its timeout, not counting the time for which other code blocked the loop."""
        seconds = call.ended_at - self._started_at - self._waited
        if seconds <= self.seconds:
            return False
        if self._pauses > 0:
            seconds -= max(0.0, call.ended_at - self._paused_at)
        blocked = 0.0 if self._lag is None else self._lag.blocked(self._since, call.ended_at)
        return seconds - blocked > self.seconds

    def pause(self) -> None:
        """Pause the timer; may be called from any thread."""
        self._run_in_loop(self._pause)

    def resume(self) -> None:
        """Undo one pause; the timer runs again after the last one."""
        self._run_in_loop(self._continue)

    def stop(self) -> None:
        if self._call is not None and self._lag is not None:
            self._lag.forget()
        self._call = None
        if self._timer is not None:
            self._timer.cancel()

    def _run_in_loop(self, change: Callable[[], None]) -> None:
        if asyncio._get_running_loop() is self._loop:
            change()
            return
        with contextlib.suppress(RuntimeError):  # The loop is closed, so nothing waits for the call.
            self._loop.call_soon_threadsafe(change)

    def _pause(self) -> None:
        self._pauses += 1
        if self._pauses > 1:
            return
        self._paused_at = self._loop.time()
        if self._timer is not None and not self._is_over():
            self._left = max(0.0, self._timer.when() - self._paused_at)
            self._timer.cancel()
            self._timer = None

    def _continue(self) -> None:
        self._pauses -= 1
        if self._pauses > 0:
            return
        self._waited += self._loop.time() - self._paused_at
        if not self._is_over():
            self._timer = self._loop.call_later(self._left, self._expire)

    def _is_over(self) -> bool:
        return self._call is None or self._call.ended or self._call.expired

    def _expire(self) -> None:
        if self._call is None or self._call.ended:
            return
        assert self._lag is not None
        self._lag.look()
        credit = self._lag.blocked(self._since, self._loop.time()) - self._credit
        if credit > 0.0:
            # The call could not continue while the loop was blocked.
            self._credit += credit
            self._timer = self._loop.call_later(credit, self._expire)
        else:
            self._call.expire()
            self._timer = self._loop.call_later(GRACE_SECONDS, self._call.give_up)


class Deadlines:
    """Cancels calls that exceed their timeout, and abandons calls that ignore the cancellation.

    All calls have the same timeout, so a new deadline is never earlier than the known ones: a single timer serves any
    number of calls.
    """

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._slots: set[WorkerSlot] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._lag: LoopLag | None = None

    def watch(self, slot: WorkerSlot) -> None:
        self._slots.add(slot)
        if self._lag is None:
            self._lag = loop_lag()
            self._lag.watch()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._check)

    def forget(self, slot: WorkerSlot) -> None:
        self._slots.discard(slot)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._lag is not None:
            self._lag.forget()
            self._lag = None

    def _check(self) -> None:
        if self._lag is not None:
            self._lag.look()
        now = self._monotonic()
        following = now + self._seconds
        try:
            for slot in tuple(self._slots):
                call = slot.call
                if slot.until <= now and call is not None and not self._extend(slot, call):
                    if call.expired:
                        slot.until = math.inf
                        call.give_up()
                    else:
                        slot.until = now + GRACE_SECONDS
                        call.expire()
                # A paused call may continue at any moment.
                following = min(following, slot.until, now + slot.left)
        finally:
            # Even if ending this call failed, watch the others.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.001, following - now), self._check)

    def _extend(self, slot: WorkerSlot, call: UserCall) -> bool:
        """Extend a call by the time for which other code blocked the loop; False if there is none."""
        scope = slot.scope
        if self._lag is None or scope is None or call.expired:
            return False
        credit = self._lag.blocked(scope.since, asyncio.get_running_loop().time()) - scope.credit
        if credit <= 0.0:
            return False
        scope.credit += credit
        slot.until += credit
        return True
