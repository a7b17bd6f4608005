"""Confidence sequences, which are valid after every value, and the non-inferiority test of a gate.

A gate that tests "is the difference above 0" fails half of the time on equal systems; this test accepts a difference up
to a margin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import Literal

from proctor.core.stats.differences import ROUNDING
from proctor.core.stats.intervals import Interval

# The number of candidate means; the bounds of the interval are rounded outward to the next candidate.
CANDIDATES = 1_000
# Large stakes detect large differences early, small stakes detect small differences late.
STAKES = tuple(3 / 2**step for step in range(6))
MAX_LOSS = 0.75
CACHED_GAINS = 8


class Betting:
    """A narrow confidence sequence of the mean by betting against each candidate mean.

    For every candidate, half of the gamblers bet on higher values and half on lower values, with small and
    large stakes (hedged grid Kelly). A candidate is rejected for good once one side multiplies its money
    by 2 / (1 - confidence). Rejected candidates are dropped, so it gets faster over time.
    """

    def __init__(self, low: float = 0.0, high: float = 1.0, confidence: float = 0.95) -> None:
        self._scale = _Scale(low, high)
        limit = math.exp(_log_limit(confidence))
        self._first = 1
        self._means = [i / CANDIDATES for i in range(1, CANDIDATES)]
        self._on_higher = _Gamblers(self._means, on_higher=True, limit=limit)
        self._on_lower = _Gamblers(self._means, on_higher=False, limit=limit)
        self.n = 0
        self.interval: Interval = low, high

    def add(self, value: float) -> Interval:
        """Add a value and return the confidence interval of the mean."""
        x = self._scale.normalize(value)
        self.n += 1
        self._on_higher.bet(x, self._means)
        self._on_lower.bet(x, self._means)
        # Distant candidates lose most, so the rejected candidates are at the ends.
        first, last = 0, len(self._means) - 1
        while first < last and self._on_higher.reject(first):
            first += 1
        while last > first and self._on_lower.reject(last):
            last -= 1
        if last - first + 1 < len(self._means):
            self._keep(first, last + 1)
        return self.interval

    def _keep(self, first: int, end: int) -> None:
        self._first += first
        self._means = self._means[first:end]
        self._on_higher.keep(first, end)
        self._on_lower.keep(first, end)
        low, high = self._first - 1, self._first + len(self._means)
        self.interval = self._scale.restore(low / CANDIDATES, high / CANDIDATES)


class _Gamblers:
    """Gamblers who bet in one direction against each candidate mean, one per stake.

    A stake can lose at most `MAX_LOSS` of the money. The gain is monotonic in the mean, capped or not,
    so the rejected means are contiguous.
    """

    def __init__(self, means: Sequence[float], on_higher: bool, limit: float) -> None:
        sign = 1.0 if on_higher else -1.0
        risks = [m if on_higher else 1 - m for m in means]
        self._stakes = [[sign * min(stake, MAX_LOSS / risk) for risk in risks] for stake in STAKES]
        self._money = [[1.0] * len(means) for _ in STAKES]
        self._gains: dict[float, list[list[float]]] = {}
        self._limit = limit * len(STAKES)

    def bet(self, x: float, means: Sequence[float]) -> None:
        gains = self._gains.get(x)
        if gains is None:
            gains = [[1 + stake * (x - m) for stake, m in zip(stakes, means, strict=True)] for stakes in self._stakes]
            # Scores often have few distinct values, so their gains are worth caching.
            if len(self._gains) < CACHED_GAINS:
                self._gains[x] = gains
        self._money = [list(map(mul, money, gain)) for money, gain in zip(self._money, gains, strict=True)]

    def reject(self, index: int) -> bool:
        return sum(money[index] for money in self._money) >= self._limit

    def keep(self, first: int, end: int) -> None:
        self._stakes, self._money, *gains = (
            [row[first:end] for row in rows] for rows in (self._stakes, self._money, *self._gains.values())
        )
        self._gains = dict(zip(self._gains, gains, strict=True))


class _Scale:
    """A linear map between two bounds and the range 0 to 1."""

    def __init__(self, low: float, high: float) -> None:
        if not -math.inf < low < high < math.inf:
            raise ValueError(f"the bounds must be finite and ascending, got {low!r} and {high!r}")
        self.low, self.width = low, high - low

    def normalize(self, value: float) -> float:
        x = (value - self.low) / self.width
        if not 0 <= x <= 1:
            raise ValueError(
                f"{value!r} is outside the bounds {self.low!r} to {self.low + self.width!r}; "
                "a confidence sequence needs bounded values"
            )
        return x

    def restore(self, low: float, high: float) -> Interval:
        return self.low + low * self.width, self.low + high * self.width


def _log_limit(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be strictly between 0 and 1, got {confidence!r}")
    return math.log(2 / (1 - confidence))


Verdict = Literal["pass", "fail", "inconclusive"]
Better = Literal["higher", "lower"]


def non_inferiority(interval: Interval, margin: float, better: Better = "higher") -> Verdict:
    """Test whether new minus old is at most `margin` worse, given its confidence interval.

    It passes if the whole interval is within the margin, fails if the whole interval is beyond it, and is inconclusive
    otherwise. A 95% interval falsely fails at most 2.5% of equal systems, and falsely passes 2.5% of systems just worse
    than the margin.
    """
    if margin < 0:
        raise ValueError(f"margin must be 0 or more, got {margin!r}")
    low, high = interval if better == "higher" else (-interval[1], -interval[0])
    # Identical runs have the interval 0 to 0 and must pass with margin 0 despite rounding.
    threshold = -margin - ROUNDING * max(1.0, margin)
    if low >= threshold:
        return "pass"
    return "fail" if high < threshold else "inconclusive"
