"""Time-outs: one timer for all workers, so that a call costs nothing to watch."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

from proctor.records.sample import Sample
from proctor.records.trial import Configuration

# How long a call may go on after it was told to stop before its worker is given up.
GRACE_SECONDS = 5.0


class Slot:
    """What one worker is doing: its task, what it runs, and until when it may.

    `left` is how much of its time is left while it waits for a turn at a model.
    """

    __slots__ = ("abandoned", "call", "expired", "job", "left", "resting", "task", "until")

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        # position, sample, configuration, epoch, when it began
        self.job: tuple[int, Sample[Any, Any], Configuration, int, float] | None = None
        self.until = self.left = math.inf
        self.call: CallWatch | None = None
        self.expired = False
        self.abandoned = False
        # True while it waits before another attempt.
        self.resting = False


class CallWatch:
    """Counts the time of one call of a target; stands still while it waits for a turn at a model.

    `waited` is how many seconds it stood still. What an abandoned call still does changes nothing
    for the call that its slot is about now.
    """

    __slots__ = ("_halts", "_monotonic", "_since", "_slot", "noted", "seconds", "waited")

    def __init__(
        self, slot: Slot, began: float, timeout: float | None, monotonic: Callable[[], float]
    ) -> None:
        self._slot, self._monotonic = slot, monotonic
        self.seconds = math.inf if timeout is None else timeout
        self.noted = ""
        self._halts, self._since, self.waited = 0, 0.0, 0.0
        slot.call, slot.expired = self, False
        slot.until, slot.left = began + self.seconds, math.inf

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
        slot.call, slot.until, slot.left = None, math.inf, math.inf

    def _counts(self) -> bool:
        return self._slot.call is self and not self._slot.expired


class Deadlines:
    """Cancels a worker whose call runs too long, and gives up one that does not react.

    All calls have the same time, so the next deadline is never nearer than the earliest one known:
    a single timer is enough, however many calls there are.
    """

    def __init__(
        self, seconds: float, monotonic: Callable[[], float], give_up: Callable[[Slot], None]
    ) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._give_up = give_up
        self._slots: set[Slot] = set()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, slot: Slot) -> None:
        """Keep an eye on a worker."""
        self._slots.add(slot)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def forget(self, slot: Slot) -> None:
        """The worker has ended."""
        self._slots.discard(slot)

    def close(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        now = self._monotonic()
        following = now + self._seconds
        try:
            for slot in tuple(self._slots):
                if slot.until <= now:
                    self._strike(slot, now)
                # One that stands still may go on at any moment.
                following = min(following, slot.until, now + slot.left)
        finally:
            # Whatever a strike led to, the others are still watched.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.001, following - now), self._look)

    def _strike(self, slot: Slot, now: float) -> None:
        assert slot.task is not None
        if not slot.expired:
            slot.expired = True
            slot.until = now + GRACE_SECONDS
            slot.task.cancel()
        else:
            slot.abandoned = True
            slot.until = math.inf
            self._slots.discard(slot)
            self._give_up(slot)
