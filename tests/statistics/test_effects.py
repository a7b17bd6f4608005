"""Effect sizes: by hand, against numpy and scipy, and the coverage of their intervals."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proctor.core.stats.effects import hedges_correction, measure_effect, measure_paired_effect
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")
special: Any = LazyModule("scipy.special")

NUMBER = st.integers(-400, 400).map(lambda eighths: eighths / 8)
GROUP = st.lists(NUMBER, min_size=2, max_size=12)


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(GROUP, GROUP)
def test_d_is_the_difference_in_pooled_deviations(first: list[float], second: list[float]) -> None:
    """d follows from scipy's pooled t: d = t * sqrt(1/n + 1/m); g is smaller by Hedges' factor."""
    assume(len(set(first)) > 1 or len(set(second)) > 1)
    n, m = len(first), len(second)
    actual = measure_effect(first, second)
    expected = stats.ttest_ind(first, second).statistic * math.sqrt(1 / n + 1 / m)
    df = n + m - 2
    factor = special.gamma(df / 2) / (math.sqrt(df / 2) * special.gamma((df - 1) / 2))
    assert actual is not None
    assert actual.d == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert actual.g == pytest.approx(expected * factor, rel=1e-9, abs=1e-12)
    error = math.sqrt((n + m) / (n * m) + actual.g**2 / (2 * (n + m)))
    z = stats.norm.ppf(0.975)
    assert actual.interval == pytest.approx((actual.g - z * error, actual.g + z * error), rel=1e-9)


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=3, max_size=12))
def test_paired_d_is_the_mean_difference_in_standard_deviations(pairs: list[tuple[float, float]]) -> None:
    """As calculated by numpy."""
    first, second = (list(side) for side in zip(*pairs, strict=True))
    differences = np.subtract(first, second)
    assume(len(set(differences)) > 1)
    actual = measure_paired_effect(first, second)
    assert actual is not None
    assert actual.d == pytest.approx(differences.mean() / differences.std(ddof=1), rel=1e-9, abs=1e-12)


@given(GROUP, GROUP, st.integers(-50, 50), st.sampled_from([0.5, 2.0, 4.0]))
def test_effects_do_not_depend_on_the_unit(first: list[float], second: list[float], shift: int, scale: float) -> None:
    """Swapped groups change the sign."""
    actual, swapped = measure_effect(first, second), measure_effect(second, first)
    moved = measure_effect([scale * v + shift for v in first], [scale * v + shift for v in second])
    assume(actual is not None)
    assert actual is not None
    assert moved is not None
    assert swapped is not None
    assert moved.g == pytest.approx(actual.g, rel=1e-9, abs=1e-12)
    assert swapped.g == pytest.approx(-actual.g)
    assert swapped.interval == pytest.approx((-actual.interval[1], -actual.interval[0]))


def test_an_effect_by_hand() -> None:
    """4, 5, 6 against 1, 2, 3: d = 3 / 1; with df = 4 the factor is 1 / (sqrt(2) * 0.886227)."""
    result = measure_effect([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    assert result is not None
    assert result.d == 3.0
    assert hedges_correction(4) == pytest.approx(1 / (math.sqrt(2) * 0.88622693), rel=1e-7)
    assert result.g == pytest.approx(2.39365, abs=1e-5)


def test_effects_of_groups_without_variance() -> None:
    """Equal constants have effect 0; different ones have none."""
    same, different = measure_effect([0.3] * 3, [0.1 + 0.2] * 3), measure_effect([1.0] * 3, [0.0] * 3)
    assert same is not None
    assert (same.d, same.g) == (0.0, 0.0)
    assert different is None
    still = measure_paired_effect([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert still is not None
    assert still.g == 0.0
    assert measure_paired_effect([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]) is None


def test_too_few_values_have_no_effect() -> None:
    """Three values have one degree of freedom, for which Hedges' correction is undefined."""
    assert measure_effect([1.0, 2.0], [3.0]) is None
    assert measure_effect([], [1.0, 2.0, 3.0, 4.0]) is None
    assert measure_paired_effect([1.0, 2.0], [3.0, 5.0]) is None
    single = measure_effect([1.0, 2.0, 3.0], [5.0])
    assert single is not None
    assert single.d == pytest.approx(-3.0)


def test_the_interval_covers_the_true_effect_about_as_often_as_claimed() -> None:
    """A quick case of the simulations: a true effect of 0.8 in 95% intervals of g."""
    n, rng, covered = 8, random.Random(8), 0
    for _ in range(300):
        first = [rng.gauss(0.8, 1) for _ in range(n)]
        result = measure_effect(first, [rng.gauss(0, 1) for _ in range(n)])
        assert result is not None
        covered += result.interval[0] <= 0.8 <= result.interval[1]
    assert 0.91 < covered / 300 < 0.99
