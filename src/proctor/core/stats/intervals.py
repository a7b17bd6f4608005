"""Confidence intervals of rates and means, for independent and for clustered values.

Wilson's score interval for rates (Bowyer et al. 2025, arXiv 2503.01747), also clustered, with the effective number of
values; Student's t for means, also clustered (Miller 2024, arXiv 2411.00640) with the jackknife standard error that
leaves out one cluster at a time (CR3) and the effective number of clusters less one as degrees of freedom.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import compress, repeat
from operator import mul

from proctor.core.stats.descriptive import Counts, add_up, count_values, mean, mean_and_variance
from proctor.core.stats.distributions import normal_quantile, student_t_quantile

Interval = tuple[float, float]

MIN_CLUSTERS = 5
# Below this number, one large cluster dominates the error; five clusters of similar size are enough.
MIN_EFFECTIVE_CLUSTERS = 4
# The number of clusters that the largest possible design effect counts as, while there are few of the rarer outcome.
PRIOR_CLUSTERS = 4
# With so many clusters that have the rarer outcome, the measured design effect is enough.
SETTLED_CLUSTERS = 10
COUNT_ROUNDING = 1e-14

TOO_FEW_CLUSTERS = f"fewer than {MIN_CLUSTERS} clusters"
ONE_LARGE_CLUSTER = "one cluster has most of the samples"
SOME_LARGE_CLUSTERS = "a few clusters have most of the samples"


def wilson_interval(passed: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Return the confidence interval of the rate `passed` / `n`, or None if n is 0."""
    if not 0 <= passed <= n * (1 + COUNT_ROUNDING):
        raise ValueError(f"{passed!r} of {n!r} cannot be a rate")
    if n == 0:
        return None
    # Effective counts of clusters are not integers, so "all passed" may be off by rounding.
    passed = n if passed > n * (1 - COUNT_ROUNDING) else passed
    z = normal_quantile((1 + confidence) / 2)
    rate, weight = passed / n, z * z / n
    center = (rate + weight / 2) / (1 + weight)
    half = z * math.sqrt(rate * (1 - rate) / n + weight / (4 * n)) / (1 + weight)
    # At rates of 0 and 1 the interval must end exactly there, despite rounding.
    low = 0.0 if passed == 0 else max(0.0, center - half)
    high = 1.0 if passed == n else min(1.0, center + half)
    return low, high


def mean_interval(values: Sequence[float], confidence: float = 0.95, counts: Counts = None) -> Interval | None:
    """Return the confidence interval of the mean of independent values, or None for fewer than two values."""
    moments = mean_and_variance(values, counts)
    if moments is None:
        return None
    (center, variance), n = moments, count_values(values, counts)
    return _t_interval(center, math.sqrt(variance / n), n - 1, confidence)


def quantile_ranks(share: float, n: int, units: int) -> tuple[int, int] | None:
    """Return the ranks, from 0, of the ends of a quantile's 95% interval; None for too few values.

    The number of values below a quantile is binomial, whatever their distribution. `units` is n, or the effective
    number of clusters: each counts as one value, which is right if its values are equal, and cautious otherwise.
    """
    if units < min_quantile_units(share):
        return None
    spread = math.sqrt(units * share * (1 - share))
    first = max(0, int(units * share - 8 * spread))
    log_odds = math.log(share) - math.log1p(-share)
    log_mass = (
        math.lgamma(units + 1)
        - math.lgamma(first + 1)
        - math.lgamma(units - first + 1)
        + first * math.log(share)
        + (units - first) * math.log1p(-share)
    )
    # `below` is the probability that at most `count` values lie below the quantile.
    low, below, count = 0, 0.0, first
    while True:
        below += math.exp(log_mass)
        if below <= 0.025:
            low = count + 1
        if below >= 0.975:
            break
        log_mass += log_odds + math.log((units - count) / (count + 1))
        count += 1
    # Both ranks count from 1 here: the `low`th and the `count + 1`th unit.
    return max(0, low - 1) * n // units, math.ceil((count + 1) * n / units) - 1


def min_quantile_units(share: float) -> int:
    """Return the smallest number of independent values with an interval of a quantile.

    >>> min_quantile_units(0.5), min_quantile_units(0.95)
    (6, 72)
    """
    return math.ceil(math.log(0.025) / math.log(max(share, 1 - share)))


