"""What lives as long as an event loop needs it: opened when first used, closed by the last user.

Connections belong to the loop they were opened in, and many calls share them. A call, a run, or a
whole program holds them open with `in_use`; when nobody does any more, they are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
Close = Callable[[Any], Awaitable[object]]


class _Held:
    """What is open in one loop, and how many hold it open."""

    def __init__(self) -> None:
        self.users = 0
        self.things: dict[Hashable, tuple[Any, Close]] = {}


# Weak, so that nothing is left of a loop that is gone.
_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Held] = WeakKeyDictionary()


class in_use:  # noqa: N801 - used as a function is
    """Hold open what is opened inside; the last to leave closes everything.

    >>> async def main() -> list[str]:
    ...     said = []
    ...     async def close(thing: str) -> None:
    ...         said.append(f"closed {thing}")
    ...     async with in_use():
    ...         said.append(opened("line", lambda: "a line", close))
    ...     return said
    >>> asyncio.run(main())
    ['a line', 'closed a line']
    """

    __slots__ = ("_held",)

    async def __aenter__(self) -> None:
        self._held = _LOOPS.setdefault(asyncio.get_running_loop(), _Held())
        self._held.users += 1

    async def __aexit__(self, *error: object) -> None:
        held = self._held
        held.users -= 1
        if held.users == 0:
            things, held.things = list(held.things.values()), {}
            async with contextlib.AsyncExitStack() as stack:
                # Each is closed, also if closing another fails or is told to end.
                for thing, close in things:
                    stack.push_async_callback(_closed, thing, close)


async def _closed(thing: Any, close: Close) -> None:
    with contextlib.suppress(Exception):
        await close(thing)


def opened(key: Hashable, make: Callable[[], T], close: Close) -> T:
    """The thing under a key in the running loop, made if it is not there yet.

    Only inside `in_use`: outside of it nobody would close the thing.
    """
    held = _LOOPS.get(asyncio.get_running_loop())
    if held is None or held.users == 0:
        raise RuntimeError("nothing holds this open; use it inside `async with in_use()`")
    if key not in held.things:
        held.things[key] = (make(), close)
    found: T = held.things[key][0]
    return found
