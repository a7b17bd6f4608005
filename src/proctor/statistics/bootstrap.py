"""Intervals of any figure, by drawing the same data again and again (Efron 1979, 1987).

"percentile" takes the middle of what the draws gave; "bca" moves it for bias and skewness, and is
the better one for medians, ratios and lopsided data. Both lean on the data having seen the rare
cases: below some thirty values (or clusters) they are too narrow, and Wilson's or Student's
interval is the better one. The same seed gives the same interval.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeVar

from proctor.statistics.differences import ROUNDING
from proctor.statistics.distributions import normal_cdf, normal_quantile
from proctor.statistics.intervals import Interval, too_few_clusters
from proctor.statistics.moments import mean
from proctor.statistics.quantiles import quantile

T = TypeVar("T")
Method = Literal["percentile", "bca"]
Unit = tuple[float, int]

# As many values are drawn in all, unless that would be too few draws to tell an end by.
DRAWN_VALUES = 4_000_000
FEWEST, MOST = 1_000, 4_000
# Values of few kinds (yes and no, five grades) are counted instead of drawn one by one.
FEW_KINDS = 20
# Leaving out one value at a time takes n evaluations of the figure; so many groups do as well.
GROUPS = 200


class Bootstrap(NamedTuple):
    """A figure, its interval, and how that was found."""

    value: float
    interval: Interval
    resamples: int
    seed: int
    method: Method


def bootstrap(
    values: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "bca",
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int | None = None,
) -> Bootstrap | None:
    """Where a figure of the values truly lies; values may be numbers, pairs or anything else.

    With `clusters` whole clusters are drawn. None below two values or five clusters.

    >>> found = bootstrap([1.0, 2.0, 2.0, 3.0, 9.0, 4.0, 2.0, 5.0], max, method="percentile")
    >>> found.value, found.interval[1]
    (9.0, 9.0)
    """
    groups = _groups(values, clusters)
    if groups is None:
        return None
    value, chance = statistic(values), random.Random(seed)
    times = resamples or resamples_for(len(values))
    drawn = [
        statistic([one for group in chance.choices(groups, k=len(groups)) for one in group])
        for _ in range(times)
    ]
    left_out = _left_out(groups, statistic) if method == "bca" else []
    interval = _interval(value, drawn, left_out, confidence)
    return Bootstrap(value, interval, times, seed, method)


def bootstrap_mean(
    values: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "bca",
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int | None = None,
) -> Bootstrap | None:
    """Where the mean truly lies: as `bootstrap`, but many times as fast where values repeat.

    >>> found = bootstrap_mean([0.0, 1.0, 1.0, 1.0] * 25, seed=1)
    >>> found.value, [round(end, 2) for end in found.interval], found.resamples
    (0.75, [0.66, 0.83], 4000)
    """
    groups = _groups(values, clusters)
    centre = mean(values)
    if groups is None or centre is None:
        return None
    units = [(math.fsum(group), len(group)) for group in groups]
    times = resamples or resamples_for(len(units))
    drawn = list(_means(units, times, random.Random(seed)))
    total, n = math.fsum(values), len(values)
    left_out = [(total - part) / (n - size) for part, size in units] if method == "bca" else []
    return Bootstrap(centre, _interval(centre, drawn, left_out, confidence), times, seed, method)


def resamples_for(n: int) -> int:
    """How often n values (or clusters) are drawn again unless somebody says otherwise.

    >>> resamples_for(50), resamples_for(2_000), resamples_for(10_000)
    (4000, 2000, 1000)
    """
    return max(FEWEST, min(MOST, DRAWN_VALUES // n))


def _groups(values: Sequence[T], clusters: Sequence[Hashable] | None) -> list[tuple[T, ...]] | None:
    """What is drawn as a whole, or None if there is too little of it."""
    if clusters is None:
        return [(value,) for value in values] if len(values) > 1 else None
    together: dict[Hashable, list[T]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        together.setdefault(cluster, []).append(value)
    return None if too_few_clusters(clusters) else list(map(tuple, together.values()))


def _means(units: Sequence[Unit], times: int, chance: random.Random) -> Iterator[float]:
    kinds = Counter(units)
    if len(kinds) * FEW_KINDS <= len(units):
        for _ in range(times):
            counted = list(_counted(kinds, len(units), chance))
            yield math.fsum(count * total for count, (total, _) in counted) / sum(
                count * size for count, (_, size) in counted
            )
    elif all(size == 1 for _, size in units):
        values = [value for value, _ in units]
        for _ in range(times):
            yield sum(chance.choices(values, k=len(values))) / len(values)
    else:
        for _ in range(times):
            totals, sizes = zip(*chance.choices(units, k=len(units)), strict=True)
            yield sum(totals) / sum(sizes)


def _counted(kinds: Counter[Unit], n: int, chance: random.Random) -> Iterator[tuple[int, Unit]]:
    """How often each kind comes if n are drawn: one after the other, of what is left."""
    left, still = n, n
    for kind, count in kinds.items():
        drawn = _successes(left, count / still, chance) if count < still else left
        yield drawn, kind
        left, still = left - drawn, still - count


def _successes(n: int, p: float, chance: random.Random) -> int:
    """How many of n tries succeed, each with probability p < 1.

    A try is a random number compared with p bit by bit; half of those still equal are decided at
    each bit, so that all n tries take about 2n random bits.
    """
    found = 0
    while n and p:
        p *= 2
        ones = chance.getrandbits(n).bit_count()
        if p >= 1:
            p -= 1
            found, n = found + n - ones, ones
        else:
            n -= ones
    return found


def _left_out(
    groups: Sequence[tuple[T, ...]], statistic: Callable[[Sequence[T]], float]
) -> list[float]:
    """The figure without each of the groups, or without each of some bundles of many."""
    bundles = min(GROUPS, len(groups))
    return [
        statistic(
            [one for place, group in enumerate(groups) if place % bundles != left for one in group]
        )
        for left in range(bundles)
    ]


def _interval(
    value: float, drawn: list[float], left_out: Sequence[float], confidence: float
) -> Interval:
    drawn.sort()
    z = normal_quantile((1 + confidence) / 2)
    bias, skew = (_bias(value, drawn), _skew(left_out)) if left_out else (0.0, 0.0)
    low, high = (quantile(drawn, _moved(end, bias, skew)) for end in (-z, z))
    if low is None or high is None:
        raise AssertionError("there are always draws")
    return low, high


def _bias(value: float, drawn: Sequence[float]) -> float:
    """How far the middle of the draws lies off the figure, in standard errors; ties count half."""
    slack = ROUNDING * max(abs(drawn[0]), abs(drawn[-1]))
    below = sum(one < value - slack for one in drawn)
    ties = sum(one <= value + slack for one in drawn) - below
    share = (below + ties / 2) / len(drawn)
    edge = 0.5 / len(drawn)
    return normal_quantile(min(1 - edge, max(edge, share)))


def _skew(left_out: Sequence[float]) -> float:
    """The acceleration: a sixth of the skewness of what each value does to the figure."""
    centre = mean(left_out) or 0.0
    apart = [centre - value for value in left_out]
    squares = math.fsum(one * one for one in apart)
    slack = ROUNDING * max(map(abs, left_out))
    if squares <= len(left_out) * slack * slack:
        return 0.0
    return math.fsum(one * one * one for one in apart) / (6 * squares * math.sqrt(squares))


def _moved(z: float, bias: float, skew: float) -> float:
    """The share of the draws at which the end of the interval stands."""
    moved = bias + z
    return normal_cdf(bias + moved / max(1e-3, 1 - skew * moved))
