"""Is the new one as good as the old, but for a margin? Yes, no, or not enough evidence.

A gate that asks "is the difference above 0" is red half of the time on equal systems. This one
names a margin: what the new one may be worse by without anybody minding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import Literal

from proctor.core.stats.differences import ROUNDING, Student
from proctor.core.stats.intervals import Interval

PLACES = 1_000
# Large stakes settle large differences soon, small ones settle small differences late.
STAKES = tuple(3 / 2**step for step in range(6))
MOST_LOST = 0.75
KNOWN_GAINS = 8


class EmpiricalBernstein:
    """The plain one: a few numbers of state and a formula, wider than `Betting`.

    >>> sequence = EmpiricalBernstein()
    >>> for score in [1.0, 0.0, 1.0, 1.0] * 50:
    ...     low, high = sequence.add(score)
    >>> round(low, 2), round(high, 2)
    (0.64, 0.86)
    """

    MOST = 0.5

    def __init__(self, low: float = 0.0, high: float = 1.0, confidence: float = 0.95) -> None:
        self._scale = _Scale(low, high)
        self._sure = _log_sure(confidence)
        self._seen = _Seen()
        self._weights = self._weighted = self._spread = 0.0
        self.interval: Interval = low, high

    @property
    def n(self) -> int:
        """How many values there were."""
        return self._seen.n

    def add(self, value: float) -> Interval:
        """Take one more value, and tell where the mean lies."""
        x = self._scale.to_share(value)
        weight = min(self._seen.bet(self._sure), self.MOST)
        self._spread += (x - self._seen.mean) ** 2 * (-math.log1p(-weight) - weight)
        self._weights += weight
        self._weighted += weight * x
        self._seen.add(x)
        half = (self._sure + self._spread) / self._weights
        centre = self._weighted / self._weights
        self.interval = _narrowed(self.interval, self._scale.back(centre - half, centre + half))
        return self.interval


class Betting:
    """The narrow one: for each possible mean, gamblers bet that it is wrong.

    Half of them bet on more and half on less, with small and large stakes (hedged grid Kelly).
    Those of one side who together multiply their money by 2 / (1 - confidence) have shown that
    mean wrong, once and for all. A thousand possible means are held; those shown wrong are let
    go, so that it gets quicker with time. The ends are rounded outward to the next one.

    >>> sequence = Betting()
    >>> for score in [1.0, 0.0, 1.0, 1.0] * 50:
    ...     low, high = sequence.add(score)
    >>> round(low, 2), round(high, 2)
    (0.64, 0.84)
    """

    def __init__(self, low: float = 0.0, high: float = 1.0, confidence: float = 0.95) -> None:
        self._scale = _Scale(low, high)
        limit = math.exp(_log_sure(confidence))
        self._first = 1
        self._means = [place / PLACES for place in range(1, PLACES)]
        self._more = _Gamblers(self._means, on_more=True, limit=limit)
        self._less = _Gamblers(self._means, on_more=False, limit=limit)
        self.n = 0
        self.interval: Interval = low, high

    def add(self, value: float) -> Interval:
        """Take one more value, and tell where the mean lies."""
        x = self._scale.to_share(value)
        self.n += 1
        self._more.bet(x, self._means)
        self._less.bet(x, self._means)
        # The further off a mean, the more was won: those shown wrong lie at the ends.
        first, last = 0, len(self._means) - 1
        while first < last and self._more.have_won(first):
            first += 1
        while last > first and self._less.have_won(last):
            last -= 1
        if last - first + 1 < len(self._means):
            self._keep(first, last + 1)
        return self.interval

    def _keep(self, first: int, end: int) -> None:
        self._first += first
        self._means = self._means[first:end]
        self._more.keep(first, end)
        self._less.keep(first, end)
        outer = self._first - 1, self._first + len(self._means)
        self.interval = self._scale.back(outer[0] / PLACES, outer[1] / PLACES)


class _Gamblers:
    """Those who bet one way against each mean, one for each stake.

    No stake may lose more than a part of the money, whatever the next value. What a gambler makes
    of one value goes down as the mean goes up (or up, on the other side), whether the stake is cut
    down or not: so the means shown wrong are an unbroken row.
    """

    def __init__(self, means: Sequence[float], on_more: bool, limit: float) -> None:
        sign = 1.0 if on_more else -1.0
        at_risk = [m if on_more else 1 - m for m in means]
        self._stakes = [[sign * min(stake, MOST_LOST / risk) for risk in at_risk] for stake in STAKES]
        self._money = [[1.0] * len(means) for _ in STAKES]
        self._gains: dict[float, list[list[float]]] = {}
        self._limit = limit * len(STAKES)

    def bet(self, x: float, means: Sequence[float]) -> None:
        gains = self._gains.get(x)
        if gains is None:
            gains = [
                [1 + stake * (x - m) for stake, m in zip(stakes, means, strict=True)]
                for stakes in self._stakes
            ]
            # Scores often have few values: what each of them gains is then known already.
            if len(self._gains) < KNOWN_GAINS:
                self._gains[x] = gains
        self._money = [list(map(mul, purse, gain)) for purse, gain in zip(self._money, gains, strict=True)]

    def have_won(self, place: int) -> bool:
        return sum(purse[place] for purse in self._money) >= self._limit

    def keep(self, first: int, end: int) -> None:
        self._stakes, self._money, *known = (
            [row[first:end] for row in rows] for rows in (self._stakes, self._money, *self._gains.values())
        )
        self._gains = dict(zip(self._gains, known, strict=True))


class _Seen:
    """Mean and variance of what was seen, with half a value's worth of caution before the first."""

    def __init__(self) -> None:
        self.n = 0
        self.mean = 0.5
        self._total = 0.5
        self._squares = 0.25

    def add(self, x: float) -> None:
        self.n += 1
        self._total += x
        self.mean = self._total / (self.n + 1)
        self._squares += (x - self.mean) ** 2

    def bet(self, sure: float) -> float:
        """How much to stake on the next value, known before it is."""
        variance, t = self._squares / (self.n + 1), self.n + 1
        return math.sqrt(2 * sure / (variance * t * math.log1p(t)))


