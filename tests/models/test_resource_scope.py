"""Resources that live as long as an event loop needs them: shared, and closed by the last user."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from proctor.core import resource_scope


class Line:
    """Something that must be closed."""

    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1


def opened(key: str = "line") -> Line:
    return resource_scope.open_shared(key, Line, Line.close)


def test_all_users_in_a_loop_share_one_resource() -> None:
    """The same key gives the same thing, another key another."""

    async def main() -> None:
        async with resource_scope.ResourceScope():
            assert opened() is opened()
            assert opened("other") is not opened()

    asyncio.run(main())


def test_the_last_user_closes_it_once() -> None:
    """The first user that leaves does not close it; the next user opens a new one."""

    async def main() -> None:
        async with resource_scope.ResourceScope():
            async with resource_scope.ResourceScope():
                line = opened()
            assert (line.closed, opened()) == (0, line)
        assert line.closed == 1
        async with resource_scope.ResourceScope():
            assert opened() is not line

    asyncio.run(main())


def test_each_loop_has_its_own() -> None:
    """A connection belongs to the loop it was opened in."""
    results: list[Line] = []

    async def main() -> None:
        async with resource_scope.ResourceScope():
            results.append(opened())

    asyncio.run(main())
    asyncio.run(main())
    assert results[0] is not results[1]
    assert [line.closed for line in results] == [1, 1]


def test_outside_of_a_use_nothing_is_opened() -> None:
    """It would never be closed."""

    async def main() -> None:
        with pytest.raises(RuntimeError, match="ResourceScope"):
            opened()
        async with resource_scope.ResourceScope():
            opened()
        with pytest.raises(RuntimeError, match="ResourceScope"):
            opened()

    asyncio.run(main())


def test_it_is_closed_after_an_error() -> None:
    lines: list[Line] = []

    async def main() -> None:
        async with resource_scope.ResourceScope():
            lines.append(opened())
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        asyncio.run(main())
    assert lines[0].closed == 1


def test_one_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    """Its failure is its own."""

    async def broken(_: Any) -> None:
        raise OSError("stuck")

    async def main() -> Line:
        async with resource_scope.ResourceScope():
            line = opened()
            resource_scope.open_shared("broken", Line, broken)
        return line

    assert asyncio.run(main()).closed == 1


def test_a_cancelled_close_still_closes_the_rest() -> None:
    closing = asyncio.Event()

    async def slow(_: Any) -> None:
        closing.set()
        await asyncio.sleep(10)

    async def main() -> Line:
        lines: list[Line] = []

        async def use() -> None:
            async with resource_scope.ResourceScope():
                lines.append(opened())
                resource_scope.open_shared("slow", Line, slow)

        task = asyncio.create_task(use())
        await asyncio.wait_for(closing.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return lines[0]

    assert asyncio.run(main()).closed == 1


def test_a_call_during_closing_opens_a_new_connection() -> None:
    async def main() -> None:
        first: list[Line] = []

        async def slow(line: Line) -> None:
            await asyncio.sleep(0.02)
            line.closed += 1

        async def one() -> None:
            async with resource_scope.ResourceScope():
                first.append(resource_scope.open_shared("k", Line, slow))

        task = asyncio.create_task(one())
        await asyncio.sleep(0.01)
        async with resource_scope.ResourceScope():
            second = resource_scope.open_shared("k", Line, slow)
            assert second is not first[0]
            await task
            assert second.closed == 0
        assert second.closed == 1

    asyncio.run(main())


def test_a_closed_loop_leaves_nothing_behind() -> None:
    """The table has weak references to loops."""
    loop = asyncio.new_event_loop()

    async def main() -> None:
        async with resource_scope.ResourceScope():
            opened()

    loop.run_until_complete(main())
    loop.close()
    gone = weakref.ref(loop)
    del loop
    gc.collect()
    assert gone() is None
