"""Models that live in somebody else's code: called within their time, their errors told as ours."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from proctor.clock import SystemClock
from proctor.errors import CallFailed, ProctorError
from proctor.providers.transport.complaints import shortened
from proctor.providers.transport.rate_headers import Said
from proctor.providers.transport.retries import is_passing
from proctor.threads import in_thread

LONGEST_MESSAGE = 500


async def called(
    who: str,
    function: Callable[..., Any],
    *args: Any,
    timeout: float | None = None,
    hide: Callable[[str], str] = lambda text: text,
    **named: Any,
) -> Any:
    """What a function of the user's gives: awaited, or called in a thread if it blocks.

    Whatever it raises becomes `CallFailed`, with what it says of itself about trying again and
    without the keys that `hide` takes out.
    """
    try:
        async with asyncio.timeout(timeout):
            if gives_awaitable(function):
                return await function(*args, **named)
            found = await in_thread(lambda: function(*args, **named))
            return await found if inspect.isawaitable(found) else found
    except ProctorError:
        raise
    except TimeoutError as error:
        within = "" if timeout is None else f" within {timeout:g} s"
        raise CallFailed(f"{who} gave no answer{within}", retryable=True) from error
    except Exception as error:
        raise failed(who, error, hide) from error


def gives_awaitable(function: Any) -> bool:
    """True if calling it gives something to await; partials and callable objects are seen through.

    >>> gives_awaitable(asyncio.sleep), gives_awaitable(len)
    (True, False)
    """
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the class's own code is wanted
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def failed(
    who: str, error: Exception, hide: Callable[[str], str] = lambda text: text
) -> CallFailed:
    """An error of the user's code, or of an SDK, as ours: what it said, and whether to try again.

    >>> failed("python:judge", ConnectionResetError("gone")).retryable
    True
    """
    # Before it is cut: half a key would not be found.
    said = shortened(hide(str(error)), LONGEST_MESSAGE)
    what = f"{who} failed: {type(error).__name__}" + (f": {said}" if said else "")
    return CallFailed(what, retryable=_may_pass(error), retry_after=_retry_after(error))


def _may_pass(error: Exception) -> bool:
    told = getattr(error, "retryable", None)
    if isinstance(told, bool):
        return told
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return is_passing(status)
    # What the SDKs raise where no answer came: it has no status.
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return isinstance(error, OSError) or "APIConnectionError" in kinds


def _retry_after(error: Exception) -> float | None:
    told = getattr(error, "retry_after", None)
    if isinstance(told, int | float) and not isinstance(told, bool) and math.isfinite(told):
        return float(told)
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    pairs = [(str(name).encode(), str(value).encode()) for name, value in headers.items()]
    return Said(pairs, SystemClock().now()).retry_after
