"""Call async code from sync code, inside or outside a running event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from proctor.core.isolation import hide_task, is_interrupt

P = ParamSpec("P")
T = TypeVar("T")

# How long cancelled tasks may take to end before the loop is closed.
SHUTDOWN_SECONDS = 1.0


def synchronous(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return a sync version of a coroutine function `aNAME`; it also works inside a running event loop."""
    name = function.__name__.removeprefix("a")

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            # Creating the coroutine only checks the arguments.
            coroutine = function(*args, **kwargs)
        except TypeError as error:
            raise TypeError(str(error).replace(f"{function.__name__}()", f"{name}()")) from None
        return run(coroutine)

    call.__name__ = name
    call.__qualname__ = function.__qualname__.removesuffix(function.__name__) + name
    return call


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new event loop; in a new thread if this thread already runs one."""
    # get_running_loop() raises, and its error would become the context of the coroutine's errors.
    if asyncio._get_running_loop() is None:
        return _run_here(coroutine)
    return _run_in_thread(coroutine)


def _run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, but a task that ignores its cancellation cannot block shutdown."""
    loop = asyncio.new_event_loop()
    main: asyncio.Task[T] | None = None
    try:
        asyncio.set_event_loop(loop)
        main = loop.create_task(coroutine)
        # User code must not find this task in asyncio.all_tasks() and cancel it.
        hide_task(main)
        _run_until_done(loop, main)
        return main.result()
    finally:
        remaining_tasks = asyncio.all_tasks(loop)
        if main is None:
            coroutine.close()
        elif not main.done():
            remaining_tasks.add(main)
        for task in remaining_tasks:
            task.cancel()
        if remaining_tasks:
            _, still_running = loop.run_until_complete(asyncio.wait(remaining_tasks, timeout=SHUTDOWN_SECONDS))
            for task in still_running:
                # The task ignored its cancellation; do not log that it was destroyed.
                task._log_destroy_pending = False  # type: ignore[attr-defined]
        generators = loop.create_task(loop.shutdown_asyncgens())
        loop.run_until_complete(asyncio.wait({generators}, timeout=SHUTDOWN_SECONDS))
        # User code may have set an event-loop policy that fails here.
        with contextlib.suppress(Exception):
            asyncio.set_event_loop(None)
        loop.close()


def _run_until_done(loop: asyncio.AbstractEventLoop, main: asyncio.Task[Any]) -> None:
    """Run a loop until a task is done, even if user code stops the loop or raises SystemExit."""
    while not main.done():
        try:
            loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt) as error:
            # asyncio raises such an error of a task in the loop too. The awaiter gets it; the loop continues unless it
            # may be a real Ctrl-C.
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
    # A plain lock: Ctrl-C during Event.set() can leave the event locked.
    end_signal = threading.Lock()
    end_signal.acquire()

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
            end_signal.release()

    def wait() -> None:
        # After an interrupted acquire, `ended` tells whether the signal was already sent.
        while not ended:
            end_signal.acquire()

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="proctor-loop")
    try:
        thread.start()
        # Not `join`: after an interrupt it treats the thread as ended.
        wait()
    except KeyboardInterrupt:
        # Ctrl-C only reaches the waiting thread; cancel the work in the other one.
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
