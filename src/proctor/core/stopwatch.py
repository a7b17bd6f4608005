"""Time limits that can be paused, for example while a call waits in a queue."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol


class Watch(Protocol):
    """A time limit that can be paused."""

    last_failure: str

    @property
    def seconds(self) -> float: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


_running: ContextVar[Watch | None] = ContextVar("proctor_stopwatch", default=None)


class Stopwatch:
    """Raise `TimeoutError` if the work inside takes longer than `seconds`, not counting pauses.

    `seconds` is None for no limit. Pausing this stopwatch also pauses the enclosing ones.
    """

    __slots__ = ("_left", "_loop", "_outer", "_pauses", "_timeout", "_token", "last_failure", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        # The last failure, to explain why the work takes long.
        self.last_failure = ""
        self._timeout = asyncio.timeout(seconds)
        self._pauses, self._left = 0, 0.0

    async def __aenter__(self) -> Stopwatch:
        await self._timeout.__aenter__()
        self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        self._outer = _running.get()
        self._token = _running.set(self)
        return self

    async def __aexit__(self, *error: Any) -> None:
        _running.reset(self._token)
        self._loop = None
        await self._timeout.__aexit__(*error)

    @property
    def expired(self) -> bool:
        """True if the time limit was reached."""
        return self._timeout.expired()

    def pause(self) -> None:
        """Pause until `resume` is called as often as `pause`."""
        if self._outer is not None:
            self._outer.pause()
        self._pauses += 1
        if self._pauses == 1 and self._counts():
            self._left = (self._timeout.when() or 0.0) - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def resume(self) -> None:
        """Undo one `pause`; the time runs again after the last one."""
        if self._outer is not None:
            self._outer.resume()
        self._pauses -= 1
        if self._pauses == 0 and self._counts():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)

    def _counts(self) -> bool:
        """Return False after the end and in other threads, which must not change the timeout."""
        is_here = self._loop is asyncio.get_running_loop()
        return is_here and math.isfinite(self.seconds) and not self._timeout.expired()


def time_limit() -> float | None:
    """Return the time limit of the current work in seconds; None without a stopwatch."""
    watch = _running.get()
    return None if watch is None else watch.seconds


def note_failure(reason: str) -> None:
    """Record the last failure for the timeout message; an empty string clears it."""
    watch = _running.get()
    if watch is not None:
        watch.last_failure = reason


# Set the stopwatch of the current task, or None for no stopwatch.
set_stopwatch: Callable[[Watch | None], object] = _running.set


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Pause the current stopwatch and the enclosing ones."""
    watch = _running.get()
    if watch is None:
        yield
        return
    watch.pause()
    try:
        yield
    finally:
        watch.resume()
