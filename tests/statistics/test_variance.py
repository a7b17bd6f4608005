"""Variance components and the analysis of variance: by hand, against scipy, and with known truth."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from proctor.core.stats.descriptive import mean, mean_and_variance
from proctor.core.stats.variance import (
    VarianceComponents,
    anova,
    estimate_components,
    split_crossed_variance,
    split_judged_variance,
    split_variance,
    summarize_samples,
)

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


def test_dyestuff_is_reproduced() -> None:
    """Six batches of five yields (Davies 1947): lme4's REML fit has 1764.05 between batches and 2451.25 within."""
    yields = """1545 1440 1440 1520 1580 / 1540 1555 1490 1560 1495 / 1595 1550 1605 1510 1560
        / 1445 1440 1595 1465 1545 / 1595 1630 1515 1635 1625 / 1520 1455 1450 1480 1445"""
    split = split_variance([[float(number) for number in batch.split()] for batch in yields.split("/")])
    assert split is not None
    assert (split.between, split.within) == pytest.approx((1764.05, 2451.25))


def test_penicillin_is_reproduced() -> None:
    """24 plates x 6 samples, crossed (Davies 1972): lme4's variances .7169, 3.7309 and .3024, which are not sds."""
    plates = """272326232321 272326232321 252125242420 262325232320 252226222320 242225232219 242023212219 262226242421
        242124222220 242124232219 262326242421 252226242420 262426242522 262326232320 262325242422 252225232320
        252124232320 252224232319 242123212119 262326242421 252124222218 252225222220 242124222419 242124222118"""
    table = [[float(row[place : place + 2]) for place in range(0, 12, 2)] for row in plates.split()]
    assert split_crossed_variance(table) == pytest.approx((0.716908, 3.73092, 0.302415), abs=5e-6)


def test_a_crossed_table_by_hand() -> None:
    """Rows 0 and 2, columns 0 and 4 without interaction: the row means differ by 2, the column means by 4."""
    assert split_crossed_variance([[0, 4], [2, 6]]) == (2.0, 8.0, 0.0)
    assert split_crossed_variance([[0, 4]]) is split_crossed_variance([[0], [2]]) is None


def test_a_level_without_repeats_belongs_to_the_level_above() -> None:
    """One epoch judged twice: means .5 and 1 have the variance .125, of which the judge's .25 / 2 is taken away."""
    estimate = estimate_components(summarize_samples([[[0.0, 1.0]], [[1.0, 1.0]]]))
    assert estimate == (0.0, None, 0.25)
    assert estimate_components(summarize_samples([[[0.0]], [[1.0]]])) == (0.5, None, None)
    assert estimate_components(summarize_samples([[[0.0]], [[]]])) is None
