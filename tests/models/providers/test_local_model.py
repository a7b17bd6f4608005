"""A real language model on this machine, end to end: as a target and as a judge.

It is far too small to be believed. What is tested is that answers of the right form come out.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from proctor import evaluate
from proctor.errors import CallFailed
from proctor.evaluators.judges.scale import RATING_VALUES
from proctor.evaluators.llm import llm_judge
from proctor.models import weights
from proctor.models.connect import provider
from proctor.models.local import LocalAdapter
from proctor.models.model_calls import aask, ask
from proctor.models.prompts import MarkdownSection, PromptTemplate
from proctor.records.session import Message, ModelCall

pytest.importorskip("xllamacpp", reason="xllamacpp cannot be imported here", exc_type=ImportError)

MODEL = "local:smollm2"


@pytest.fixture(scope="session", autouse=True)
def smollm2() -> Path:
    """The weights, pulled once into the standard cache of this machine."""
    return weights.pull("smollm2")


def test_it_answers() -> None:
    """Text, usage and a price of nothing; the second call finds the server running."""
    response = ask(MODEL, "Say hello.", max_tokens=3, temperature=0.0, seed=1, timeout=120)
    assert response.text.strip()
    assert response.usage.output_tokens in (1, 2, 3)
    assert response.cost == 0.0
    again = ask(MODEL, "Say hello.", max_tokens=3, temperature=0.0, seed=1, timeout=120)
    assert again.text == response.text


class City(msgspec.Struct):
    """What is asked for."""

    name: Literal["Paris", "Rome"]
    large: bool


def test_it_follows_a_schema() -> None:
    """Even a model that does not understand the question answers in the type."""
    response = ask(MODEL, "Tell me of a city.", City, max_tokens=60, temperature=0.0, timeout=120)
    assert isinstance(response.output, City)


def test_it_returns_logprobs() -> None:
    """Three alternatives for each token."""
    response = ask(MODEL, "Say yes or no.", max_tokens=3, top_logprobs=3, timeout=120)
    assert 1 <= len(response.logprobs) <= 3
    for token in response.logprobs:
        assert len(token.others) == 3
        assert sum(math.exp(chance) for chance in token.others.values()) <= 1.001


def test_it_is_a_target_and_a_judge() -> None:
    """A run with it on both sides: the score has a rating of the scale."""

    async def target(question: str) -> str:
        response = await aask(MODEL, question, max_tokens=4, temperature=0.0)
        return response.text

    data = [{"id": "1", "input": "What is 2 + 2?", "expected": "4"}]
    # A short prompt, because the model reads a thousand tokens for half a minute.
    section: MarkdownSection[Any] = MarkdownSection("", "Is $output right?", key="task")
    judge = llm_judge(MODEL, prompt=PromptTemplate("tests", "judge", [section]))
    report = evaluate(target, data, judge, history=False, timeout=120, evaluator_timeout=120)
    assert (report.total, report.errors) == (1, 0)
    (result,) = report.results
    (score,) = result.scores.values()
    assert score.value in RATING_VALUES.values()
    (session,) = result.sessions.values()
    assert {call.model for call in session[ModelCall]} == {MODEL}
    assert session[Message][-1].role == "assistant"
    assert result.trial.usage is not None
    assert result.trial.usage.cost == 0.0


def test_requests_of_two_adapters_run_one_at_a_time() -> None:
    """One server answers all: a request that shared the processor would wait in its own time."""
    models: list[Any] = [provider(MODEL), provider(MODEL)]

    async def main() -> int:
        for model in models:
            await aask(model, "Say a.", max_tokens=1, timeout=120)
        limiters = [model._connection[1].endpoint.limiter for model in models]
        assert limiters[0] is limiters[1]
        calls = [asyncio.create_task(aask(models[i % 2], f"Say {i}.", max_tokens=1, timeout=120)) for i in range(4)]
        most = 0
        while not all(call.done() for call in calls):
            most = max(most, limiters[0].in_flight)
            await asyncio.sleep(0.001)
        assert all(call.result().usage.output_tokens == 1 for call in calls)
        return most

    assert asyncio.run(main()) == 1
    assert _process_of(models[0]).args[-2:] == ["--parallel", "1"]  # type: ignore[index]


def _process_of(model: Any) -> subprocess.Popen[bytes]:
    from proctor.models.local import _SERVERS

    return _SERVERS[model._server._key].process


def test_a_server_that_dies_is_reported_and_started_again() -> None:
    """The call fails with how the server ended, and may be tried again; the next one finds a new server."""
    model = provider(MODEL, concurrency=1)
    assert isinstance(model, LocalAdapter)

    async def main() -> None:
        await aask(model, "Say a.", max_tokens=1, timeout=120)
        call = asyncio.create_task(aask(model, "Tell a long story.", max_tokens=3000, timeout=120))
        assert model._connection is not None
        while not model._connection[1].endpoint.limiter.in_flight:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        _process_of(model).kill()
        with pytest.raises(CallFailed, match="its server process ended with status -9") as caught:
            await call
        assert caught.value.retryable

    asyncio.run(main())
    process = _process_of(model)
    assert ask(model, "Say b.", max_tokens=1, timeout=120).usage.output_tokens == 1
    assert _process_of(model).pid != process.pid


def test_a_server_that_is_not_up_in_time_fails_the_call() -> None:
    """The call ends in its time; the server goes on starting and answers the next one.

    A question that is longer than its context is an error, not an answer to half of it.
    """
    model = provider(MODEL, context=256, concurrency=1)
    with pytest.raises(CallFailed, match="did not start within") as caught:
        ask(model, "Say a.", max_tokens=1, timeout=0.05)
    assert caught.value.retryable
    assert ask(model, "Say a.", max_tokens=1, timeout=120).usage.output_tokens == 1
    with pytest.raises(CallFailed, match="context"):
        ask(model, "word " * 1000, max_tokens=5, timeout=120)


PARENT = """
import sys, time
from proctor.models.connect import provider
model = provider("local:smollm2")
print(model._server.start(), flush=True)
if sys.argv[1] == "stay":
    time.sleep(60)
"""


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return int(answer.status) == 200
    except OSError:
        return False


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_no_server_outlives_its_parent(end: str) -> None:
    """Whether the parent ends in order or is killed."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, "stay" if end == "kill" else "leave"], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent, parent.stdout:
        url = parent.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        if end == "kill":
            assert _answers(url)
            os.kill(parent.pid, signal.SIGKILL)
        parent.wait(60)
    for _ in range(600):
        if not _answers(url):
            return
        time.sleep(0.1)
    pytest.fail("the server still answers")


def test_the_server_process_ends_with_its_input(smollm2: Path) -> None:
    """It prints its address when it listens, and exits when standard input is closed."""
    command = [sys.executable, "-m", "proctor.models.local", str(smollm2)]
    result = subprocess.run([*command, "--context", "256"], input=b"", capture_output=True, timeout=120)
    assert result.returncode == 0
    (address,) = result.stdout.decode().splitlines()
    assert address.startswith("http://127.0.0.1:")


def test_an_answer_without_max_tokens_is_limited() -> None:
    """Small models may never stop; the limit of the model applies."""
    model = provider(MODEL, max_tokens=5)
    response = ask(model, "Count from 1 to 1000.", temperature=0.0, timeout=120)
    assert (response.usage.output_tokens, response.finish_reason) == (5, "length")
