"""Which errors are worth another attempt, and how long to wait before it."""

from __future__ import annotations

import math
import random

LONGEST_WAIT = 60.0
PASSING_STATUS = (408, 425, 429)


def is_worth_it(error: BaseException) -> bool:
    """True for errors that may pass by themselves: connections, and what says so of itself
    (`retryable`, or an HTTP `status_code` of 408, 425, 429 or 5xx).

    >>> is_worth_it(ConnectionResetError()), is_worth_it(ValueError())
    (True, False)
    """
    try:
        answers = (getattr(error, "retryable", None), _status_is_worth_it(error))
    except Exception:
        # An attribute of the user's own exception failed.
        return False
    for told in answers:
        if isinstance(told, bool):
            return told
    return isinstance(error, ConnectionError | TimeoutError)


def wait_before(attempt: int, base: float, error: BaseException, chance: random.Random) -> float:
    """Seconds to wait before the next attempt: doubling, with jitter, and never under Retry-After.

    >>> 0.5 <= wait_before(1, 1.0, ConnectionError(), random.Random(0)) <= 1.0
    True
    """
    longest = min(LONGEST_WAIT, base * 2 ** (attempt - 1))
    jittered = chance.uniform(longest / 2, longest)
    try:
        asked = getattr(error, "retry_after", None)
    except Exception:
        return jittered
    if isinstance(asked, int | float) and math.isfinite(asked):
        return max(jittered, min(asked, LONGEST_WAIT))
    return jittered


def _status_is_worth_it(error: BaseException) -> bool | None:
    """What the HTTP status says that clients of model providers put on their errors."""
    status = getattr(error, "status_code", None)
    return status in PASSING_STATUS or status >= 500 if isinstance(status, int) else None
