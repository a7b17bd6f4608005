"""Work that would hold up the event loop: done in one thread, handed on in the loop again."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.thread import ThreadPoolExecutor
from typing import Any

# So much may wait, in characters, before no more should come.
MOST_WAITING = 5_000_000


class Aside:
    """Does pieces of work one after the other in a thread of its own.

    What each gives is a function, which is called in the loop: there nothing else happens
    meanwhile. One that fails says so when `full` is asked, and at the end.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # Warnings of the run are found by it, also from the thread.
        self._context = contextvars.copy_context()
        self._thread = ThreadPoolExecutor(1, "proctor-redaction")
        self._waiting: deque[tuple[int, Future[Callable[[], None]]]] = deque()

    def do(self, size: int, work: Callable[..., Callable[[], None]], *args: Any) -> None:
        """Take work of a size; returns at once."""
        future = self._thread.submit(self._context.copy().run, work, *args)
        self._waiting.append((size, future))
        future.add_done_callback(self._tell)

    def full(self) -> bool:
        """True if so much waits that no more should come."""
        self._hand_on(failed=True)
        return sum(size for size, _ in self._waiting) > MOST_WAITING

    def close(self) -> None:
        """Wait for all of it, and hand it on."""
        self._thread.shutdown()
        self._hand_on(failed=True)

    def _tell(self, _: object) -> None:
        hand_on = functools.partial(self._hand_on, failed=False)
        self._loop.call_soon_threadsafe(hand_on, context=self._context)

    def _hand_on(self, *, failed: bool) -> None:
        """Call what is done, in the order in which it came, and raise what went wrong if asked."""
        while self._waiting and self._waiting[0][1].done():
            future = self._waiting[0][1]
            if future.exception() is not None and not failed:
                return
            self._waiting.popleft()
            future.result()()
