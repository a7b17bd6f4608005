"""A timeout that is paused while work waits for its turn."""

from __future__ import annotations

import asyncio

import pytest

from proctor.core.stopwatch import Stopwatch, paused, time_limit


def test_a_pause_does_not_count_as_time() -> None:

    async def main() -> None:
        async with Stopwatch(0.2):
            await asyncio.sleep(0.05)
            with paused(), paused():
                await asyncio.sleep(0.3)
            assert time_limit() == 0.2
            await asyncio.Event().wait()

    assert asyncio.run(timed(main())) >= 0.45


async def timed(work: object) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(TimeoutError):
        await work  # type: ignore[misc]
    return loop.time() - began


def test_a_pause_in_another_loop_or_after_the_end_has_no_effect() -> None:

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