class _Scale:
    """Values between two bounds, as shares of the way from one to the other."""

    def __init__(self, low: float, high: float) -> None:
        if not -math.inf < low < high < math.inf:
            raise ValueError(f"the bounds must be finite and ascending, got {low!r} and {high!r}")
        self.low, self.width = low, high - low

    def to_share(self, value: float) -> float:
        share = (value - self.low) / self.width
        if not 0 <= share <= 1:
            raise ValueError(
                f"{value!r} lies outside of the bounds {self.low!r} to {self.low + self.width!r}, "
                "without which no interval holds at every moment"
            )
        return share

    def back(self, low: float, high: float) -> Interval:
        return self.low + low * self.width, self.low + high * self.width


def _log_sure(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies strictly between 0 and 1, got {confidence!r}")
    return math.log(2 / (1 - confidence))


def _narrowed(before: Interval, now: Interval) -> Interval:
    """What both allow; should they contradict each other, what was known before."""
    low, high = max(before[0], now[0]), min(before[1], now[1])
    return (low, high) if low <= high else before


Verdict = Literal["pass", "fail", "inconclusive"]
Better = Literal["higher", "lower"]
Sides = Literal[1, 2]


def non_inferiority(interval: Interval, margin: float, better: Better = "higher") -> Verdict:
    """Whether new minus old, known to lie in `interval`, is no worse than `margin`.

    It passes if the whole interval is at most the margin worse, fails if the whole interval is
    more than that worse, and is inconclusive if the margin lies inside. Both verdicts are as sure
    as one side of the interval: a 95 % interval falsely fails at most 2.5 % of the equal systems
    (far fewer with a margin), and falsely passes 2.5 % of those just worse than the margin.

    >>> non_inferiority((-0.015, 0.02), margin=0.02)
    'pass'
    >>> non_inferiority((-0.05, 0.01), margin=0.02)
    'inconclusive'
    >>> non_inferiority((-0.08, -0.03), margin=0.02)
    'fail'
    """
    if margin < 0:
        raise ValueError(f"a margin says how much worse is allowed and is not negative: {margin!r}")
    low, high = interval if better == "higher" else (-interval[1], -interval[0])
    # Equal runs have the interval 0 to 0, which a margin of 0 must let pass, rounded or not.
    line = -margin - ROUNDING * max(1.0, margin)
    if low >= line:
        return "pass"
    return "fail" if high < line else "inconclusive"


def interval_for_gate(found: Student, level: float = 0.05, sides: Sides = 2) -> Interval:
    """The interval of a difference to hold against a margin.

    With two sides (as for every other interval) it is the 1 - level one, 95 %: each verdict is
    wrong at most half the level, 2.5 %. With one side it is the narrower 1 - 2 * level one, 90 %:
    each verdict is wrong at most the whole level, 5 %, and fewer samples decide.

    >>> low, high = interval_for_gate(Student(-0.01, 0.01, 400))
    >>> round(low, 4), round(high, 4)
    (-0.0297, 0.0097)
    >>> low, high = interval_for_gate(Student(-0.01, 0.01, 400), sides=1)
    >>> round(low, 4), round(high, 4)
    (-0.0265, 0.0065)
    """
    return found.interval(1 - level if sides == 2 else 1 - 2 * level)


def p_of_inferiority(found: Student, margin: float, better: Better = "higher") -> float:
    """How likely a difference as good as this is, if the new one were worse by the margin.

    At most 2.5 % exactly where the two-sided 95 % interval passes, 5 % where the one-sided does.

    >>> round(p_of_inferiority(Student(-0.01, 0.01, 400), margin=0.02), 4)
    0.159
    """
    difference = found.difference if better == "higher" else -found.difference
    return Student(difference + margin, found.error, found.df).p("higher")
