"""Judges that fail: their timeouts, their errors, and further attempts."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest

from proctor import Message, Rubric, Score, Session
from proctor.core import bridge
from proctor.engine.start import RunControls
from proctor.errors import EvaluatorError
from proctor.evaluators.rubric_files import load_rubrics
from proctor.evaluators.rubrics import rubric_evaluators
from proctor.models.wrappers.limits import Paced
from proctor.records.model import ModelRequest, ModelResponse
from proctor.testing import Fault, ModelServer, RecordedRequest, ScriptedReply
from proctor.wiring.evaluate import execute
from proctor.wiring.open_history import open_history
from proctor.wiring.scoring.manifest import Scoring, build_scoring
from tests.evaluators.judging.rehearsed import Scripted
from tests.models.providers.wires import adapter_for

TONE = Rubric("tone", "Tone", "Is the agent polite?", "1: rude\n5: polite")
CHAT = Session([Message("user", "Book it."), Message("assistant", "Done.")])


def test_an_unreadable_answer_is_requested_again_with_retry_errors(tmp_path: Path) -> None:
    """Unreadable answers are not stored."""
    judge = Scripted("Lovely.", "Lovely.", lambda asked: asked.score(4))
    chat = {"events": [{"type": "message", "role": "user", "content": "Book it."}]}
    samples = [{"id": "s", "input": "Book it.", "metadata": {"output": "", "session": chat}}]
    history = open_history(tmp_path / "h.db")
    evaluation = build_scoring(samples, load_rubrics([TONE]), judge, Scoring())

    def run(**how: Any) -> Score:
        resume = how.pop("resume", False)
        report = bridge.run(execute(evaluation, history, RunControls(**how), resume_from=resume))
        (result,) = report.results
        return result.scores["tone"]

    assert run().details["status"] == "evaluation_failed"
    assert len(judge.asked) == 2
    assert run(resume=True, retry_errors=True).details["score"] == 4
    assert len(judge.asked) == 3
    assert run().details["score"] == 4
    assert len(judge.asked) == 3


def judged(judge: Any, sessions: int, timeout: float) -> tuple[list[Score], float]:
    """The scores of several concurrent sessions, and the elapsed time."""
    (evaluator,) = rubric_evaluators(judge, [TONE], timeout=timeout)

    async def main() -> Any:
        return await asyncio.gather(*(evaluator("x", None, CHAT) for _ in range(sessions)))

    began = time.monotonic()
    return bridge.run(main()), time.monotonic() - began


def four(asked: RecordedRequest) -> ScriptedReply:
    line = asked.text.rpartition("\n")[2].partition("<")[0]
    return ScriptedReply(f"So it is.\n{line}4")


def test_waiting_for_the_limiter_is_not_the_rubrics_time() -> None:
    """A pause of 0.6 s before a rubric that has 1 s, twice, and each gets its verdict."""
    with ModelServer(four) as server:
        server.faults += [Fault.rate_limit(0.6), Fault.rate_limit(0.6)]
        judge = adapter_for("openai", server.url, supports_json_schema=False, retry_delay=0.01)
        (score,), took = judged(judge, 1, 1.0)
    assert score.details.get("score") == 4, score.reason
    assert took > 1.2


def test_waiting_for_a_turn_at_a_pace_is_not_the_rubrics_time() -> None:
    """Six calls at ten a second, each with a quarter of a second."""
    scores, took = judged(Paced(Scripted(lambda asked: asked.score(4)), per_second=10), 6, 0.25)
    assert [score.details.get("score") for score in scores] == [4] * 6
    assert took > 0.45


def test_a_wait_longer_than_the_timeout_fails_at_once() -> None:
    """A Retry-After beyond the timeout is reported with its status, to all callers."""
    with ModelServer(choose_fault=lambda _: Fault.status(429, retry_after=90)) as server:
        judge = adapter_for("openai", server.url, timeout=600.0)
        (first,), _ = judged(judge, 1, 30.0)
        (second,), _ = judged(judge, 1, 30.0)
        assert len(server.calls) == 1
    for score in (first, second):
        assert score.details["status"] == "evaluation_failed"
        assert "answered 429 Too Many Requests" in score.reason
        assert "longer than this call can wait" in score.reason


def test_a_timeout_names_the_last_answer_of_the_endpoint() -> None:
    """The server failed all the time."""
    with ModelServer(choose_fault=lambda _: Fault.status(500)) as server:
        judge = adapter_for("openai", server.url, retries=50, retry_delay=0.1)
        (score,), _ = judged(judge, 1, 0.5)
    assert "no verdict within 0.5 s; the last attempt answered 500 Internal Server Error" in score.reason
    assert re.search(r"\(\d attempts\)", score.reason)


def test_a_failure_before_an_answer_is_not_blamed_for_a_later_timeout() -> None:
    """The first request fails, the second is answered, and the reminder hangs."""
    with ModelServer(lambda _: ScriptedReply("Lovely.")) as server:
        server.faults += [Fault.status(500), Fault(), Fault.hang(20)]
        judge = adapter_for("openai", server.url, supports_json_schema=False)
        (score,), _ = judged(judge, 1, 0.5)
    assert score.reason.endswith("no verdict within 0.5 s")


def test_a_rate_limited_call_is_repeated_until_the_timeout() -> None:
    """Six refusals are more than the retries, but the time is not up."""
    with ModelServer(four) as server:
        server.faults += [Fault.status(429)] * 3 + [Fault.rate_limit(0.01)] * 3
        judge = adapter_for("openai", server.url, supports_json_schema=False)
        (score,), _ = judged(judge, 1, 10.0)
        assert len(server.calls) == 7
    assert score.details.get("score") == 4, score.reason


def test_a_call_that_is_always_too_early_fails_in_time_with_a_reason() -> None:
    """The stopwatch stops while the server requests a pause, but not forever."""
    with ModelServer(choose_fault=lambda _: Fault.rate_limit(0.05)) as server:
        (score,), _ = judged(adapter_for("openai", server.url), 1, 0.5)
    assert "answered 429 Too Many Requests" in score.reason


class Slow:
    """A judge that takes its time."""

    model, supports_json_schema = "test:slow", False

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        await asyncio.sleep(30)
        raise AssertionError


def test_the_models_own_time_still_counts() -> None:
    """A slow answer is not waited for."""
    (score,), _ = judged(Slow(), 1, 0.1)
    assert score.reason == "test:slow: no verdict within 0.1 s"


def test_the_second_request_can_be_turned_off() -> None:
    """With retry_on_parse_failure=False there is one request, and its tokens are counted."""
    judge = Scripted("Lovely.", lambda asked: asked.score(4))
    (evaluator,) = rubric_evaluators(judge, [TONE], retry_on_parse_failure=False)

    async def main() -> Any:
        return await evaluator("x", None, CHAT)

    score = asyncio.run(main())
    assert (len(judge.asked), score.details["status"]) == (1, "evaluation_failed")
    assert "after a reminder" not in score.reason
    assert "the answer was 'Lovely.'" in score.reason
    assert score.details["judge"]["usage"]["input_tokens"] == 100
    assert evaluator.spec.parameters["retry_on_parse_failure"] is False


def test_a_retry_that_is_neither_true_nor_false_is_refused() -> None:
    """A text such as "no" would count as true."""
    with pytest.raises(EvaluatorError, match="retry_on_parse_failure must be True or False, got 'no'"):
        rubric_evaluators(Scripted("x"), [TONE], retry_on_parse_failure="no")
