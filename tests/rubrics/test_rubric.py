"""A rubric as an evaluator of sessions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proctor import Message, ModelResponse, Rubric, Session, ToolCall, load_rubrics, rubric
from proctor.core.identity import compute_digest
from proctor.errors import CallFailed, EvaluatorError, ModelError
from proctor.evaluators.judges.session_rubric import ConcurrencyLimit
from proctor.evaluators.judges.transcript import TranscriptCache
from proctor.evaluators.rubrics import EvaluationConfig, RubricScorer, rubric_evaluators
from proctor.records.model import ModelRequest
from proctor.records.rubric import ChatSession
from proctor.records.session import CustomEvent
from proctor.wiring.registry import Registry
from tests.evaluators.judging.rehearsed import Scripted, scores
from tests.tables import each_row

TONE = Rubric("tone", "Tone", "Is the agent polite?", "1: rude\n5: polite", weight=1.5)
CHAT = Session([Message("user", "Book it."), ToolCall("book", {}, result="done")])


def judged(judge: Any, *, of: Any = TONE, session: Session = CHAT, **options: Any) -> Any:
    return rubric(judge, of, **options)("Done.", None, session)


def test_the_judge_sees_the_rubric_and_the_session() -> None:
    """Name, description, criteria and scale as text; the session behind the fence."""
    judge = scores(4)
    score = judged(judge)
    (asked,) = judge.asked
    assert asked.part("CHAT SESSION") == (
        "[1] user:\n    Book it.\n[2] tool book({}) returned:\n    done\n[3] assistant:\n    Done."
    )
    for answer in ("## Rubric: Tone", TONE.description, TONE.scoring_criteria, "from 1 to 5"):
        assert answer in asked.text
    assert (asked.request.temperature, asked.request.max_tokens) == (0.1, 1024)
    assert (score.value, score.passed, score.reason) == (0.75, True, "so it is")
    assert score.details["score"] == 4
    assert (score.details["percentage"], score.details["normalized"]) == (80.0, 0.75)


@pytest.mark.parametrize("schema", [False, True])
def test_a_verdict_is_read_from_structure_or_the_last_marked_line(schema: bool) -> None:
    """Half points count too."""
    assert judged(scores(3.5, schema=schema)).details["score"] == 3.5


def test_an_unreadable_answer_is_requested_twice_and_gives_no_number() -> None:
    """One reminder of the form, then the status evaluation_failed."""
    judge = Scripted("I rather like it.", "Four, I think.")
    score = judged(judge)
    assert len(judge.asked) == 2
    assert "SCORE" in judge.asked[1].request.messages[-1].content
    assert (score.status, score.value, score.passed) == ("error", None, None)
    assert score.details["status"] == "evaluation_failed"
    assert score.details["judge"]["usage"]["input_tokens"] == 200


def test_a_reminder_can_help() -> None:
    """The second answer counts."""
    judge = Scripted("Four.", lambda asked: asked.score(4))
    assert judged(judge).details["score"] == 4
    assert len(judge.asked) == 2


@pytest.mark.parametrize("answer", [0, 5.1, -1, 6])
def test_a_number_outside_the_scale_is_not_a_verdict(answer: float) -> None:
    """It is not clipped."""
    assert judged(scores(answer)).status == "error"


def test_an_unreachable_judge_gives_an_error() -> None:
    """With the same status and without another call."""
    judge = Scripted(CallFailed("no route"))
    score = judged(judge)
    assert score.details["status"] == "evaluation_failed"
    assert "no route" in score.reason
    assert len(judge.asked) == 1


def test_the_scale_is_the_rubrics_else_the_sets_else_the_options() -> None:
    """Nothing is hard-wired to 5."""
    score = judged(scores(7), scale=(0, 10))
    assert (score.value, score.details["max"]) == (0.7, 10)
    own = Rubric("a", "A", "…", "…", scale=(0, 3))
    assert judged(scores(3), of=own, scale=(0, 10)).value == 1.0
    (of_set,) = rubric_evaluators(scores(100), {"version": "1", "scale": [0, 100], "rubrics": [{**_data(TONE)}]})
    assert of_set("x", None, CHAT).value == 1.0


def _data(one: Rubric) -> dict[str, Any]:
    names = ("id", "name", "description", "scoring_criteria")
    return {name: getattr(one, name) for name in names}


class Slow:
    """A judge that takes its time, and counts how many ask at once."""

    model, supports_json_schema = "test:slow", False

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = self.most = 0

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        line = request.messages[-1].content.rpartition("\n")[2].partition("<")[0]
        return ModelResponse(f"{line}4", self.model)


def test_a_rubric_has_its_time() -> None:
    """Without a verdict in time there is an error, and the others are not touched."""
    score = judged(Slow(30), timeout=0.05)
    assert score.reason == "test:slow: no verdict within 0.05 s"
    assert score.details["status"] == "evaluation_failed"


def test_waiting_for_a_place_is_not_the_judges_time() -> None:
    """Six calls of 0.1 s one after the other, each with 0.4 s: all in time, never two at once."""
    judge = Slow(0.1)
    evaluators = rubric_evaluators(judge, "starter", concurrency=1, timeout=0.4)

    async def main() -> list[Any]:
        return await asyncio.gather(*(one("x", None, CHAT) for one in evaluators))

    assert all(score.ok for score in asyncio.run(main()))
    assert judge.most == 1


def test_an_empty_session_is_skipped() -> None:
    """No call is made."""
    judge = scores(4)
    blank = Session([Message("user", " "), Message("assistant", [{"type": "text", "text": ""}])])
    for empty in (Session(), blank, Session([Message("user", ""), CustomEvent("meta", {"a": 1})])):
        score = rubric(judge, TONE)(None, None, empty)
        assert (score.status, judge.asked) == ("skipped", [])


def test_scores_have_the_id_of_the_rubric() -> None:
    """The stored run contains the rubric."""
    made = rubric(scores(4), TONE, threshold=0.5)
    assert (made.spec.name, made.spec.uses) == ("tone", "rubric")
    assert made.spec.parameters["rubric"]["weight"] == 1.5
    assert made.spec.parameters["threshold"] == 0.5
    again = Registry.standard().build(made.spec.__class__("tone", "rubric", {
        **made.spec.parameters, "model": "tests.rubrics.test_rubric:four",
    }))  # fmt: skip
    assert again("x", None, CHAT).details["score"] == 4


def four(prompt: str) -> str:
    return prompt.rpartition("\n")[2].partition("<")[0] + "4"


def test_an_eval_file_names_a_rubric_by_id() -> None:
    """Among the starter set, or a file; under its id or a name of one's own."""
    registry = Registry.standard()
    judge = "tests.rubrics.test_rubric:four"
    assert registry.build({"rubric": {"adapter": judge, "rubric": "safety"}}).spec.name == "safety"
    own = {"uses": "rubric", "name": "mine", "adapter": judge, "rubric": _data(TONE)}
    assert registry.build(own).spec.name == "mine"
    with pytest.raises(EvaluatorError, match="did you mean 'safety'"):
        registry.build({"rubric": {"adapter": judge, "rubric": "safty"}})


