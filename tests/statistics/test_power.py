"""Sample sizes and power: published values and exact sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.simulations.power import (
    StudyDesign,
    flips_needed,
    power_of_test,
    rates_needed,
    samples_needed,
    variance_of_flips,
    variance_with_epochs,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")

SHARE = st.integers(1, 40).map(lambda hundredths: hundredths / 100)


def test_five_points_of_pairs() -> None:
    """(1.95996 + .84162)^2 = 7.8489; times .198 over .0025 is 621.6: 622 pairs."""
    assert samples_needed(0.05, variance=0.198) == 622
    assert samples_needed(-0.05, variance=0.198) == 622
    assert power_of_test(0.05, 0.198, 622) == pytest.approx(0.8, abs=1e-3)


def test_one_side_and_more_power() -> None:
    """(1.64485 + 1.28155)^2 = 8.5639 for one side and 90%."""
    design = StudyDesign(power=0.9, sides=1)
    assert samples_needed(0.1, 0.25, design) == math.ceil(8.5639 * 25)
    assert power_of_test(0.1, 0.25, 215, design) == pytest.approx(0.9, abs=2e-3)


def test_no_number_of_samples_detects_no_difference() -> None:
    assert samples_needed(0, 0.2) is None
    assert flips_needed(0.1, 0.1) is None
    assert rates_needed(0.4, 0.4) is None


def test_two_samples_detect_a_difference_without_variance() -> None:
    assert samples_needed(0.1, 0.0) == 2
    assert (power_of_test(0.1, 0.0, 5), power_of_test(0.0, 0.0, 5)) == (1.0, 0.0)


def test_epochs_reduce_the_variance() -> None:
    """0.1 + 0.09 / 3 + 0.12 / 4; with one epoch each, the plain sum."""
    assert variance_with_epochs(0.1, (0.09, 0.12), (3, 4)) == pytest.approx(0.16)
    assert variance_with_epochs(0.1, (0.09, 0.12), (1, 1)) == pytest.approx(0.31)


@given(SHARE, SHARE)
def test_the_variance_of_flips_is_that_of_the_differences(up: float, down: float) -> None:
    """Of 1, -1 and 0 with these shares."""
    expected = up + down - (up - down) ** 2
    assert variance_of_flips(up, down) == pytest.approx(expected)


@pytest.mark.no_cover
@given(SHARE, SHARE, st.sampled_from([StudyDesign(), StudyDesign(power=0.9), StudyDesign(sides=1)]))
def test_flips_needed_are_enough_for_the_exact_test(up: float, down: float, aim: StudyDesign) -> None:
    """The exact power is at most 3 points below the requested one."""
    if abs(up - down) < 0.06:
        return
    n = flips_needed(up, down, aim)
    assert n is not None
    assert exact_power(up, down, n, aim) >= aim.power - 0.03
    assert exact_power(up, down, 2 * n, aim) > aim.power + 0.04


def exact_power(up: float, down: float, n: int, design: StudyDesign) -> float:
    """The power of McNemar's exact test, summed over all numbers of flips."""
    flips = np.arange(n + 1)
    most = stats.binom.ppf(design.level / design.sides, flips, 0.5)
    most -= stats.binom.cdf(most, flips, 0.5) > design.level / design.sides
    share = max(up, down) / (up + down)
    tails = stats.binom.cdf(most, flips, 1 - share)
    if design.sides == 2:
        tails += stats.binom.cdf(most, flips, share)
    return float(stats.binom.pmf(flips, n, up + down) @ tails)


def test_shares_of_flips_beyond_one_are_refused() -> None:
    with pytest.raises(ValueError, match="not shares"):
        variance_of_flips(0.7, 0.4)


def test_independent_rates() -> None:
    """0.6 against 0.7: 356 in each group, as in textbooks; rates beyond 1 are refused."""
    assert rates_needed(0.6, 0.7) == rates_needed(0.7, 0.6) == 356
    assert rates_needed(0.1, 0.2, StudyDesign(power=0.9)) == 266
    with pytest.raises(ValueError, match="between 0 and 1"):
        rates_needed(0.6, 1.2)
