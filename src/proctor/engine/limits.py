"""Time-outs: one timer for all workers, so that a call costs nothing to watch."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from proctor.core.isolation import UserCall
from proctor.records.sample import Sample
from proctor.records.trial import Configuration

# How long a call may go on after it was cancelled before it is no longer waited for.
GRACE_SECONDS = 5.0
# How often the loop is looked at, and from which delay on it counts as blocked.
BEAT_SECONDS = 0.05
BLOCKED_SECONDS = 0.05
_MOST_BLOCKS = 1_000


# position, sample, configuration, epoch, when it began
RunningJob = tuple[int, Sample[Any, Any], Configuration, int, float]


class LoopLag:
    """Measures how long the event loop was blocked, so that waiting calls are not charged for it.

    It beats while calls are watched. A beat that comes late means that something blocked the loop
    since the beat before. One beat serves all calls of a loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time, self._call_later = loop.time, loop.call_later
        self._watchers = 0
        self._is_beating = False
        self._beat = 0.0
        # When each block was over, and how long it lasted at most.
        self._blocks: deque[tuple[float, float]] = deque(maxlen=_MOST_BLOCKS)

    def watch(self) -> None:
        """Measure until `forget` was called as often."""
        self._watchers += 1
        if not self._is_beating:
            self._is_beating = True
            self._beat = self._time()
            self._call_later(BEAT_SECONDS, self._tick)

    def forget(self) -> None:
        """One call less depends on it."""
        self._watchers -= 1

    def look(self) -> None:
        """Note a block that has just ended, before anything is decided about a call."""
        now = self._time()
        since = now - self._beat
        if since > BEAT_SECONDS + BLOCKED_SECONDS:
            self._blocks.append((now, since))
            self._beat = now

    def blocked(self, since: float, until: float) -> float:
        """For how many seconds the loop was blocked between two moments, by others.

        A call that blocks the loop itself ends before the block is noted.
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
        self._beat = self._time()
        self._is_beating = self._watchers > 0
        if self._is_beating:
            self._call_later(BEAT_SECONDS, self._tick)


_lags: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopLag] = WeakKeyDictionary()


def loop_lag() -> LoopLag:
    """What measures the running loop."""
    loop = asyncio.get_running_loop()
    found = _lags.get(loop)
    if found is None:
        found = _lags[loop] = LoopLag(loop)
    return found


class Slot:
    """What one worker is doing: its task, its job, and the call that runs, with its deadline.

    `left` is how much of the call's time is left while it waits for a turn at a model.
    """

    __slots__ = ("call", "job", "left", "resting", "task", "until", "watch")

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.job: RunningJob | None = None
        # The call that runs now; the deadline is that of the call.
        self.call: UserCall | None = None
        self.watch: CallWatch | None = None
        self.until = self.left = math.inf
        # True while it waits before another attempt.
        self.resting = False


class CallWatch:
    """Counts the time of one call of a target; stands still while it waits for a turn at a model.

    `waited` is how many seconds it stood still. Others may block the loop from `since` on, when its
    first step was over; `credit` is how many seconds it was given back for that. What an abandoned
    call still does changes nothing for the call that its slot is about now.
    """

    __slots__ = ("_halts", "_monotonic", "_since", "_slot", "credit", "noted", "seconds", "since", "waited")

    def __init__(self, slot: Slot, began: float, seconds: float, monotonic: Callable[[], float]) -> None:
        self._slot, self._monotonic = slot, monotonic
        self.seconds = seconds
        self.noted = ""
        self._halts, self.waited = 0, 0.0
        self.since, self.credit = began, 0.0
        slot.watch = self
        slot.until = began + seconds

    def halt(self) -> None:
        """Stand still from now on; from any thread."""
        self._halts += 1
        slot = self._slot
        if self._halts == 1 and self._counts():
            self._since = self._monotonic()
            slot.left, slot.until = slot.until - self._since, math.inf

    def go_on(self) -> None:
        """Count again, when all who halted it go on."""
        self._halts -= 1
        slot = self._slot
        if self._halts == 0 and self._counts():
            now = self._monotonic()
            self.waited += now - self._since
            slot.until, slot.left = now + slot.left, math.inf

    def end(self) -> None:
        """The call is over."""
        slot = self._slot
        slot.watch, slot.until, slot.left = None, math.inf, math.inf

    def _counts(self) -> bool:
        slot = self._slot
        return slot.watch is self and (slot.call is None or not slot.call.expired)


class CallTimer:
    """Limits the time of one call of an evaluator; stands still while it waits for a model.

    The call is cancelled when its time is over, and given up if it goes on after that.
    """

    __slots__ = (
        "_began", "_call", "_credit", "_halted", "_halts", "_lag", "_left", "_loop", "_since",
        "_timer", "_waited", "noted", "seconds",
    )  # fmt: skip

    def __init__(self, seconds: float) -> None:
        self.seconds = self._left = seconds
        self.noted = ""
        self._halts = 0
        self._halted = self._waited = self._credit = 0.0
        self._lag: LoopLag | None = None
        self._call: UserCall | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._began = self._since = self._loop.time()

    def start(self, call: UserCall) -> None:
        """Watch this call, whose first step is over."""
        self._call = call
        self._since = self._loop.time()
        self._lag = loop_lag()
        self._lag.watch()
        if self._halts == 0:
            spent = self._since - self._began - self._waited
            self._timer = self._loop.call_later(max(0.0, self._left - spent), self._expire)

    def is_late(self, call: UserCall) -> bool:
        """True if a call that ended took longer than it may, not counting what others blocked."""
        taken = call.ended_at - self._began - self._waited
        if taken <= self.seconds:
            return False
        if self._halts > 0:
            taken -= max(0.0, call.ended_at - self._halted)
        lag = self._lag
        blocked = 0.0 if lag is None else lag.blocked(self._since, call.ended_at)
        return taken - blocked > self.seconds

    def halt(self) -> None:
        """Stand still from now on; from any thread."""
        self._here(self._halt)

    def go_on(self) -> None:
        """Count again, when all who halted it go on."""
        self._here(self._go_on)

    def stop(self) -> None:
        """The call is over."""
        if self._call is not None and self._lag is not None:
            self._lag.forget()
        self._call = None
        if self._timer is not None:
            self._timer.cancel()

    def _here(self, change: Callable[[], None]) -> None:
        if asyncio._get_running_loop() is self._loop:
            change()
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(change)

    def _halt(self) -> None:
        self._halts += 1
        if self._halts == 1:
            self._halted = self._loop.time()
        if self._halts == 1 and self._timer is not None and not self._is_over():
            self._left = max(0.0, self._timer.when() - self._loop.time())
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        self._halts -= 1
        if self._halts == 0:
            self._waited += self._loop.time() - self._halted
        if self._halts == 0 and not self._is_over():
            self._timer = self._loop.call_later(self._left, self._expire)

    def _is_over(self) -> bool:
        return self._call is None or self._call.ended or self._call.expired

    def _expire(self) -> None:
        if self._call is None or self._call.ended:
            return
        assert self._lag is not None
        self._lag.look()
        now = self._loop.time()
        given_back = self._lag.blocked(self._since, now) - self._credit
        if given_back > 0.0:
            # The loop was blocked: the call could not go on.
            self._credit += given_back
            self._timer = self._loop.call_later(given_back, self._expire)
        else:
            self._call.expire()
            self._timer = self._loop.call_later(GRACE_SECONDS, self._call.give_up)


class Deadlines:
    """Cancels a call that runs too long, and ends the wait for one that does not react.

    All calls have the same time, so the next deadline is never nearer than the earliest one known:
    a single timer is enough, however many calls there are.
    """

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._slots: set[Slot] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._lag: LoopLag | None = None

    def watch(self, slot: Slot) -> None:
        """Watch the calls of a worker."""
        self._slots.add(slot)
        if self._lag is None:
            self._lag = loop_lag()
            self._lag.watch()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def forget(self, slot: Slot) -> None:
        """Stop watching a worker: it has ended."""
        self._slots.discard(slot)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
        if self._lag is not None:
            self._lag.forget()
            self._lag = None

    def _look(self) -> None:
        if self._lag is not None:
            self._lag.look()
        now = self._monotonic()
        following = now + self._seconds
        try:
            for slot in tuple(self._slots):
                call = slot.call
                if slot.until <= now and call is not None and not self._give_back(slot, call):
                    self._strike(slot, call, now)
                # One that stands still may go on at any moment.
                following = min(following, slot.until, now + slot.left)
        finally:
            # Whatever a strike led to, the others are still watched.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.001, following - now), self._look)

    def _give_back(self, slot: Slot, call: UserCall) -> bool:
        """Give a call the time in which others blocked the loop; False if there is none."""
        watch = slot.watch
        if self._lag is None or watch is None or call.expired:
            return False
        given_back = self._lag.blocked(watch.since, asyncio.get_running_loop().time())
        given_back -= watch.credit
        if given_back <= 0.0:
            return False
        watch.credit += given_back
        slot.until += given_back
        return True

    def _strike(self, slot: Slot, call: UserCall, now: float) -> None:
        if not call.expired:
            slot.until = now + GRACE_SECONDS
            call.expire()
        else:
            slot.until = math.inf
            call.give_up()
