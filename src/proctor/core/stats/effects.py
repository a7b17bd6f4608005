"""Effect sizes (Cohen's d with Hedges' correction), p-value adjustments and clustered t statistics.

Hedges' g (1981) removes the small-sample bias of d by the exact gamma-function factor. Its interval follows Hedges and
Olkin (1985) and is approximate in small groups.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from proctor.core.stats.descriptive import mean
from proctor.core.stats.differences import TEstimate, paired_differences, sample_moments
from proctor.core.stats.distributions import normal_quantile
from proctor.core.stats.intervals import (
    COUNT_ROUNDING,
    Interval,
    cluster_influences,
    clustered_standard_error,
    effective_clusters,
    find_cluster_problem,
)


class EffectSize(NamedTuple):
    """An effect size: Cohen's `d`, the corrected Hedges' `g`, and the confidence interval of g."""

    d: float
    g: float
    interval: Interval


def measure_effect(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> EffectSize | None:
    """Return the difference between two independent groups in pooled standard deviations.

    Equal groups without variance have effect 0. Return None for fewer than four values in total, or if groups without
    variance differ.
    """
    n, m = len(first), len(second)
    df = n + m - 2
    if min(n, m) < 1 or df < 2:
        return None
    (center, variance), (other_center, other_variance) = sample_moments(first), sample_moments(second)
    deviation = math.sqrt(((n - 1) * variance + (m - 1) * other_variance) / df)
    difference = paired_differences([center], [other_center])[0]
    return _standardize(difference, deviation, df, (n + m) / (n * m), n + m, confidence)


def measure_paired_effect(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> EffectSize | None:
    """Return the mean difference of pairs in standard deviations of the differences.

    Return None for fewer than three pairs, or if all pairs differ by the same amount.
    """
    deltas = paired_differences(first, second)
    return measure_difference_effect(*sample_moments(deltas), len(deltas), confidence) if len(deltas) > 2 else None


def measure_difference_effect(center: float, variance: float, n: int, confidence: float = 0.95) -> EffectSize | None:
    """Return the effect of pairs from the mean, the variance and the number of their differences."""
    return _standardize(center, math.sqrt(variance), n - 1, 1 / n, n, confidence)


def hedges_correction(df: int) -> float:
    """Return Hedges' factor for d; it approaches 1 for many degrees of freedom."""
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)


def _standardize(
    difference: float, deviation: float, df: int, weight: float, total: int, confidence: float
) -> EffectSize | None:
    if difference and not deviation:
        return None
    d = difference / deviation if deviation else 0.0
    g = hedges_correction(df) * d
    half = normal_quantile((1 + confidence) / 2) * math.sqrt(weight + g * g / (2 * total))
    return EffectSize(d, g, (g - half, g + half))


class AdjustedP(NamedTuple):
    """An adjusted p-value, and whether it rejects the null hypothesis at the level."""

    p: float
    rejected: bool


def holm(probabilities: Sequence[float], level: float = 0.05) -> list[AdjustedP]:
    """Adjust p-values by Holm's method (family-wise error rate); the order is preserved."""
    order, m = _ascending_order(probabilities, level), len(probabilities)
    adjusted, highest = [0.0] * m, 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (m - rank) * probabilities[i]))
        adjusted[i] = highest
    return [AdjustedP(p, p <= level) for p in adjusted]


def benjamini_hochberg(probabilities: Sequence[float], level: float = 0.05) -> list[AdjustedP]:
    """Adjust p-values by Benjamini and Hochberg's method (false discovery rate); the order is preserved."""
    order, m = _ascending_order(probabilities, level), len(probabilities)
    adjusted, lowest = [0.0] * m, 1.0
    for rank in range(m, 0, -1):
        i = order[rank - 1]
        lowest = min(lowest, probabilities[i] * m / rank)
        adjusted[i] = lowest
    return [AdjustedP(p, p <= level) for p in adjusted]


def _ascending_order(probabilities: Sequence[float], level: float) -> list[int]:
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, got {level!r}")
    if not all(0 <= p <= 1 for p in probabilities):
        raise ValueError(f"probabilities must be between 0 and 1, got {list(probabilities)!r}")
    return sorted(range(len(probabilities)), key=lambda i: probabilities[i])


def clustered_mean_t(values: Sequence[float], clusters: Sequence[Hashable]) -> TEstimate | None:
    """Return the t statistic of the mean of clustered values; None for too few clusters or without variance."""
    estimate = clustered_standard_error(values, clusters)
    return None if estimate is None or estimate[1] == 0 else TEstimate(*estimate)


def clustered_paired_t(
    first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable]
) -> TEstimate | None:
    """Return the paired t statistic of clustered pairs; None for too few clusters or without variance."""
    return clustered_mean_t(paired_differences(first, second), clusters)


def clustered_welch_t(
    first: Sequence[float],
    first_clusters: Sequence[Hashable],
    second: Sequence[float],
    second_clusters: Sequence[Hashable],
) -> TEstimate | None:
    """Return the t statistic of the difference between two unpaired groups of clustered values.

    A cluster may have values in both groups; their covariance is then removed. Without a shared cluster
    it is Welch's t of clustered means. None for too few clusters in a group, or without variance.
    """
    first_mean, second_mean = mean(first), mean(second)
    if find_cluster_problem(first_clusters) or find_cluster_problem(second_clusters):
        return None
    if first_mean is None or second_mean is None:
        return None
    influences = cluster_influences(first, first_clusters)
    others = cluster_influences(second, second_clusters)
    error = _norm([influences.get(c, 0.0) - others.get(c, 0.0) for c in {**influences, **others}])
    if error <= COUNT_ROUNDING:
        return None
    dfs = effective_clusters(first_clusters) - 1, effective_clusters(second_clusters) - 1
    df = min(dfs)
    if not influences.keys() & others.keys():
        shares = (_norm([*group.values()]) / error for group in (influences, others))
        df = 1 / sum(share**4 / group_df for share, group_df in zip(shares, dfs, strict=True))
    return TEstimate(first_mean - second_mean, error, df)


def _norm(vector: Sequence[float]) -> float:
    return math.sqrt(math.fsum(x * x for x in vector))
