"""Threads for what blocks: one for each call at a time, given up when a call does not return."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Work = tuple[contextvars.Context, Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]"]


class Threads:
    """Lends daemon threads to blocking calls.

    A call that is cancelled (by a time-out) keeps its thread, for Python cannot stop it; the thread
    ends when the call returns and is never waited for, so it cannot hang the run or the exit.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: list[SimpleQueue[Work | None]] = []
        self._finished: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._told = False
        self.abandoned = 0

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a thread, in the caller's context, and wait for what it gives."""
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
            raise _carried(error)
        return result

    def close(self) -> None:
        """Let the idle threads go."""
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
            # One wake-up serves all calls that finish before the loop gets round to it.
            if not self._told:
                self._told = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:
                    return  # the loop is closed: nobody waits any more

    def _deliver(self) -> None:
        self._told = False
        while self._finished:
            future, result, error = self._finished.popleft()
            # The error as a value: one that the call raised is no cancellation of the wait.
            if not future.cancelled():
                future.set_result((result, error))


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a thread of its own, which nobody waits for if the wait is given up."""
    threads = Threads()
    try:
        return await threads.run(function, *args)
    finally:
        threads.close()


def _carried(error: BaseException) -> BaseException:
    """An exception that a coroutine can raise: StopIteration would end it."""
    if isinstance(error, StopIteration):
        return RuntimeError("the call raised StopIteration")
    return error
