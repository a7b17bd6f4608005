"""Means, variances and quantiles of data."""

from __future__ import annotations

import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats import descriptive
from proctor.core.stats.descriptive import mean, mean_and_variance, order_values, quantile

NUMBERS = st.floats(-1e6, 1e6)


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e10, 1e12])
def test_the_variance_survives_a_large_offset(offset: float) -> None:
    """As in NIST's NumAcc sets: 1000 of 1001 values lie 1/8 off the mean, so s² = 1/64 exactly."""
    values = [offset + 0.25] + [offset + 0.25 + step for _ in range(500) for step in (-0.125, 0.125)]
    moments = mean_and_variance(values)
    assert moments == (offset + 0.25, 0.015625)


def test_the_mean_survives_cancellation() -> None:
    """Adding in order would lose the 1 between two huge numbers."""
    assert mean([1e100, 1.0, -1e100, 1.0]) == 0.5


@given(st.lists(NUMBERS, min_size=2, max_size=30))
def test_moments_agree_with_exact_arithmetic(values: list[float]) -> None:
    moments = mean_and_variance(values)
    assert moments is not None
    exact = statistics.variance([Fraction(value) for value in values])
    assert moments[0] == pytest.approx(statistics.fmean(values), rel=1e-12, abs=1e-12)
    assert moments[1] == pytest.approx(float(exact), rel=1e-9, abs=1e-9)


def test_too_few_values_have_no_mean_or_variance() -> None:
    """None, never 0."""
    assert mean([]) is None
    assert mean_and_variance([]) is None
    assert mean_and_variance([3.0]) is None


@pytest.mark.parametrize(("q", "expected"), [(0, 1.0), (0.25, 1.75), (0.5, 2.5), (0.95, 3.85), (1, 4.0)])
def test_quantiles_are_interpolated_linearly(q: float, expected: float) -> None:
    """Of 1, 2, 3, 4 the position of q is 3q: 0.25 is three quarters of the way from 1 to 2."""
    assert quantile([1.0, 2.0, 3.0, 4.0], q) == pytest.approx(expected, rel=1e-15)


@given(st.lists(NUMBERS, min_size=1, max_size=30).map(sorted), st.floats(0, 1))
def test_quantiles_agree_with_numpy_and_stay_within_the_data(values: list[float], q: float) -> None:
    result = quantile(values, q)
    assert result is not None
    assert values[0] <= result <= values[-1]
    assert result == pytest.approx(float(np.quantile(values, q)), rel=1e-9, abs=1e-9)


def test_quantiles_need_values_and_a_share_between_0_and_1() -> None:
    assert quantile([], 0.5) is None
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile([1.0], 95)


@pytest.mark.parametrize("values", [[4.0, 1.0, 3.0, 2.0], [float(i * i % 997) for i in range(400)], [7.0] * 60])
def test_quantiles_of_unsorted_values_do_not_depend_on_the_method(
    values: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values above a limit are counted into bins instead of sorted."""
    shares = [0.0, 0.25, 0.5, 0.95, 1.0]
    expected = [quantile(sorted(values), share) for share in shares]
    ranks = [0, 1, len(values) - 1]
    for limit in (descriptive.MAX_SORTED, 10):
        monkeypatch.setattr(descriptive, "MAX_SORTED", limit)
        ordered = order_values(values, shares, ranks)
        assert [quantile(ordered, share) for share in shares] == expected
        assert [ordered[rank] for rank in ranks] == [sorted(values)[rank] for rank in ranks]
