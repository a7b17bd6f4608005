"""The table "Answers that are read" in docs/judges.md: each form and its result."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.evaluators.llm import llm_judge, quality_score, rubric_evaluation
from proctor.records.score import Score
from tests.evaluators.judging.rehearsed import Asked, Scripted
from tests.tables import each_row


def scored(answer: str, *, schema: bool = False, **options: Any) -> Score:
    """The score of a judge that gives the same answer again and again."""
    found: Score = quality_score(Scripted(answer, schema=schema), **options)("Oslo is a port.")
    return found


@each_row("schema", [False, True])
@each_row(
    "answer",
    [
        "SCORE: 4\nREASONING: clear",
        "REASONING: clear\nSCORE: 4",
        "SCORE: 4\nREASON: clear",
        "SCORE: 4 / REASONING: clear",
        "SCORE: 4 REASONING: clear",
        "SCORE: 4, reasoning: clear",
        "SCORE: 4/5\nREASONING: clear",
        "SCORE: 4 out of 5\nREASONING: clear",
        "**SCORE:** 4\n**REASONING:** clear",
        "**SCORE: 4**\n\n**REASONING:** clear",
        "# SCORE: 4\n# REASONING: clear",
        "score = 4\nreasoning = clear",
        "score: 4\nreasoning: clear",
        "```\nSCORE: 4\nREASONING: clear\n```",
        "```text\nSCORE: 4\nREASONING: clear\n```",
    ],
)
def test_a_documented_form_gives_score_and_reasoning(answer: str, schema: bool) -> None:
    """4 of 5 is 0.75; the reason has no heading."""
    score = scored(answer, schema=schema)
    assert (score.status, score.value, score.reason) == ("ok", 0.75, "clear")


@pytest.mark.parametrize("answer", ["SCORE: 4", "SCORE: 4/5", "```\nSCORE: 4\n```"])
def test_a_score_alone_is_read(answer: str) -> None:
    """It has no reason."""
    assert scored(answer).value == 0.75


def test_a_reason_may_have_several_lines() -> None:
    """All of them."""
    assert scored("SCORE: 4\nREASONING: clear\nand short").reason == "clear\nand short"


@pytest.mark.parametrize(
    "answer",
    [
        "SCORE 4\nREASONING: clear",
        "Score - 4\nReasoning - clear",
        "4",
        "SCORE:\n4\nREASONING: clear",
        "SCORE: 3\nREASONING: clear\nSCORE: 4",
    ],
)
def test_a_form_that_is_not_documented_is_an_error(answer: str) -> None:
    """No number is guessed."""
    assert scored(answer).status == "error"


OUTSIDE = ["0.8", "0.8/1", "6", "0", "80%", "4/10", "-4", "4-5"]


@each_row("answer", OUTSIDE)
@each_row("form", ["marked", "unmarked", "schema"])
def test_an_answer_outside_the_scale_is_an_error_that_names_both(answer: str, form: str) -> None:
    """A judge that grades from 0 to 1 is not read as one that grades from 1 to 5."""

    def marked(asked: Asked) -> str:
        return f"clear\nSCORE {asked.mark}: {answer}"

    if form == "marked":
        score: Score = quality_score(Scripted(marked))("Oslo is a port.")
    elif form == "unmarked":
        score = scored(f"SCORE: {answer}\nREASONING: clear")
    else:
        score = scored(f'{{"reason": "clear", "score": "{answer}"}}', schema=True)
    assert (score.status, score.value) == ("error", None)
    assert "a number from 1 to 5" in score.reason
    assert answer in score.reason


def test_every_judge_with_a_scale_refuses_a_fraction() -> None:
    """Criteria of a rubric, a rubric text and a list of criteria read the scale alike."""

    def judge() -> Scripted:
        return Scripted('{"reason": "clear", "score": 0.8}', schema=True)

    def sheet() -> Scripted:
        return Scripted('{"criterion_1": {"reason": "clear", "score": 0.8}}', schema=True)

    for check in (
        llm_judge(judge(), rubric="1: bad, 5: good", scale=(1, 5)),
        llm_judge(judge(), criteria=["tone"]),
        rubric_evaluation(judge(), {"tone": 1}),
        rubric_evaluation(sheet(), {"tone": 1}),
    ):
        assert check("Oslo is a port.").status == "error"


def test_a_fraction_on_a_scale_from_zero_is_an_error() -> None:
    """0.8 may mean 8 of 10; half a point and a scale up to 1 are clear."""

    def graded(answer: str, scale: tuple[float, float]) -> Score:
        judge = Scripted(f"SCORE: {answer}\nREASONING: clear")
        found: Score = llm_judge(judge, rubric="0: bad", scale=scale)("Oslo is a port.")
        return found

    assert graded("0.8", (0, 10)).status == "error"
    assert "a number from 0 to 10" in graded("0.8", (0, 10)).reason
    assert graded("0.5", (0, 5)).value == 0.1
    assert graded("0.8", (0, 1)).value == 0.8
    assert graded("8.5", (0, 10)).value == 0.85
