"""Sample sizes and power: figures of the literature, one against the other, and exact sums."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from proctor.core.stats.permutations import sign_test
from proctor.core.stats.power import (
    StudyDesign,
    binomial,
    binomial_cdf,
    flips_needed,
    more_samples,
    power_of_flips,
    power_of_test,
    rates_needed,
    samples_needed,
    smallest_effect,
    variance_of_flips,
    variance_with_epochs,
)

SHARE = st.integers(1, 40).map(lambda hundredths: hundredths / 100)


def test_five_points_of_pairs() -> None:
    """(1.95996 + .84162)^2 = 7.8489; times .198 over .0025 is 621.6: 622 pairs."""
    assert samples_needed(0.05, variance=0.198) == 622
    assert samples_needed(-0.05, variance=0.198) == 622
    assert power_of_test(0.05, 0.198, 622) == pytest.approx(0.8, abs=1e-3)


def test_one_side_and_more_power() -> None:
    """(1.64485 + 1.28155)^2 = 8.5639 for one side and 90 %."""
    aim = StudyDesign(power=0.9, sides=1)
    assert samples_needed(0.1, 0.25, aim) == math.ceil(8.5639 * 25)
    assert power_of_test(0.1, 0.25, 215, aim) == pytest.approx(0.9, abs=2e-3)


@given(st.integers(2, 5000), st.floats(0.01, 4), st.sampled_from([0.7, 0.8, 0.95]))
def test_size_effect_and_power_are_one_relation(n: int, variance: float, power: float) -> None:
    """The smallest effect of n needs n samples and is found with the power asked for."""
    aim = StudyDesign(power=power)
    effect = smallest_effect(n, variance, aim)
    assert abs((samples_needed(effect, variance, aim) or 0) - n) <= 1
    assert power_of_test(effect, variance, n, aim) == pytest.approx(power, abs=1e-3)


def test_no_difference_needs_no_end_of_samples() -> None:
    """None, never a number, where there is nothing to find."""
    assert samples_needed(0, 0.2) is None
    assert flips_needed(0.1, 0.1) is None
    assert rates_needed(0.4, 0.4) is None
    assert more_samples(100, 0.0, 0.02) is None


def test_no_variance_needs_next_to_nothing() -> None:
    """What always differs is found with two, what never does is never found."""
    assert samples_needed(0.1, 0.0) == 2
    assert (power_of_test(0.1, 0.0, 5), power_of_test(0.0, 0.0, 5)) == (1.0, 0.0)


def test_how_many_more() -> None:
    """100 pairs with an error of .0445 have the variance .198: 622 in all, 522 more."""
    assert more_samples(100, 0.05, math.sqrt(0.198 / 100)) == 522
    assert more_samples(700, 0.05, math.sqrt(0.198 / 700)) == 0


def test_epochs_take_from_the_variance() -> None:
    """.1 + .09 / 3 + .12 / 4, and one epoch each is the plain sum."""
    assert variance_with_epochs(0.1, (0.09, 0.12), (3, 4)) == pytest.approx(0.16)
    assert variance_with_epochs(0.1, (0.09, 0.12), (1, 1)) == pytest.approx(0.31)


@given(SHARE, SHARE)
def test_the_variance_of_flips_is_that_of_the_differences(up: float, down: float) -> None:
    """Of 1, -1 and 0 with these shares."""
    expected = up + down - (up - down) ** 2
    assert variance_of_flips(up, down) == pytest.approx(expected)


@pytest.mark.no_cover
@settings(max_examples=40, deadline=None)
@given(SHARE, SHARE, st.sampled_from([StudyDesign(), StudyDesign(power=0.9), StudyDesign(sides=1)]))
def test_flips_needed_are_enough_for_the_exact_test(up: float, down: float, aim: StudyDesign) -> None:
    """The exact power of the number of pairs lies within 3 points of what was asked, or above."""
    if abs(up - down) < 0.06:
        return
    n = flips_needed(up, down, aim)
    assert n is not None
    assert power_of_flips(up, down, n, aim) >= aim.power - 0.03
    assert power_of_flips(up, down, 2 * n, aim) > aim.power + 0.04


@pytest.mark.parametrize("aim", [StudyDesign(), StudyDesign(sides=1)])
def test_the_exact_power_is_that_of_the_test_itself(aim: StudyDesign) -> None:
    """Every number up and down of 25 pairs, its likelihood, and whether the test then rejects."""
    up, down, n = 0.3, 0.1, 25
    rejected = 0.0
    for ups in range(n + 1):
        for downs in range(n + 1 - ups):
            chance = stats.multinomial.pmf([ups, downs, n - ups - downs], n, [up, down, 0.6])
            p = sign_test(ups, downs, "any" if aim.sides == 2 else "higher")
            rejected += float(chance) * (p <= aim.level)
    assert power_of_flips(up, down, n, aim) == pytest.approx(rejected, rel=1e-9)


def test_the_edges_of_flips() -> None:
    """Nothing flips: nothing is found. All go up: six pairs are the first to be significant."""
    assert power_of_flips(0.0, 0.0, 50) == 0.0
    assert power_of_flips(1.0, 0.0, 5) == 0.0
    assert power_of_flips(1.0, 0.0, 6) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="not shares"):
        variance_of_flips(0.7, 0.4)
    with pytest.raises(ValueError, match="not shares"):
        power_of_flips(-0.1, 0.4, 5)


def test_independent_rates() -> None:
    """.6 against .7: 356 in each group, the textbook figure; out of bounds is refused."""
    assert rates_needed(0.6, 0.7) == rates_needed(0.7, 0.6) == 356
    assert rates_needed(0.1, 0.2, StudyDesign(power=0.9)) == 266
    with pytest.raises(ValueError, match="between 0 and 1"):
        rates_needed(0.6, 1.2)


@given(
    st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.sampled_from([0.0, 0.01, 0.3, 0.5, 0.97, 1.0]),
)
def test_binomials_are_scipys(counts: tuple[int, int], p: float) -> None:
    """Likelihoods and sums of them, also for what is certain."""
    assert binomial(*counts, p) == pytest.approx(stats.binom.pmf(*counts, p), rel=1e-9, abs=1e-300)
    assert binomial_cdf(*counts, p) == pytest.approx(stats.binom.cdf(*counts, p), rel=1e-9)
