"""Faults of a judge's model give the right score or an error, never a wrong number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import Sample, Score, evaluate
from proctor.core import bridge
from proctor.errors import Unreadable
from proctor.evaluators.llm import llm_judge
from proctor.models.model_calls import aask
from proctor.testing import Fault, RecordedRequest, ScriptedReply
from tests.models.providers.wires import WIRES, adapter_for
from tests.servers.model_server import ModelServer
from tests.tables import each_row

GOOD = '{"reason": "polite", "rating": "good"}'
every_wire = pytest.mark.parametrize("wire", WIRES)


def judged(wire: str, server: ModelServer, **options: Any) -> Score:
    """The score of a judge that rates by labels."""
    judge = llm_judge(adapter_for(wire, server.url, **options), "Is it polite?")

    async def main() -> Score:
        async with asyncio.timeout(120):
            score = await judge("Good morning!")
            assert isinstance(score, Score)
            return score

    return bridge.run(main())


PASSING = {
    "429": Fault.status(429),
    "429, wait": Fault.rate_limit(0.05),
    "500": Fault.status(500),
    "502, a page": Fault.body("<h1>no</h1>", "text/html", 502),
    "reset": Fault.reset_connection(),
    "cut": Fault.truncate(30),
    "half of the JSON": Fault.body(b'{"choices": ['),
    "hang": Fault.hang(),
    "slow": Fault.slow(0.05),
    "drip": Fault.drip(64, 0.005),
}


@every_wire
@each_row("fault", PASSING.values(), ids=PASSING)
def test_transient_errors_do_not_change_a_verdict(wire: str, fault: Fault) -> None:
    """With one transient error, the verdict is the same as without it."""
    with ModelServer(lambda _: GOOD) as server:
        server.faults.append(fault)
        # A busy machine may need more than 0.5 s for an answer, too.
        score = judged(wire, server, timeout=0.5, retries=50)
    assert (score.status, score.value, score.passed) == ("ok", 0.75, True)
    assert score.reason == "polite"


LASTING = {
    "400": Fault.status(400),
    "401": Fault.status(401),
    "404": Fault.status(404),
    "429": Fault.status(429),
    "429 for an hour": Fault.status(429, retry_after=3600),
    "500": Fault.status(500),
    "reset": Fault.reset_connection(),
    "cut": Fault.truncate(30),
    "hang": Fault.hang(),
    "a page": Fault.body("<h1>excellent</h1>", "text/html"),
    "no answer in it": Fault.body(b'{"rating": "excellent", "reason": "so they say"}'),
}


@every_wire
@each_row("fault", LASTING.values(), ids=LASTING)
def test_a_judge_that_fails_gives_an_error_score(wire: str, fault: Fault) -> None:
    """The score names the model and the failure."""
    with ModelServer(choose_fault=lambda _: fault) as server:
        score = judged(wire, server, timeout=0.2)
    assert (score.status, score.value, score.passed) == ("error", None, None)
    assert "model-x" in score.reason
    assert score.details["judge"]["error"] in ("CallFailed", "RequestRejected")


UNREADABLE: dict[str, Callable[[RecordedRequest], str | ScriptedReply]] = {
    "nothing": lambda _: ScriptedReply("", finish_reason="stop"),
    "prose": lambda _: "I find it excellent!",
    "no JSON": lambda _: "{rating: excellent}",
    "half of the JSON": lambda _: ScriptedReply('{"reason": "poli', finish_reason="length"),
    "no such rating": lambda _: '{"reason": "", "rating": "superb"}',
    "a number": lambda _: '{"reason": "", "rating": 5}',
    "null": lambda _: '{"reason": "", "rating": null}',
    "several": lambda _: '{"reason": "", "rating": ["good", "poor"]}',
    "no rating": lambda _: '{"reason": "excellent"}',
    "two answers": lambda _: GOOD + GOOD,
    "a list": lambda _: f"[{GOOD}]",
}


@every_wire
@each_row("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_verdict_is_an_error(wire: str, answer: Callable[[RecordedRequest], str | ScriptedReply]) -> None:
    """The judge is called exactly twice; the error quotes the answer."""
    with ModelServer(answer) as server:
        score = judged(wire, server)
        assert len(server.calls) == 2
    assert (score.status, score.value) == ("error", None)
    assert "not even after a reminder" in score.reason


@every_wire
@each_row("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_a_reminder_can_correct_the_format(wire: str, answer: Callable[[RecordedRequest], str | ScriptedReply]) -> None:
    """The judge then gives its score, and both calls are counted."""
    with ModelServer(lambda asked: GOOD if asked.number else answer(asked)) as server:
        score = judged(wire, server)
        assert len(server.calls) == 2
    assert (score.status, score.value) == ("ok", 0.75)


@every_wire
def test_a_refusal_is_not_repeated(wire: str) -> None:
    """It is an error at once."""
    with ModelServer(lambda _: ScriptedReply(refusal="I would rather not.")) as server:
        score = judged(wire, server)
        assert len(server.calls) == 1
    assert (score.status, score.value) == ("error", None)
    assert "refused" in score.reason


@every_wire
@each_row("number", ["0", "6", "99", "-1", "NaN", "1e999", '"five"', "true", "null"])
def test_a_number_off_the_scale_is_an_error(wire: str, number: str) -> None:
    """A judge with a scale from 1 to 5 that returns anything else gives no score."""
    with ModelServer(lambda _: f'{{"reason": "", "score": {number}}}') as server:
        judge = llm_judge(adapter_for(wire, server.url), rubric="How polite is it?")
        score = judge("Good morning!")
        assert len(server.calls) == 2
    assert (score.status, score.value) == ("error", None)


@every_wire
def test_faults_and_reminders_have_separate_budgets(wire: str) -> None:
    """Two lost requests before each of two answers do not use up the reminder, or the retries."""
    with ModelServer(lambda asked: GOOD if asked.number == 5 else "well …") as server:
        server.faults.extend([Fault.reset_connection(), Fault.status(500), None])
        server.faults.extend([Fault.reset_connection(), Fault.status(500), None])
        score = judged(wire, server)
        assert len(server.calls) == 6
    assert (score.status, score.value) == ("ok", 0.75)


@every_wire
def test_an_answer_of_another_type_is_unreadable(wire: str) -> None:
    """A model that returns words instead of a list of numbers twice."""

    async def main() -> None:
        async with asyncio.timeout(120):
            await aask(adapter_for(wire, server.url), "Primes?", list[int])

    with ModelServer(lambda _: '["two", "three"]') as server, pytest.raises(Unreadable) as caught:
        bridge.run(main())
    assert caught.value.answer == '["two", "three"]'


@every_wire
def test_a_bad_judge_call_harms_no_other_sample(wire: str, tmp_path: Path) -> None:
    """In a run, samples whose judge failed are unscored, and the others have their scores."""

    def misbehave(asked: RecordedRequest) -> Fault | None:
        return Fault.status(500) if "sample 3" in asked.text else None

    def answer(asked: RecordedRequest) -> str:
        asked_about = [message for message in asked.messages if "sample 5" in message.content]
        return "no verdict" if asked_about else GOOD

    dataset: list[Sample[str, Any]] = [Sample(f"s{n}", f"sample {n}") for n in range(8)]
    with ModelServer(answer, choose_fault=misbehave) as server:
        judge = llm_judge(adapter_for(wire, server.url), "Is it polite?")
        report = evaluate(lambda text: text, dataset, [judge], history=tmp_path / "runs.db")
    scores = {result.sample_id: next(iter(result.scores.values())) for result in report.results}
    assert {name for name, score in scores.items() if score.value is None} == {"s3", "s5"}
    assert {score.value for name, score in scores.items() if name not in ("s3", "s5")} == {0.75}
    assert report.results.counts().unscored == 2
