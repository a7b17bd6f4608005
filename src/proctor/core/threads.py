"""Threads for blocking calls; a thread whose call does not return is abandoned."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any
from weakref import WeakKeyDictionary

from proctor.core import stopwatch

Work = tuple[contextvars.Context, Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]"]


class CallThreads:
    """Run blocking calls in daemon threads.

    Python cannot stop a thread, so a cancelled call (for example after a timeout) keeps its thread until it
    returns. Nothing waits for that thread: it cannot hang the run or the exit.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: list[SimpleQueue[Work | None]] = []
        self._finished: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_delivery_scheduled = False
        self.abandoned = 0

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a thread, in the caller's context, and return its result."""
        work = self._idle.pop() if self._idle else self._start()
        future = self._loop.create_future()
        work.put((contextvars.copy_context(), function, args, future))
        try:
            result, error = await future
        except asyncio.CancelledError:
            work.put(None)
            self.abandoned += 1
            raise
        self._idle.append(work)
        if error is not None:
            raise _raisable(error)
        return result

    def close(self) -> None:
        """End the idle threads."""
        for work in self._idle:
            work.put(None)
        self._idle.clear()

    def _start(self) -> SimpleQueue[Work | None]:
        work: SimpleQueue[Work | None] = SimpleQueue()
        threading.Thread(target=self._serve, args=(work,), name="proctor-call", daemon=True).start()
        return work

    def _serve(self, work: SimpleQueue[Work | None]) -> None:
        while (item := work.get()) is not None:
            context, function, args, future = item
            result, error = None, None
            try:
                result = context.run(function, *args)
            except BaseException as raised:
                error = raised
            self._finished.append((future, result, error))
            # One wake-up delivers all calls that finish before the loop runs again.
            if not self._is_delivery_scheduled:
                self._is_delivery_scheduled = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:
                    return  # the loop is closed

    def _deliver(self) -> None:
        self._is_delivery_scheduled = False
        while self._finished:
            future, result, error = self._finished.popleft()
            # Return the error as a value: a CancelledError from the call must not cancel the caller.
            if not future.cancelled():
                future.set_result((result, error))


async def run_in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a new thread; a cancelled caller does not wait for the thread."""
    threads = CallThreads()
    try:
        return await threads.run(function, *args)
    finally:
        threads.close()


async def compute(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that needs a core, in a thread; no more run at once than there are cores.

    The time limit of the caller starts with the work: waiting for a core does not count.
    """
    loop = asyncio.get_running_loop()
    cores = _free_cores.setdefault(loop, asyncio.Semaphore(count_cores()))
    with stopwatch.paused():
        await cores.acquire()
    try:
        return await run_in_thread(function, *args)
    finally:
        cores.release()


# Weak, so that a closed loop leaves nothing behind.
_free_cores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _raisable(error: BaseException) -> BaseException:
    # StopIteration would end the coroutine that raises it.
    return RuntimeError("the call raised StopIteration") if isinstance(error, StopIteration) else error
