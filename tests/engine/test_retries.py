"""Retries: only what may pass by itself, with growing waits that are handed in."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from proctor import ModelCall, Usage, evaluate, exact_match, record
from proctor.engine.start import RunControls
from proctor.engine.trial import MAX_BACKOFF, backoff_seconds, is_retryable
from proctor.errors import CallFailed
from proctor.history.sqlite import SQLiteHistory
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from tests.surroundings import ManualClock, samples


def failing(times: int, error: Exception) -> tuple[list[str], object]:
    """A target that fails the first `times` calls, and the list of its calls."""
    calls: list[str] = []

    async def target(text: str) -> str:
        calls.append(text)
        if len(calls) <= times:
            raise error
        return text.upper()

    return calls, target


def test_by_default_nothing_is_tried_again() -> None:
    """One failure is one error result."""
    calls, target = failing(1, ConnectionError("gone"))
    report = evaluate(target, samples(1), exact_match, history=False)
    assert (len(calls), report.errors) == (1, 1)


def test_passing_trouble_is_tried_again_with_growing_waits() -> None:
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


def test_lasting_trouble_is_not_tried_again() -> None:
    """A ValueError will be the same the next time."""
    calls, target = failing(1, ValueError("wrong"))
    report = evaluate(target, samples(1), exact_match, retries=5, history=False)
    assert (len(calls), report.errors) == (1, 1)


def test_attempts_end() -> None:
    """retries=2 means three attempts; then the error stands, with the number of attempts."""
    calls, target = failing(99, CallFailed("busy", retryable=True))
    report = evaluate(target, samples(1), exact_match, retries=2, retry_delay=0.0, history=False)
    assert (len(calls), report.results[0].trial.attempts) == (3, 3)
    assert report.results[0].error == "CallFailed: busy"


def test_what_says_so_of_itself_is_believed() -> None:
    """An exception's own `retryable` decides before its type does."""

    class Busy(Exception):
        retryable = True

    class Gone(ConnectionError):
        retryable = False

    assert is_retryable(Busy())
    assert not is_retryable(Gone())
    assert is_retryable(CallFailed("503", retryable=True))
    assert not is_retryable(CallFailed("400"))


@given(st.integers(1, 50), st.floats(0, 100), st.floats(0, 1000), st.integers())
def test_waits_obey_retry_after_and_stay_bounded(attempt: int, base: float, asked: float, seed: int) -> None:
    """A wait is never under Retry-After (up to a minute) and never over a minute."""
    error = CallFailed("busy", retryable=True, retry_after=asked)
    wait = backoff_seconds(attempt, base, error, random.Random(seed))
    assert min(asked, MAX_BACKOFF) <= wait <= MAX_BACKOFF


def test_a_status_code_tells_what_may_pass() -> None:
    """Clients of model providers put the HTTP status on their errors."""

    class Status(Exception):
        def __init__(self, status_code: int) -> None:
            self.status_code = status_code

    worth = {code for code in (400, 401, 404, 408, 425, 429, 500, 503) if is_retryable(Status(code))}
    assert worth == {408, 425, 429, 500, 503}
    assert is_retryable(TimeoutError())


def test_a_retry_after_that_is_no_number_is_ignored() -> None:
    """Ruling 2: what an exception carries cannot break the run."""

    class Busy(ConnectionError):
        retry_after = "soon"

    calls, target = failing(1, Busy("busy"))
    report = evaluate(target, samples(1), exact_match, retries=1, retry_delay=0.0, history=False)
    assert (len(calls), report.pass_rate) == (2, 1.0)


def test_each_attempt_has_a_session_of_its_own_and_all_are_paid_for() -> None:
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
