"""Run user code in its own task and context, so that it cannot affect the caller's.

A target or an evaluator may cancel `asyncio.current_task()`, set context variables, keep a
reference to its task, or raise any exception. These effects end with its task.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from asyncio import _get_running_loop
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")

# asyncio documents these four functions for other task implementations (docs: "Extending asyncio").
_enter_task = asyncio.tasks._enter_task
_leave_task = asyncio.tasks._leave_task
_register_task = asyncio.tasks._register_task
_unregister_task = asyncio.tasks._unregister_task

_NAME = "proctor-call"

# Cancelled calls that nothing awaits; event loops keep only weak references to tasks.
_abandoned_tasks: set[asyncio.Task[Any]] = set()


def is_interrupt(error: BaseException) -> bool:
    """True if a KeyboardInterrupt may be a real Ctrl-C rather than raised by user code.

    Python raises it for Ctrl-C only in the main thread, and only under its default handler. A run
    replaces that handler, so a KeyboardInterrupt during a run comes from user code.
    """
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


def hide_task(task: asyncio.Task[Any]) -> None:
    """Remove a task from `asyncio.all_tasks()`, so that user code cannot cancel it from there."""
    _unregister_task(task)


def outside_task(function: Callable[..., T], *args: Any) -> T:
    """Call a function in a copy of the context, with no current task that it could cancel."""
    run: Callable[..., T] = copy_context().run
    return without_task(run, function, *args)


def without_task(function: Callable[..., T], *args: Any) -> T:
    """Call a function with no current task that it could cancel."""
    loop = _get_running_loop()
    task = None if loop is None else _current_task(loop)
    if loop is None or task is None:
        return function(*args)
    _leave_task(loop, task)
    try:
        return function(*args)
    finally:
        _enter_task(loop, task)


if sys.version_info >= (3, 12):
    _current_task = asyncio.current_task

    class _EagerTask(asyncio.Task[None]):
        """A task that takes its first step immediately, in a copy of the context."""

        ended = False

        def __init__(self, function: Callable[..., Awaitable[Any]], *args: Any) -> None:
            loop = asyncio.get_running_loop()
            super().__init__(self._run(function, args), loop=loop, name=_NAME, context=copy_context(), eager_start=True)
            if not self.ended:
                _unregister_task(self)

        async def _run(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
            raise NotImplementedError

else:
    # Faster than asyncio.current_task and _enter_task, which check more.
    _current_tasks = asyncio.tasks._current_tasks  # type: ignore[attr-defined]
    _current_task = _current_tasks.get
    _RETURNED = object()

    class _EagerTask(asyncio.tasks._PyTask):  # type: ignore[name-defined,misc]
        """A task that takes its first step immediately, in a copy of the context.

        A coroutine that never waits needs no iteration of the event loop. From the second step on
        this is a standard task.
        """

        # Defaults that `Task.__init__` sets per task.
        _name = _NAME
        _num_cancels_requested = 0
        _must_cancel = False
        _fut_waiter = None

        def __init__(self, function: Callable[..., Awaitable[Any]], *args: Any) -> None:
            # In one function for speed: this runs for every sample.
            loop: Any = _get_running_loop()
            self._loop = loop
            self._callbacks: list[Any] = []
            self._coro = coroutine = self._run(function, args)
            self._context = context = copy_context()
            caller = _current_task(loop)
            _current_tasks[loop] = self
            try:
                # Unlike `send`, `next` with a default raises no StopIteration; `UserCall` stores the return value.
                awaited = context.run(next, coroutine.__await__(), _RETURNED)
                if awaited is not _RETURNED:
                    self._wait_for(awaited)
                else:
                    self._state = "CANCELLED" if self._must_cancel else "FINISHED"
                    if self._callbacks:
                        self._Future__schedule_callbacks()
            except BaseException as error:
                self._state, self._exception = "FINISHED", error
                raise
            finally:
                if caller is None:
                    del _current_tasks[loop]
                else:
                    _current_tasks[loop] = caller

        def __del__(self) -> None:
            if self._state == "PENDING":
                super().__del__()

        def _wait_for(self, awaited: Any) -> None:
            """Wait for a future as `Task` does."""
            error = None
            if awaited is not None:
                if getattr(awaited, "_asyncio_future_blocking", None) is None:
                    error = RuntimeError(f"Task got bad yield: {awaited!r}")
                elif awaited.get_loop() is not self._loop:
                    error = RuntimeError(f"{awaited!r} is attached to a different loop")
                elif awaited is self:
                    error = RuntimeError(f"Task cannot await on itself: {self!r}")
                elif not awaited._asyncio_future_blocking:
                    error = RuntimeError(f"yield was used instead of yield from with {awaited!r}")
                else:
                    awaited._asyncio_future_blocking = False
                    awaited.add_done_callback(self._Task__wakeup, context=self._context)
                    self._fut_waiter = awaited
                    if self._must_cancel and awaited.cancel(msg=self._cancel_message):
                        self._must_cancel = False
                    return
            self._loop.call_soon(self._Task__step, error, context=self._context)


class UserCall(_EagerTask):
    """One call of user code, started immediately, in its own task and context.

    Afterwards `value` is the return value or `error` the exception, including a cancellation. `give_up` ends the wait
    even if the task keeps running. `ended_at` is the time of the end on the clock of the event loop.
    """

    value: Any = None
    error: BaseException | None = None
    ended = False
    ended_at = 0.0
    expired = False
    given_up = False
    _waiter: asyncio.Future[None] | None = None
    _timer: asyncio.TimerHandle | None = None

    async def _run(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        # Stored here because a task that is cancelled just before it returns loses its result.
        try:
            # A call without `*args` is faster.
            self.value = await (function(*args) if args else function())
        except BaseException as error:
            if is_interrupt(error):
                raise
            self.error = error
        finally:
            self.ended = True
            self.ended_at = monotonic()

    async def wait(self) -> None:
        """Return when the call has ended or was abandoned; cancelling the wait cancels the call."""
        if self.ended or self.given_up:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        self.add_done_callback(self._wake)
        try:
            await self._waiter
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self.abandon()

    def limit(self, seconds: float, grace: float) -> None:
        """Cancel the call after `seconds`, and abandon it after another `grace` seconds."""

        def expire() -> None:
            self.expire()
            self._timer = loop.call_later(grace, self.give_up)

        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, expire)

    def expire(self) -> None:
        """Cancel the call because its time limit is reached."""
        self.expired = True
        self.cancel()

    def give_up(self) -> None:
        """Stop waiting for a call that continues although it was cancelled."""
        self.given_up = True
        self._wake()

    def abandon(self) -> None:
        """Cancel the call if it has not ended, and stop waiting for it."""
        if self.ended or self.done():
            return
        # Register it again, so that closing the loop finds it.
        _register_task(self)
        _abandoned_tasks.add(self)
        self.add_done_callback(_abandoned_tasks.discard)
        self.cancel()

    def _wake(self, _task: object = None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def settle_abandoned(seconds: float) -> int:
    """Give abandoned calls of this loop some time to clean up; return how many still run."""
    loop = asyncio.get_running_loop()
    tasks = [task for task in _abandoned_tasks if task.get_loop() is loop]
    if not tasks:
        return 0
    _, pending = await asyncio.wait(tasks, timeout=seconds)
    for task in pending:
        _detach(task)
    return len(pending)


def _detach(task: asyncio.Task[Any]) -> None:
    """Never wait again for a task that ignores its cancellation, not even when the process exits.

    Python closes a suspended coroutine before it frees it. A coroutine that catches every exception in a loop would
    then never end: on a closed event loop each `await` raises immediately. An additional reference prevents that.
    """
    import ctypes

    hide_task(task)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(task))
