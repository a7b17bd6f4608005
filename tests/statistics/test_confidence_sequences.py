"""The betting confidence sequence: its definition, bounds, order, and validity after every value."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core.stats.sequential import CANDIDATES, MAX_LOSS, STAKES, Betting

VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40)


@pytest.mark.no_cover
@settings(deadline=None, max_examples=6)
@given(VALUES)
def test_a_mean_is_rejected_once_its_gamblers_have_forty_times_their_money(values: list[float]) -> None:
    sequence = Betting()
    for value in values:
        sequence.add(value)

    def highest_wealth(m: float, xs: list[float]) -> float:
        """The most money per gambler, of those who bet on values above m."""
        purses, highest = [1.0] * len(STAKES), 0.0
        for x in xs:
            purses = [
                money * (1 + min(stake, MAX_LOSS / m) * (x - m)) for money, stake in zip(purses, STAKES, strict=True)
            ]
            highest = max(highest, sum(purses) / len(purses))
        return highest

    remaining = [
        i
        for i in range(1, CANDIDATES)
        if highest_wealth(i / CANDIDATES, values) < 40 - 1e-9
        and highest_wealth(1 - i / CANDIDATES, [1 - x for x in values]) < 40 - 1e-9
    ]
    low, high = sequence.interval
    assert low == pytest.approx((remaining[0] - 1) / CANDIDATES, abs=1.5 / CANDIDATES)
    assert high == pytest.approx((remaining[-1] + 1) / CANDIDATES, abs=1.5 / CANDIDATES)


def test_the_interval_never_widens_and_contains_the_mean() -> None:
    """1,000 coin tosses with p = 0.7: each interval lies within the one before and contains 0.7."""
    rng, sequence = random.Random(4), Betting()
    previous = sequence.interval
    assert previous == (0.0, 1.0)
    for _ in range(1000):
        low, high = sequence.add(float(rng.random() < 0.7))
        assert previous[0] <= low <= 0.7 <= high <= previous[1]
        previous = low, high
    assert sequence.n == 1000
    assert previous[1] - previous[0] < 0.16


def test_it_is_less_than_twice_as_wide_as_student() -> None:
    rng, sequence = random.Random(5), Betting(-1, 1)
    for _ in range(1000):
        draw = rng.random()
        low, high = sequence.add(float(draw < 0.1) - float(draw > 0.9))
    assert high - low < 1.8 * 2 * 1.962 * math.sqrt(0.2 / 1000)


def test_bounds_only_change_the_scale() -> None:
    """Differences from -1 to 1 give the interval of (d + 1) / 2, rescaled."""
    rng, shares, differences = random.Random(6), Betting(), Betting(-1.0, 1.0)
    for _ in range(200):
        difference = rng.choice([-1.0, 0.0, 0.0, 1.0, 1.0])
        low, high = shares.add((difference + 1) / 2)
        assert differences.add(difference) == pytest.approx((2 * low - 1, 2 * high - 1))


def test_more_confidence_gives_a_wider_interval() -> None:
    rng, sequences = random.Random(7), [Betting(confidence=c) for c in (0.99, 0.95, 0.9)]
    for _ in range(80):
        value = rng.random()
        for sequence in sequences:
            sequence.add(value)
    lows, highs = zip(*(sequence.interval for sequence in sequences), strict=True)
    assert lows[0] < lows[1] < lows[2] < 0.5 < highs[2] < highs[1] < highs[0]


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5])
def test_constant_values_give_a_narrow_interval(value: float) -> None:
    sequence = Betting()
    for _ in range(2000):
        low, high = sequence.add(value)
    assert low <= value <= high
    assert high - low < 0.02


def test_values_that_contradict_earlier_ones_leave_a_valid_interval() -> None:
    sequence = Betting()
    for value in [1.0] * 300 + [0.0] * 1000:
        low, high = sequence.add(value)
        assert 0 <= low <= high <= 1


def test_impossible_values_and_bounds_are_refused() -> None:
    """A refused value changes nothing."""
    sequence = Betting()
    for value in (1.01, -0.2, math.nan):
        with pytest.raises(ValueError, match="outside the bounds"):
            sequence.add(value)
    assert (sequence.n, sequence.interval) == (0, (0.0, 1.0))
    with pytest.raises(ValueError, match="ascending"):
        Betting(1.0, 1.0)
    with pytest.raises(ValueError, match="confidence"):
        Betting(confidence=1.0)