@each_row(
    ("options", "what"),
    [
        ({"timeout": 0}, "timeout must be a number of seconds greater than 0, got 0"),
        ({"threshold": 2}, "threshold must be between 0 and 1"),
        ({"max_tokens": 0}, "max_tokens must be an integer"),
        ({"temperature": -1}, "temperature must be a number"),
        ({"scale": (5, 1)}, "scale must be two different numbers"),
        ({"max_content_chars": 10}, "max_content_chars must be an integer, 100 or more"),
        ({"max_session_chars": 10}, "max_session_chars must be at least 12 times"),
        ({"concurrency": 0}, "concurrency must be an integer"),
        ({"thresold": 0.5}, "did you mean 'threshold'"),
        ({"rubrics": "none.json"}, "file not found: none.json"),
    ],
)
def test_bad_options_are_refused_when_it_is_made(options: dict[str, Any], what: str) -> None:
    """Not when it runs."""
    with pytest.raises(EvaluatorError, match=what):
        rubric_evaluators(scores(4), **{"rubrics": "starter", **options})


def test_a_scorer_asks_all_rubrics_side_by_side() -> None:
    """From a program, with the spec's settings."""
    judge = Slow(0.05)
    scorer = RubricScorer(judge, EvaluationConfig(max_concurrent=3))
    rubrics = list(load_rubrics("starter"))
    found = asyncio.run(scorer.score_all(rubrics, ChatSession("s", CHAT)))
    assert [score.details["score"] for score in found.values()] == [4] * 6
    assert judge.most == 3
    assert asyncio.run(scorer.score(TONE, CHAT)).value == 0.75


