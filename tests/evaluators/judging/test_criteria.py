"""Criteria in every supported notation, and all their faults at once."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.errors import EvaluatorError
from proctor.evaluators.judges.rubric import Criterion, parse_criteria
from tests.tables import each_row


@each_row(
    ("given", "expected"),
    [
        (["accuracy", "tone"], [Criterion("accuracy"), Criterion("tone")]),
        ({"accuracy": 3}, [Criterion("accuracy", weight=3.0)]),
        ({"tone": "Is it kind?"}, [Criterion("tone", description="Is it kind?")]),
        (
            {"tone": {"description": "Is it kind?", "weight": 0.5}},
            [Criterion("tone", description="Is it kind?", weight=0.5)],
        ),
        (
            [{"id": "r1", "name": "Tone", "description": "d", "scoring_criteria": "5: kind"}],
            [Criterion("r1", "Tone", "d", "5: kind")],
        ),
        ([{"name": "Tone", "weight": 2}], [Criterion("Tone", "Tone", weight=2.0)]),
        ({"version": "1.0", "rubrics": [{"id": "a", "name": "A"}]}, [Criterion("a", "A")]),
        ((Criterion("a", weight=2.0),), [Criterion("a", weight=2.0)]),
        ({"tone": {}}, [Criterion("tone")]),
    ],
)
def test_a_rubric_can_be_written_in_several_ways(given: Any, expected: list[Criterion]) -> None:
    """All notations give the same records."""
    assert list(parse_criteria(given, "here")) == expected


def test_every_fault_is_named_at_once() -> None:
    faulty = [
        {"id": "a", "weight": 0},
        {"id": "b", "weights": 1},
        {"id": "c", "description": 3},
        {"weight": 2},
        7,
        {"id": "twice"},
        "twice",
        {"id": "d", "weight": True},
    ]
    with pytest.raises(EvaluatorError) as caught:
        parse_criteria(faulty, "my rubric")
    message = str(caught.value)
    assert "my rubric: the rubric is invalid" in message
    for fault in (
        "a: weight must be a number greater than 0, got 0",
        "b: unknown key 'weights'; did you mean 'weight'?",
        "c: description must be a string, got 3",
        "criterion 4: the criterion has no name and no description",
        "criterion 5: the criterion has no name and no description",
        "twice: two criteria have this name",
        "d: weight must be a number greater than 0, got True",
        "Fix: write a list of criteria",
    ):
        assert fault in message


@pytest.mark.parametrize("given", [[], {}, {"rubrics": []}])
def test_an_empty_rubric_is_refused(given: Any) -> None:
    """There would be nothing to score by."""
    with pytest.raises(EvaluatorError, match="the rubric has no criteria"):
        parse_criteria(given, "here")


@pytest.mark.parametrize("given", ["accuracy", 3, None])
def test_other_values_are_refused(given: Any) -> None:
    """And it says how to write one."""
    with pytest.raises(EvaluatorError, match=r"is not a rubric[\s\S]*write a list"):
        parse_criteria(given, "here")


def test_a_judge_sees_name_description_and_criteria() -> None:
    """Empty parts are left out."""
    assert Criterion("r1", "Tone", "Is it kind?", "5: very").text == "Tone\nIs it kind?\n5: very"
    assert Criterion("tone").text == "tone"
