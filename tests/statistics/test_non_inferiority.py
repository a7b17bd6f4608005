"""The gate with a margin: every verdict, both sides, and directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.differences import TEstimate
from proctor.core.stats.sequential import inferiority_p_value, interval_for_gate, non_inferiority

NUMBER = st.floats(-1, 1)


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((-0.019, 0.03), "pass"),
        ((0.01, 0.03), "pass"),
        ((-0.021, 0.03), "inconclusive"),
        ((-0.06, -0.019), "inconclusive"),
        ((-0.06, -0.021), "fail"),
    ],
)
def test_the_three_verdicts(interval: tuple[float, float], verdict: str) -> None:
    """With a margin of 2 points only what is surely worse than that fails."""
    assert non_inferiority(interval, 0.02) == verdict


def test_equal_runs_pass_without_a_margin() -> None:
    """The interval 0 to 0 is not worse; nor is a loss of exactly the margin, as floats have it."""
    assert non_inferiority((0.0, 0.0), 0.0) == "pass"
    assert non_inferiority((0.58 - 0.6, 0.58 - 0.6), 0.02) == "pass"


@given(NUMBER, NUMBER, st.floats(0, 1))
def test_lower_is_better_is_the_mirror(one: float, other: float, margin: float) -> None:
    """Cost and latency: the interval turned round gives the same verdict."""
    low, high = min(one, other), max(one, other)
    mirrored = non_inferiority((-high, -low), margin, better="lower")
    assert non_inferiority((low, high), margin) == mirrored


def test_a_negative_margin_is_refused() -> None:
    """A margin is what may be lost."""
    with pytest.raises(ValueError, match="margin"):
        non_inferiority((0, 1), -0.01)


def test_one_side_decides_where_two_do_not() -> None:
    """-.01 ± .006: 1.96 errors reach below -.02, 1.645 do not."""
    found = TEstimate(-0.01, 0.0058, 1000)
    assert non_inferiority(interval_for_gate(found), 0.02) == "inconclusive"
    assert non_inferiority(interval_for_gate(found, sides=1), 0.02) == "pass"


@given(NUMBER, st.floats(0.01, 1), st.floats(0, 1))
def test_p_and_interval_say_the_same(difference: float, error: float, margin: float) -> None:
    """p is below half the level where the two-sided interval passes, the level where one does."""
    found = TEstimate(difference, error, 50)
    p = inferiority_p_value(found, margin)
    if abs(p - 0.025) > 1e-9:
        assert (non_inferiority(interval_for_gate(found), margin) == "pass") == (p < 0.025)
    if abs(p - 0.05) > 1e-9:
        one_sided = interval_for_gate(found, sides=1)
        assert (non_inferiority(one_sided, margin) == "pass") == (p < 0.05)
    mirrored = TEstimate(-difference, error, 50)
    assert inferiority_p_value(mirrored, margin, better="lower") == p
