"""How large a difference is beside the spread of the values: Cohen's d, and Hedges' correction.

d overstates the effect in small groups; Hedges' g (1981) takes that back, exactly, by the gamma
function. The interval is that of Hedges and Olkin (1985), and the same made for one group of
differences: g plus and minus 1.96 of its standard errors, in small groups an approximation.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from proctor.core.stats.descriptive import mean
from proctor.core.stats.differences import Student, differences, spread
from proctor.core.stats.distributions import normal_quantile
from proctor.core.stats.intervals import COUNT_ROUNDING as ROUNDING
from proctor.core.stats.intervals import (
    Interval,
    clustered_error,
    effective_clusters,
    pulls_of_clusters,
    too_few_clusters,
)


class Effect(NamedTuple):
    """An effect: `d` as it is in the values, `g` corrected for small groups, and g's interval."""

    d: float
    g: float
    interval: Interval


def effect_of(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> Effect | None:
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


class Corrected(NamedTuple):
    """A probability after correction, and whether it is still at or below the level."""

    p: float
    rejected: bool


def holm(probabilities: Sequence[float], level: float = 0.05) -> list[Corrected]:
    """Probabilities that may be read as if each had been the only one, in the order given.

    >>> [round(one.p, 3) for one in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order, m = _ascending(probabilities, level), len(probabilities)
    adjusted, highest = [0.0] * m, 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (m - rank) * probabilities[place]))
        adjusted[place] = highest
    return [Corrected(p, p <= level) for p in adjusted]


def benjamini_hochberg(probabilities: Sequence[float], level: float = 0.05) -> list[Corrected]:
    """The share of false alarms if all that are as striking were called, in the order given.

    >>> [round(one.p, 3) for one in benjamini_hochberg([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    order, m = _ascending(probabilities, level), len(probabilities)
    adjusted, lowest = [0.0] * m, 1.0
    for rank, place in reversed(list(enumerate(order, start=1))):
        lowest = min(lowest, m * probabilities[place] / rank)
        adjusted[place] = lowest
    return [Corrected(p, p <= level) for p in adjusted]


def _ascending(probabilities: Sequence[float], level: float) -> list[int]:
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, got {level!r}")
    if not all(0 <= p <= 1 for p in probabilities):
        raise ValueError(f"probabilities lie within 0 and 1, got {list(probabilities)!r}")
    return sorted(range(len(probabilities)), key=lambda place: probabilities[place])


def clustered_mean(values: Sequence[float], clusters: Sequence[Hashable]) -> Student | None:
    """The mean of clustered values; None below five clusters, or where these do not differ.

    >>> found = clustered_mean([0.0, 1.0, 0.0, 1.0, 1.0, 1.0], "abcdde")
    >>> round(found.difference, 3), round(found.error, 3), found.df
    (0.667, 0.24, 3.5)
    """
    found = clustered_error(values, clusters)
    return None if found is None or found[1] == 0 else Student(*found)


def clustered_pairs(
    first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable]
) -> Student | None:
    """How far the first lie above their partners, the pairs coming in clusters.

    None below five clusters, or where these do not differ.

    >>> found = clustered_pairs([1, 1, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1], "aabcde")
    >>> round(found.difference, 3), round(found.p(), 3)
    (0.333, 0.347)
    """
    return clustered_mean(differences(first, second), clusters)


def clustered_groups(
    first: Sequence[float],
    first_clusters: Sequence[Hashable],
    second: Sequence[float],
    second_clusters: Sequence[Hashable],
) -> Student | None:
    """How far the mean of the first group lies above that of the second, without pairs.

    A cluster may have values in both groups: what they share is then taken out. Without any such
    cluster it is Welch's t of clustered means. None below five clusters in either group, or where
    nothing varies.

    >>> found = clustered_groups([1, 1, 0, 1, 1, 1], "aabcde", [0, 1, 0, 1, 0], "abcde")
    >>> round(found.difference, 3), found.df
    (0.433, 3.5)
    """
    one, other = mean(first), mean(second)
    if too_few_clusters(first_clusters) or too_few_clusters(second_clusters):
        return None
    if one is None or other is None:
        return None
    mine = pulls_of_clusters(first, first_clusters)
    theirs = pulls_of_clusters(second, second_clusters)
    error = _length([mine.get(c, 0.0) - theirs.get(c, 0.0) for c in {**mine, **theirs}])
    if error <= ROUNDING:
        return None
    dfs = effective_clusters(first_clusters) - 1, effective_clusters(second_clusters) - 1
    df = min(dfs)
    if not mine.keys() & theirs.keys():
        parts = (_length([*pulls.values()]) / error for pulls in (mine, theirs))
        df = 1 / sum(part**4 / own for part, own in zip(parts, dfs, strict=True))
    return Student(one - other, error, df)


def _length(parts: Sequence[float]) -> float:
    return math.sqrt(math.fsum(part * part for part in parts))
