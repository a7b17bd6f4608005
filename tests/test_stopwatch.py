"""Time that stands still while work waits for its turn."""

from __future__ import annotations

import asyncio

import pytest

from proctor.core.stopwatch import Stopwatch, paused, time_limit


def test_work_is_counted_and_waiting_is_not() -> None:
    """What was used before a halt is used; the rest is there after it."""

    async def main() -> None:
        async with Stopwatch(0.2):
            await asyncio.sleep(0.05)
            with paused(), paused():
                await asyncio.sleep(0.3)
            assert time_limit() == 0.2
            await asyncio.sleep(10)

    began = asyncio.run(timed(main()))
    assert 0.45 <= began < 5


async def timed(work: object) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(TimeoutError):
        await work  # type: ignore[misc]
    return loop.time() - began


def test_another_loop_and_a_watch_that_is_over_are_left_alone() -> None:
    """A thread or a task that lives longer may wait for its turn all the same."""

    def elsewhere() -> None:
        async def wait() -> None:
            with paused():
                await asyncio.sleep(0)

        asyncio.run(wait())

    async def main() -> str:
        async def later() -> str:
            with paused():
                await asyncio.sleep(0.05)
            return "done"

        async with Stopwatch(5) as watch:
            await asyncio.to_thread(elsewhere)
            task = asyncio.create_task(later())
            await asyncio.sleep(0)
        assert not watch.expired
        return await task

    assert asyncio.run(main()) == "done"
    assert time_limit() is None
