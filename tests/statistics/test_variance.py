"""Variance components and the analysis of variance: by hand, against scipy, and with known truth."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from proctor.core.stats.descriptive import mean, mean_and_variance
from proctor.core.stats.reliability import VarianceComponents, anova, split_judged_variance, split_variance

GROUPS = st.lists(st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=6), min_size=2, max_size=6)


def test_a_split_by_hand() -> None:
    """Means .9 .1 .6 have the variance .16333, epochs .02 each: between = .16333 - .02 / 2."""
    split = split_variance([[0.8, 1.0], [0.2, 0.0], [0.5, 0.7]])
    assert split is not None
    assert split.within == pytest.approx(0.02)
    assert split.between == pytest.approx(0.49 / 3 - 0.01)
    assert split.judge == 0


@given(st.lists(st.lists(st.integers(0, 8).map(float), min_size=3, max_size=3), min_size=2))
def test_the_components_add_up_to_the_variance_of_the_mean(rows: list[list[float]]) -> None:
    """(between + within / K) / n equals the variance of the sample means, unless it is cut at 0."""
    split = split_variance(rows)
    assert split is not None
    assume(split.between > 0)
    moments = mean_and_variance([mean(row) or 0.0 for row in rows])
    assert moments is not None
    assert split.variance_of_mean(len(rows), epochs=3) == pytest.approx(moments[1] / len(rows))


def test_equal_samples_have_no_variance_between_them() -> None:
    """A negative estimate counts as 0; then there is no best number of epochs."""
    split = split_variance([[0.0, 1.0], [1.0, 0.0]])
    assert split == VarianceComponents(0.0, 0.5)
    assert split.best_epochs(1, 1) is None


def test_components_are_estimated_from_unbalanced_data() -> None:
    """2,000 samples with 1 to 4 epochs judged 1 to 3 times: between .04, within .09, judge .01."""
    rng = random.Random(11)
    samples = []
    for _ in range(2000):
        centre = rng.gauss(0.5, 0.2)
        epochs = [rng.gauss(centre, 0.3) for _ in range(rng.randint(1, 4))]
        samples.append([[rng.gauss(e, 0.1) for _ in range(rng.randint(1, 3))] for e in epochs])
    split = split_judged_variance(samples)
    assert split is not None
    assert split.between == pytest.approx(0.04, abs=0.005)
    assert split.within == pytest.approx(0.09, abs=0.008)
    assert split.judge == pytest.approx(0.01, abs=0.001)
    # Without the judge apart, the judge's part goes to the epochs.
    merged = split_variance([[epoch[0] for epoch in sample] for sample in samples])
    assert merged is not None
    assert merged.within == pytest.approx(0.1, abs=0.01)


def test_variance_that_cannot_be_split() -> None:
    """One sample, no sample with two epochs, no epoch judged twice, no data."""
    assert split_variance([]) is None
    assert split_variance([[0.1, 0.2], []]) is None
    assert split_variance([[0.1], [0.2]]) is None
    assert split_judged_variance([[[0.1], [0.2]], [[0.3], [0.5]]]) is None
    assert split_judged_variance([[[0.1, 0.2]], [[0.3, 0.4]]]) is None
    assert split_judged_variance([[[0.1, 0.2], [0.2, 0.2]], [], [[]]]) is None


@pytest.mark.parametrize(
    ("split", "sample_cost", "epoch_cost", "best"),
    [
        (VarianceComponents(0.05, 0.2), 4, 1, 4),  # sqrt(4 * 4)
        (VarianceComponents(0.05, 0.2), 1, 1, 2),  # sqrt(4)
        (VarianceComponents(0.2, 0.05), 1, 1, 1),  # sqrt(1/4): never fewer than one
        (VarianceComponents(0.1, 0.0), 9, 1, 1),  # epochs that do not differ need no second
        (VarianceComponents(0.1, 0.2), 0, 1, 1),  # new samples for nothing
        (VarianceComponents(0.1, 0.2), 1, 0, None),  # epochs for nothing
        (VarianceComponents(0.1, 0.03, judge=0.1), 9, 1, 3),  # sqrt(.13 / .1 * 9) = 3.4
    ],
)
def test_the_best_number_of_epochs(
    split: VarianceComponents, sample_cost: float, epoch_cost: float, best: int | None
) -> None:
    """sqrt(within / between * cost of a sample / cost of an epoch), rounded to the better side."""
    assert split.best_epochs(sample_cost, epoch_cost) == best


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0.1, 20))
def test_no_other_number_of_epochs_has_less_variance_for_the_cost(between: float, within: float, cost: float) -> None:
    """Checked for 1 to 60 epochs."""
    split = VarianceComponents(between, within)
    best = split.best_epochs(cost, 1)
    assert best is not None

    def price(k: int) -> float:
        return (cost + k) * split.variance_of_mean(1, k)

    assert price(best) <= min(map(price, range(1, 61))) * (1 + 1e-12)


def test_more_judgings_only_reduce_the_variance_of_the_judge() -> None:
    """0.1 / n + (0.06 + 0.04 / J) / K n."""
    split = VarianceComponents(0.1, 0.06, judge=0.04)
    assert split.variance_of_mean(10) == pytest.approx(0.02)
    assert split.variance_of_mean(10, judgings=4) == pytest.approx(0.017)
    assert split.variance_of_mean(10, epochs=2, judgings=4) == pytest.approx(0.0135)


@given(GROUPS)
def test_anova_agrees_with_scipy(groups: list[list[float]]) -> None:
    result = anova(groups)
    if all(len(set(group)) == 1 for group in groups):
        assert result is None
        return
    expected = stats.f_oneway(*groups)
    assert result is not None
    assert result.f == pytest.approx(expected.statistic, rel=1e-9, abs=1e-12)
    if expected.statistic > 0:  # else it is 0 or, by rounding, below it
        assert result.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_anova_needs_groups_with_variance() -> None:
    assert anova([]) is None
    assert anova([[1.0, 2.0], []]) is None
    assert anova([[1.0], [2.0]]) is None
