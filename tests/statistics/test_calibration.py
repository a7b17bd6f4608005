"""Judge calibration with few labels: by hand, extreme judges, and undefined cases."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proctor.core.stats.descriptive import mean, mean_and_variance
from proctor.core.stats.intervals import mean_interval
from proctor.core.stats.reliability import prediction_powered, rogan_gladen

LABELS = st.lists(st.integers(0, 1).map(float), min_size=3, max_size=20)


def test_prediction_powered_by_hand() -> None:
    """Cov .15, Var f .2, 1 + 5/10: weight .5. .5 * .8 + mean(.5 0 .5 .5 -.5 of y - f/2) = .6."""
    result = prediction_powered([1, 0, 1, 1, 0], [1, 0, 1, 1, 1], [1, 1, 0, 1, 1, 1, 0, 1, 1, 1])
    assert result is not None
    assert result.weight == pytest.approx(0.5)
    assert result.value == pytest.approx(0.6)
    # y - f/2 is .5 0 .5 .5 -.5, with mean .2 and variance .8 / 4; the others have 1.6 / 9.
    assert result.error == pytest.approx(math.sqrt(0.25 * 1.6 / 9 / 10 + 0.2 / 5))


@given(LABELS, LABELS)
def test_a_useless_judge_changes_nothing(labels: list[float], others: list[float]) -> None:
    """A judge with constant verdicts has weight 0: the result is Student's interval of the labels."""
    result = prediction_powered(labels, [1.0] * len(labels), others)
    assert result is not None
    assert result.weight == 0
    assert result.value == pytest.approx(mean(labels))
    assert result.interval == pytest.approx(mean_interval(labels))


@given(LABELS, LABELS)
def test_a_perfect_judge_is_nearly_as_good_as_labels(labels: list[float], others: list[float]) -> None:
    """Its weight is N / (n + N), so the value is the mean over all items."""
    assume(len(set(labels)) == 2)
    result = prediction_powered(labels, labels, others)
    assert result is not None
    n, rest = len(labels), len(others)
    assert result.weight == pytest.approx(rest / (n + rest))
    assert result.value == pytest.approx(mean([*labels, *others]))


def test_a_judge_that_is_always_wrong_has_no_weight() -> None:
    """Weights stay between 0 and 1."""
    result = prediction_powered([1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1])
    assert result is not None
    assert result.weight == 0
    assert prediction_powered([1], [1], [1, 0]) is None
    assert prediction_powered([1, 0], [1, 0], [1]) is None


def verdicts(yes: int, no: int) -> list[bool]:
    return [True] * yes + [False] * no


def test_rogan_gladen_by_hand() -> None:
    """0.6 are accepted; 0.9 of the good and 0.2 of the bad are: (0.6 - 0.2) / 0.7 = 0.5714."""
    result = rogan_gladen(verdicts(60, 40), verdicts(45, 5), verdicts(10, 40))
    assert result is not None
    assert result.value == pytest.approx(4 / 7)
    assert result.weight == pytest.approx(0.7)
    assert result.interval[0] < 4 / 7 < result.interval[1]


def test_more_labels_give_a_narrower_interval() -> None:
    """Ten times as much data gives an interval about sqrt(10) times as narrow."""
    few = rogan_gladen(verdicts(60, 40), verdicts(45, 5), verdicts(10, 40))
    many = rogan_gladen(verdicts(600, 400), verdicts(450, 50), verdicts(100, 400))
    assert few is not None
    assert many is not None
    ratio = (few.interval[1] - few.interval[0]) / (many.interval[1] - many.interval[0])
    assert ratio == pytest.approx(math.sqrt(10), rel=0.1)
    assert many.value == pytest.approx(few.value)
    assert mean_and_variance([few.value, many.value]) is not None


def test_the_estimate_stays_between_0_and_1() -> None:
    """Fewer items are accepted than if all were bad: 0, and an interval that starts there."""
    result = rogan_gladen(verdicts(5, 95), verdicts(45, 5), verdicts(10, 40))
    assert result is not None
    assert result.value == result.interval[0] == 0


def test_a_judge_no_better_than_chance_has_no_estimate() -> None:
    """Nor has a judge without labels of one kind, or without verdicts."""
    assert rogan_gladen(verdicts(5, 5), verdicts(3, 3), verdicts(4, 4)) is None
    assert rogan_gladen(verdicts(5, 5), verdicts(0, 3), verdicts(3, 0)) is None
    assert rogan_gladen(verdicts(5, 5), [], verdicts(3, 0)) is None
    assert rogan_gladen([], verdicts(3, 0), verdicts(0, 3)) is None
    # Told in a few labels, but not by so few that they prove it.
    assert rogan_gladen(verdicts(5, 5), verdicts(1, 0), verdicts(5, 30)) is not None
