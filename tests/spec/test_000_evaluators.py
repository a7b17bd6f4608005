"""The loop spec: evaluators, combinators and custom evaluators."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from proctor import (
    Evaluator,
    Score,
    SessionEvaluator,
    all_of,
    any_of,
    contains,
    evaluate,
    exact_match,
    json_subset,
    within_tolerance,
)
from proctor.errors import EvaluatorError
from tests.spec.clauses import clause

SAMPLE = {"id": "1", "input": "x", "expected": "hello"}


def half(output: Any, expected: Any) -> Score:
    return Score(0.5, False, "half")


def full(output: Any, expected: Any) -> Score:
    return Score(1.0, True, "full")


def broken(output: Any, expected: Any) -> Score:
    raise RuntimeError("no answer")


def silent(output: Any, expected: Any) -> Score:
    return Score.skipped("nothing to say")


@clause("000.EVALUATOR.1", "Evaluator")
def test_any_callable_of_output_and_expected_is_an_evaluator() -> None:
    """A plain function `(output, expected) -> Score` evaluates a run as it is."""
    report = evaluate(lambda text: "hello", [SAMPLE], [full], history=False)
    assert report.results[0].scores["full"] == Score(1.0, True, "full")


@clause("000.EVALUATOR.2", "Evaluator", ruling="partials and callable objects are evaluators")
def test_partials_and_callable_objects_are_evaluators() -> None:
    """A partial and an object with `__call__` evaluate as functions do."""

    class Length:
        def __call__(self, output: str, expected: str) -> Score:
            return Score(1.0, len(output) == len(expected))

    evaluators = {"partial": functools.partial(contains, case_sensitive=False), "object": Length()}
    report = evaluate(lambda text: "HELLO", [SAMPLE], evaluators, history=False)
    assert {name: s.passed for name, s in report.results[0].scores.items()} == {"partial": True, "object": True}


@clause("000.EXACT_MATCH.1", "exact_match")
def test_equal_outputs_pass_with_value_1() -> None:
    """`exact_match` gives 1.0 and passes if output and expected are equal."""
    assert (exact_match("hello", "hello").value, exact_match("hello", "hello").passed) == (1.0, True)


@clause("000.EXACT_MATCH.2", "exact_match")
def test_different_outputs_fail_with_value_0() -> None:
    """`exact_match` gives 0.0 and fails if they differ."""
    assert (exact_match("hello", "world").value, exact_match("hello", "world").passed) == (0.0, False)


@clause("000.EXACT_MATCH.3", "exact_match", ruling="exact_match: equality, also for lists")
def test_lists_are_equal_item_by_item_in_order() -> None:
    """Two lists that overlap, or differ in order, are not equal."""
    assert exact_match(["a", "b"], ["a", "b"]).passed is True
    assert exact_match(["a", "b"], ["b", "a"]).passed is False
    assert exact_match(["a", "b"], ["b", "c"]).passed is False


@clause("000.EXACT_MATCH.4", "exact_match", ruling="exact_match: a list of references")
def test_a_text_against_a_list_matches_any_reference() -> None:
    """A single text passes if it equals any text of a list of expected ones."""
    assert exact_match("Paris", ["Lyon", "Paris"]).passed is True
    assert exact_match("Rome", ["Lyon", "Paris"]).passed is False


@clause("000.CONTAINS.1", "contains")
def test_an_output_that_contains_the_expected_text_passes() -> None:
    """`contains` passes with 1.0 if the expected text occurs in the output."""
    score = contains("The answer is 42.", "42")
    assert (score.value, score.passed) == (1.0, True)


@clause("000.CONTAINS.2", "contains")
def test_an_output_without_the_expected_text_fails() -> None:
    """`contains` fails with 0.0 if the expected text does not occur."""
    score = contains("The answer is 41.", "42")
    assert (score.value, score.passed) == (0.0, False)


@clause("000.ALL_OF.1", "Combinators")
def test_all_of_passes_only_if_all_pass() -> None:
    """`all_of` passes if every evaluator passes."""
    assert all_of(exact_match, contains)("hello", "hello").passed is True
    assert all_of(exact_match, contains)("hello world", "hello").passed is False


@clause("000.ALL_OF.2", "Combinators")
def test_the_value_of_all_of_is_the_mean() -> None:
    """The value of `all_of` is the mean of the values."""
    assert all_of(full, half)("x", "x").value == 0.75


@clause("000.ALL_OF.3", "Combinators")
def test_all_of_joins_the_reasons_of_what_failed() -> None:
    """The reason of a failed `all_of` contains the reason of what failed."""
    assert "half" in all_of(full, half)("x", "x").reason


@clause("000.ALL_OF.4", "Combinators", ruling="combination: a failing evaluator fails an `and`")
def test_an_error_keeps_all_of_from_passing() -> None:
    """An evaluator that raises leaves `all_of` without a pass."""
    score = all_of(full, broken)("x", "x")
    assert score.passed is not True
    assert "no answer" in score.reason


@clause("000.ALL_OF.5", "Combinators", ruling="no evidence: a skipped part is no pass")
def test_a_skipped_part_makes_all_of_skipped() -> None:
    """`all_of` with a part that could not judge is skipped, with its reason."""
    score = all_of(full, silent)("x", "x")
    assert (score.status, score.value, score.passed) == ("skipped", None, None)
    assert "nothing to say" in score.reason


@clause("000.ANY_OF.1", "Combinators")
def test_any_of_passes_if_one_passes() -> None:
    """`any_of` passes if at least one evaluator passes."""
    assert any_of(exact_match, contains)("hello world", "hello").passed is True
    assert any_of(exact_match, contains)("world", "hello").passed is False


@clause("000.ANY_OF.2", "Combinators")
def test_the_value_of_any_of_is_the_greatest() -> None:
    """The value of `any_of` is the greatest value."""
    assert any_of(half, exact_match)("x", "y").value == 0.5


@clause("000.ANY_OF.3", "Combinators", ruling="combination: an error counts as not passed in `or`")
def test_an_error_does_not_keep_any_of_from_passing() -> None:
    """In `any_of` an error counts as not passed, and the details name it."""
    score = any_of(full, broken)("x", "x")
    assert score.passed is True
    assert "broken" in str(score.details)


@clause("000.COMBINATOR.1", "Combinators", ruling="combination: empty combinations are refused")
@pytest.mark.parametrize("combine", [all_of, any_of])
def test_an_empty_combination_is_refused(combine: Any) -> None:
    """`all_of()` and `any_of()` without evaluators are refused when they are made."""
    with pytest.raises(EvaluatorError):
        combine()


@clause("000.COMBINATOR.2", "Combinators")
def test_combinators_nest() -> None:
    """A combination is an evaluator and can be combined again."""
    nested = any_of(all_of(exact_match, full), contains)
    assert nested("hello world", "hello").passed is True


@clause("000.TOLERANCE.1", "Custom Evaluators")
def test_within_tolerance_passes_up_to_the_tolerance() -> None:
    """A difference of at most the tolerance passes."""
    near = within_tolerance(0.5)
    assert near(10.25, 10.0).passed is True
    assert near(10.75, 10.0).passed is False


@clause("000.TOLERANCE.2", "Custom Evaluators")
def test_the_value_of_within_tolerance_falls_with_the_difference() -> None:
    """The value is 1 minus the difference over the tolerance, and never below 0."""
    near = within_tolerance(0.5)
    assert [near(output, 10.0).value for output in (10.0, 10.25, 12.0)] == [1.0, 0.5, 0.0]


@clause("000.TOLERANCE.3", "Custom Evaluators")
def test_the_reason_of_within_tolerance_is_the_difference() -> None:
    """The reason gives the difference with four decimals."""
    assert within_tolerance(0.5)(10.25, 10.0).reason == "diff=0.2500"


@clause("000.TOLERANCE.4", "Custom Evaluators", ruling="within_tolerance: the edge passes with 0")
def test_a_difference_of_just_the_tolerance_passes_with_value_0() -> None:
    """A difference equal to the tolerance passes with value 0."""
    score = within_tolerance(0.5)(10.5, 10.0)
    assert (score.value, score.passed) == (0.0, True)


@clause("000.TOLERANCE.5", "Custom Evaluators")
def test_a_tolerance_of_zero_means_equality() -> None:
    """With tolerance 0 equal numbers give 1.0 and all others 0.0."""
    exact = within_tolerance(0)
    assert (exact(1.0, 1.0).value, exact(1.5, 1.0).value) == (1.0, 0.0)


@clause("000.SUBSET.1", "Custom Evaluators")
def test_json_subset_passes_if_expected_keys_and_values_are_there() -> None:
    """Keys beyond the expected ones do not matter."""
    assert json_subset({"a": 1, "b": 2}, {"a": 1}).passed is True


@clause("000.SUBSET.2", "Custom Evaluators")
def test_json_subset_names_what_is_missing_or_wrong() -> None:
    """A missing key and a wrong value fail, and the reason names the key."""
    missing, wrong = json_subset({"a": 1}, {"c": 3}), json_subset({"a": 1}, {"a": 2})
    assert (missing.passed, wrong.passed) == (False, False)
    assert "c" in missing.reason
    assert "a" in wrong.reason


@clause("000.EVALUATOR.3", "Evaluator", ruling="generic types can be written as in the specs")
def test_evaluators_take_type_parameters() -> None:
    """`Evaluator[float, float]` and `SessionEvaluator[str, str]` can be written as types."""
    near: Evaluator[float, float] = within_tolerance(0.5)
    assert near(10.0, 10.0).passed is True
    assert SessionEvaluator[str, str] is not None
