"""Several references: a text matches a list of expected texts if it matches any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Score, Session
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.judges.judge import View
from proctor.evaluators.judges.templates import load_template
from proctor.evaluators.matching import contains, exact_match, json_subset, regex_match, within_tolerance
from proctor.evaluators.numeric.numbers import numeric_answer
from proctor.evaluators.plain_values import score_best_reference
from proctor.evaluators.text.quality import semantic_similarity
from proctor.records.sample import Sample

WORDS = st.sampled_from(["Paris", "paris", "It is Paris.", "Rome", "42", "", "Paris, France"])


def similarity(output: Any, expected: Any) -> Score:
    """The similarity of two texts by their letters."""
    found: Score = semantic_similarity("lexical")(output, expected)
    return found


TEXT_EVALUATORS: list[Callable[[Any, Any], Score]] = [
    exact_match,
    lambda output, expected: exact_match(output, expected, case_sensitive=False),
    lambda output, expected: exact_match(output, expected, match="any"),
    contains,
    lambda output, expected: contains(output, expected, case_sensitive=False),
    regex_match,
    similarity,
]


@pytest.mark.parametrize("evaluate", TEXT_EVALUATORS)
@given(output=WORDS, first=WORDS, second=WORDS)
def test_a_text_scores_as_against_the_best_of_its_references(
    evaluate: Callable[[Any, Any], Score], output: str, first: str, second: str
) -> None:
    both = evaluate(output, [first, second])
    single = [score for score in (evaluate(output, first), evaluate(output, second)) if score.ok]
    assert both.value == max((score.value or 0.0 for score in single), default=None)
    assert (both.passed is True) == any(score.passed is True for score in single)


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_numbers_score_as_against_the_best_of_their_references(number: int, first: int, second: int) -> None:
    cases: list[tuple[Any, Any]] = [(numeric_answer, f"The answer is {number}."), (within_tolerance(1.5), number)]
    for evaluate, output in cases:
        both = evaluate(output, [first, second])
        singles = [evaluate(output, first), evaluate(output, second)]
        assert both.passed is any(score.passed is True for score in singles)
        assert both.value == max(score.value or 0.0 for score in singles)


def test_a_mapping_may_hold_any_of_several_expected_ones() -> None:
    output = '{"city": "Paris", "country": "France"}'
    assert json_subset(output, [{"city": "Rome"}, {"city": "Paris"}]).passed
    assert json_subset(output, ['{"city": "Rome"}', {"city": "Oslo"}]).passed is False


@given(st.lists(st.sampled_from("abc"), max_size=3), st.lists(st.sampled_from("abc"), max_size=3))
def test_lists_are_equal_item_by_item(output: list[str], expected: list[str]) -> None:
    assert exact_match(output, expected).passed is (output == expected)


@given(st.lists(st.sampled_from("abc"), max_size=3), st.lists(st.sampled_from("abc"), max_size=3))
def test_any_generated_question_may_match_any_reference(output: list[str], expected: list[str]) -> None:
    assert exact_match(output, expected, match="any").passed is bool(set(output) & set(expected))


def test_similar_lists_are_compared_item_by_item() -> None:
    """A list with similar items in another order, or with fewer items, is another list."""
    assert similarity(["red car", "blue boat"], ["red car", "blue boat"]).value == pytest.approx(1)
    swapped = similarity(["red car", "blue boat"], ["blue boat", "red car"])
    assert swapped.passed is False
    fewer = similarity(["red car"], ["red car", "blue boat"])
    assert (fewer.value, fewer.passed) == (0.0, False)
    nearest = semantic_similarity("lexical", match="any")
    assert (nearest(["red car", "blue boat"], ["blue boat", "x"])).passed is True


def test_a_reference_that_cannot_be_compared_leaves_a_failure_open() -> None:
    """It might match; a pass still decides."""
    assert numeric_answer("It is 7.", ["many", 7]).passed is True
    assert numeric_answer("It is 8.", ["many", 7]).status == "error"
    assert score_best_reference(lambda one: Score(0.0, False), []).status == "skipped"


def test_the_prompt_says_that_one_reference_is_enough() -> None:
    """Several references are shown as alternatives, one as itself."""
    sample = Sample("1", "Capital of France?", ["Paris", "Paris, France"])
    seen = View().texts("Paris", sample, load_template("similarity"))
    assert seen["expected"] == "Any one of these:\n- Paris\n- Paris, France"
    one = View().texts("Paris", Sample("1", None, ["Paris"]), load_template("similarity"))
    assert one["expected"] == "Paris"


def test_a_run_takes_references_from_the_sample() -> None:
    """An attached evaluator follows the same rule."""
    attached = attach(exact_match, parameters={"case_sensitive": False})
    assert attached("PARIS", ["paris", "rome"], Session()).passed
