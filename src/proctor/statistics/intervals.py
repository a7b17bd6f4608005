"""Confidence intervals for a rate and for a mean, of independent and of clustered values.

The formulas: Wilson's score interval for rates (Bowyer et al. 2025, arXiv 2503.01747), Student's
t for means and its clustered form with C - 1 degrees of freedom (Miller 2024, arXiv 2411.00640).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from proctor.statistics.distributions import normal_quantile, student_t_quantile
from proctor.statistics.moments import mean, mean_and_variance

Interval = tuple[float, float]

FEWEST_CLUSTERS = 5
ROUNDING = 1e-14


def wilson_interval(passed: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Where a rate of `passed` out of `n` truly lies, or None of nothing.

    >>> low, high = wilson_interval(41, 60)
    >>> round(low, 3), round(high, 3)
    (0.558, 0.787)
    """
    if not 0 <= passed <= n:
        raise ValueError(f"{passed!r} of {n!r} cannot be a rate")
    if n == 0:
        return None
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

    `clusters` names the cluster of each value. Below five clusters the spread between them
    cannot be told, and there is no interval.

    >>> scores = [0.9, 0.8, 0.7, 0.8, 0.5, 0.6, 0.9, 1.0, 0.6, 0.7]
    >>> low, high = clustered_mean_interval(scores, "aabbccddee")
    >>> round(low, 3), round(high, 3)
    (0.554, 0.946)
    """
    found = clustered_error(values, clusters)
    if found is None:
        return None
    centre, error, count = found
    return _around(centre, error, count - 1, confidence)


def clustered_error(
    values: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[float, float, int] | None:
    """A mean, its clustered standard error and the number of clusters, or None below five.

    >>> centre, error, clusters = clustered_error([0.0, 1.0, 0.0, 1.0, 1.0], "abcde")
    >>> round(centre, 3), round(error, 3), clusters
    (0.6, 0.245, 5)
    """
    centre = mean(values)
    sums: dict[Hashable, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + (value - (centre or 0.0))
    count = len(sums)
    if centre is None or count < FEWEST_CLUSTERS:
        return None
    spread = math.sqrt(math.fsum(total * total for total in sums.values()))
    if spread < ROUNDING * len(values):
        spread = 0.0  # what is left of equal clusters after rounding
    return centre, spread / len(values) * math.sqrt(count / (count - 1)), count


def _around(centre: float, standard_error: float, df: int, confidence: float) -> Interval:
    if standard_error == 0:
        return centre, centre
    half = student_t_quantile((1 + confidence) / 2, df) * standard_error
    return centre - half, centre + half
