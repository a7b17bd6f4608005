"""Intervals for the difference of two rates: of independent groups, and of pairs.

Both are right where a rate is 0 or 1, and where nothing differs: Newcombe's hybrid of two Wilson
intervals (1998, his method 10), and Bonett and Price's adjusted Wald interval (2012).
"""

from __future__ import annotations

import math

from proctor.statistics.distributions import normal_quantile
from proctor.statistics.intervals import ROUNDING, Interval, wilson_interval


def difference_interval(
    passed: float, n: int, other: float, its_n: int, confidence: float = 0.95
) -> Interval | None:
    """Where the difference of two independent rates truly lies; None if one is of nothing.

    >>> low, high = difference_interval(56, 70, 48, 80)
    >>> round(low, 4), round(high, 4)
    (0.0524, 0.3339)
    """
    one, two = wilson_interval(passed, n, confidence), wilson_interval(other, its_n, confidence)
    if one is None or two is None:
        return None
    rate, its_rate = passed / n, other / its_n
    apart = rate - its_rate
    below = math.hypot(rate - one[0], two[1] - its_rate)
    above = math.hypot(one[1] - rate, its_rate - two[0])
    return max(-1.0, apart - below), min(1.0, apart + above)


def paired_interval(up: float, down: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Where the difference of two rates of the same n samples truly lies; None of nothing.

    `up` counts the samples where only the first holds, `down` those where only the second does.

    >>> low, high = paired_interval(1, 5, 30)
    >>> round(low, 3), round(high, 3)
    (-0.293, 0.043)
    """
    # All of a number that is not whole, as of clusters that count for less, may be rounded.
    if up < 0 or down < 0 or up + down > n * (1 + ROUNDING):
        raise ValueError(f"{up!r} and {down!r} of {n!r} cannot be pairs that differ")
    if n == 0:
        return None
    rose, fell = (up + 1) / (n + 2), (down + 1) / (n + 2)
    apart = rose - fell
    half = normal_quantile((1 + confidence) / 2)
    half *= math.sqrt((rose + fell - apart * apart) / (n + 2))
    return max(-1.0, apart - half), min(1.0, apart + half)
