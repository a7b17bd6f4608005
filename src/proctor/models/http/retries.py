"""Which failures are worth another request, and how long to wait before it."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec

from proctor.errors import ModelError, Problem

# 409 is how some providers say that a lock was not free in time.
PASSING = frozenset({408, 409, 425, 429})
# 501 and 505 will be the same tomorrow.
LASTING = frozenset({501, 505})
# Too many requests: nothing is wrong with this one but the moment.
LIMITED = 429
# Too many requests, and the two ways to say "overloaded".
TOO_MUCH = frozenset({429, 503, 529})
LONGEST_PAUSE = 30.0
# Seconds for one request where neither the model's `timeout` nor the caller allows more.
REQUEST_SECONDS = 120.0


class Patience(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long to try: further requests, the first pause between them, seconds for each.

    `timeout` limits one request, and one pause that the endpoint asks for. Without it the limit
    is 120 seconds, or the time that the run or the evaluator allows the whole call if that is
    longer. Where the caller limits the whole call, 429 is tried again until then, more often than
    `retries`, unless these are 0.
    """

    retries: int = 4
    retry_delay: float = 0.5
    timeout: float | None = None

    def within(self, limit: float) -> float:
        """Seconds for one request of a call that may take `limit` seconds in all.

        >>> Patience().within(300.0), Patience(timeout=30.0).within(300.0), Patience().within(5.0)
        (300.0, 30.0, 120.0)
        """
        return max(REQUEST_SECONDS, limit) if self.timeout is None else self.timeout


def patience(retries: Any, retry_delay: Any, timeout: Any, *, where: str) -> Patience:
    """The options checked, all faults at once.

    >>> patience(2, 0.1, 30, where="openai:gpt-4o-mini").timeout
    30.0
    """
    problems = []
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        problems.append(Problem("retries", f"expected a whole number from 0, not {retries!r}"))
    if not _seconds(retry_delay) or retry_delay < 0:
        problems.append(Problem("retry_delay", f"expected seconds from 0, not {retry_delay!r}"))
    if timeout is not None and (not _seconds(timeout) or timeout <= 0):
        problems.append(Problem("timeout", f"expected seconds above 0, not {timeout!r}"))
    if problems:
        raise ModelError("its options do not fit", where=where, problems=problems)
    return Patience(retries, float(retry_delay), None if timeout is None else float(timeout))


def _seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def is_passing(status: int) -> bool:
    """True if the same request may succeed later.

    >>> [is_passing(status) for status in (429, 503, 400, 501)]
    [True, True, False, False]
    """
    return status in PASSING or (status >= 500 and status not in LASTING)


def pause_before(retry: int, delay: float, chance: random.Random) -> float:
    """Seconds before the next request: doubling, with jitter.

    >>> 1.0 <= pause_before(3, 0.5, random.Random(0)) <= 2.0
    True
    """
    longest = min(LONGEST_PAUSE, delay * 2.0 ** (retry - 1))
    return chance.uniform(longest / 2, longest)