def test_a_scorer_applies_its_limit_to_all_calls() -> None:
    """Ten sessions at once by six rubrics each: three calls at a time, in every loop."""
    judge = Slow(0.005)
    scorer = RubricScorer(judge, EvaluationConfig(max_concurrent=3))
    rubrics = list(load_rubrics("starter"))

    async def main() -> list[dict[str, Any]]:
        return await asyncio.gather(*(scorer.score_all(rubrics, CHAT) for _ in range(10)))

    for _ in range(2):
        found = asyncio.run(main())
        assert all(score.ok for scores in found for score in scores.values())
    assert judge.most == 3


@each_row(
    ("settings", "faulty"),
    [
        ({"max_concurrent": 0}, ["max_concurrent"]),
        ({"max_concurrent": 2.5}, ["max_concurrent"]),
        ({"max_concurrent": True}, ["max_concurrent"]),
        ({"score_scale": (5, 1)}, ["score_scale"]),
        ({"score_scale": (1,)}, ["score_scale"]),
        ({"score_scale": "15"}, ["score_scale"]),
        ({"timeout_per_rubric": 0}, ["timeout_per_rubric"]),
        ({"timeout_per_rubric": "60"}, ["timeout_per_rubric"]),
        ({"llm_temperature": -0.1}, ["llm_temperature"]),
        ({"llm_max_tokens": 0, "max_concurrent": -1}, ["max_concurrent", "llm_max_tokens"]),
    ],
)
def test_all_invalid_settings_are_refused_at_once(settings: dict[str, Any], faulty: list[str]) -> None:
    """When they are written down, all faults together; with no call at a time it would hang."""
    with pytest.raises(EvaluatorError, match="the settings are invalid") as caught:
        EvaluationConfig(**settings)
    assert [problem.where for problem in caught.value.problems] == faulty


def test_settings_may_be_none() -> None:
    """Without a time-out, a temperature or a limit of tokens the model's own hold."""
    EvaluationConfig(timeout_per_rubric=None, llm_temperature=None, llm_max_tokens=None)
    with pytest.raises(ValueError, match="limit must be 1 or more"):
        ConcurrencyLimit(0)


@pytest.mark.parametrize("model", [None, "nope", 3])
def test_a_scorer_without_a_model_is_not_made(model: Any) -> None:
    """Not only when the first session is scored."""
    with pytest.raises(ModelError):
        RubricScorer(model)


def test_a_scorer_names_the_accepted_types() -> None:
    """A text is not a session, and an id is not a rubric."""
    scorer: Any = RubricScorer(scores(4))
    for session in ("Hello", None, [Message("user", "Hi")]):
        with pytest.raises(EvaluatorError, match="session must be a Session or a ChatSession"):
            asyncio.run(scorer.score(TONE, session))
    with pytest.raises(EvaluatorError, match="rubric must be a Rubric, got 'str'"):
        asyncio.run(scorer.score("safety", CHAT))


def test_the_timeout_is_not_part_of_the_identity() -> None:
    """No score rests on it, so runs with different ones are of the same evaluators."""
    assert rubric(four, TONE, timeout=3).spec == rubric(four, TONE, timeout=60).spec


def test_limits_and_cached_transcripts_are_not_part_of_the_identity() -> None:
    """How much of a session is shown is one."""
    used = TranscriptCache(100, 1200)
    used.get(Session([Message("user", "Hello")]).view(), None, None)
    assert compute_digest(used) == compute_digest(TranscriptCache(100, 1200))
    assert compute_digest(used) != compute_digest(TranscriptCache(200, 2400))
    assert (
        compute_digest(ConcurrencyLimit(1)) == compute_digest(ConcurrencyLimit(7)) == compute_digest(ConcurrencyLimit())
    )


def test_users_classes_cannot_limit_their_identity() -> None:
    """Only Proctor's classes may list the attributes that count."""

    class Mine:
        __proctor_identity__ = ()

        def __init__(self, limit: int) -> None:
            self.limit = limit

    assert compute_digest(Mine(1)) != compute_digest(Mine(2))
