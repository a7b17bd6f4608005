"""Confidence sequences: the formula written out, bounds, order, and what must hold at any time."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core.stats.intervals import Interval
from proctor.core.stats.sequential import CANDIDATES, MOST_LOST, STAKES, Betting, EmpiricalBernstein

KINDS = (EmpiricalBernstein, Betting)
VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40)


def bernstein(values: list[float], level: float = 0.05) -> Interval:
    """The interval after all values, by the formula as it is printed: no state, no intersection."""
    sure, guess, variance = math.log(2 / level), 0.5, 0.25
    stakes, weighted, spread = 0.0, 0.0, 0.0
    squares = 0.25
    for t, x in enumerate(values, start=1):
        stake = min(math.sqrt(2 * sure / (variance * t * math.log(1 + t))), 0.5)
        spread += 4 * (x - guess) ** 2 * (-math.log(1 - stake) - stake) / 4
        stakes += stake
        weighted += stake * x
        guess = (0.5 + sum(values[:t])) / (t + 1)
        squares += (x - guess) ** 2
        variance = squares / (t + 1)
    return (weighted - sure - spread) / stakes, (weighted + sure + spread) / stakes


@given(VALUES)
def test_empirical_bernstein_is_its_formula(values: list[float]) -> None:
    """After every value: what all formulas up to there allow together, within 0 and 1."""
    sequence = EmpiricalBernstein()
    low, high = 0.0, 1.0
    for t, value in enumerate(values, start=1):
        now = bernstein(values[:t])
        low, high = max(low, now[0]), min(high, now[1])
        assert sequence.add(value) == pytest.approx((low, high))
    assert sequence.n == len(values)


@pytest.mark.no_cover
@settings(deadline=None, max_examples=30)
@given(VALUES)
def test_betting_is_the_wealth_of_its_gamblers(values: list[float]) -> None:
    """A mean is let go when those who bet one way have 40 times what they began with."""
    sequence = Betting()
    for value in values:
        sequence.add(value)

    def most(m: float, xs: list[float]) -> float:
        """The most that those who bet on more than m ever had, for each unit."""
        purses, highest = [1.0] * len(STAKES), 0.0
        for x in xs:
            purses = [
                money * (1 + min(stake, MOST_LOST / m) * (x - m))
                for money, stake in zip(purses, STAKES, strict=True)
            ]
            highest = max(highest, sum(purses) / len(purses))
        return highest

    kept = [
        place
        for place in range(1, CANDIDATES)
        if most(place / CANDIDATES, values) < 40 - 1e-9
        and most(1 - place / CANDIDATES, [1 - x for x in values]) < 40 - 1e-9
    ]
    low, high = sequence.interval
    assert low == pytest.approx((kept[0] - 1) / CANDIDATES, abs=1.5 / CANDIDATES)
    assert high == pytest.approx((kept[-1] + 1) / CANDIDATES, abs=1.5 / CANDIDATES)


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_never_widens_and_holds_the_mean(kind: type[Betting] | type[EmpiricalBernstein]) -> None:
    """1,000 tosses of a coin with p = .7: each interval lies in the one before, and holds .7."""
    chance, sequence = random.Random(4), kind()
    before = sequence.interval
    assert before == (0.0, 1.0)
    for _ in range(1000):
        now = sequence.add(float(chance.random() < 0.7))
        assert before[0] <= now[0] <= 0.7 <= now[1] <= before[1]
        before = now
    assert sequence.n == 1000
    assert before[1] - before[0] < 0.16


def test_betting_is_narrower() -> None:
    """After 1,000 differences of pairs it is 1.5 times as wide as Student's, Bernstein nearly 3."""
    chance, betting, plain = random.Random(5), Betting(-1, 1), EmpiricalBernstein(-1, 1)
    for _ in range(1000):
        draw = chance.random()
        value = float(draw < 0.1) - float(draw > 0.9)
        tight, wide = betting.add(value), plain.add(value)
    student = 2 * 1.962 * math.sqrt(0.2 / 1000)
    assert tight[1] - tight[0] < 1.8 * student
    assert tight[1] - tight[0] < 0.85 * (wide[1] - wide[0])


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_only_move_the_scale(kind: type[Betting] | type[EmpiricalBernstein]) -> None:
    """Differences within -1 and 1 give the interval of (d + 1) / 2, stretched back."""
    chance = random.Random(6)
    shares, pairs = kind(), kind(-1.0, 1.0)
    for _ in range(200):
        difference = chance.choice([-1.0, 0.0, 0.0, 1.0, 1.0])
        low, high = shares.add((difference + 1) / 2)
        assert pairs.add(difference) == pytest.approx((2 * low - 1, 2 * high - 1))


@pytest.mark.parametrize("kind", KINDS)
def test_more_confidence_is_wider(kind: type[Betting] | type[EmpiricalBernstein]) -> None:
    """99 % holds 95 %, which holds 90 %."""
    chance, sequences = random.Random(7), [kind(confidence=c) for c in (0.99, 0.95, 0.9)]
    for _ in range(300):
        value = chance.random()
        for sequence in sequences:
            sequence.add(value)
    lows, highs = zip(*(sequence.interval for sequence in sequences), strict=True)
    assert lows[0] < lows[1] < lows[2] < 0.5 < highs[2] < highs[1] < highs[0]


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_never_vary(kind: type[Betting] | type[EmpiricalBernstein]) -> None:
    """Always 1, always 0, always the same inside: the interval closes in and never breaks."""
    for value in (0.0, 1.0, 0.5):
        sequence = kind()
        for _ in range(2000):
            low, high = sequence.add(value)
        assert low <= value <= high
        assert high - low < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_a_world_that_turns_round_gives_an_interval_all_the_same(
    kind: type[Betting] | type[EmpiricalBernstein],
) -> None:
    """Values that are not in random order contradict what was settled: it stays settled."""
    sequence = kind()
    for value in [1.0] * 300 + [0.0] * 3000:
        low, high = sequence.add(value)
        assert 0 <= low <= high <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_out_of_bounds_is_refused(kind: type[Betting] | type[EmpiricalBernstein]) -> None:
    """A value, bounds and a confidence that make no sense; a refused value changes nothing."""
    sequence = kind()
    for value in (1.01, -0.2, math.nan):
        with pytest.raises(ValueError, match="outside the bounds"):
            sequence.add(value)
    assert (sequence.n, sequence.interval) == (0, (0.0, 1.0))
    with pytest.raises(ValueError, match="ascending"):
        kind(1.0, 1.0)
    with pytest.raises(ValueError, match="confidence"):
        kind(confidence=1.0)
