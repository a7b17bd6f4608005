"""Return values and exceptions of evaluators become scores; unsupported values become errors."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.evaluators.score_conversion import SUPPORTED_RETURNS, as_error, as_score, preview
from proctor.records import codec
from proctor.records.numbers import is_fraction
from proctor.records.score import Score
from tests.tables import each_row


class Box:
    """A one-element array as numerical packages give it."""

    shape = ()

    def __init__(self, inside: Any) -> None:
        self.inside = inside

    def item(self) -> Any:
        """The value inside."""
        return self.inside


class Half(float):
    """A number of a foreign type."""


def test_a_score_is_returned_unchanged() -> None:
    """The same object comes back."""
    score = Score(0.25, False, "so-so", {"a": 1})
    assert as_score(score) is score


@pytest.mark.parametrize("score", [Score.error("no answer"), Score.skipped("nothing to do")])
def test_errors_and_skips_do_not_change(score: Score) -> None:
    """An evaluator may say itself that it failed or has nothing to say."""
    assert as_score(score) is score


@each_row(
    ("returned", "value", "passed"),
    [
        (True, 1.0, True),
        (False, 0.0, False),
        (1, 1.0, True),
        (0, 0.0, False),
        (0.5, 0.5, True),
        (0.49, 0.49, False),
        (Fraction(3, 4), 0.75, True),
        (Decimal("0.7"), 0.7, True),
        ({"score": Decimal("0.25")}, 0.25, False),
        (Box(0.75), 0.75, True),
        (Box(True), 1.0, True),
        ({"passed": True}, 1.0, True),
        ({"passed": False}, 0.0, False),
        ({"score": 0.6}, 0.6, True),
        ({"score": 0.6, "passed": False}, 0.6, False),
        ({"score": 0.1, "passed": True, "details": None, "message": None}, 0.1, True),
        ({"score": Box(0.25), "passed": Box(False)}, 0.25, False),
    ],
)
def test_supported_return_values_become_scores(returned: Any, value: float, passed: bool) -> None:
    """Booleans, numbers and mappings make scores."""
    score = as_score(returned)
    assert (score.value, score.passed, score.status) == (value, passed, "ok")


def test_value_is_not_a_key_of_a_mapping() -> None:
    """The message names the documented key."""
    assert as_score({"value": 0.1}) == Score.error(
        "the evaluator returned a mapping with the key 'value'. Fix: write 'score' instead"
    )
    assert as_score(Decimal("sNaN")).status == "error"


def test_a_number_passes_from_the_threshold_on() -> None:
    """The threshold itself passes."""
    assert as_score(0.8, threshold=0.8).passed is True
    assert as_score(0.79, threshold=0.8).passed is False
    assert as_score({"score": 0.79}, threshold=0.8).passed is False


def test_the_mapping_of_the_field_spec_keeps_message_and_details() -> None:
    """The field spec's {passed, score, details, message} becomes a whole score."""
    returned = {"passed": True, "score": 0.9, "details": {1: "x"}, "message": "9 of 10 grounded"}
    assert as_score(returned) == Score(0.9, True, "9 of 10 grounded", {"1": "x"})


def test_none_is_a_skip() -> None:
    """An evaluator that returns nothing has nothing to say."""
    assert as_score(None) == Score.skipped("the evaluator returned None")


def test_scores_of_other_number_types_become_plain() -> None:
    """A score can be written and read again."""
    score = as_score(Score(Half(0.5), Box(True)))  # type: ignore[arg-type]
    assert type(score.value) is float
    assert codec.decode(codec.encode(score), Score) == Score(0.5, True)
    assert as_score(Score(1, True)).value == 1.0


async def later() -> bool:
    """Something to await."""
    return True


class Promise:
    """Something to await that is not a coroutine."""

    def __await__(self) -> Any:
        yield


def test_an_unsupported_return_value_is_an_error_that_lists_the_supported_ones() -> None:
    """Ruling 1: errors never become numbers."""
    returned: list[Any] = [
        "yes",
        7,
        -0.1,
        10**50,
        math.nan,
        math.inf,
        object(),
        [True],
        {},
        {"pased": True},
        {"score": "high"},
        {"score": 2},
        {"passed": "yes"},
        {"passed": True, "details": "long"},
        later(),
        Promise(),
    ]
    scores = [as_score(one) for one in returned]
    assert {score.status for score in scores} == {"error"}
    assert [score.reason.replace(SUPPORTED_RETURNS, "…") for score in scores] == snapshot(
        [
            "the evaluator returned 'yes'; …",
            "the evaluator returned 7, which is not from 0 to 1",
            "the evaluator returned -0.1, which is not from 0 to 1",
            f"the evaluator returned {10**50}, which is not from 0 to 1",
            "the evaluator returned nan, which is not from 0 to 1",
            "the evaluator returned inf, which is not from 0 to 1",
            "the evaluator returned an object of type object; …",
            "the evaluator returned [True]; …",
            "the evaluator returned a mapping without 'passed' and 'score'; …",
            "the evaluator returned a mapping with the key 'pased'. Fix: did you mean 'passed'?",
            "the evaluator returned the score 'high'; …",
            "the evaluator returned the score 2; …",
            "the evaluator returned passed = 'yes', not a boolean",
            "the evaluator returned a string as details, not a mapping",
            "a plain function returned an awaitable; write it with `async def`",
            "a plain function returned an awaitable; write it with `async def`",
        ]
    )


def test_the_reason_lists_all_supported_return_values() -> None:
    assert as_score("yes").reason == snapshot(
        "the evaluator returned 'yes'; return a Score, a boolean, a number from 0 to 1, None, "
        "or a mapping with 'passed' or 'score' (and 'details', 'message')"
    )


def test_an_exception_is_an_error_with_the_end_of_its_traceback() -> None:
    """The reason names kind and message; the details show where it was raised."""

    def fall() -> None:
        raise KeyError("city")

    try:
        fall()
    except KeyError as error:
        score = as_error(error)
    assert (score.status, score.reason) == ("error", "KeyError: 'city'")
    assert "in fall" in score.details["traceback"]


def test_an_exception_without_a_message_is_named_by_its_type() -> None:
    assert as_error(ValueError()).reason == "ValueError"


def test_an_exception_that_cannot_be_shown_is_still_reported() -> None:
    """Even a message that raises does not get out."""

    class Sulky(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert as_error(Sulky()).reason == "Sulky: its message cannot be shown"


@given(st.one_of(st.floats(), st.integers(), st.booleans(), st.none(), st.text()))
def test_whatever_is_returned_becomes_a_score(returned: Any) -> None:
    """Every number within 0..1 is a verdict, every other an error; nothing is raised."""
    score = as_score(returned)
    if is_fraction(returned):
        assert (score.value, score.passed) == (returned, returned >= 0.5)
    elif isinstance(returned, bool):
        assert score.passed is returned
    else:
        assert score.value is None


@given(st.dictionaries(st.sampled_from(["passed", "score", "details", "reason"]), st.integers()))
def test_whatever_mapping_is_returned_becomes_a_score(returned: dict[str, int]) -> None:
    """Nothing in a mapping makes the reading of it raise."""
    assert as_score(returned).status in ("ok", "error")


def test_values_are_shown_in_short() -> None:
    """A reason never carries a whole document."""
    assert preview("a" * 1000) == "'" + "a" * 58 + "…"
    assert as_score(10**400).status == "error"
    assert preview(None) == "None"
    assert preview(object()) == "an object of type object"
