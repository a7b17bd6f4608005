"""Async functions called from anywhere: a script, a running loop, a thread."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proctor.core import bridge
from tests.surroundings import start

BOUND = 2 * bridge.LEFTOVER_SECONDS + 2.0


async def double(number: int, *, plus: int = 0) -> int:
    await asyncio.sleep(0)
    return 2 * number + plus


async def fail() -> None:
    await asyncio.sleep(0)
    raise KeyError("inside")


def test_in_a_script() -> None:
    """Without a loop the coroutine runs here, and no loop is left behind."""
    assert bridge.synchronous(double)(20, plus=2) == 42
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_the_plain_function_keeps_its_name_and_signature() -> None:
    """Help and completion show the same function."""
    assert bridge.synchronous(double).__name__ == "double"


def test_inside_a_running_loop() -> None:
    """As in a notebook: a loop is running already, and the call works all the same."""

    async def notebook() -> tuple[int, str]:
        result = bridge.synchronous(double)(21)
        return result, threading.current_thread().name

    here = threading.current_thread().name
    assert asyncio.run(notebook()) == (42, here)


def test_in_a_thread() -> None:
    """A thread without a loop is as good a place as any."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(bridge.synchronous(double)(21)))
    thread.start()
    thread.join()
    assert found == [42]


def test_exceptions_pass_everywhere() -> None:
    """What the coroutine raises is raised to the caller, with a loop running or without."""

    async def notebook() -> None:
        bridge.run(fail())

    with pytest.raises(KeyError, match="inside"):
        bridge.run(fail())
    with pytest.raises(KeyError, match="inside"):
        asyncio.run(notebook())


def test_the_context_goes_along() -> None:
    """Context variables that are set around the call are seen inside, with a loop running too."""
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="unset")

    async def look() -> str:
        return name.get()

    async def notebook() -> str:
        name.set("set")
        return bridge.run(look())

    assert asyncio.run(notebook()) == "set"


def test_tasks_left_over_are_ended() -> None:
    """A background task is cancelled and may tidy up before the loop is closed."""
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


def test_what_ignores_its_end_cannot_hold_it_up(caplog: pytest.LogCaptureFixture) -> None:
    """Neither a task that swallows its cancellation nor a generator that will not close."""
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

    kept = []

    async def main() -> str:
        kept.append(asyncio.ensure_future(stubborn()))
        generator = endless()
        kept.append(generator)  # type: ignore[arg-type]
        await anext(generator)
        return "done"

    began = time.monotonic()
    assert bridge.run(main()) == "done"
    assert time.monotonic() - began < BOUND
    with contextlib.suppress(RuntimeError):
        kept[0].get_coro().close()
    kept.clear()
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


def test_ctrl_c_inside_a_running_loop_reaches_the_work(tmp_path: Path) -> None:
    """The thread that works is told to stop, may tidy up, and the caller is interrupted."""
    process = start(NOTEBOOK, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert output == "told to stop\ninterrupted\n", errors
    assert process.returncode == 0


@pytest.mark.parametrize("started", [False, True])
def test_ctrl_c_may_come_while_the_thread_is_being_started(
    started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even then the caller is interrupted soon and no work goes on behind its back."""
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
