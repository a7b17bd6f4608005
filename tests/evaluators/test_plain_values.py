"""Values of numerical packages compare as the numbers and lists they stand for."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.matching import contains, exact_match, json_subset, regex_match, within_tolerance
from proctor.evaluators.numeric.numbers import numeric_answer
from proctor.evaluators.plain_values import to_number, to_plain
from proctor.evaluators.questions import question_format
from proctor.evaluators.statistical import consistency
from proctor.records.fields.context import FieldContext
from tests.tables import each_row

np = pytest.importorskip("numpy", reason="NumPy is not installed")

NUMBERS = st.integers(-100, 100) | st.floats(-100, 100) | st.booleans()


class NAType:
    """A missing value as pandas has it: comparing with it gives no truth value."""

    __module__ = "pandas._libs.missing"

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = object.__hash__


@each_row(
    ("output", "expected", "passed"),
    [
        (np.True_, True, True),
        (False, np.False_, True),
        (np.int64(1), True, False),
        (np.True_, 1, False),
        (np.array([1, 2]), [1, 2], True),
        ([1, 2], np.array([1, 2]), True),
        (np.array([1, 2]), [2, 1], False),
        (np.array([[1], [2]]), [[1], [2]], True),
        (np.array(3), 3, True),
        (np.float32(0.1), 0.1, True),
        (np.array([0.1], dtype="float32"), [0.1], True),
        (np.array(["a", "b"]), ["a", "b"], True),
        ("a", np.array(["a", "b"]), True),
        ({"x": np.array([1])}, {"x": [1]}, True),
        (np.float64("nan"), np.float64("nan"), False),
        ([float("nan")], np.array([float("nan")]), False),
        (Decimal("0.1"), 0.1, True),
        (Decimal("1.0"), 1, True),
        (Fraction(1, 10), 0.1, True),
        (Decimal("NaN"), Decimal("NaN"), False),
        (NAType(), None, True),
        (NAType(), 1, False),
    ],
)
def test_exact_match_compares_what_values_stand_for(output: Any, expected: Any, passed: bool) -> None:
    score = exact_match(output, expected)
    assert (score.status, score.passed) == ("ok", passed)


@given(st.lists(NUMBERS, max_size=4), st.lists(NUMBERS, max_size=4))
def test_an_array_scores_as_its_list(left: list[Any], right: list[Any]) -> None:
    wanted = exact_match(np.array(left).tolist(), np.array(right).tolist()).passed
    assert exact_match(np.array(left), np.array(right)).passed is wanted
    assert exact_match(np.array(left), np.array(right).tolist()).passed is wanted
    assert exact_match(np.array(left).tolist(), np.array(right)).passed is wanted


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_scalar_scores_as_its_number(left: float, right: float) -> None:
    for evaluate in (within_tolerance(1.0), numeric_answer, exact_match):
        boxed, plain = evaluate(np.float64(left), np.float64(right)), evaluate(left, right)
        assert (boxed.value, boxed.passed) == (plain.value, plain.passed)


def test_lists_of_numbers_are_compared_item_by_item() -> None:
    near: Any = within_tolerance(0.5)
    assert near(np.array([1.0, 2.25]), [1, 2]).value == 0.5
    assert near(np.array([1.0, 3.0]), [1, 2]).passed is False
    assert near([1], [1, 2]).value == 0.0
    assert near(np.array([1, np.nan]), [1, 2]).status == "error"
    assert near(Decimal("1.25"), 1.0).value == 0.5


def test_other_evaluators_accept_arrays() -> None:
    assert contains(np.array([1, 2]), 2).passed is True
    assert contains("a red car", np.array(["red", "blue"])).passed is True
    assert regex_match("order 66", np.array(["x", "[0-9]+"])).passed is True
    output = {"a": np.array([1, 2]), "b": np.True_, "c": np.float32(0.1)}
    assert json_subset(output, {"a": [1, 2], "b": True, "c": 0.1}).passed is True
    assert question_format(np.array(["Why?", "How?"])).passed is True
    assert numeric_answer(np.int64(7), "7").passed is True
    assert numeric_answer(Decimal("0.5"), "1/2").passed is True
    epochs = FieldContext("ok", {}, epochs=[np.True_, np.True_])
    assert consistency(epochs).value == 1.0


@each_row("output", [np.array([1, 2]), np.array(["a", "b"]), np.array([]), NAType()])
@each_row("expected", [np.array([1, 2]), "a", 1, [1, 2], {"a": 1}])
@each_row("evaluator", [exact_match, contains, regex_match, json_subset])
def test_no_value_is_too_ambiguous(evaluator: Any, output: Any, expected: Any) -> None:
    score = attach(evaluator)(output, expected)
    assert "ambiguous" not in score.reason


def test_values_that_are_not_numbers_return_none() -> None:
    assert to_number(np.float32(0.5)) == 0.5
    assert [to_number(one) for one in ("3", np.True_, np.inf, Decimal("Infinity"), None)] == [None] * 5
    assert to_plain(np.longdouble(2)) == 2.0
