"""Time-outs: one timer for all workers, so that a call costs nothing to watch."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from typing import Any

from proctor.isolation import UserCall
from proctor.records.sample import Sample
from proctor.records.trial import Configuration

# How long a call may go on after it was cancelled before it is no longer waited for.
GRACE_SECONDS = 5.0


# position, sample, configuration, epoch, when it began
RunningJob = tuple[int, Sample[Any, Any], Configuration, int, float]


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

    `waited` is how many seconds it stood still. What an abandoned call still does changes nothing
    for the call that its slot is about now.
    """

    __slots__ = ("_halts", "_monotonic", "_since", "_slot", "noted", "seconds", "waited")

    def __init__(
        self, slot: Slot, began: float, seconds: float, monotonic: Callable[[], float]
    ) -> None:
        self._slot, self._monotonic = slot, monotonic
        self.seconds = seconds
        self.noted = ""
        self._halts, self.waited = 0, 0.0
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

    __slots__ = ("_call", "_halts", "_left", "_loop", "_timer", "noted", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = self._left = seconds
        self.noted = ""
        self._halts = 0
        self._call: UserCall | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def start(self, call: UserCall) -> None:
        """Count the time of this call from now on."""
        self._call = call
        if self._halts == 0:
            self._timer = self._loop.call_later(self._left, self._expire)

    def halt(self) -> None:
        """Stand still from now on; from any thread."""
        self._here(self._halt)

    def go_on(self) -> None:
        """Count again, when all who halted it go on."""
        self._here(self._go_on)

    def stop(self) -> None:
        """The call is over."""
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
        if self._halts == 1 and self._timer is not None and not self._is_over():
            self._left = max(0.0, self._timer.when() - self._loop.time())
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        self._halts -= 1
        if self._halts == 0 and not self._is_over():
            self._timer = self._loop.call_later(self._left, self._expire)

    def _is_over(self) -> bool:
        return self._call is None or self._call.ended or self._call.expired

    def _expire(self) -> None:
        if self._call is not None:
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

    def watch(self, slot: Slot) -> None:
        """Watch the calls of a worker."""
        self._slots.add(slot)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def forget(self, slot: Slot) -> None:
        """Stop watching a worker: it has ended."""
        self._slots.discard(slot)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        now = self._monotonic()
        following = now + self._seconds
        try:
            for slot in tuple(self._slots):
                if slot.until <= now and slot.call is not None:
                    self._strike(slot, slot.call, now)
                # One that stands still may go on at any moment.
                following = min(following, slot.until, now + slot.left)
        finally:
            # Whatever a strike led to, the others are still watched.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.001, following - now), self._look)

    def _strike(self, slot: Slot, call: UserCall, now: float) -> None:
        if not call.expired:
            slot.until = now + GRACE_SECONDS
            call.expire()
        else:
            slot.until = math.inf
            call.give_up()
