"""Time-outs: one timer for all workers, so that a call costs nothing to watch."""

from __future__ import annotations

import asyncio
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
    """What one worker is doing: its task, its job, and the call that runs, with its deadline."""

    __slots__ = ("call", "job", "resting", "task", "until")

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.job: RunningJob | None = None
        # The call that runs now; the deadline is that of the call.
        self.call: UserCall | None = None
        self.until = math.inf
        # True while it waits before another attempt.
        self.resting = False


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
                following = min(following, slot.until)
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
