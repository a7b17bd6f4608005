"""Time for a piece of work, which stands still while the work waits for its turn."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol


class Watch(Protocol):
    """What counts the time of a piece of work and can stand still."""

    seconds: float
    noted: str

    def halt(self) -> None: ...
    def go_on(self) -> None: ...


_running: ContextVar[Watch | None] = ContextVar("proctor_stopwatch", default=None)


class Stopwatch:
    """Raises `TimeoutError` if what is done inside takes longer, waiting for turns aside.

    `seconds` is None for no limit. A stopwatch around this one stands still with it.

    >>> async def main() -> str:
    ...     async with Stopwatch(0.05):
    ...         with halted():
    ...             await asyncio.sleep(0.1)
    ...         return "in time"
    >>> asyncio.run(main())
    'in time'
    """

    __slots__ = ("_before", "_halts", "_left", "_loop", "_outer", "_timeout", "noted", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        # What went wrong last, which is why it takes so long.
        self.noted = ""
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
        """True if the time was up."""
        return self._timeout.expired()

    def halt(self) -> None:
        """Stand still from now on."""
        if self._outer is not None:
            self._outer.halt()
        self._halts += 1
        if self._halts == 1 and self._counts():
            self._left = (self._timeout.when() or 0.0) - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def go_on(self) -> None:
        """Run again, when all who halted it go on."""
        if self._outer is not None:
            self._outer.go_on()
        self._halts -= 1
        if self._halts == 0 and self._counts():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)

    def _counts(self) -> bool:
        """False when it is over, and for what runs in another thread, which must not touch it."""
        is_here = self._loop is asyncio.get_running_loop()
        return is_here and math.isfinite(self.seconds) and not self._timeout.expired()


def limit() -> float | None:
    """How many seconds the current work may take in all; None if nothing limits it.

    >>> limit() is None
    True
    """
    watch = _running.get()
    return None if watch is None else watch.seconds


def note(why: str) -> None:
    """Tell whoever counts the time what went wrong last; empty when all is well again."""
    watch = _running.get()
    if watch is not None:
        watch.noted = why


# Let this watch count what this task does from now on; None for no watch.
count_with: Callable[[Watch | None], object] = _running.set


@contextlib.contextmanager
def halted() -> Iterator[None]:
    """What is done inside is waiting for a turn, not the work that a stopwatch counts.

    The innermost stopwatch and those around it stand still, for all tasks begun under them.
    """
    watch = _running.get()
    if watch is None:
        yield
        return
    watch.halt()
    try:
        yield
    finally:
        watch.go_on()
