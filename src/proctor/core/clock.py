"""The clock that components receive: wall time in UTC, monotonic durations."""

from __future__ import annotations

import asyncio
import functools
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time, monotonic time and sleep; tests pass a fake clock."""

    def now(self) -> datetime:
        """Return the wall time, in UTC and timezone-aware."""

    def monotonic(self) -> float:
        """Return seconds for durations and deadlines; they never run backwards."""

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""


class SystemClock:
    """The clock of this machine."""

    __slots__ = ()

    # No wrappers, because both are called for every sample.
    now = staticmethod(functools.partial(datetime.now, UTC))
    monotonic = staticmethod(time.perf_counter)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
