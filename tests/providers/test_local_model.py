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
from typing import Literal

import msgspec
import pytest

from proctor import evaluate
from proctor.errors import CallFailed
from proctor.evaluators.llm import RATING_VALUES, llm_judge
from proctor.models import weights
from proctor.models.connect import provider
from proctor.models.local import LocalAdapter
from proctor.models.model_calls import aask, ask
from proctor.records.session import Message, ModelCall

pytest.importorskip("xllamacpp", reason="xllamacpp cannot be imported here", exc_type=ImportError)

MODEL = "local:smollm2"


@pytest.fixture(scope="session", autouse=True)
def smollm2() -> Path:
    """The weights, pulled once into the standard cache of this machine."""
    return weights.pull("smollm2")


def test_it_answers() -> None:
    """Text, usage and a price of nothing; the second call finds the server running."""
    response = ask(MODEL, "Say hello.", max_tokens=6, temperature=0.0, seed=1, timeout=120)
    assert response.text.strip()
    assert response.usage.output_tokens in range(1, 7)
    assert response.cost == 0.0
    again = ask(MODEL, "Say hello.", max_tokens=6, temperature=0.0, seed=1, timeout=120)
    assert again.text == response.text


class City(msgspec.Struct):
    """What is asked for."""

    name: Literal["Paris", "Rome"]
    large: bool


def test_it_is_held_to_a_schema() -> None:
    """Even a model that does not understand the question answers in the type."""
    response = ask(MODEL, "Tell me of a city.", City, max_tokens=60, temperature=0.0, timeout=120)
    assert isinstance(response.output, City)


def test_it_tells_the_probabilities_of_tokens() -> None:
    """Three alternatives for each token, each a logarithm of a probability."""
    response = ask(MODEL, "Say yes or no.", max_tokens=3, top_logprobs=3, timeout=120)
    assert 1 <= len(response.logprobs) <= 3
    for token in response.logprobs:
        assert len(token.others) == 3
        assert sum(math.exp(chance) for chance in token.others.values()) <= 1.001


def test_it_is_a_target_and_a_judge() -> None:
    """A whole run with it on both sides: every score has a rating of the scale."""

    async def target(question: str) -> str:
        response = await aask(MODEL, question, max_tokens=10, temperature=0.0)
        return response.text

    data = [
        {"id": "1", "input": "What is the capital of France?", "expected": "Paris"},
        {"id": "2", "input": "What is 2 + 2?", "expected": "4"},
    ]
    judge = llm_judge(MODEL, "the answer is right")
    # One at a time: what runs beside it changes the last digits, and with them maybe the words.
    report = evaluate(target, data, judge, history=False, timeout=120, evaluator_timeout=120, concurrency=1)
    assert (report.total, report.errors) == (2, 0)
    for result in report.results:
        (score,) = result.scores.values()
        assert score.value in RATING_VALUES.values()
        (session,) = result.sessions.values()
        assert [call.model for call in session[ModelCall]] == [MODEL]
        assert session[Message][-1].role == "assistant"
        assert result.trial.usage is not None
        assert result.trial.usage.cost == 0.0


def test_many_questions_at_once_are_all_answered() -> None:
    """Eight at once, by two adapters: one server, no answer lost."""

    async def main() -> list[str]:
        models = [provider(MODEL), provider(MODEL)]
        calls = (aask(models[i % 2], f"Say {i}.", max_tokens=4, timeout=120) for i in range(8))
        return [response.text.strip() for response in await asyncio.gather(*calls)]

    assert all(asyncio.run(main()))


