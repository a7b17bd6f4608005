"""The Ray actor, tested in this process: timeouts, and JSON messages.

`test_on_ray` tests it inside Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.distributed.ray_actor import ActorInfo, TrialActor, TrialResponse
from proctor.engine import timeouts as limits
from proctor.records import codec
from proctor.records.mail import EvalRequest
from proctor.wiring.prepare import Evaluation, build_recipe
from tests.support import samples

EXAM = """
import asyncio
from proctor.sessions import current as sessions
from proctor.models.model_calls import aask
from proctor.records.model import ModelResponse
from proctor.records.session import Usage

async def shout(text):
    await asyncio.sleep(0)
    sessions.warn(f"{text} was loud")
    return text.upper()

async def stubborn(text):
    while True:
        try:
            await asyncio.sleep(5)
            return text
        except asyncio.CancelledError:
            pass

class Model:
    model, supports_json_schema = "test:model", False
    async def complete(self, request, *, timeout=None):
        return ModelResponse(request.messages[0].content.upper(), usage=Usage(8, 2))

async def asking(text):
    await aask(Model(), text)
    return (await aask(Model(), text)).text
"""


@pytest.fixture(autouse=True)
def _exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "exam.py").write_text(EXAM)
    monkeypatch.chdir(tmp_path)


def actor_of(target: str, **options: Any) -> TrialActor:
    evaluation = Evaluation(f"exam.py:{target}", (), ["exact_match"], options=options)
    return TrialActor("proctor.wiring.prepare:build_setup", build_recipe(evaluation))


async def introduced(actor: TrialActor) -> ActorInfo:
    return codec.decode(await actor.prepare(), ActorInfo)


async def answers(actor: TrialActor, count: int) -> list[TrialResponse]:
    """Run several samples concurrently, then close the actor."""
    await actor.prepare()
    requests = [codec.encode(EvalRequest(sample)) for sample in samples(count)]
    text = await asyncio.gather(*map(actor.trial, requests))
    await actor.close()
    return [codec.decode(data, TrialResponse) for data in text]


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(20):
            return await work()

    return asyncio.run(bounded())


@pytest.mark.parametrize("timeout", [None, 30.0])
def test_a_trial_is_run_and_scored(timeout: float | None) -> None:
    """Results and warnings are returned, with and without a timeout."""
    first, second = run(lambda: answers(actor_of("shout", timeout=timeout), 2))
    assert (first.result.output, second.result.output) == ("WORD 0", "WORD 1")
    assert first.result.scores["exact_match"].passed
    assert (first.warnings, second.warnings) == (["word 0 was loud"], ["word 1 was loud"])
    assert (first.stop, first.spent) == ("", None)


def test_an_actor_reports_its_code() -> None:
    """Target and evaluators with digests, and the name of host and process."""
    text = run(lambda: introduced(actor_of("shout")))
    target, evaluator = text.expects.split()
    assert target.startswith("shout@")
    assert evaluator.startswith("exact_match@")
    assert text.problem == ""
    assert text.name


def test_an_actor_reports_why_it_cannot_start() -> None:
    """As text, because Ray would have to pickle an exception."""
    text = run(lambda: introduced(actor_of("nobody")))
    assert "has no attribute 'nobody'" in text.problem
    assert text.expects == ""


def test_a_call_that_ignores_its_cancellation_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The response does not wait for it."""
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.1)
    (answer,) = run(lambda: answers(actor_of("stubborn", timeout=1.0), 1))
    assert answer.result.error == (
        "TimeoutError: the target took longer than 1 s (it kept running after it was cancelled)"
    )
    assert answer.result.latency_ms >= 1_090


def test_a_response_contains_the_usage_of_its_trial() -> None:
    """The run adds them up."""
    first, second = run(lambda: answers(actor_of("asking", budget={"calls": 10}), 2))
    for answer in (first, second):
        assert (answer.spent.calls, answer.spent.tokens) == (2, 20)


def test_a_spent_budget_is_a_response() -> None:
    """It has no result, but a reason and the usage so far."""
    (answer,) = run(lambda: answers(actor_of("asking", budget={"calls": 1}), 1))
    assert answer.result is None
    assert answer.stop == "the budget is spent: 1 of 1 calls"
    assert answer.fix == "raise the budget and resume the run"
    assert answer.spent.calls == 1
