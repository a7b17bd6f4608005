"""Retries of a trial: only transient errors are retried, and the waits grow."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import ModelCall, Usage, evaluate, exact_match, record
from proctor.core.retry_policy import (
    MAX_TRIAL_BACKOFF_SECONDS,
    is_retryable_error,
    is_retryable_status,
    trial_backoff_seconds,
)
from proctor.engine.start import RunControls
from proctor.errors import CallFailed
from proctor.history.sqlite import SQLiteHistory
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from tests.support import ManualClock, samples
from tests.tables import each_row


def failing(times: int, error: Exception) -> tuple[list[str], Callable[[str], Awaitable[str]]]:
    """A target that fails the first `times` calls, and the list of its calls."""
    calls: list[str] = []

    async def target(text: str) -> str:
        calls.append(text)
        if len(calls) <= times:
            raise error
        return text.upper()

    return calls, target


def test_by_default_nothing_is_retried() -> None:
    """One failure is one error result."""
    calls, target = failing(1, ConnectionError("gone"))
    report = evaluate(target, samples(1), exact_match, history=False)
    assert (len(calls), report.errors) == (1, 1)


def test_a_transient_error_is_retried_with_growing_waits() -> None:
    """Two connection errors, then success: three attempts, two waits, the second the longer one."""
    calls, target = failing(2, ConnectionError("gone"))
    clock = ManualClock()
    evaluation = Evaluation(
        target, samples(1), exact_match, options={"retries": 3, "retry_delay": 10.0, "timeout": None}
    )
    report = asyncio.run(execute(evaluation, SQLiteHistory.temporary(), RunControls(), clock=clock))
    assert (len(calls), report.pass_rate) == (3, 1.0)
    assert report.results[0].trial.attempts == 3
    first, second = clock.slept
    assert 5 <= first <= 10 <= second <= 20


def test_a_permanent_error_is_not_retried() -> None:
    """A ValueError occurs again on the next attempt."""
    calls, target = failing(1, ValueError("wrong"))
    report = evaluate(target, samples(1), exact_match, retries=5, history=False)
    assert (len(calls), report.errors) == (1, 1)


def test_attempts_are_limited() -> None:
    """retries=2 means three attempts; then the result is the error, with the number of attempts."""
    calls, target = failing(99, CallFailed("busy", retryable=True))
    report = evaluate(target, samples(1), exact_match, retries=2, retry_delay=0.0, history=False)
    assert (len(calls), report.results[0].trial.attempts) == (3, 3)
    assert report.results[0].error == "CallFailed: busy"


def test_the_attribute_retryable_decides_before_the_type() -> None:
    """`retryable` overrides what the type of an exception suggests."""

    class Busy(Exception):
        retryable = True

    class Gone(ConnectionError):
        retryable = False

    assert is_retryable_error(Busy())
    assert not is_retryable_error(Gone())
    assert is_retryable_error(CallFailed("503", retryable=True))
    assert not is_retryable_error(CallFailed("400"))


@given(st.integers(1, 50), st.floats(0, 100), st.floats(0, 1000), st.integers())
def test_waits_respect_retry_after_and_stay_bounded(attempt: int, base: float, asked: float, seed: int) -> None:
    """A wait is never under Retry-After (up to a minute) and never over a minute."""
    error = CallFailed("busy", retryable=True, retry_after=asked)
    wait = trial_backoff_seconds(attempt, base, error, random.Random(seed))
    assert min(asked, MAX_TRIAL_BACKOFF_SECONDS) <= wait <= MAX_TRIAL_BACKOFF_SECONDS


class StatusError(Exception):
    """An error of a model provider's client, with the HTTP status."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code


@each_row("status", [400, 401, 404, 408, 409, 422, 425, 429, 500, 501, 503, 505, 529])
def test_a_target_follows_the_policy_of_models(status: int) -> None:
    """A status that is retried for a model is retried for a target that raises it, and no other."""
    calls, target = failing(1, StatusError(status))
    evaluate(target, samples(1), exact_match, retries=1, retry_delay=0.0, history=False)
    assert len(calls) == (2 if is_retryable_status(status) else 1)


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionResetError(), socket.gaierror()])
def test_a_lost_connection_is_retried(error: Exception) -> None:
    """A timeout, a lost connection and a failed name lookup inside a target are transient."""
    calls, target = failing(1, error)
    report = evaluate(target, samples(1), exact_match, retries=1, retry_delay=0.0, history=False)
    assert (len(calls), report.pass_rate) == (2, 1.0)


class Unreadable(ConnectionError):
    """An exception whose attributes raise errors."""

    @property
    def retryable(self) -> bool:
        raise RuntimeError("not readable")

    retry_after = retryable


class Endless(ConnectionError):
    """An exception that asks for a wait that does not fit into a float."""

    retry_after = 10**400


def test_an_exception_with_unreadable_attributes_is_not_retried() -> None:
    """Properties of a user's exception cannot break the run."""
    calls, target = failing(1, Unreadable("gone"))
    report = evaluate(target, samples(1), exact_match, retries=1, retry_delay=0.0, history=False)
    assert (len(calls), report.results[0].error) == (1, "Unreadable: gone")


@pytest.mark.parametrize("error", [Unreadable(), Endless()])
def test_an_unusable_retry_after_is_ignored(error: Exception) -> None:
    """The wait is then the one of an error without `retry_after`."""
    assert 0.5 <= trial_backoff_seconds(1, 1.0, error, random.Random(0)) <= 1.0


def test_waits_stay_bounded_after_thousands_of_attempts() -> None:
    """The doubled delay does not overflow."""
    assert trial_backoff_seconds(5000, 0.0, ConnectionError(), random.Random(0)) == 0.0
    assert trial_backoff_seconds(5000, 1.0, ConnectionError(), random.Random(0)) <= 60.0


def test_a_retry_after_that_is_not_a_number_is_ignored() -> None:
    """Ruling 2: attributes of an exception cannot break the run."""

    class Busy(ConnectionError):
        retry_after = "soon"

    calls, target = failing(1, Busy("busy"))
    report = evaluate(target, samples(1), exact_match, retries=1, retry_delay=0.0, history=False)
    assert (len(calls), report.pass_rate) == (2, 1.0)


def test_each_attempt_has_its_own_session_and_all_usage_counts() -> None:
    """Evaluators see the last attempt; tokens of failed ones are counted too."""
    calls = []

    async def target(text: str) -> str:
        calls.append(text)
        record(ModelCall("m", Usage(input_tokens=10)))
        if len(calls) < 3:
            raise ConnectionError("gone")
        return text.upper()

    report = evaluate(target, samples(1), exact_match, retries=3, retry_delay=0.0, history=False)
    trial = report.results[0].trial
    assert trial.session is not None
    assert len(trial.session) == 1
    assert report.metrics["tokens.total"].value == 30
