"""From sync to async, once: a coroutine function becomes a plain one that works anywhere."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

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
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_here(coroutine)
    return _run_in_thread(coroutine)


def _run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, but a task that ignores its cancellation cannot hold up the end."""
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(coroutine)
    finally:
        leftovers = asyncio.all_tasks(loop)
        for task in leftovers:
            task.cancel()
        if leftovers:
            loop.run_until_complete(asyncio.wait(leftovers, timeout=LEFTOVER_SECONDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()


def _run_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(_run_here(coroutine))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="proctor-loop")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
