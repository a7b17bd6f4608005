"""From sync to async, once: a coroutine function becomes a plain one that works anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from proctor.core.isolation import hide, is_interrupt

P = ParamSpec("P")
T = TypeVar("T")

# How long tasks that were told to end may take before the loop is closed over them.
LEFTOVER_SECONDS = 1.0


def synchronous(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """A plain function that runs the coroutine to its end, also inside a running event loop.

    >>> async def double(x: int) -> int:
    ...     return 2 * x
    >>> synchronous(double)(21)
    42
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(function(*args, **kwargs))

    return call


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own: here, or in a thread if this one has a loop running."""
    # Not by catching an error: it would stand above every error of the coroutine.
    if asyncio._get_running_loop() is None:
        return _run_here(coroutine)
    return _run_in_thread(coroutine)


def _run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, but a task that ignores its cancellation cannot hold up the end."""
    loop = asyncio.new_event_loop()
    main: asyncio.Task[T] | None = None
    try:
        asyncio.set_event_loop(loop)
        main = loop.create_task(coroutine)
        # What runs inside cannot find it among all tasks and cancel it.
        hide(main)
        _run_to_the_end(loop, main)
        return main.result()
    finally:
        leftovers = asyncio.all_tasks(loop)
        if main is None:
            coroutine.close()
        elif not main.done():
            leftovers.add(main)
        for task in leftovers:
            task.cancel()
        if leftovers:
            _, stubborn = loop.run_until_complete(asyncio.wait(leftovers, timeout=LEFTOVER_SECONDS))
            for task in stubborn:
                # It was told to end and would not; nobody needs to hear of it once more.
                task._log_destroy_pending = False  # type: ignore[attr-defined]
        generators = loop.create_task(loop.shutdown_asyncgens())
        loop.run_until_complete(asyncio.wait({generators}, timeout=LEFTOVER_SECONDS))
        # User code may have set a policy of its own that knows no loop.
        with contextlib.suppress(Exception):
            asyncio.set_event_loop(None)
        loop.close()


def _run_to_the_end(loop: asyncio.AbstractEventLoop, main: asyncio.Task[Any]) -> None:
    """Run a loop until a task is done, also if something inside stops the loop or exits."""
    while not main.done():
        try:
            loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt) as error:
            # A task that raises one throws it through the loop as well. Whoever awaits that task
            # gets it; the loop goes on, unless it may be a real Ctrl-C.
            if main.done() or is_interrupt(error):
                raise
        except RuntimeError:
            # `loop.stop()` was called inside.
            if main.done() or loop.is_closed():
                raise


def _run_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []
    cancel: list[Callable[[], object]] = []
    ended: list[bool] = []
    interrupted = threading.Event()
    # A bare lock: Ctrl-C that meets an event as it is entered leaves it locked for ever.
    bell = threading.Lock()
    bell.acquire()

    async def cancellable() -> T:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        cancel.append(lambda: loop.call_soon_threadsafe(task.cancel))
        if interrupted.is_set():
            task.cancel()
        return await coroutine

    def work() -> None:
        try:
            outcome.append(_run_here(cancellable()))
        except BaseException as error:
            failure.append(error)
        finally:
            ended.append(True)
            bell.release()

    def wait() -> None:
        # Who was interrupted after the bell had rung finds that it is over.
        while not ended:
            bell.acquire()

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="proctor-loop")
    try:
        thread.start()
        # Not `join`: an interrupted one takes the thread for ended.
        wait()
    except KeyboardInterrupt:
        # Ctrl-C reaches the thread that waits; the one that works has to be told.
        interrupted.set()
        with contextlib.suppress(IndexError, RuntimeError):
            cancel[0]()
        if thread.ident is None:
            coroutine.close()
        else:
            wait()
        raise
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
