"""Resources shared by all calls in one event loop: opened on first use, closed by the last user.

A connection belongs to the event loop that opened it. A call or a run keeps the connections open
with `ResourceScope`; the last scope to end closes them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
Close = Callable[[Any], Awaitable[object]]


class _LoopResources:
    """The open resources of one event loop, and the number of their users."""

    def __init__(self) -> None:
        self.users = 0
        self.resources: dict[Hashable, tuple[Any, Close]] = {}


# Weak keys: a closed loop leaves nothing behind.
_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopResources] = WeakKeyDictionary()


class ResourceScope:
    """Keep shared resources open; the last scope to end closes all of them."""

    __slots__ = ("_loop_resources",)

    async def __aenter__(self) -> None:
        self._loop_resources = _LOOPS.setdefault(asyncio.get_running_loop(), _LoopResources())
        self._loop_resources.users += 1

    async def __aexit__(self, *error: object) -> None:
        shared = self._loop_resources
        shared.users -= 1
        if shared.users == 0:
            closing, shared.resources = list(shared.resources.values()), {}
            async with contextlib.AsyncExitStack() as stack:
                # Every resource is closed, even if closing another one fails or is cancelled.
                for resource, close in closing:
                    stack.push_async_callback(_close_quietly, resource, close)


async def _close_quietly(resource: Any, close: Close) -> None:
    with contextlib.suppress(Exception):
        await close(resource)


def open_shared(key: Hashable, make: Callable[[], T], close: Close) -> T:
    """Return the resource for a key in the running loop; open it on first use.

    Call it only inside `ResourceScope`, which closes the resource.
    """
    shared = _LOOPS.get(asyncio.get_running_loop())
    if shared is None or shared.users == 0:
        raise RuntimeError("shared resources can only be opened inside `async with ResourceScope()`")
    if key not in shared.resources:
        shared.resources[key] = (make(), close)
    resource: T = shared.resources[key][0]
    return resource
