"""Intervals of the difference of two rates: published values and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.differences import paired_rate_interval, rate_difference_interval


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((10, 10, 0, 20), 0.6791, 1.0),
        ((10, 10, 0, 10), 0.6075, 1.0),
    ],
)
def test_newcombes_table(counts: tuple[int, int, int, int], low: float, high: float) -> None:
    """The published intervals of Newcombe's method 10."""
    assert rate_difference_interval(*counts) == pytest.approx((low, high), abs=5e-5)


def test_pairs_by_hand() -> None:
    """Nothing of 10 differs: 0 ± 1.96 √2 / 12; 1 up, 5 down of 30: -4/32 ± 1.96 √(15/64) / √32."""
    assert paired_rate_interval(0, 0, 10) == pytest.approx((-0.23098, 0.23098), abs=1e-5)
    assert paired_rate_interval(1, 5, 30) == pytest.approx((-0.29274, 0.04274), abs=1e-5)
    assert paired_rate_interval(0, 0, 0) is None
    assert rate_difference_interval(0, 0, 1, 2) is None
    with pytest.raises(ValueError, match="discordant pairs"):
        paired_rate_interval(3, 3, 5)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_swapped_counts_mirror_the_interval(up: int, down: int, same: int) -> None:
    """The interval is within -1 to 1."""
    n = up + down + same
    result, back = paired_rate_interval(up, down, n), paired_rate_interval(down, up, n)
    if result is None or back is None:
        assert n == 0
        return
    assert -1 <= result[0] < result[1] <= 1
    assert result == pytest.approx((-back[1], -back[0]))


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.01, 1000))
def test_effective_counts_may_exceed_n_by_rounding(up: int, down: int, weight: float) -> None:
    n = up + down
    if not n:
        return
    whole = weight * n
    result = paired_rate_interval(whole * (up / n), whole * (down / n), whole)
    assert result is not None
    assert -1 <= result[0] < result[1] <= 1
