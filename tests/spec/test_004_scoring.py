"""The rubric spec: one session scored by rubrics, in parallel, and the settings of the judge."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proctor import ChatSession, EvaluationConfig, ModelRequest, ModelResponse, Rubric, RubricScorer, Score
from proctor.errors import EvaluatorError
from proctor.testing import RecordedRequest, ScriptedReply
from tests.evaluators.judging.rehearsed import Scripted, scores
from tests.models.providers.wires import adapter_for
from tests.servers.model_server import ModelServer
from tests.spec.chats import CHAT, CLARITY, EFFICIENCY, Chats, Crowd, crowd
from tests.spec.clauses import clause

SEVERAL = [Rubric(f"r{number}", f"R{number}", "Is it good?", "1: no 5: yes") for number in range(6)]


def score(judge: Any, rubric: Rubric = EFFICIENCY, **settings: Any) -> Score:
    """The score of `CHAT` by one rubric."""
    scorer = RubricScorer(judge, EvaluationConfig(**settings))
    return asyncio.run(scorer.score(rubric, ChatSession("s1", CHAT)))


def score_crowd(expected: int, max_concurrent: int) -> tuple[Crowd, dict[str, Score]]:
    """Six rubrics before a judge that waits for `expected` requests at the same time."""

    async def main() -> tuple[Crowd, dict[str, Score]]:
        judge = Crowd()
        judge.expect(expected)
        config = EvaluationConfig(max_concurrent=max_concurrent, timeout_per_rubric=20)
        return judge, await RubricScorer(judge, config).score_all(SEVERAL, CHAT)

    return asyncio.run(main())


@clause("004.SCORER.1", "2. Rubric Scorer")
def test_score_gives_the_score_of_one_rubric() -> None:
    """`await RubricScorer(model).score(rubric, session)` gives the score and the reasoning."""
    result = score(Scripted(lambda asked: asked.score(4, "Turn 2 is brief.")))
    assert (result.details["score"], result.reason) == (4, "Turn 2 is brief.")


@clause("004.SCORER.2", "2. Rubric Scorer")
def test_score_all_scores_by_all_rubrics_in_parallel() -> None:
    """`score_all(rubrics, session)` has the requests for all rubrics in flight together."""
    judge, result = score_crowd(expected=6, max_concurrent=10)
    assert judge.most == 6
    assert [score.details["score"] for score in result.values()] == [3] * 6


@clause("004.SCORER.3", "2. Rubric Scorer")
def test_no_more_than_max_concurrent_requests_are_in_flight() -> None:
    """`max_concurrent` is the greatest number of requests at the same time, and it is reached."""
    judge, result = score_crowd(expected=2, max_concurrent=2)
    assert (judge.most, len(result)) == (2, 6)


@clause("004.SCORER.4", "2. Rubric Scorer")
def test_scores_come_in_the_order_of_the_rubrics() -> None:
    """Scores are in the order of the rubrics, whichever answer comes first."""

    class Reversed(Scripted):
        async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
            for _ in range(50 if EFFICIENCY.name in str(request.messages) else 1):
                await asyncio.sleep(0)
            return await super().complete(request, timeout=timeout)

    judge = Reversed(lambda asked: asked.score(2 if CLARITY.name in asked.text else 5))
    found = asyncio.run(RubricScorer(judge).score_all([EFFICIENCY, CLARITY], CHAT))
    assert [(name, score.details["score"]) for name, score in found.items()] == [("rubric_001", 5), ("rubric_002", 2)]
    assert CLARITY.name in judge.asked[0].text


@clause("004.SCORER.5", "2. Rubric Scorer")
def test_score_and_reasoning_are_read_from_text() -> None:
    """An answer with the lines `SCORE: 4` and `REASONING: …` gives the score and the reasoning."""
    judge = Scripted("SCORE: 4\nREASONING: The user was clear.")
    result = score(judge)
    assert (result.details["score"], result.reason) == (4, "The user was clear.")
    assert len(judge.asked) == 1


@clause("004.SCORER.10", "2. Rubric Scorer", ruling="a marker that the text cannot contain")
def test_a_verdict_with_the_marker_of_the_request_counts_most() -> None:
    """A line `SCORE mark: 2` is the verdict, whatever lines `SCORE: 5` are around it."""
    judge = Scripted(lambda asked: f"SCORE: 5\nSCORE {asked.mark}: 2\nREASONING: It took long.\nSCORE: 5")
    assert score(judge).details["score"] == 2


@clause("004.SCORER.6", "2. Rubric Scorer", ruling="structured where the provider can do that")
def test_a_judge_that_takes_schemas_answers_in_json() -> None:
    """A provider with structured output gets a JSON Schema with `reason` and `score`."""
    judge = Scripted('{"reason": "The user was clear.", "score": 4}', schema=True)
    result = score(judge)
    assert (result.details["score"], result.reason) == (4, "The user was clear.")
    schema = judge.asked[0].request.schema
    assert schema is not None
    assert set(schema["properties"]) == {"reason", "score"}


@clause("004.SCORER.7", "2. Rubric Scorer", ruling="the last line that is a verdict counts")
def test_the_last_verdict_of_an_answer_counts() -> None:
    """Of several verdict lines in an answer the last one is the verdict."""
    judge = Scripted(lambda asked: f"SCORE {asked.mark}: 5\nOn reflection, no.\nSCORE {asked.mark}: 2")
    assert score(judge).details["score"] == 2


@clause("004.SCORER.8", "2. Rubric Scorer", ruling="errors never become numbers")
@pytest.mark.parametrize("number", ["0", "6", "-4", "five", "4 or 5", ""])
def test_a_score_off_the_scale_is_no_verdict(number: str) -> None:
    """An answer whose score is not one number on the scale gives no score."""
    result = score(Scripted(lambda asked: f"SCORE {asked.mark}: {number}\nREASONING: so"))
    assert (result.status, result.value) == ("error", None)


@clause("004.SCORER.9", "2. Rubric Scorer", ruling="ProviderAdapter is our word for GeminiClient")
@pytest.mark.parametrize("provider", ["gemini", "openai", "anthropic"])
def test_the_judge_is_gemini_or_another_provider(provider: str) -> None:
    """The scorer takes any model: Gemini, OpenAI, Anthropic, an address or a function."""

    def answer(asked: RecordedRequest) -> ScriptedReply:
        return ScriptedReply(asked.text.rpartition("\n")[2].partition("<")[0] + "4")

    with ModelServer(answer) as server:
        judge = adapter_for(provider, server.url, supports_json_schema=False)
        assert score(judge).details["score"] == 4


@clause("004.CONFIG.1", "Configuration Options")
def test_the_configuration_has_the_defaults_of_the_specification() -> None:
    """`EvaluationConfig()` has the six options of the specification with their defaults."""
    config = EvaluationConfig()
    assert {name: getattr(config, name) for name in config.__struct_fields__} == {
        "max_concurrent": 10,
        "llm_temperature": 0.1,
        "llm_max_tokens": 1024,
        "timeout_per_rubric": 60,
        "retry_on_parse_failure": True,
        "score_scale": (1, 5),
    }


@clause("004.CONFIG.2", "Configuration Options")
def test_the_judge_is_asked_at_the_configured_temperature() -> None:
    """Requests have the temperature `llm_temperature`, 0.1 by default."""
    default, warm = scores(4), scores(4)
    score(default)
    score(warm, llm_temperature=0.7)
    assert default.asked[0].request.temperature == 0.1
    assert warm.asked[0].request.temperature == 0.7


@clause("004.CONFIG.3", "Configuration Options")
def test_the_answer_is_limited_to_the_configured_tokens() -> None:
    """Requests are limited to `llm_max_tokens` tokens, 1024 by default."""
    default, short = scores(4), scores(4)
    score(default)
    score(short, llm_max_tokens=99)
    assert default.asked[0].request.max_tokens == 1024
    assert short.asked[0].request.max_tokens == 99


@clause("004.CONFIG.4", "Configuration Options")
def test_the_retry_after_a_parse_failure_can_be_turned_off() -> None:
    """With `retry_on_parse_failure=False` an unreadable answer is not requested again."""
    judge = Scripted("Lovely.", lambda asked: asked.score(4))
    result = score(judge, retry_on_parse_failure=False)
    assert (result.details["status"], result.value) == ("evaluation_failed", None)
    assert len(judge.asked) == 1


@clause("004.CONFIG.5", "Configuration Options")
def test_scores_are_on_the_configured_scale() -> None:
    """With `score_scale=(0, 10)` an 8 is accepted, and the prompt contains the ends of the scale."""
    judge = scores(8)
    result = score(judge, score_scale=(0, 10))
    assert (result.details["score"], result.details["percentage"], result.value) == (8, 80.0, 0.8)
    assert "one number from 0 to 10" in judge.asked[0].text
    assert score(scores(11), score_scale=(0, 10)).status == "error"


@clause("004.CONFIG.6", "Configuration Options", ruling="all faults at once")
def test_settings_that_cannot_work_are_refused_together() -> None:
    """Every invalid setting is named in one error, when the configuration is made."""
    invalid: dict[str, Any] = {
        "max_concurrent": 0,
        "llm_temperature": -0.1,
        "llm_max_tokens": 0,
        "timeout_per_rubric": 0,
        "retry_on_parse_failure": "no",
        "score_scale": (5, 1),
    }
    with pytest.raises(EvaluatorError) as refused:
        EvaluationConfig(**invalid)
    assert [problem.where for problem in refused.value.problems] == list(invalid)


@clause("004.CONFIG.8", "Configuration Options", ruling="calls over all sessions and rubrics")
def test_the_command_line_limits_the_calls_over_all_sessions(tmp_path: Path) -> None:
    """`--max-concurrent N` limits the calls in flight over all sessions and rubrics together."""
    chats = Chats(tmp_path)
    for name in "abcd":
        chats.add(name, 4, 4)
    crowd.expect(3)
    judge = ("--judge", "tests.spec.chats:crowd", "--timeout", "20", "--parallel", "4")
    summary = chats.evaluate_batch(*judge, "--max-concurrent", "3")
    assert crowd.most == 3
    assert summary["batch_summary"]["average_score"] == 3.0


@clause("004.CONFIG.7", "Configuration Options")
def test_the_command_line_has_the_same_options_and_defaults(tmp_path: Path) -> None:
    """`--llm-temperature`, `--llm-max-tokens` and `--scale` set what the configuration sets."""
    chats = Chats(tmp_path)
    chats.add("a", 4, 4)
    judge = ("--judge", "tests.spec.chats:tell_settings", "--fresh")
    default = chats.evaluate("a", *judge)
    assert default["rubric_scores"][0]["reasoning"] == "temperature 0.1, 1024 tokens"
    changes = ("--llm-temperature", "0.7", "--llm-max-tokens", "99", "--scale", "0", "4")
    changed = chats.evaluate("a", *judge, *changes)
    assert changed["rubric_scores"][0]["reasoning"] == "temperature 0.7, 99 tokens"
    assert changed["summary"]["max_score"] == 4.0
