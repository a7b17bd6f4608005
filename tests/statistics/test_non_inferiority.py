"""The non-inferiority test of a gate: every verdict, and both directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.sequential import non_inferiority

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
    """With a margin of 2 points, it fails only if the difference is certainly worse than that."""
    assert non_inferiority(interval, 0.02) == verdict


def test_equal_runs_pass_without_a_margin() -> None:
    """The interval 0 to 0 passes, and so does a loss of exactly the margin despite rounding."""
    assert non_inferiority((0.0, 0.0), 0.0) == "pass"
    assert non_inferiority((0.58 - 0.6, 0.58 - 0.6), 0.02) == "pass"


@given(NUMBER, NUMBER, st.floats(0, 1))
def test_lower_is_better_mirrors_higher_is_better(one: float, other: float, margin: float) -> None:
    """The mirrored interval gives the same verdict, as for cost and latency."""
    low, high = min(one, other), max(one, other)
    mirrored = non_inferiority((-high, -low), margin, better="lower")
    assert non_inferiority((low, high), margin) == mirrored


def test_a_negative_margin_is_refused() -> None:
    with pytest.raises(ValueError, match="margin"):
        non_inferiority((0, 1), -0.01)
