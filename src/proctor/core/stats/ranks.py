"""The probability of having the best mean, and Kendall's rank correlation."""

from __future__ import annotations

import math
import operator
import random
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from proctor.core.stats.bootstrap import bootstrap_interval
from proctor.core.stats.differences import ROUNDING
from proctor.core.stats.distributions import normal_cdf
from proctor.core.stats.intervals import Interval

# More than twice as many samples are merged into this many batches, which preserves their variance.
MAX_UNITS = 500
MAX_EXACT = 50
MIN_WITH_TIES = 10


def best_probabilities(
    columns: Sequence[Sequence[float]], *, highest: bool = True, resamples: int = 1000, seed: int = 0
) -> list[float]:
    """Return for each column the probability that its mean is the best, by a Bayesian bootstrap.

    Columns have one number per sample, in the same order. Each resample weights the same samples for all
    columns (Rubin 1981). Ties share. For each column, one sample in its favour is added, with a typical difference:
    four wins and no loss do not prove that losses are impossible. For two columns of 0 and 1 the probability is then
    that of Beta(wins + 1, losses + 1); without losses, it is 1 - p of a one-sided sign test with mid-p.
    """
    if not columns or not columns[0]:
        return [0.0] * len(columns)
    rng = random.Random(seed)
    rows = [tuple(value - row[0] for value in row) for row in zip(*columns, strict=True) if _differs(row)]
    if not rows:
        return [1 / len(columns)] * len(columns)
    units = _batch_samples(rows, rng)
    typical = math.sqrt(math.fsum((max(unit) - min(unit)) ** 2 for unit in units) / len(units))
    favour = typical if highest else -typical
    units += [tuple(favour * (i == j) for j in range(len(columns))) for i in range(len(columns))]
    weighted_columns = list(zip(*units, strict=True))
    pick_best = max if highest else min
    wins = [0.0] * len(columns)
    for _ in range(resamples):
        weights = [-math.log(1.0 - rng.random()) for _ in units]
        totals = [sum(map(operator.mul, weights, column)) for column in weighted_columns]
        best = pick_best(totals)
        winners = [i for i, total in enumerate(totals) if total == best]
        for i in winners:
            wins[i] += 1 / len(winners)
    return [count / resamples for count in wins]


def _differs(row: Sequence[float]) -> bool:
    return not math.isclose(min(row), max(row), rel_tol=ROUNDING)


def _batch_samples(rows: list[tuple[float, ...]], rng: random.Random) -> list[tuple[float, ...]]:
    """Return one row per sample, or the sums of random batches if there are many samples."""
    if len(rows) <= 2 * MAX_UNITS:
        return rows
    rng.shuffle(rows)
    batches = [rows[start::MAX_UNITS] for start in range(MAX_UNITS)]
    return [tuple(map(sum, zip(*batch, strict=True))) for batch in batches]


class Kendall(NamedTuple):
    """Kendall's tau-b, from -1 (reversed order) to 1 (same order), with its p-value.

    `p` is exact up to fifty items without ties, otherwise by the normal approximation; None with ties
    and fewer than ten items.
    """

    tau: float
    p: float | None
    n: int


def kendall_tau(first: Sequence[Any], second: Sequence[Any]) -> Kendall | None:
    """Return the rank correlation of two rankings; None if a ranking has only ties."""
    pairs = sorted(zip(first, second, strict=True))
    n = len(pairs)
    ties, other_ties = _tie_sizes(first), _tie_sizes(second)
    untied, other_untied = (math.comb(n, 2) - sum(math.comb(size, 2) for size in sizes) for sizes in (ties, other_ties))
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

    Return None for fewer than ten items, for too few clusters, or if a ranking has only ties. With fewer than about
    thirty items the interval is too narrow. A resample in which a ranking has only ties counts as 0.
    """
    pairs = list(zip(first, second, strict=True))
    if len(pairs) < MIN_WITH_TIES or kendall_tau(first, second) is None:
        return None

    def tau(resampled: Sequence[tuple[Any, Any]]) -> float:
        result = kendall_tau([a for a, _ in resampled], [b for _, b in resampled])
        return 0.0 if result is None else result.tau

    return bootstrap_interval(pairs, tau, clusters=clusters, confidence=confidence, seed=seed)


def _kendall_score(pairs: Sequence[tuple[Any, Any]]) -> int:
    """Return the number of concordant minus discordant pairs of items sorted by the first ranking.

    Each item counts the earlier items below and above it in the second ranking. Items tied in the first ranking are
    counted before any of them is inserted.
    """
    earlier_items: list[Any] = []
    tied_items: list[Any] = []
    score, last = 0, None
    for a, b in pairs:
        if tied_items and a != last:
            for value in tied_items:
                insort(earlier_items, value)
            tied_items = []
        last = a
        score += bisect_left(earlier_items, b) - (len(earlier_items) - bisect_right(earlier_items, b))
        tied_items.append(b)
    return score


def _tie_sizes(values: Sequence[Any]) -> list[int]:
    return [count for count in Counter(values).values() if count > 1]


def _kendall_p(score: int, n: int, ties: Sequence[int], other_ties: Sequence[int]) -> float | None:
    if not ties and not other_ties and n <= MAX_EXACT:
        return _exact_kendall_p(score, n)
    if n < MIN_WITH_TIES:
        return None
    # The variance of the score for a random order (Kendall 1970).
    m, sides = n * (n - 1), (ties, other_ties)
    base = m * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for side in sides for t in side)
    twos = [sum(t * (t - 1) for t in side) for side in sides]
    threes = [sum(t * (t - 1) * (t - 2) for t in side) for side in sides]
    variance = base / 18 + twos[0] * twos[1] / (2 * m) + threes[0] * threes[1] / (9 * m * (n - 2))
    return 2 * normal_cdf(-abs(score) / math.sqrt(variance))


def _exact_kendall_p(score: int, n: int) -> float:
    """Return the fraction of all orders of n items with a score at least as extreme."""
    ways = [1]
    for size in range(2, n + 1):
        # A further item adds 0 to size - 1 inversions: a sliding sum over the counts so far.
        next_counts = [0] * (len(ways) + size - 1)
        for inversions, count in enumerate(ways):
            next_counts[inversions] += count
            if inversions + size < len(next_counts):
                next_counts[inversions + size] -= count
        ways = list(accumulate(next_counts))
    min_inversions = (math.comb(n, 2) - abs(score)) // 2
    return min(1.0, 2 * sum(ways[: min_inversions + 1]) / math.factorial(n))