def clustered_rate_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval | None:
    """Return the confidence interval of a rate when values (0 to 1) of the same cluster are correlated.

    Wilson's interval for the effective number of values: n divided by the design effect, as Korn and Graubard (1998) do
    with another interval. Few clusters with the rarer outcome say little about the design effect, so it is averaged
    with the largest possible one, in which each cluster counts as one value; that one fades as such clusters become
    many, and Student's quantile, for an estimated design effect, takes its place. The limits never go beyond those of
    values that are all equal. None for fewer than five clusters, or if a few clusters have most of the values.
    """
    sizes = Counter(clusters)
    estimate = _clustered_standard_error(values, clusters, sizes)
    if estimate is None:
        return None
    n, units = len(values), _effective_number(sizes)
    rate = min(1.0, max(0.0, estimate[0]))
    common = float(rate >= 0.5)
    # In clusters that have only the common outcome, nothing shows how far values of a cluster are alike.
    informative = len(set(compress(clusters, map(common.__ne__, values))))
    spread, largest = rate * (1 - rate) / (n - 1), n / units
    measured = estimate[1] ** 2 / spread if spread else largest
    # Values between 0 and 1 vary less than 0 and 1 do; of these, no cluster is believed to vary more than chance.
    measured = max(measured, 1.0) if all(map({0.0, 1.0}.__contains__, values)) else measured
    doubt = max(0.0, 1 - informative / SETTLED_CLUSTERS)
    prior = PRIOR_CLUSTERS * doubt
    effect = (informative * measured + prior * largest) / (informative + prior)
    share = 0.5 + confidence / 2
    known = n / effect * (normal_quantile(share) / student_t_quantile(share, estimate[2])) ** (2 * (1 - doubt))
    interval, extreme = wilson_interval(rate * known, known, confidence), wilson_interval(0.0, units, confidence)
    assert interval is not None
    assert extreme is not None
    return min(interval[0], 1 - extreme[1]), max(interval[1], extreme[1])


def clustered_mean_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval | None:
    """Return the confidence interval of a mean when values of the same cluster are correlated.

    `clusters` has the cluster of each value. Return None for fewer than five clusters, or if a few clusters have most
    of the values.
    """
    estimate = clustered_standard_error(values, clusters)
    return None if estimate is None else _t_interval(*estimate, confidence)


def clustered_standard_error(
    values: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[float, float, float] | None:
    """Return a mean, its clustered standard error and degrees of freedom; None for too few clusters."""
    return _clustered_standard_error(values, clusters, Counter(clusters))


def _clustered_standard_error(
    values: Sequence[float], clusters: Sequence[Hashable], sizes: Counter[Hashable]
) -> tuple[float, float, float] | None:
    center = mean(values)
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values have {len(clusters)} clusters")
    if center is None or _find_size_problem(sizes):
        return None
    influences = _cluster_influences(values, clusters, sizes).values()
    error = math.sqrt(math.fsum(map(mul, influences, influences)))
    # A smaller error comes from the rounding of equal clusters.
    return center, 0.0 if error < COUNT_ROUNDING else error, _effective_number(sizes) - 1


def cluster_influences(values: Sequence[float], clusters: Sequence[Hashable]) -> dict[Hashable, float]:
    """Return the influence of each cluster on the mean; their squares sum to its variance (CR3)."""
    return _cluster_influences(values, clusters, Counter(clusters))


def _cluster_influences(
    values: Sequence[float], clusters: Sequence[Hashable], sizes: Counter[Hashable]
) -> dict[Hashable, float]:
    center, n = mean(values) or 0.0, len(values)
    sums: dict[Hashable, float] = dict.fromkeys(clusters, 0.0)
    for deviation, cluster in zip(map(center.__rsub__, values), clusters, strict=True):
        sums[cluster] += deviation
    factor = math.sqrt(1 - 1 / len(sums)) if sums else 0.0
    return {
        cluster: factor * total / (n - sizes[cluster]) if sizes[cluster] < n else 0.0 for cluster, total in sums.items()
    }


def effective_clusters(clusters: Sequence[Hashable]) -> float:
    """Return the number of clusters of equal size that would have the same weight."""
    return _effective_number(Counter(clusters))


def _effective_number(sizes: Counter[Hashable]) -> float:
    counts = sizes.values()
    return sum(counts) ** 2 / sum(map(mul, counts, counts)) if counts else 0.0


def find_cluster_problem(clusters: Sequence[Hashable]) -> str:
    """Return why the variance between clusters cannot be estimated, or "" if it can."""
    return _find_size_problem(Counter(clusters))


def _find_size_problem(sizes: Counter[Hashable]) -> str:
    if len(sizes) < MIN_CLUSTERS:
        return TOO_FEW_CLUSTERS
    if _effective_number(sizes) >= MIN_EFFECTIVE_CLUSTERS:
        return ""
    return ONE_LARGE_CLUSTER if 2 * max(sizes.values()) > sizes.total() else SOME_LARGE_CLUSTERS


def skew_adjusted_interval(values: Sequence[float], confidence: float = 0.95, counts: Counts = None) -> Interval | None:
    """Return the confidence interval of the mean of independent values, adjusted for skewness.

    The interval extends further towards rare extreme values, because a mean closer to them implies a larger variance
    (as in Wilson's interval). Return None for fewer than two values, or if all are equal.
    """
    moments = mean_and_variance(values, counts)
    if moments is None or not moments[1]:
        return None
    (center, variance), n = moments, count_values(values, counts)
    t = student_t_quantile((1 + confidence) / 2, n - 1)
    cubes = add_up(map(pow, map(center.__rsub__, values), repeat(3)), counts)
    skew = cubes / (variance * (n - 1)) * t * t / n

    def half_width(skew: float) -> float:
        skew = max(0.0, skew)
        return (skew + math.sqrt(skew * skew + 4 * t * t * variance / n)) / 2

    return center - half_width(-skew), center + half_width(skew)


def _t_interval(center: float, standard_error: float, df: float, confidence: float) -> Interval:
    if standard_error == 0:
        return center, center
    half = student_t_quantile((1 + confidence) / 2, df) * standard_error
    return center - half, center + half
