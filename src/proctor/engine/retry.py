"""Which errors are worth another attempt, and how long to wait before it."""

from __future__ import annotations

import random

from proctor.errors import CallFailed

LONGEST_WAIT = 60.0


def is_worth_it(error: BaseException) -> bool:
    """True for errors that may pass by themselves: connections, and what says so of itself.

    >>> is_worth_it(ConnectionResetError()), is_worth_it(ValueError())
    (True, False)
    """
    if isinstance(error, CallFailed):
        return error.retryable
    marked = getattr(error, "retryable", None)
    return marked if isinstance(marked, bool) else isinstance(error, ConnectionError)


def wait_before(attempt: int, base: float, error: BaseException, chance: random.Random) -> float:
    """Seconds to wait before the next attempt: doubling, with jitter, and never under Retry-After.

    >>> 0.5 <= wait_before(1, 1.0, ConnectionError(), random.Random(0)) <= 1.0
    True
    """
    longest = min(LONGEST_WAIT, base * 2 ** (attempt - 1))
    jittered = chance.uniform(longest / 2, longest)
    asked: float = getattr(error, "retry_after", None) or 0.0
    return max(jittered, min(asked, LONGEST_WAIT))
