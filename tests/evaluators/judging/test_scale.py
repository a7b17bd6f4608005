"""Scales: the value of a verdict, and whether it passes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.scale import (
    PASSING_RATINGS,
    RATING_VALUES,
    JudgeOutput,
    LabelScale,
    NumberScale,
    create_number_scale,
    simplify_number,
)
from proctor.evaluators.llm import llm_judge

RATINGS = LabelScale("rating", RATING_VALUES, passing=PASSING_RATINGS)


def test_the_five_ratings_have_the_values_of_the_specification() -> None:
    """From 1 for excellent down to 0 for wrong; the first two pass."""
    assert RATING_VALUES == {"excellent": 1.0, "good": 0.75, "fair": 0.5, "poor": 0.25, "wrong": 0}
    assert {word for word in RATING_VALUES if RATINGS.passes(0.0, word)} == {"excellent", "good"}
    assert RATINGS.steps() == RATING_VALUES
    assert RATINGS.details(0.5) == {}
    assert RATINGS.to_data("good") == "good"


def test_a_mean_of_ratings_passes_from_the_lowest_passing_rating() -> None:
    """A mean is compared with the value of "good"."""
    assert RATINGS.passes(0.75)
    assert not RATINGS.passes(0.74)


def test_a_threshold_overrules_the_passing_words() -> None:
    lenient = LabelScale("rating", RATING_VALUES, passing=PASSING_RATINGS, threshold=0.5)
    assert lenient.passes(0.5, "fair")
    assert not lenient.passes(0.25, "excellent")


def test_a_rating_in_json_is_a_judge_output() -> None:
    """The form and the type have the same fields."""
    fence = Fence({"output": "x"})
    schema = RATINGS.answer_format(fence).schema
    described = msgspec.json.schema(JudgeOutput)["$defs"]["JudgeOutput"]
    assert set(schema["properties"]) == set(described["properties"])
    assert set(schema["properties"]["rating"]["enum"]) == set(described["properties"]["rating"]["enum"])


@given(low=st.integers(-10, 10), width=st.integers(1, 30), at=st.floats(0, 1))
def test_a_number_and_its_value_agree(low: int, width: int, at: float) -> None:
    """The score in the details has this value on the scale."""
    scale = NumberScale(low, low + width)
    output = scale.details(at)
    assert (output["min"], output["max"]) == (low, low + width)
    assert scale.value_of(str(output["score"])) == pytest.approx(at, abs=1e-6)
    assert ("percentage" in output) == (low >= 0)
    assert output["normalized"] == at


def test_a_score_has_a_number_a_percentage_and_a_value() -> None:
    """4 of 1 to 5: three quarters up, and 80 percent of the best."""
    scale = NumberScale(1, 5)
    assert scale.value_of("4") == 0.75
    assert scale.details(0.75) == {"score": 4, "min": 1, "max": 5, "percentage": 80.0, "normalized": 0.75}
    assert scale.passes(0.7)
    assert not scale.passes(0.69)
    assert scale.to_data("4.50") == 4.5


def test_only_a_few_integers_are_steps() -> None:
    """A finer scale has no verdicts that could be counted."""
    assert NumberScale(1, 5).steps() == {"1": 0.0, "2": 0.25, "3": 0.5, "4": 0.75, "5": 1.0}
    assert NumberScale(0, 100).steps() == {}
    assert NumberScale(0, 0.5).steps() == {}


@pytest.mark.parametrize("ends", [(5, 1), (1, 1), (1,), "15", None, (1, float("inf")), (1, True)])
def test_an_invalid_scale_is_refused(ends: Any) -> None:
    """Two numbers, the lesser first."""
    with pytest.raises(EvaluatorError, match="scale must be two different numbers, the lowest score first, got "):
        create_number_scale(ends, None, "here")


def test_a_scale_keeps_its_threshold() -> None:
    """0.7 unless another is given, and 0 is another."""
    assert create_number_scale([1, 10], None, "here") == NumberScale(1, 10, 0.7)
    assert create_number_scale((0, 1), 0.0, "here").threshold == 0.0


def test_numbers_are_written_as_people_do() -> None:
    """Whole ones without a point, sums without dust."""
    assert [repr(simplify_number(n)) for n in ("4.0", 4.5, 0.1 + 0.2)] == ["4", "4.5", "0.3"]


def test_a_scale_of_words_has_a_name() -> None:
    """`scale="rating"` asks for the five ratings even with a rubric."""

    def answer(prompt: str) -> str:
        return "Fine.\n" + prompt.rpartition("\n")[2].partition("<")[0] + "good"

    assert llm_judge(answer, rubric="Is it polite?", scale="rating")("Good morning!").value == 0.75


def test_an_unknown_scale_is_refused_with_a_suggestion() -> None:
    """A misspelt name of a scale gets the likely one."""
    with pytest.raises(EvaluatorError, match="unknown scale 'ratings'") as error:
        llm_judge(str, "Is it polite?", scale="ratings")
    assert "rating" in (error.value.fix or "")


def test_a_scale_of_words_needs_a_criterion() -> None:
    """Without a criterion there is nothing to rate by."""
    with pytest.raises(EvaluatorError, match="needs a criterion"):
        llm_judge(str, scale="rating")
