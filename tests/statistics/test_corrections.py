"""Holm's correction for many tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.effects import holm

P_VALUES = st.lists(st.integers(0, 1000).map(lambda thousandths: thousandths / 1000), max_size=12)


def test_holm_by_hand() -> None:
    """0.01 * 4, 0.02 * 3, 0.03 * 2, then at least the one before, in the order of the input."""
    adjusted = holm([0.03, 0.01, 0.04, 0.02])
    assert [test.p for test in adjusted] == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert [test.rejected for test in adjusted] == [False, True, False, False]


@given(P_VALUES, st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_rejects_in_ascending_order_until_the_first_that_is_not_significant(
    p_values: list[float], level: float
) -> None:
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected: set[int] = set()
    for rank, i in enumerate(order):
        # The product is compared as it is rounded, for levels that are met exactly.
        if (len(p_values) - rank) * p_values[i] > level:
            break
        rejected.add(i)
    assert {i for i, test in enumerate(holm(p_values, level)) if test.rejected} == rejected


@given(P_VALUES)
def test_holm_only_raises_p_values(p_values: list[float]) -> None:
    for p, adjusted in zip(p_values, holm(p_values), strict=True):
        assert p <= adjusted.p <= 1
    if p_values:
        assert holm(p_values[:1])[0].p == p_values[0]


def test_values_that_are_not_probabilities_are_refused() -> None:
    for bad in ([1.2], [-0.1], [float("nan")]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            holm(bad)
    with pytest.raises(ValueError, match="level"):
        holm([0.5], level=0)
