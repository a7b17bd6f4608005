"""The loop spec: the LLM judge that rates by labels."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest

from proctor import (
    PASSING_RATINGS,
    RATING_VALUES,
    JudgeOutput,
    MarkdownSection,
    OpenAIAdapter,
    Prompt,
    PromptTemplate,
    Rating,
    Score,
    all_of,
    contains,
    llm_judge,
)
from proctor.errors import ModelError
from proctor.evaluators.judges.scale import JudgeParams
from proctor.testing import ModelServer, RecordedRequest
from tests.evaluators.judging.rehearsed import Scripted, rates
from tests.spec.clauses import clause

LABELS = {"excellent": 1.0, "good": 0.75, "fair": 0.5, "poor": 0.25, "wrong": 0.0}


@clause("000.RATING.1", "Rating Scale")
def test_there_are_five_ratings() -> None:
    """The ratings are excellent, good, fair, poor and wrong."""
    assert get_args(Rating) == tuple(LABELS)


@clause("000.RATING.2", "Rating Scale")
def test_each_rating_has_a_value() -> None:
    """The ratings map to 1.0, 0.75, 0.5, 0.25 and 0.0."""
    assert dict(RATING_VALUES) == LABELS


@clause("000.RATING.3", "Rating Scale")
def test_excellent_and_good_pass() -> None:
    """Only excellent and good are passing ratings."""
    assert frozenset({"excellent", "good"}) == PASSING_RATINGS


@clause("000.JUDGE.1", "Judge Output")
def test_a_judge_output_is_a_rating_and_a_reason() -> None:
    """`JudgeOutput` has a rating and a reason, and cannot be changed."""
    output = JudgeOutput(rating="good", reason="clear")
    assert (output.rating, output.reason) == ("good", "clear")
    with pytest.raises(AttributeError):
        output.rating = "poor"  # type: ignore[misc]


@clause("000.JUDGE.2", "llm_judge Factory")
@pytest.mark.parametrize("rating", LABELS)
def test_the_rating_becomes_the_score(rating: str) -> None:
    """The score has the value of the rating, passes with a passing rating, and has the reason."""
    score: Any = llm_judge(rates(rating), "factual accuracy")("Paris", "Paris")
    assert (score.value, score.passed) == (LABELS[rating], rating in ("excellent", "good"))
    assert score.reason == "so it is"


@clause("000.JUDGE.3", "Judge Output")
def test_the_judge_is_shown_criterion_output_and_reference() -> None:
    """The prompt holds the criterion, the output and the reference answer."""
    judge = rates("good")
    llm_judge(judge, "The answer is polite")("Yes, of course.", "Yes")
    text = judge.asked[0].text
    assert "The answer is polite" in text
    assert "Yes, of course." in text


@clause("000.JUDGE.4", "Judge Output")
def test_a_template_is_bound_to_typed_parameters() -> None:
    """`Prompt(template).bind(JudgeParams(...))` fills the placeholders of the sections."""
    template = PromptTemplate[JudgeOutput](
        ns="wink.evals",
        key="llm-judge",
        name="llm_judge",
        sections=[
            MarkdownSection[JudgeParams](
                title="Evaluation Task", template="Rate $output by $criterion: $expected", key="task"
            )
        ],
    )
    bound = Prompt(template).bind(JudgeParams(criterion="clarity", output="It is so.", expected="So"))
    assert "Rate It is so. by clarity: So" in bound.text


@clause("000.JUDGE.5", "llm_judge Factory", ruling="errors never become numbers")
def test_a_judge_without_a_verdict_gives_an_error() -> None:
    """An answer that is no rating is an error without a value, after one reminder."""
    judge = Scripted(lambda asked: "Lovely weather.")
    score: Any = llm_judge(judge, "clarity")("x", "x")
    assert (score.status, score.value) == ("error", None)
    assert len(judge.asked) == 2


@clause("000.JUDGE.6", "llm_judge Factory")
def test_judges_combine_with_other_evaluators() -> None:
    """`all_of(contains, llm_judge(...), llm_judge(...))` is the mean of all three."""
    evaluator = all_of(contains, llm_judge(rates("good"), "a"), llm_judge(rates("fair"), "b"))
    score: Any = evaluator("It is Paris.", "Paris")
    assert (score.value, score.passed) == (pytest.approx((1 + 0.75 + 0.5) / 3), False)


@clause("000.JUDGE.7", "llm_judge Factory", ruling="judges are evaluators")
def test_a_judge_is_called_in_one_line_or_awaited() -> None:
    """A judge returns a score outside a running event loop and can be awaited inside one."""
    judge: Any = llm_judge(rates("good"), "clarity")
    assert isinstance(judge("x", "x"), Score)

    async def inside() -> Score:
        score: Score = await judge("x", "x")
        return score

    assert asyncio.run(inside()).value == 0.75


@clause("000.JUDGE.8", "LLM-as-Judge")
def test_an_adapter_asks_a_real_server() -> None:
    """`OpenAIAdapter(model=...)` sends the model's name and asks for a structured answer."""

    def answer(asked: RecordedRequest) -> str:
        assert asked.schema is not None
        return '{"reason": "clear", "rating": "good"}'

    with ModelServer(answer=answer) as server:
        adapter = OpenAIAdapter(model="gpt-4o-mini", base_url=f"{server.url}/v1", api_key="key")
        score: Any = llm_judge(adapter, "Response is helpful")("Paris", "Paris")
        assert server.calls[0].model == "gpt-4o-mini"
    assert (score.value, score.reason) == (0.75, "clear")


@clause("000.JUDGE.9", "Judge Output", ruling="templates: unknown or missing placeholders")
def test_a_template_with_an_unknown_placeholder_is_refused() -> None:
    """A placeholder that no parameter fills is refused when the template is made."""
    with pytest.raises(ModelError, match="colour"):
        PromptTemplate[JudgeOutput](
            ns="a",
            key="b",
            name="c",
            sections=[
                MarkdownSection[JudgeParams](title="T", template="$colour $criterion $output $expected", key="k")
            ],
        )
