"""The loop spec, "Testing Evaluators": its tests as they stand, in our imports."""

from __future__ import annotations

from proctor.evaluators.combination import all_of, any_of
from proctor.evaluators.matching import contains, exact_match, json_subset, within_tolerance


def test_exact_match_pass() -> None:
    """Equal texts pass with the full value."""
    score = exact_match("hello", "hello")
    assert score.passed is True
    assert score.value == 1.0


def test_exact_match_fail() -> None:
    """Different texts do not pass and have no value."""
    score = exact_match("hello", "world")
    assert score.passed is False
    assert score.value == 0.0


def test_contains_pass() -> None:
    """A text that contains the expected one passes."""
    score = contains("The answer is 42.", "42")
    assert score.passed is True


def test_all_of_requires_all() -> None:
    """One evaluator that does not pass keeps the whole from passing."""
    evaluator = all_of(exact_match, contains)
    score = evaluator("hello", "hello")
    assert score.passed is True

    score = evaluator("hello world", "hello")
    assert score.passed is False  # exact_match fails


def test_any_of_requires_one() -> None:
    """One evaluator that passes is enough."""
    evaluator = any_of(exact_match, contains)
    score = evaluator("hello world", "hello")
    assert score.passed is True  # contains passes


def test_within_tolerance_is_as_printed() -> None:
    """The value falls with the difference, and the reason shows the difference."""
    score = within_tolerance(0.5)(10.25, 10.0)
    assert (score.value, score.passed, score.reason) == (0.5, True, "diff=0.2500")


def test_json_subset_is_as_printed() -> None:
    """Expected keys must be there with the expected values; others may be there too."""
    assert json_subset({"a": 1, "b": 2}, {"a": 1}).value == 1.0
    assert json_subset({"a": 1, "b": 2}, {"a": 2}).value == 0.0
    assert json_subset({"a": 1}, {"c": 3}).reason == "missing: c"
