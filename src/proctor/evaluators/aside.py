"""Aside: what takes long is done in a thread, so that a run goes on and a time-out can act."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack

from proctor.threads import in_thread

Found = TypeVar("Found")
Given = TypeVarTuple("Given")

# Texts of fewer characters are done with before a thread has begun.
SMALL = 10_000


async def aside(size: int, function: Callable[[Unpack[Given]], Found], *args: *Given) -> Found:
    """Call a function, in a thread if there are many characters to go through.

    >>> import asyncio
    >>> asyncio.run(aside(2, len, "ab"))
    2
    """
    if size < SMALL:
        return function(*args)
    found: Found = await in_thread(function, *args)
    return found
