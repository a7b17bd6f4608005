"""Bootstrap intervals, the probability of having the best mean, and Kendall's rank correlation."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple, TypeVar

from proctor.core.stats.descriptive import mean, quantile
from proctor.core.stats.differences import ROUNDING
from proctor.core.stats.distributions import normal_cdf, normal_quantile
from proctor.core.stats.intervals import Interval, too_few_clusters

T = TypeVar("T")
Method = Literal["percentile", "bca"]
Unit = tuple[float, int]

# More than twice as many samples are merged into this many batches, which keeps their variance.
MOST_UNITS = 500
# The number of resamples shrinks so that at most this many values are drawn in total.
MOST_RESAMPLED_VALUES = 4_000_000
FEWEST_RESAMPLES, MOST_RESAMPLES = 1_000, 4_000
# Values that repeat this often on average are resampled by their counts, which is faster.
MIN_REPEATS = 20
# The jackknife leaves out one of at most this many bundles at a time.
JACKKNIFE_BUNDLES = 200
EXACT_UP_TO = 50
FEWEST_WITH_TIES = 10


def best_probabilities(
    columns: Sequence[Sequence[float]], *, highest: bool = True, resamples: int = 1000, seed: int = 0
) -> list[float]:
    """Return for each column the share of bootstrap resamples in which its mean is the best.

    Columns have one number per sample, in the same order. Each resample draws the same samples for all
    columns. Ties share.

    >>> best_probabilities([[1.0, 1.0, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]])
    [1.0, 0.0]
    """
    rng = random.Random(seed)
    units = _batch_samples(columns, rng)
    wins = [0.0] * len(columns)
    if not units or not columns:
        return wins
    pick_best = max if highest else min
    for _ in range(resamples):
        totals = [sum(column) for column in zip(*rng.choices(units, k=len(units)), strict=True)]
        best = pick_best(totals)
        winners = [i for i, total in enumerate(totals) if total == best]
        for i in winners:
            wins[i] += 1 / len(winners)
    return [count / resamples for count in wins]


def _batch_samples(columns: Sequence[Sequence[float]], rng: random.Random) -> list[tuple[float, ...]]:
    """Return one row per sample, or the sums of random batches if there are many samples."""
    rows = list(zip(*columns, strict=True))
    if len(rows) <= 2 * MOST_UNITS:
        return rows
    rng.shuffle(rows)
    batches = [rows[start::MOST_UNITS] for start in range(MOST_UNITS)]
    return [tuple(map(sum, zip(*batch, strict=True))) for batch in batches]


class Bootstrap(NamedTuple):
    """A statistic with its bootstrap interval, and the settings that produced it."""

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
    """Return a statistic of the values with its bootstrap interval.

    Values may be numbers, pairs or anything else. With `clusters`, whole clusters are resampled. None
    below two values or for too few clusters.

    >>> result = bootstrap([1.0, 2.0, 2.0, 3.0, 9.0, 4.0, 2.0, 5.0], max, method="percentile")
    >>> result.value, result.interval[1]
    (9.0, 9.0)
    """
    groups = _group_by_cluster(values, clusters)
    if groups is None:
        return None
    observed, rng = statistic(values), random.Random(seed)
    resamples = resamples or resamples_for(len(values))
    resampled = [
        statistic([value for group in rng.choices(groups, k=len(groups)) for value in group])
        for _ in range(resamples)
    ]
    leave_one_out = _jackknife(groups, statistic) if method == "bca" else []
    interval = _interval(observed, resampled, leave_one_out, confidence)
    return Bootstrap(observed, interval, resamples, seed, method)


def bootstrap_mean(
    values: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "bca",
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int | None = None,
) -> Bootstrap | None:
    """Return the mean with its bootstrap interval; much faster than `bootstrap` if values repeat.

    >>> result = bootstrap_mean([0.0, 1.0, 1.0, 1.0] * 25, seed=1)
    >>> result.value, [round(end, 2) for end in result.interval], result.resamples
    (0.75, [0.66, 0.83], 4000)
    """
    groups = _group_by_cluster(values, clusters)
    centre = mean(values)
    if groups is None or centre is None:
        return None
    units = [(math.fsum(group), len(group)) for group in groups]
    resamples = resamples or resamples_for(len(units))
    resampled = list(_resample_means(units, resamples, random.Random(seed)))
    total, n = math.fsum(values), len(values)
    leave_one_out = [(total - x) / (n - size) for x, size in units] if method == "bca" else []
    interval = _interval(centre, resampled, leave_one_out, confidence)
    return Bootstrap(centre, interval, resamples, seed, method)


def resamples_for(n: int) -> int:
    """Return the default number of resamples for n values or clusters.

    >>> resamples_for(50), resamples_for(2_000), resamples_for(10_000)
    (4000, 2000, 1000)
    """
    return max(FEWEST_RESAMPLES, min(MOST_RESAMPLES, MOST_RESAMPLED_VALUES // n))


def _group_by_cluster(values: Sequence[T], clusters: Sequence[Hashable] | None) -> list[tuple[T, ...]] | None:
    if clusters is None:
        return [(value,) for value in values] if len(values) > 1 else None
    groups: dict[Hashable, list[T]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        groups.setdefault(cluster, []).append(value)
    return None if too_few_clusters(clusters) else list(map(tuple, groups.values()))


def _resample_means(units: Sequence[Unit], resamples: int, rng: random.Random) -> Iterator[float]:
    distinct = Counter(units)
    if len(distinct) * MIN_REPEATS <= len(units):
        for _ in range(resamples):
            counts = list(_resample_counts(distinct, len(units), rng))
            yield math.fsum(count * total for count, (total, _) in counts) / sum(
                count * size for count, (_, size) in counts
            )
    elif all(size == 1 for _, size in units):
        values = [value for value, _ in units]
        for _ in range(resamples):
            yield sum(rng.choices(values, k=len(values))) / len(values)
    else:
        for _ in range(resamples):
            totals, sizes = zip(*rng.choices(units, k=len(units)), strict=True)
            yield sum(totals) / sum(sizes)


def _resample_counts(distinct: Counter[Unit], n: int, rng: random.Random) -> Iterator[tuple[int, Unit]]:
    """Draw from the multinomial distribution, one conditional binomial count after another."""
    draws_left, population_left = n, n
    for unit, count in distinct.items():
        drawn = draws_left
        if count < population_left:
            drawn = _random_binomial(draws_left, count / population_left, rng)
        yield drawn, unit
        draws_left, population_left = draws_left - drawn, population_left - count


def _random_binomial(n: int, p: float, rng: random.Random) -> int:
    """Draw the number of successes in n trials with probability p < 1.

    All trials compare a random number with p bit by bit; each bit decides half of the remaining ones,
    so n trials take about 2n random bits.
    """
    successes = 0
    while n and p:
        p *= 2
        ones = rng.getrandbits(n).bit_count()
        if p >= 1:
            p -= 1
            successes, n = successes + n - ones, ones
        else:
            n -= ones
    return successes


def _jackknife(groups: Sequence[tuple[T, ...]], statistic: Callable[[Sequence[T]], float]) -> list[float]:
    """Return the statistic without each group, or without each bundle of groups."""
    bundles = min(JACKKNIFE_BUNDLES, len(groups))
    return [
        statistic([value for i, group in enumerate(groups) if i % bundles != left_out for value in group])
        for left_out in range(bundles)
    ]


def _interval(
    observed: float, resampled: list[float], leave_one_out: Sequence[float], confidence: float
) -> Interval:
    resampled.sort()
    z = normal_quantile((1 + confidence) / 2)
    bias = acceleration = 0.0
    if leave_one_out:
        bias, acceleration = _bias(observed, resampled), _acceleration(leave_one_out)

    def endpoint(z: float) -> float:
        shifted = bias + z
        share = normal_cdf(bias + shifted / max(1e-3, 1 - acceleration * shifted))
        return quantile(resampled, share) or 0.0

    return endpoint(-z), endpoint(z)


def _bias(observed: float, resampled: Sequence[float]) -> float:
    """Return the median bias of the resamples in standard errors; ties count half."""
    tolerance = ROUNDING * max(abs(resampled[0]), abs(resampled[-1]))
    below = sum(value < observed - tolerance for value in resampled)
    ties = sum(value <= observed + tolerance for value in resampled) - below
    share = (below + ties / 2) / len(resampled)
    smallest = 0.5 / len(resampled)
    return normal_quantile(min(1 - smallest, max(smallest, share)))


def _acceleration(leave_one_out: Sequence[float]) -> float:
    """Return a sixth of the skewness of the jackknife influences."""
    centre = mean(leave_one_out) or 0.0
    influences = [centre - value for value in leave_one_out]
    squares = math.fsum(x * x for x in influences)
    tolerance = ROUNDING * max(map(abs, leave_one_out))
    if squares <= len(leave_one_out) * tolerance * tolerance:
        return 0.0
    return math.fsum(x * x * x for x in influences) / (6 * squares * math.sqrt(squares))


class Kendall(NamedTuple):
    """Kendall's tau-b, from -1 (reversed order) to 1 (same order), with its p-value.

    `p` is exact up to fifty items without ties, otherwise by the normal approximation; None with ties
    and fewer than ten items.
    """

    tau: float
    p: float | None
    n: int


def kendall_tau(first: Sequence[Any], second: Sequence[Any]) -> Kendall | None:
    """Return the rank correlation of two rankings; None if a ranking has only ties.

    >>> result = kendall_tau([1, 2, 3, 4, 5], [1, 3, 2, 4, 5])
    >>> round(result.tau, 3), round(result.p, 4)
    (0.8, 0.0833)
    """
    pairs = sorted(zip(first, second, strict=True))
    n = len(pairs)
    ties, other_ties = _tie_sizes(first), _tie_sizes(second)
    untied, other_untied = (
        math.comb(n, 2) - sum(math.comb(size, 2) for size in sizes) for sizes in (ties, other_ties)
    )
    if not untied or not other_untied:
        return None
    score = _kendall_score(pairs)
    tau = score / math.sqrt(untied) / math.sqrt(other_untied)
    return Kendall(max(-1.0, min(1.0, tau)), _kendall_p(score, n, ties, other_ties), n)


def kendall_interval(
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """Return the bootstrap interval of tau, resampling items or whole clusters.

    None below ten items, for too few clusters, or if a ranking has only ties. Below about thirty items
    it is too narrow. A resample in which a ranking has only ties counts as 0.

    >>> low, high = kendall_interval(range(12), [1, 0, 2, 3, 5, 4, 6, 7, 9, 8, 10, 11])
    >>> 0.5 < low < high <= 1.0
    True
    """
    pairs = list(zip(first, second, strict=True))
    if len(pairs) < FEWEST_WITH_TIES or kendall_tau(first, second) is None:
        return None

    def tau(resampled: Sequence[tuple[Any, Any]]) -> float:
        result = kendall_tau([a for a, _ in resampled], [b for _, b in resampled])
        return 0.0 if result is None else result.tau

    result = bootstrap(pairs, tau, clusters=clusters, method="percentile", confidence=confidence, seed=seed)
    return None if result is None else result.interval


def _kendall_score(pairs: Sequence[tuple[Any, Any]]) -> int:
    """Return the number of concordant less discordant pairs of items sorted by the first ranking.

    Each item counts the earlier ones below and above it in the second ranking. Items tied in the first
    ranking are counted before any of them is inserted.
    """
    earlier: list[Any] = []
    tied: list[Any] = []
    score, last = 0, None
    for a, b in pairs:
        if tied and a != last:
            for value in tied:
                insort(earlier, value)
            tied = []
        last = a
        score += bisect_left(earlier, b) - (len(earlier) - bisect_right(earlier, b))
        tied.append(b)
    return score


def _tie_sizes(values: Sequence[Any]) -> list[int]:
    return [count for count in Counter(values).values() if count > 1]


def _kendall_p(score: int, n: int, ties: Sequence[int], other_ties: Sequence[int]) -> float | None:
    if not ties and not other_ties and n <= EXACT_UP_TO:
        return _exact_kendall_p(score, n)
    if n < FEWEST_WITH_TIES:
        return None
    # The variance of the score for a random order (Kendall 1970).
    m, sides = n * (n - 1), (ties, other_ties)
    base = m * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for side in sides for t in side)
    twos = [sum(t * (t - 1) for t in side) for side in sides]
    threes = [sum(t * (t - 1) * (t - 2) for t in side) for side in sides]
    variance = base / 18 + twos[0] * twos[1] / (2 * m) + threes[0] * threes[1] / (9 * m * (n - 2))
    return 2 * normal_cdf(-abs(score) / math.sqrt(variance))


def _exact_kendall_p(score: int, n: int) -> float:
    """Return the share of all orders of n items with a score at least as extreme."""
    ways = [1]
    for size in range(2, n + 1):
        # A further item adds 0 to size - 1 inversions: a sliding sum over the counts so far.
        wider = [0] * (len(ways) + size - 1)
        for inversions, count in enumerate(ways):
            wider[inversions] += count
            if inversions + size < len(wider):
                wider[inversions + size] -= count
        ways = list(accumulate(wider))
    fewest = (math.comb(n, 2) - abs(score)) // 2
    return min(1.0, 2 * sum(ways[: fewest + 1]) / math.factorial(n))
