"""Waiting for a slot does not count as the model's time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from proctor import evaluate, llm_judge
from proctor.core import retry_policy
from proctor.core.retry_policy import RetryPolicy
from proctor.core.stopwatch import Stopwatch, paused
from proctor.engine.timeouts import CallScope, WorkerSlot
from proctor.models.openai import OpenAIAdapter
from proctor.testing import Fault, ModelServer
from tests.support import ManualClock

SECONDS = 0.1
# One call has far less than this, and all calls together have more.
CALLS, LIMIT = 20, 15 * SECONDS


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server that takes its time for every answer."""
    with ModelServer(choose_fault=lambda _: Fault.slow(SECONDS)) as running:
        yield running


def connected(server: ModelServer, **options: Any) -> OpenAIAdapter:
    return OpenAIAdapter("m", base_url=f"{server.url}/v1", api_key="none", retries=0, **options)


def run(target: Any, samples: int, evaluator: Any, **options: Any) -> list[str]:
    dataset = [{"id": str(at), "input": "hi"} for at in range(samples)]
    report = evaluate(target, dataset, evaluator, history=False, progress=False, **options)
    return [result.outcome for result in report.results]


def spoken(output: str) -> bool:
    return bool(output)


def test_a_request_may_take_as_long_as_the_call() -> None:
    """120 seconds are the default; a timeout of the model always applies."""
    assert RetryPolicy().request_timeout(600.0) == 600.0
    assert RetryPolicy().request_timeout(30.0) == 120.0
    assert RetryPolicy(timeout=45.0).request_timeout(600.0) == 45.0


@pytest.mark.parametrize("timeout", [30.0, None])
def test_a_longer_timeout_of_a_run_reaches_the_model(
    timeout: float | None, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model slower than the default of a request is waited for, as target and as judge."""
    monkeypatch.setattr(retry_policy, "REQUEST_SECONDS", SECONDS / 4)
    limits: Any = {"timeout": timeout, "evaluator_timeout": timeout}
    assert run({"model": connected(server)}, 1, spoken, **limits) == ["passed"]


def test_the_models_own_timeout_applies(server: ModelServer) -> None:
    """Whatever the run allows."""
    hasty = connected(server, timeout=SECONDS / 4)
    assert run({"model": hasty}, 1, spoken, timeout=30.0) == ["error"]


def test_waiting_for_a_slot_does_not_count_for_a_call(server: ModelServer) -> None:
    """One at a time, twenty calls take longer than one may: all are answered."""
    model = connected(server)
    model.limit_concurrency(1)
    assert run({"model": model}, CALLS, spoken, timeout=LIMIT) == ["passed"] * CALLS


def test_waiting_for_a_slot_does_not_count_for_a_judge(server: ModelServer) -> None:
    """The limit of an evaluator starts when its slot is granted."""
    model = connected(server, supports_json_schema=False)
    model.limit_concurrency(1)
    judge = llm_judge(model, "Is it polite?")
    dataset = [{"id": str(at), "input": "hi"} for at in range(CALLS)]
    report = evaluate(lambda text: text, dataset, judge, history=False, progress=False, evaluator_timeout=LIMIT)
    reasons = [result.scores["llm_judge"].reason for result in report.results]
    assert not [reason for reason in reasons if "TimeoutError" in reason]


def test_nested_stopwatches_pause_together() -> None:
    """A judge's limit is inside that of the run: neither counts the waiting."""

    async def main() -> str:
        async with Stopwatch(0.1), Stopwatch(0.1), Stopwatch(None):
            with paused():
                await asyncio.sleep(0.3)
            return "in time"

    assert asyncio.run(main()) == "in time"


def test_a_slot_has_as_much_time_after_waiting_as_before() -> None:
    """Ten seconds, three of them used, then an hour of waiting: seven are left."""
    clock = ManualClock()
    slot = WorkerSlot(10.0, clock.monotonic)
    scope = CallScope(slot)
    clock.seconds += 3.0
    scope.pause()
    scope.pause()
    assert slot.left == 7.0
    clock.seconds += 3600.0
    scope.resume()
    scope.resume()
    assert (slot.until - clock.monotonic(), scope.waited) == (7.0, 3600.0)


def test_an_abandoned_call_does_not_touch_the_next_one() -> None:
    """A thread that was abandoned may wait for its turn, and continue, at any time."""
    slot = WorkerSlot(10.0, ManualClock().monotonic)
    abandoned = CallScope(slot)
    abandoned.pause()
    CallScope(slot)
    abandoned.resume()
    abandoned.pause()
    assert slot.until == 10.0
