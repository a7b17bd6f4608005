"""How large a difference is beside the spread of the values: Cohen's d, and Hedges' correction.

d overstates the effect in small groups; Hedges' g (1981) takes that back, exactly, by the gamma
function. The interval is that of Hedges and Olkin (1985), and the same made for one group of
differences: g plus and minus 1.96 of its standard errors, in small groups an approximation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from proctor.statistics.differences import differences, spread
from proctor.statistics.distributions import normal_quantile
from proctor.statistics.intervals import Interval


class Effect(NamedTuple):
    """An effect: `d` as it is in the values, `g` corrected for small groups, and g's interval."""

    d: float
    g: float
    interval: Interval


def effect_of(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> Effect | None:
    """How many (pooled) standard deviations the first group lies above the second.

    Equal groups without spread have no effect. None where it cannot be told: less than four
    values together, or groups that differ and have no spread to measure that by.

    >>> found = effect_of([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    >>> found.d, round(found.g, 3)
    (3.0, 2.394)
    """
    n, m = len(first), len(second)
    df = n + m - 2
    if min(n, m) < 1 or df < 2:
        return None
    (centre, variance), (other, its_variance) = spread(first), spread(second)
    pooled = math.sqrt(((n - 1) * variance + (m - 1) * its_variance) / df)
    size = _in_spreads(differences([centre], [other])[0], pooled)
    return None if size is None else _corrected(size, df, (n + m) / (n * m), n + m, confidence)


def effect_of_pairs(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> Effect | None:
    """How many standard deviations of the differences the first lies above its partners.

    None where it cannot be told: less than three pairs, or pairs that all differ by the same.

    >>> effect_of_pairs([1.0, 3.0, 5.0], [0.0, 1.0, 2.0]).d
    2.0
    """
    apart = differences(first, second)
    n = len(apart)
    if n < 3:
        return None
    centre, variance = spread(apart)
    size = _in_spreads(centre, math.sqrt(variance))
    return None if size is None else _corrected(size, n - 1, 1 / n, n, confidence)


def correction(df: int) -> float:
    """What Hedges multiplies d with: near 1 for many degrees of freedom.

    >>> round(correction(4), 4), round(correction(1000), 4)
    (0.7979, 0.9992)
    """
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)


def _in_spreads(difference: float, deviation: float) -> float | None:
    if deviation:
        return difference / deviation
    return None if difference else 0.0


def _corrected(size: float, df: int, weight: float, total: int, confidence: float) -> Effect:
    g = correction(df) * size
    half = normal_quantile((1 + confidence) / 2) * math.sqrt(weight + g * g / (2 * total))
    return Effect(size, g, (g - half, g + half))
