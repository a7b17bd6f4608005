"""How likely each of several is the best, if other samples of the same kind had been drawn."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from proctor.core.stats.descriptive import mean, quantile
from proctor.core.stats.differences import ROUNDING
from proctor.core.stats.distributions import normal_cdf, normal_quantile
from proctor.core.stats.intervals import Interval, too_few_clusters

# Of more than twice as many, samples are put together in so many batches, which keeps their spread
# and makes the time independent of their number.
MOST_UNITS = 500


def chances_of_best(
    columns: Sequence[Sequence[float]], *, highest: bool = True, resamples: int = 1000, seed: int = 0
) -> list[float]:
    """For each column of numbers, in how many resamples its mean is the best of all.

    The columns have one number for each sample, in the same order. Samples are drawn with
    replacement, the same for all columns, so that what they have in common is no difference
    (Efron's bootstrap). Equals share.

    >>> chances_of_best([[1.0, 1.0, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]])
    [1.0, 0.0]
    """
    chance = random.Random(seed)
    units = _batched(columns, chance)
    best = [0.0] * len(columns)
    if not units or not columns:
        return best
    pick = max if highest else min
    for _ in range(resamples):
        totals = [sum(column) for column in zip(*chance.choices(units, k=len(units)), strict=True)]
        top = pick(totals)
        first = [place for place, total in enumerate(totals) if total == top]
        for place in first:
            best[place] += 1 / len(first)
    return [share / resamples for share in best]


def _batched(columns: Sequence[Sequence[float]], chance: random.Random) -> list[tuple[float, ...]]:
    """One row a sample, or the sums of random batches of about one size where there are many."""
    rows = list(zip(*columns, strict=True))
    if len(rows) <= 2 * MOST_UNITS:
        return rows
    chance.shuffle(rows)
    batches = [rows[start::MOST_UNITS] for start in range(MOST_UNITS)]
    return [tuple(map(sum, zip(*batch, strict=True))) for batch in batches]


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


def _left_out(groups: Sequence[tuple[T, ...]], statistic: Callable[[Sequence[T]], float]) -> list[float]:
    """The figure without each of the groups, or without each of some bundles of many."""
    bundles = min(GROUPS, len(groups))
    return [
        statistic([one for place, group in enumerate(groups) if place % bundles != left for one in group])
        for left in range(bundles)
    ]


def _interval(value: float, drawn: list[float], left_out: Sequence[float], confidence: float) -> Interval:
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


EXACT_UP_TO = 50
FEWEST_WITH_TIES = 10


class Kendall(NamedTuple):
    """Tau from -1 (reversed) to 1 (the same order), and how likely chance alone gives as much.

    `p` is exact up to fifty items without ties, else by the normal distribution; with ties and
    fewer than ten items it is None, as neither would be right.
    """

    tau: float
    p: float | None
    n: int


def kendall_tau(first: Sequence[Any], second: Sequence[Any]) -> Kendall | None:
    """How far two rankings of the same items agree; None where one of them ranks nothing.

    >>> found = kendall_tau([1, 2, 3, 4, 5], [1, 3, 2, 4, 5])
    >>> round(found.tau, 3), round(found.p, 4)
    (0.8, 0.0833)
    """
    pairs = sorted(zip(first, second, strict=True))
    n = len(pairs)
    all_pairs = n * (n - 1) // 2
    ties, its_ties = _tied(first), _tied(second)
    if all_pairs in (_pairs(ties), _pairs(its_ties)):
        return None
    untied, its_untied = all_pairs - _pairs(ties), all_pairs - _pairs(its_ties)
    score = _score(pairs)
    tau = score / math.sqrt(untied) / math.sqrt(its_untied)
    return Kendall(max(-1.0, min(1.0, tau)), _p(score, n, ties, its_ties), n)


def kendall_interval(
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """Where tau truly lies, by drawing the items again and again; whole clusters, if given.

    None below ten items or five clusters, or where one of the rankings ranks nothing. Below some
    thirty items it is too narrow. A draw in which one side ranks nothing counts as 0.

    >>> low, high = kendall_interval(range(12), [1, 0, 2, 3, 5, 4, 6, 7, 9, 8, 10, 11])
    >>> 0.5 < low < high <= 1.0
    True
    """
    pairs = list(zip(first, second, strict=True))
    if len(pairs) < FEWEST_WITH_TIES or kendall_tau(first, second) is None:
        return None

    def tau(drawn: Sequence[tuple[Any, Any]]) -> float:
        found = kendall_tau([one for one, _ in drawn], [other for _, other in drawn])
        return 0.0 if found is None else found.tau

    found = bootstrap(pairs, tau, clusters=clusters, method="percentile", confidence=confidence, seed=seed)
    return None if found is None else found.interval


def _score(pairs: Sequence[tuple[Any, Any]]) -> int:
    """Pairs of items in the same order less those in the opposite order.

    The items come by the first ranking; of those before it, each looks up how many lie below it
    and above it in the second. Items tied in the first are looked up before any of them is added.
    """
    seen: list[Any] = []
    waiting: list[Any] = []
    score, last = 0, None
    for one, other in pairs:
        if waiting and one != last:
            for earlier in waiting:
                insort(seen, earlier)
            waiting = []
        last = one
        score += bisect_left(seen, other) - (len(seen) - bisect_right(seen, other))
        waiting.append(other)
    return score


def _tied(values: Sequence[Any]) -> list[int]:
    return [count for count in Counter(values).values() if count > 1]


def _pairs(ties: Sequence[int]) -> int:
    return sum(count * (count - 1) // 2 for count in ties)


def _p(score: int, n: int, ties: Sequence[int], its_ties: Sequence[int]) -> float | None:
    if not ties and not its_ties and n <= EXACT_UP_TO:
        return _exact(score, n)
    if n < FEWEST_WITH_TIES:
        return None
    variance = _variance(n, ties, its_ties)
    return 2 * normal_cdf(-abs(score) / math.sqrt(variance))


def _exact(score: int, n: int) -> float:
    """Of all orders of n items, the share with as many or more pairs one way round."""
    ways = [1]
    for size in range(2, n + 1):
        # One more item stands in front of 0 to size - 1 of the others.
        added = [0] * (len(ways) + size - 1)
        for place, count in enumerate(ways):
            added[place] += count
            if place + size < len(added):
                added[place + size] -= count
        running = 0
        for place, count in enumerate(added):
            running += count
            added[place] = running
        ways = added
    fewest = (n * (n - 1) // 2 - abs(score)) // 2
    return min(1.0, 2 * sum(ways[: fewest + 1]) / math.factorial(n))


def _variance(n: int, ties: Sequence[int], its_ties: Sequence[int]) -> float:
    """The variance of the score if chance alone ordered the items (Kendall 1970)."""
    m = n * (n - 1)
    base = m * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for side in (ties, its_ties) for t in side)
    twos = [sum(t * (t - 1) for t in side) for side in (ties, its_ties)]
    threes = [sum(t * (t - 1) * (t - 2) for t in side) for side in (ties, its_ties)]
    return base / 18 + twos[0] * twos[1] / (2 * m) + threes[0] * threes[1] / (9 * m * (n - 2))
