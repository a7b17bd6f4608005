"""Kendall's tau: by hand, and agreement with scipy."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.ranks import kendall_tau
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")

RANKED = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=40)


def test_one_swap_of_five_by_hand() -> None:
    """9 of 10 pairs agree: tau 0.8; 10 of 120 orders are at least as extreme."""
    result = kendall_tau("abcde", "acbde")
    assert result is not None
    assert result.n == 5
    assert result.tau == pytest.approx(0.8)
    assert result.p == pytest.approx(10 / 120)


@given(RANKED)
def test_tau_with_ties_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    """So does p by the normal approximation."""
    first, second = zip(*pairs, strict=True)
    result = kendall_tau(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert result is None
        return
    expected = stats.kendalltau(first, second, method="asymptotic")
    assert result is not None
    assert result.tau == pytest.approx(expected.statistic, abs=1e-12)
    tied = len(set(first)) < len(first) or len(set(second)) < len(second)
    if tied and len(pairs) < 10:
        assert result.p is None
    elif tied:
        assert result.p == pytest.approx(expected.pvalue, rel=1e-9)


@given(st.integers(2, 30).flatmap(lambda n: st.permutations(range(n))))
def test_without_ties_p_is_exact(order: list[int]) -> None:
    """As in scipy."""
    result = kendall_tau(range(len(order)), order)
    expected = stats.kendalltau(range(len(order)), order, method="exact")
    assert result is not None
    assert result.tau == pytest.approx(expected.statistic, abs=1e-12)
    assert result.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_large_rankings_agree_with_scipy() -> None:
    """10,000 items, with and without ties."""
    rng = random.Random(3)
    first = [rng.random() for _ in range(10_000)]
    second = [round(value + rng.random(), 2) for value in first]
    result, expected = kendall_tau(first, second), stats.kendalltau(first, second)
    assert result is not None
    assert result.tau == pytest.approx(expected.statistic, rel=1e-12)


def test_tau_is_undefined_without_differences() -> None:
    """No items, one item, or only ties."""
    assert kendall_tau([], []) is None
    assert kendall_tau([1], [1]) is None
    assert kendall_tau([1, 1], [1, 2]) is None
    with pytest.raises(ValueError, match="zip"):
        kendall_tau([1], [1, 2])
