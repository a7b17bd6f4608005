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
    """What one worker is doing: its task, what it runs, and until when it may."""

    __slots__ = ("abandoned", "expired", "job", "resting", "task", "until")

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        # position, sample, configuration, epoch, when it began
        self.job: tuple[int, Sample[Any, Any], Configuration, int, float] | None = None
        self.until = math.inf
        self.expired = False
        self.abandoned = False
        # True while it waits before another attempt.
        self.resting = False


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
                following = min(following, slot.until)
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