def test_requests_do_not_share_the_processor_by_default() -> None:
    """One at a time: a request that shares the processor waits for the other in its own time."""
    model = provider(MODEL)
    assert isinstance(model, LocalAdapter)

    async def main() -> int:
        await aask(model, "Say a.", max_tokens=1, timeout=120)
        assert model._connection is not None
        limiter = model._connection[1].endpoint.limiter
        calls = [asyncio.create_task(aask(model, f"Say {i}.", max_tokens=1, timeout=120)) for i in range(5)]
        most = 0
        while not all(call.done() for call in calls):
            most = max(most, limiter.in_flight)
            await asyncio.sleep(0.001)
        return most

    assert asyncio.run(main()) == 1
    assert _process_of(model).args[-2:] == ["--parallel", "1"]  # type: ignore[index]


def _process_of(model: LocalAdapter) -> subprocess.Popen[bytes]:
    from proctor.models.local import _SERVERS

    return _SERVERS[model._server._key].process


def test_a_server_that_died_is_started_again() -> None:
    """The next question finds a new one."""
    model = provider(MODEL, parallel=1)
    assert isinstance(model, LocalAdapter)
    assert ask(model, "Say a.", max_tokens=2, timeout=120).attempts == 1
    process = _process_of(model)
    process.kill()
    process.wait(10)
    assert ask(model, "Say b.", max_tokens=2, timeout=120).usage.output_tokens in (1, 2)
    assert _process_of(model).pid != process.pid


def test_a_server_that_dies_in_the_middle_is_told() -> None:
    """The call fails with how the server ended, and may be tried again."""
    model = provider(MODEL, parallel=1)
    assert isinstance(model, LocalAdapter)

    async def main() -> None:
        await aask(model, "Say a.", max_tokens=2, timeout=120)
        call = asyncio.create_task(aask(model, "Tell a long story.", max_tokens=3000, timeout=120))
        await asyncio.sleep(0.3)
        _process_of(model).kill()
        with pytest.raises(CallFailed, match="its server ended with status -9") as caught:
            await call
        assert caught.value.retryable

    asyncio.run(main())


def test_a_question_longer_than_the_context_is_an_error() -> None:
    """Not an answer to half of it."""
    model = provider(MODEL, context=256, parallel=1)
    with pytest.raises(CallFailed, match="context"):
        ask(model, "word " * 1000, max_tokens=5, timeout=120)


PARENT = """
import sys, time
from proctor.models.model_calls import ask
from proctor.models.connect import provider
model = provider("local:smollm2")
ask(model, "Say a.", max_tokens=2, timeout=120)
print(model._server.find_url(), flush=True)
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
        [sys.executable, "-c", PARENT, "stay" if end == "kill" else "leave"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    with parent, parent.stdout:
        url = parent.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        if end == "kill":
            assert _answers(url)
            os.kill(parent.pid, signal.SIGKILL)
        parent.wait(20)
    until = time.monotonic() + 10
    while _answers(url) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _answers(url)


def test_the_server_process_ends_with_its_input(smollm2: Path) -> None:
    """It prints its address as soon as it listens, and leaves when nothing more can come."""
    command = [sys.executable, "-m", "proctor.models.local", str(smollm2)]
    told = subprocess.run([*command, "--context", "256"], input=b"", capture_output=True, timeout=120)
    assert told.returncode == 0
    (address,) = told.stdout.decode().splitlines()
    assert address.startswith("http://127.0.0.1:")


def test_an_answer_without_a_limit_of_its_own_ends_all_the_same() -> None:
    """Small models may go on for ever; the limit of the model holds where the question has none."""
    model = provider(MODEL, max_tokens=5)
    response = ask(model, "Count from 1 to 1000.", temperature=0.0, timeout=120)
    assert (response.usage.output_tokens, response.finish_reason) == (5, "length")


def test_a_server_that_is_not_up_in_time_fails_the_call() -> None:
    """The call ends in its time; the server goes on starting and answers the next one."""
    model = provider(MODEL, context=512, parallel=1)
    with pytest.raises(CallFailed, match="did not start within") as caught:
        ask(model, "Say a.", max_tokens=2, timeout=0.05)
    assert caught.value.retryable
    assert ask(model, "Say a.", max_tokens=2, timeout=120).usage.output_tokens in (1, 2)
