"""Time, handed in: wall time is aware UTC, durations are monotonic."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What anything that needs the time is given."""

    def now(self) -> datetime:
        """The wall clock, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for durations and deadlines."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        ...


class SystemClock:
    """The machine's own clock."""

    __slots__ = ()

    def now(self) -> datetime:
        return datetime.now(UTC)

    # The function itself: it is asked several times for every sample.
    monotonic = staticmethod(time.perf_counter)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
