"""A result's verdict and its score always agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.records.sample import Sample, find_metadata_problems, type_name
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Failure, Outcome, Trial
from tests.records.examples import any_score, failed, scored, skipped


@given(
    st.dictionaries(st.text(max_size=3), any_score | st.builds(Score, st.floats(0, 1), st.booleans()), max_size=6),
    st.booleans(),
)
def test_ruling_1_the_verdict_always_agrees_with_the_score(scores: dict[str, Score], has_output: bool) -> None:
    """Ruling 1: for any mix of scores, outcome and value are those of the combined score."""
    error = None if has_output else Failure("KeyError", "x")
    result = EvalResult(Trial(Sample("s", "?"), error=error), scores)
    outcome, value = result.verdict()
    score = result.score
    assert value == score.value
    assert result.outcome == outcome
    assert result.passed == (outcome == "passed") == (score.passed is True)
    assert outcome == (
        {"skipped": "skipped", "error": "unscored" if has_output else "error"}.get(score.status)
        or ("passed" if score.passed else "failed")
    )


@pytest.mark.parametrize(
    ("result", "outcome", "value"),
    [
        (scored("a", 1.0, 0.5), "passed", 0.75),
        (scored("a", 1.0, 0.25), "failed", 0.625),
        (scored("a", 0.0), "failed", 0.0),
        (scored("a", 1.0, None), "unscored", None),
        (scored("a"), "skipped", None),
        (skipped("a"), "skipped", None),
        (failed("a"), "error", None),
    ],
)
def test_outcomes_of_known_scores(result: EvalResult, outcome: Outcome, value: float | None) -> None:
    """Every result has exactly one outcome."""
    assert result.verdict() == (outcome, value)


def test_the_only_score_is_the_score() -> None:
    """One evaluator's score is not wrapped in a combination."""
    score = Score(0.5, True, "half", {"why": 1})
    assert EvalResult(Trial(Sample("s", "?")), {"only": score}).score is score


def test_a_failed_trial_says_why() -> None:
    """The result's error and its score's reason have kind and message."""
    result = failed("s", latency_ms=7.5)
    assert (result.success, result.output, result.latency_ms) == (False, None, 7.5)
    assert result.error == result.score.reason == "TimeoutError: too slow"
    assert str(Failure("KeyError", "")) == "KeyError"
    good = scored("s", 1.0)
    assert (good.success, good.error, good.output, good.sample_id) == (True, None, "!", "s")


def test_a_sample_has_four_metadata_keys_with_a_meaning() -> None:
    """Labels, context, cluster and tags are read from the metadata; without them they are empty."""
    metadata = {"labels": {"x": 1}, "context": "c", "cluster": "doc", "tags": ["a", "b"]}
    sample: Sample[str, str] = Sample("1", "?", metadata=metadata)
    assert (sample.labels, sample.context, sample.cluster) == ({"x": 1}, "c", "doc")
    assert sample.tags == ("a", "b")
    bare: Sample[str, str] = Sample("1", "?", metadata={"labels": None, "tags": None})
    assert (bare.labels, bare.context, bare.cluster, bare.tags) == ({}, None, None, ())


def test_all_faults_in_the_metadata_are_reported() -> None:
    """Every known key that holds something else is named, with what it holds."""
    assert find_metadata_problems({"labels": [], "tags": ["a", 1], "cluster": 7, "mine": object()}) == [
        ("metadata.labels", "must be a mapping, got a list"),
        ("metadata.tags", "must be a list of strings, got a list"),
        ("metadata.cluster", "must be a string, got a number"),
    ]
    assert find_metadata_problems({"labels": {}, "tags": ("a",), "cluster": "c"}) == []
    assert find_metadata_problems({"labels": None, "tags": None, "cluster": None}) == []


def test_types_are_named_in_json_terms() -> None:
    """What a reader of JSON would call them; others by their type."""
    values = [True, 1, 1.5, "a", [1], (1,), {"a": 1}, None, {1}]
    assert [type_name(value) for value in values] == [
        "a boolean",
        "a number",
        "a number",
        "a string",
        "a list",
        "a list",
        "a mapping",
        "null",
        "set",
    ]
