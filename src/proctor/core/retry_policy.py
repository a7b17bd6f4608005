"""The retry policy: which failures are retried, and how long to wait before the next attempt.

Targets, models and SDK clients use it; docs/running.md describes it.
"""

from __future__ import annotations

import math
import random
import socket
from typing import Any

import msgspec

from proctor.errors import ModelError, Problem

# Request timeout, lock conflict (some providers answer 409), too early, too many requests.
RETRYABLE_CLIENT_ERRORS = frozenset({408, 409, 425, 429})
# Not implemented, and HTTP version not supported: the next attempt gets the same answer.
FINAL_SERVER_ERRORS = frozenset({501, 505})
RATE_LIMITED = 429
# Statuses that ask for fewer concurrent requests: rate limited, unavailable, overloaded.
OVERLOADED = frozenset({429, 503, 529})
# The longest wait between two requests of a model, and between two attempts of a trial.
MAX_BACKOFF_SECONDS = 30.0
MAX_TRIAL_BACKOFF_SECONDS = 60.0
# Seconds for one request, unless the model's `timeout` or the caller allows more.
REQUEST_SECONDS = 120.0
_CONNECTION_ERRORS = (ConnectionError, TimeoutError, socket.gaierror)


class RetryPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of retries, the first delay between attempts, and the timeout of one request.

    `timeout` also limits a pause that the server requests. Without it the limit is 120 seconds, or the time that the
    run or the evaluator allows the whole call, if that is longer. If the caller limits the whole call, 429 is retried
    until that time is over, even beyond `retries`, unless `retries` is 0.
    """

    retries: int = 4
    retry_delay: float = 0.5
    timeout: float | None = None

    def request_timeout(self, limit: float) -> float:
        """Return the seconds for one request of a call that may take `limit` seconds in total."""
        return max(REQUEST_SECONDS, limit) if self.timeout is None else self.timeout


def make_retry_policy(retries: Any, retry_delay: Any, timeout: Any, *, where: str) -> RetryPolicy:
    """Check the options; one error reports all problems."""
    problems = []
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        problems.append(Problem("retries", f"must be an integer, 0 or more, got {retries!r}"))
    if not _is_number(retry_delay) or retry_delay < 0:
        problems.append(Problem("retry_delay", f"must be a number of seconds, 0 or more, got {retry_delay!r}"))
    if timeout is not None and (not _is_number(timeout) or timeout <= 0):
        problems.append(Problem("timeout", f"must be a number of seconds greater than 0, got {timeout!r}"))
    if problems:
        fix = "write, for example, retries=4, retry_delay=0.5, timeout=60"
        raise ModelError("the options of the model are invalid", where=where, problems=problems, fix=fix)
    return RetryPolicy(retries, float(retry_delay), None if timeout is None else float(timeout))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def is_retryable_status(status: int) -> bool:
    """Return True if the same request may succeed later."""
    return status in RETRYABLE_CLIENT_ERRORS or (status >= 500 and status not in FINAL_SERVER_ERRORS)


def is_retryable_error(error: BaseException) -> bool:
    """Return True if an exception is transient: by its `retryable`, its `status_code`, or its type."""
    try:
        retryable, status = getattr(error, "retryable", None), getattr(error, "status_code", None)
    except Exception:
        # An attribute of a user's exception may be a property that fails.
        return False
    if isinstance(retryable, bool):
        return retryable
    if isinstance(status, int):
        return is_retryable_status(status)
    # The SDKs of OpenAI and Anthropic raise this where no response arrived; it has no status.
    is_sdk_error = any(base.__name__ == "APIConnectionError" for base in type(error).__mro__)
    # isinstance would read __class__ of a user's exception.
    return is_sdk_error or issubclass(type(error), _CONNECTION_ERRORS)


def backoff_seconds(attempt: int, delay: float, rng: random.Random, max_seconds: float = MAX_BACKOFF_SECONDS) -> float:
    """Return the seconds to wait after an attempt: doubled each time, with jitter, at most `max_seconds`."""
    # Powers of 2 above 1023 overflow a float.
    limit = min(max_seconds, delay * 2.0 ** min(attempt - 1, 1000))
    return rng.uniform(limit / 2, limit)


def trial_backoff_seconds(attempt: int, delay: float, error: BaseException, rng: random.Random) -> float:
    """Return the seconds to wait before a trial is repeated: at least the error's `retry_after`."""
    seconds = backoff_seconds(attempt, delay, rng, MAX_TRIAL_BACKOFF_SECONDS)
    try:
        retry_after = getattr(error, "retry_after", None)
        if isinstance(retry_after, int | float) and math.isfinite(retry_after):
            return max(seconds, min(retry_after, MAX_TRIAL_BACKOFF_SECONDS))
    except Exception:
        # The property failed, or the number overflows a float.
        return seconds
    return seconds
