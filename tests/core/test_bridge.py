"""Async functions called from sync code: in a script, a running loop or a thread."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import logging
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proctor.core import bridge
from tests.support import start


async def double(number: int, *, plus: int = 0) -> int:
    await asyncio.sleep(0)
    return 2 * number + plus


async def fail() -> None:
    await asyncio.sleep(0)
    raise KeyError("inside")


def test_a_script_needs_no_event_loop() -> None:
    """The coroutine runs in this thread, and no loop is left behind."""
    assert bridge.synchronous(double)(20, plus=2) == 42
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_the_sync_function_keeps_its_name_and_signature() -> None:
    assert bridge.synchronous(double).__name__ == "double"


def test_it_works_inside_a_running_loop() -> None:
    """As in a notebook."""

    async def notebook() -> tuple[int, str]:
        result = bridge.synchronous(double)(21)
        return result, threading.current_thread().name

    here = threading.current_thread().name
    assert asyncio.run(notebook()) == (42, here)


def test_it_works_in_a_thread() -> None:
    result: list[int] = []
    thread = threading.Thread(target=lambda: result.append(bridge.synchronous(double)(21)))
    thread.start()
    thread.join()
    assert result == [42]


def test_exceptions_reach_the_caller() -> None:
    """With and without a running loop."""

    async def notebook() -> None:
        bridge.run(fail())

    with pytest.raises(KeyError, match="inside"):
        bridge.run(fail())
    with pytest.raises(KeyError, match="inside"):
        asyncio.run(notebook())


def test_context_variables_are_visible_inside() -> None:
    """Also with a running loop."""
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="unset")

    async def look() -> str:
        return name.get()

    async def notebook() -> str:
        name.set("set")
        return bridge.run(look())

    assert asyncio.run(notebook()) == "set"


def test_leftover_tasks_are_cancelled() -> None:
    """They may clean up before the loop is closed."""
    events: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            events.append("tidied")

    async def main() -> None:
        events.append(repr(asyncio.ensure_future(background()).done()))
        await asyncio.sleep(0)

    bridge.run(main())
    assert events == ["False", "tidied"]


def test_a_task_that_ignores_its_cancellation_cannot_block_the_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor can an async generator that does not close."""
    monkeypatch.setattr(bridge, "SHUTDOWN_SECONDS", 0.1)
    caplog.set_level(logging.CRITICAL, logger="asyncio")

    async def stubborn() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def endless() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(60)

    tasks = []

    async def main() -> str:
        tasks.append(asyncio.ensure_future(stubborn()))
        generator = endless()
        tasks.append(generator)  # type: ignore[arg-type]
        await anext(generator)
        return "done"

    assert bridge.run(main()) == "done"
    with contextlib.suppress(RuntimeError):
        tasks[0].get_coro().close()
    tasks.clear()
    gc.collect()


# Whoever starts the tests in the background has SIGINT ignored in all that they start.
NOTEBOOK = """
import asyncio, signal, sys
from proctor.core import bridge

signal.signal(signal.SIGINT, signal.default_int_handler)

async def work():
    print("working", flush=True)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("told to stop", flush=True)
        raise

async def notebook():
    try:
        bridge.run(work())
    except KeyboardInterrupt:
        print("interrupted", flush=True)

loop = asyncio.new_event_loop()
loop.run_until_complete(notebook())
loop.close()
"""


def test_ctrl_c_inside_a_running_loop_cancels_the_work(tmp_path: Path) -> None:
    """The other thread may clean up, and the caller is interrupted."""
    process = start(NOTEBOOK, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=300)
    assert output == "told to stop\ninterrupted\n", errors
    assert process.returncode == 0


@pytest.mark.parametrize("started", [False, True])
def test_ctrl_c_while_the_thread_starts(started: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is interrupted, and no work continues in the background."""
    real_start = threading.Thread.start
    ended: list[str] = []

    def start_interrupted(thread: threading.Thread) -> None:
        if thread.name == "proctor-loop":
            if started:
                real_start(thread)
            raise KeyboardInterrupt
        real_start(thread)

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("ended")

    async def notebook() -> None:
        with pytest.raises(KeyboardInterrupt):
            bridge.run(long())

    monkeypatch.setattr(threading.Thread, "start", start_interrupted)
    asyncio.run(notebook())
    assert ended == (["ended"] if started else [])
