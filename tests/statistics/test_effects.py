"""Effect sizes: by hand, against numpy and scipy, and how often their intervals hold."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gamma

from proctor.core.stats.effects import hedges_correction, measure_effect, measure_paired_effect

NUMBER = st.integers(-400, 400).map(lambda eighths: eighths / 8)
GROUP = st.lists(NUMBER, min_size=2, max_size=12)


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(GROUP, GROUP)
def test_d_is_the_difference_in_pooled_deviations(first: list[float], second: list[float]) -> None:
    """d follows from scipy's pooled t: d = t * sqrt(1/n + 1/m); g is smaller by Hedges' factor."""
    assume(len(set(first)) > 1 or len(set(second)) > 1)
    n, m = len(first), len(second)
    mine = measure_effect(first, second)
    theirs = stats.ttest_ind(first, second).statistic * math.sqrt(1 / n + 1 / m)
    df = n + m - 2
    factor = gamma(df / 2) / (math.sqrt(df / 2) * gamma((df - 1) / 2))
    assert mine is not None
    assert mine.d == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    assert mine.g == pytest.approx(theirs * factor, rel=1e-9, abs=1e-12)
    error = math.sqrt((n + m) / (n * m) + mine.g**2 / (2 * (n + m)))
    z = stats.norm.ppf(0.975)
    assert mine.interval == pytest.approx((mine.g - z * error, mine.g + z * error), rel=1e-9)


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=3, max_size=12))
def test_d_of_pairs_is_the_mean_in_deviations_of_the_differences(pairs: list[tuple[float, float]]) -> None:
    """The paired d is numpy's mean over numpy's deviation of the differences."""
    first, second = (list(side) for side in zip(*pairs, strict=True))
    apart = np.subtract(first, second)
    assume(len(set(apart)) > 1)
    mine = measure_paired_effect(first, second)
    assert mine is not None
    assert mine.d == pytest.approx(apart.mean() / apart.std(ddof=1), rel=1e-9, abs=1e-12)


@given(GROUP, GROUP, st.integers(-50, 50), st.sampled_from([0.5, 2.0, 4.0]))
def test_effects_have_no_unit(first: list[float], second: list[float], shift: int, scale: float) -> None:
    """Shift and scale change nothing, and swapping the groups changes the sign."""
    mine, swapped = measure_effect(first, second), measure_effect(second, first)
    moved = measure_effect([scale * v + shift for v in first], [scale * v + shift for v in second])
    assume(mine is not None)
    assert mine is not None
    assert moved is not None
    assert swapped is not None
    assert moved.g == pytest.approx(mine.g, rel=1e-9, abs=1e-12)
    assert swapped.g == pytest.approx(-mine.g)
    assert swapped.interval == pytest.approx((-mine.interval[1], -mine.interval[0]))


def test_by_hand() -> None:
    """4, 5, 6 against 1, 2, 3: d = 3 / 1; with df = 4 the factor is 1 / (sqrt(2) * 0.886227)."""
    found = measure_effect([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    assert found is not None
    assert found.d == 3.0
    assert hedges_correction(4) == pytest.approx(1 / (math.sqrt(2) * 0.88622693), rel=1e-7)
    assert found.g == pytest.approx(2.39365, abs=1e-5)


def test_what_has_no_spread_has_no_effect_or_no_size() -> None:
    """Equal constants have the effect 0; different ones none that can be told."""
    same, different = measure_effect([0.3] * 3, [0.1 + 0.2] * 3), measure_effect([1.0] * 3, [0.0] * 3)
    assert same is not None
    assert (same.d, same.g) == (0.0, 0.0)
    assert different is None
    still = measure_paired_effect([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert still is not None
    assert still.g == 0.0
    assert measure_paired_effect([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]) is None


def test_too_few_values_have_no_effect() -> None:
    """Three values have one degree of freedom, of which Hedges' correction leaves nothing."""
    assert measure_effect([1.0, 2.0], [3.0]) is None
    assert measure_effect([], [1.0, 2.0, 3.0, 4.0]) is None
    assert measure_paired_effect([1.0, 2.0], [3.0, 5.0]) is None
    single = measure_effect([1.0, 2.0, 3.0], [5.0])
    assert single is not None
    assert single.d == pytest.approx(-3.0)


@pytest.mark.parametrize("n", [5, 8, 20])
def test_intervals_hold_the_true_effect_about_as_often_as_they_say(n: int) -> None:
    """A true effect of 0.8 lies inside the 95 % interval of g in 93 to 98 % of the trials."""
    chance, held = random.Random(n), 0
    for _ in range(1500):
        first = [chance.gauss(0.8, 1) for _ in range(n)]
        found = measure_effect(first, [chance.gauss(0, 1) for _ in range(n)])
        assert found is not None
        held += found.interval[0] <= 0.8 <= found.interval[1]
    assert 0.93 < held / 1500 < 0.98
