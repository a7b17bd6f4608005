"""Time for a piece of work, which stands still while the work waits for its turn."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

_running: ContextVar[Stopwatch | None] = ContextVar("proctor_stopwatch", default=None)


class Stopwatch:
    """Raises `TimeoutError` if what is done inside takes longer, waiting for turns aside.

    >>> async def main() -> str:
    ...     async with Stopwatch(0.05):
    ...         with halted():
    ...             await asyncio.sleep(0.1)
    ...         return "in time"
    >>> asyncio.run(main())
    'in time'
    """

    __slots__ = ("_before", "_halts", "_left", "_loop", "_timeout", "noted", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # What went wrong last, which is why it takes so long.
        self.noted = ""
        self._timeout = asyncio.timeout(seconds)
        self._halts, self._left = 0, 0.0

    async def __aenter__(self) -> Stopwatch:
        await self._timeout.__aenter__()
        self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
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
        self._halts += 1
        if self._halts == 1 and self._counts():
            self._left = (self._timeout.when() or 0.0) - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def go_on(self) -> None:
        """Run again, when all who halted it go on."""
        self._halts -= 1
        if self._halts == 0 and self._counts():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)

    def _counts(self) -> bool:
        """False when it is over, and for what runs in another thread, which must not touch it."""
        return self._loop is asyncio.get_running_loop() and not self._timeout.expired()


def limit() -> float:
    """How many seconds the work in hand may take in all; without end where nobody counts.

    >>> limit()
    inf
    """
    watch = _running.get()
    return math.inf if watch is None else watch.seconds


def note(why: str) -> None:
    """Tell whoever counts the time what went wrong last; empty when all is well again."""
    watch = _running.get()
    if watch is not None:
        watch.noted = why


@contextlib.contextmanager
def halted() -> Iterator[None]:
    """What is done inside is waiting for a turn, not the work that a stopwatch counts.

    The innermost stopwatch stands still, for all tasks that were begun under it.
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
