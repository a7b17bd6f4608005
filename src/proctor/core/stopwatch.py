"""Time limits that pause while the work waits for its turn."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol


class Watch(Protocol):
    """Measures the time of some work and can be paused."""

    last_failure: str

    @property
    def seconds(self) -> float: ...
    def halt(self) -> None: ...
    def resume(self) -> None: ...


_running: ContextVar[Watch | None] = ContextVar("proctor_stopwatch", default=None)


class Stopwatch:
    """Raise `TimeoutError` if the work inside takes longer than `seconds`, not counting pauses.

    `seconds` is None for no limit. Pausing this stopwatch also pauses the ones around it.

    >>> async def main() -> str:
    ...     async with Stopwatch(0.05):
    ...         with paused():
    ...             await asyncio.sleep(0.1)
    ...         return "in time"
    >>> asyncio.run(main())
    'in time'
    """

    __slots__ = ("_before", "_halts", "_left", "_loop", "_outer", "_timeout", "last_failure", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        # The last failure, to explain why the work takes long.
        self.last_failure = ""
        self._timeout = asyncio.timeout(seconds)
        self._halts, self._left = 0, 0.0

    async def __aenter__(self) -> Stopwatch:
        await self._timeout.__aenter__()
        self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        self._outer = _running.get()
        self._before = _running.set(self)
        return self

    async def __aexit__(self, *error: Any) -> None:
        _running.reset(self._before)
        self._loop = None
        await self._timeout.__aexit__(*error)

    @property
    def expired(self) -> bool:
        """True if the time limit was reached."""
        return self._timeout.expired()

    def halt(self) -> None:
        """Pause until `resume` is called as often as `halt`."""
        if self._outer is not None:
            self._outer.halt()
        self._halts += 1
        if self._halts == 1 and self._counts():
            self._left = (self._timeout.when() or 0.0) - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def resume(self) -> None:
        """Undo one `halt`; continue after the last one."""
        if self._outer is not None:
            self._outer.resume()
        self._halts -= 1
        if self._halts == 0 and self._counts():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)

    def _counts(self) -> bool:
        """False after the end, and in other threads, which must not touch the timeout."""
        is_here = self._loop is asyncio.get_running_loop()
        return is_here and math.isfinite(self.seconds) and not self._timeout.expired()


def time_limit() -> float | None:
    """Return the time limit of the current work in seconds, or None without a limit.

    >>> time_limit() is None
    True
    """
    watch = _running.get()
    return None if watch is None else watch.seconds


def note_failure(why: str) -> None:
    """Record the last failure for the timeout message; an empty text clears it."""
    watch = _running.get()
    if watch is not None:
        watch.last_failure = why


# Set the stopwatch of the current task, or None for no stopwatch.
set_stopwatch: Callable[[Watch | None], object] = _running.set


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Pause the current stopwatch and the ones around it while waiting for a turn."""
    watch = _running.get()
    if watch is None:
        yield
        return
    watch.halt()
    try:
        yield
    finally:
        watch.resume()
