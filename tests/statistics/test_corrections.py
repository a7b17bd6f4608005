"""Corrections for many tests: by hand, scipy, and what must hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proctor.core.stats.effects import benjamini_hochberg, holm

PS = st.lists(st.integers(0, 1000).map(lambda thousandths: thousandths / 1000), max_size=12)


def test_holm_by_hand() -> None:
    """.01 * 4, .02 * 3, .03 * 2, then no less than before: .04 .06 .06 .06, in the order given."""
    found = holm([0.03, 0.01, 0.04, 0.02])
    assert [one.p for one in found] == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert [one.rejected for one in found] == [False, True, False, False]


def test_benjamini_hochberg_by_hand() -> None:
    """.04 * 4/4, .03 * 4/3, .02 * 4/2, .01 * 4/1: all .04, and all rejected where Holm has one."""
    found = benjamini_hochberg([0.03, 0.01, 0.04, 0.02])
    assert [one.p for one in found] == pytest.approx([0.04] * 4)
    assert all(one.rejected for one in found)


@given(PS)
def test_benjamini_hochberg_is_scipys(ps: list[float]) -> None:
    """Adjusted as scipy does."""
    theirs = stats.false_discovery_control(ps).tolist() if ps else []
    assert [one.p for one in benjamini_hochberg(ps)] == pytest.approx(theirs)


@given(PS, st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_rejects_step_by_step(ps: list[float], level: float) -> None:
    """What is rejected is what going down the sorted list rejects until the first that is not."""
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    rejected: set[int] = set()
    for rank, place in enumerate(order):
        # Compared as the product is rounded, for levels that are hit exactly.
        if (len(ps) - rank) * ps[place] > level:
            break
        rejected.add(place)
    assert {place for place, one in enumerate(holm(ps, level)) if one.rejected} == rejected


@given(PS)
def test_correction_only_raises_and_holm_most(ps: list[float]) -> None:
    """p <= Benjamini-Hochberg <= Holm <= 1, and one test alone stays what it is."""
    for p, gentle, strict in zip(ps, benjamini_hochberg(ps), holm(ps), strict=True):
        assert p <= gentle.p + 1e-15 <= strict.p + 2e-15 <= 1 + 2e-15
    if ps:
        assert holm(ps[:1])[0].p == benjamini_hochberg(ps[:1])[0].p == ps[0]


def test_what_are_no_probabilities_is_refused() -> None:
    """Numbers beyond 0 and 1, not-a-numbers, and a level of nothing."""
    for bad in ([1.2], [-0.1], [float("nan")]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            holm(bad)
    with pytest.raises(ValueError, match="level"):
        benjamini_hochberg([0.5], level=0)
