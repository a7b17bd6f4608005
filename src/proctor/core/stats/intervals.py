"""Confidence intervals for a rate and for a mean, of independent and of clustered values.

The formulas: Wilson's score interval for rates (Bowyer et al. 2025, arXiv 2503.01747), Student's
t for means and its clustered form (Miller 2024, arXiv 2411.00640). Clusters of unequal size count
as fewer: the error leaves out one cluster at a time (CR3, the jackknife), and the degrees of
freedom are the effective number of clusters less one. For clusters of one size it is CR1, C - 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

from proctor.core.stats.descriptive import mean, mean_and_variance
from proctor.core.stats.distributions import normal_quantile, student_t_quantile

Interval = tuple[float, float]

FEWEST_CLUSTERS = 5
# Five of nearly one size must still do; below this the error of one large cluster is a guess.
FEWEST_EFFECTIVE = 4
COUNT_ROUNDING = 1e-14

TOO_FEW_CLUSTERS = f"fewer than {FEWEST_CLUSTERS} clusters"
ONE_LARGE_CLUSTER = "one cluster holds most of the samples"
SOME_LARGE_CLUSTERS = "a few clusters hold most of the samples"


def wilson_interval(passed: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Where a rate of `passed` out of `n` truly lies, or None of nothing.

    >>> low, high = wilson_interval(41, 60)
    >>> round(low, 3), round(high, 3)
    (0.558, 0.787)
    """
    if not 0 <= passed <= n * (1 + COUNT_ROUNDING):
        raise ValueError(f"{passed!r} of {n!r} cannot be a rate")
    if n == 0:
        return None
    # All of a number that is not whole, as of clusters that count for less, may be rounded.
    passed = n if passed > n * (1 - COUNT_ROUNDING) else passed
    z = normal_quantile((1 + confidence) / 2)
    rate, weight = passed / n, z * z / n
    centre = (rate + weight / 2) / (1 + weight)
    half = z * math.sqrt(rate * (1 - rate) / n + weight / (4 * n)) / (1 + weight)
    # At the ends the interval touches 0 or 1 exactly; rounding must not move it off.
    low = 0.0 if passed == 0 else max(0.0, centre - half)
    high = 1.0 if passed == n else min(1.0, centre + half)
    return low, high


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Where the mean of independent values truly lies, or None below two values.

    >>> low, high = mean_interval([0.2, 0.4, 0.6, 0.8])
    >>> round(low, 3), round(high, 3)
    (0.089, 0.911)
    """
    moments = mean_and_variance(values)
    if moments is None:
        return None
    centre, variance = moments
    return _around(centre, math.sqrt(variance / len(values)), len(values) - 1, confidence)


def clustered_mean_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval | None:
    """Where a mean truly lies when the values of one cluster resemble each other.

    `clusters` names the cluster of each value. Below five clusters, or where a few hold most of the
    values, the spread between them cannot be told, and there is no interval.

    >>> scores = [0.9, 0.8, 0.7, 0.8, 0.5, 0.6, 0.9, 1.0, 0.6, 0.7]
    >>> low, high = clustered_mean_interval(scores, "aabbccddee")
    >>> round(low, 3), round(high, 3)
    (0.554, 0.946)
    """
    found = clustered_error(values, clusters)
    return None if found is None else _around(*found, confidence)


def clustered_error(
    values: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[float, float, float] | None:
    """A mean, its clustered standard error and degrees of freedom; None where clusters are too few.

    >>> centre, error, df = clustered_error([0.0, 1.0, 0.0, 1.0, 1.0], "abcde")
    >>> round(centre, 3), round(error, 3), df
    (0.6, 0.245, 4.0)
    """
    centre, pulls = mean(values), pulls_of_clusters(values, clusters)
    if centre is None or too_few_clusters(clusters):
        return None
    spread = math.sqrt(math.fsum(pull * pull for pull in pulls.values()))
    if spread < COUNT_ROUNDING:
        spread = 0.0  # what is left of equal clusters after rounding
    return centre, spread, effective_clusters(clusters) - 1


def pulls_of_clusters(values: Sequence[float], clusters: Sequence[Hashable]) -> dict[Hashable, float]:
    """By how much each cluster pulls at the mean: the sum of their squares is its variance (CR3).

    >>> pulls_of_clusters([0.0, 1.0, 0.5, 0.5], "aabb")
    {'a': 0.0, 'b': 0.0}
    """
    centre, n = mean(values) or 0.0, len(values)
    sums: dict[Hashable, float] = {}
    sizes = Counter(clusters)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + (value - centre)
    factor = math.sqrt(1 - 1 / len(sums)) if sums else 0.0
    return {
        cluster: factor * total / (n - sizes[cluster]) if sizes[cluster] < n else 0.0
        for cluster, total in sums.items()
    }


def effective_clusters(clusters: Sequence[Hashable]) -> float:
    """How many clusters of one size would weigh as much; 0 of nothing.

    >>> effective_clusters("aabbcc"), effective_clusters("aaaaab")
    (3.0, 1.3846153846153846)
    """
    sizes = Counter(clusters).values()
    return sum(sizes) ** 2 / sum(size * size for size in sizes) if sizes else 0.0


def too_few_clusters(clusters: Sequence[Hashable]) -> str:
    """Why the spread between clusters cannot be told; nothing where it can.

    >>> too_few_clusters("aabbccdd"), too_few_clusters("aaaaaaaaaaaaaabcdef")
    ('fewer than 5 clusters', 'one cluster holds most of the samples')
    """
    sizes = Counter(clusters)
    if len(sizes) < FEWEST_CLUSTERS:
        return TOO_FEW_CLUSTERS
    if effective_clusters(clusters) >= FEWEST_EFFECTIVE:
        return ""
    return ONE_LARGE_CLUSTER if 2 * max(sizes.values()) > len(clusters) else SOME_LARGE_CLUSTERS


def skewed_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Where the mean of independent values truly lies, also if a few of them lie far to one side.

    Student's t takes the spread for known. Where rare values make it, a mean that lies further to
    their side has a larger one, by the skewness (as a rate has in Wilson's interval): on that side
    the interval reaches further. None below two values, or where they do not differ.

    >>> low, high = skewed_interval([0.0] * 9 + [-1.0])
    >>> round(low, 3), round(high, 3)
    (-0.61, 0.126)
    """
    moments = mean_and_variance(values)
    if moments is None or not moments[1]:
        return None
    (centre, variance), n = moments, len(values)
    t = student_t_quantile((1 + confidence) / 2, n - 1)
    cubes = math.fsum((value - centre) ** 3 for value in values)
    tilt = cubes / (variance * (n - 1)) * t * t / n

    def reach(further: float) -> float:
        far = max(0.0, further)
        return (far + math.sqrt(far * far + 4 * t * t * variance / n)) / 2

    return centre - reach(-tilt), centre + reach(tilt)


def _around(centre: float, standard_error: float, df: float, confidence: float) -> Interval:
    if standard_error == 0:
        return centre, centre
    half = student_t_quantile((1 + confidence) / 2, df) * standard_error
    return centre - half, centre + half
