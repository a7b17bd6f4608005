"""One opinion of a judge, and several concurrently."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from proctor.errors import CallFailed, StopRun, Unreadable
from proctor.evaluators.judges.judge import (
    JudgeOptions,
    Opinion,
    Question,
    get_opinion,
    run_concurrently,
    to_text,
    usage_to_data,
)
from proctor.evaluators.judges.scale import PASSING_RATINGS, RATING_VALUES, LabelScale, NumberScale
from proctor.evaluators.judges.templates import load_template
from proctor.records.model import ModelResponse, TokenLogprobs
from proctor.records.session import Message, Session, Usage
from proctor.sessions import current as sessions
from tests.evaluators.judging.rehearsed import Asked, Scripted, rates, scores

RATINGS = LabelScale("rating", RATING_VALUES, passing=PASSING_RATINGS)
QUESTION = Question(load_template("llm-judge"), {"criterion": "Is it right?", "output": "Paris"})
SCORED = Question(load_template("llm-score"), {"criterion": "c", "output": "o"}, {"low": "1", "high": "5"})


def opinion(judge: Scripted, **how: Any) -> Opinion:
    return asyncio.run(get_opinion(judge, QUESTION, RATINGS, JudgeOptions(**how)))


@pytest.mark.parametrize("schema", [False, True])
def test_an_opinion_has_its_verdict_model_and_cost(schema: bool) -> None:
    """By schema or by line, the same opinion."""
    found = opinion(rates("good", schema=schema))
    assert (found.value, found.verdict, found.passed, found.reason) == (0.75, "good", True, "so it is")
    assert found.model == "test:judge"
    assert found.prompt == load_template("llm-judge").id
    assert found.usage == Usage(input_tokens=100, output_tokens=10, cost=0.001)


def test_the_options_reach_the_request() -> None:
    """Temperature, tokens and the number of the opinion reach the request."""
    judge = rates("good")
    asyncio.run(get_opinion(judge, QUESTION, RATINGS, JudgeOptions(0.3, 50, logprobs=True), index=4))
    request = judge.asked[0].request
    assert (request.temperature, request.max_tokens, request.opinion) == (0.3, 50, 4)
    assert request.top_logprobs == 20


def test_an_unreadable_answer_is_requested_again_once() -> None:
    """The second answer counts, and both are paid for."""
    judge = Scripted("what a lovely day", lambda asked: asked.rating("fair"))
    found = opinion(judge)
    assert (found.value, found.usage.input_tokens) == (0.5, 200)
    assert len(judge.asked) == 2
    always = Scripted("what a lovely day")
    with pytest.raises(Unreadable, match="test:judge gave no readable answer"):
        opinion(always)
    assert len(always.asked) == 2


def test_a_refusal_is_not_repeated() -> None:
    """No means no."""
    judge = Scripted(ModelResponse(refusal="I would rather not", finish_reason="refusal"))
    with pytest.raises(Unreadable, match="refused"):
        opinion(judge)
    assert len(judge.asked) == 1


def chancy(asked: Asked) -> ModelResponse:
    """Says good, at a chance of 0.6 against 0.4 for wrong."""
    text = asked.rating("good")
    before, after = text[: -len("good")], "good"
    if text.endswith('"}'):
        before, after = text[: -len('good"}')], "good"
    tokens = [TokenLogprobs(before, 0.0), TokenLogprobs(after, math.log(0.6), {"w": math.log(0.4)})]
    if text.endswith('"}'):
        tokens.append(TokenLogprobs('"}', 0.0))
    return ModelResponse(text, logprobs=tuple(tokens))


@pytest.mark.parametrize("schema", [False, True])
def test_with_probabilities_the_value_is_the_expected_value(schema: bool) -> None:
    """0.6 * 0.75 + 0.4 * 0; it passes by the given verdict."""
    found = opinion(Scripted(chancy, schema=schema), logprobs=True)
    assert found.value == pytest.approx(0.45)
    assert found.probabilities == pytest.approx({"good": 0.6, "wrong": 0.4})
    assert found.coverage == pytest.approx(1.0)
    assert (found.verdict, found.passed) == ("good", True)


def test_without_probabilities_the_verdict_counts_and_the_opinion_says_so() -> None:
    """A provider that gives none does not make the judge fail."""
    found = opinion(rates("good"), logprobs=True)
    assert (found.value, found.probabilities, found.coverage) == (0.75, {}, None)
    assert found.missing_reason == "the provider returned no probabilities"
    assert opinion(rates("good")).missing_reason == ""


def test_a_number_between_two_steps_is_a_number_too() -> None:
    """4.5 of 5, and with a scale that is too fine no chances are looked for."""
    found = asyncio.run(get_opinion(scores(4.5), SCORED, NumberScale(1, 5)))
    assert found.value == 0.875
    fine = asyncio.run(get_opinion(scores(42), SCORED, NumberScale(0, 100), JudgeOptions(logprobs=True)))
    assert (fine.value, fine.missing_reason) == (0.42, "the provider returned no probabilities")


def test_a_verdict_between_two_steps_is_not_replaced() -> None:
    """4.5 stays 4.5, although the tokens 4 and 5 have probabilities; 4.0 is a step."""

    def chancy(answer_text: str) -> Any:
        def answer(asked: Asked) -> ModelResponse:
            text = f"so\nSCORE {asked.mark}: {answer_text}"
            before = text[: -len(answer_text)]
            rest = [TokenLogprobs(answer_text[1:], 0.0)] if answer_text[1:] else []
            first = TokenLogprobs("4", math.log(0.75), {"1": math.log(0.25)})
            return ModelResponse(text, logprobs=(TokenLogprobs(before, 0.0), first, *rest))

        return answer

    def scored(answer_text: str) -> Opinion:
        return asyncio.run(
            get_opinion(Scripted(chancy(answer_text)), SCORED, NumberScale(1, 5), JudgeOptions(logprobs=True))
        )

    between = scored("4.5")
    assert (between.value, between.probabilities) == (0.875, {})
    assert "between the steps" in between.missing_reason
    # 0.75 * 0.75 + 0.25 * 0
    assert scored("4").value == scored("4.0").value == pytest.approx(0.5625)


def test_several_questions_are_recorded_one_after_the_other() -> None:
    """They run concurrently, but the session has them in sequence."""

    async def ask(word: str) -> str:
        sessions.record(Message("user", f"{word}?"))
        await asyncio.sleep(0.02 if word == "first" else 0.0)
        sessions.record(Message("assistant", word))
        if word == "second":
            raise CallFailed("no line")
        return word

    async def main() -> tuple[list[str | CallFailed], list[Any]]:
        session = Session()
        sessions.current.set(session)
        output = await run_concurrently([lambda w=word: ask(w) for word in ("first", "second", "third")])  # type: ignore[misc]
        return output, [event.content for event in session if isinstance(event, Message)]

    output, answer = asyncio.run(main())
    assert [str(one) for one in output] == ["first", "no line", "third"]
    assert answer == ["first?", "first", "second?", "second", "third?", "third"]


def test_the_end_of_the_run_is_not_an_opinion() -> None:
    """A spent budget ends everything, at once."""
    ended: list[str] = []

    async def stop() -> str:
        raise StopRun("the budget is spent")

    async def wait() -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            ended.append("wait")
            raise
        return "late"

    async def main() -> None:
        with pytest.raises(StopRun):
            await run_concurrently([stop, wait, stop])
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), 3))
    assert ended == ["wait"]


def test_texts_are_shown_unchanged_and_other_values_as_json() -> None:
    assert to_text("a") == "a"
    assert to_text({"b": [1, None]}) == '{"b":[1,null]}'
    assert to_text(None) == "null"


def test_usage_that_is_not_known_is_left_out() -> None:
    """Unknown is not zero."""
    assert usage_to_data(Usage(input_tokens=3)) == {"input_tokens": 3}
