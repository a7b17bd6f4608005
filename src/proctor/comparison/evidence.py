"""Estimate the difference between two sides: an interval and a p-value.

The method depends on the data: pairs or independent groups, binary or other numbers, with or without
clusters of samples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import compress, islice
from operator import gt

from proctor.core.stats import differences, effects, intervals
from proctor.core.stats.descriptive import Counts, add_up, count_values, mean
from proctor.core.stats.permutations import sign_test

MCNEMAR = "exact McNemar test"
# From so many pairs on, equal ones are counted, if there are few different ones, as of rates and token counts.
MIN_COUNTED, MAX_DIFFERENT = 1_000, 256


class Evidence:
    """The first side minus the second, with its uncertainty.

    `first` and `second` are numbers of the same samples if `paired`, else of two groups. The
    clusters are None if all samples are independent. `counts` is how often each pair occurs, if it is not once.
    """

    def __init__(
        self,
        first: Sequence[float],
        second: Sequence[float],
        paired: bool = True,
        clusters: Sequence[str] | None = None,
        second_clusters: Sequence[str] | None = None,
        counts: Counts = None,
    ) -> None:
        self.first = first
        self.second = second
        self.paired = paired
        self.clusters = clusters
        self.second_clusters = second_clusters
        self.counts = counts

    def compact(self) -> Evidence:
        """Return the same evidence with equal pairs counted, if there are few different ones.

        Its statistics are exactly those of all pairs, and take far less time.
        """
        if not self.paired or self.clusters is not None or self.counts is not None or self.n < MIN_COUNTED:
            return self
        some = set(islice(zip(self.first, self.second, strict=True), MIN_COUNTED))
        if len(some) > MAX_DIFFERENT:
            return self
        counts = _count_pairs(self.first, self.second, may_be_binary=differences.is_binary(*some))
        if len(counts) > MAX_DIFFERENT:
            return self
        first, second = zip(*counts, strict=True)
        compact = Evidence(first, second, counts=[*counts.values()])
        if compact.is_binary or not any(compact._differences):
            return compact
        # The permutation test, which few varied differences need, depends on the order of the pairs.
        suits_t = differences.varies_enough(compact._differences, compact.counts)
        return compact if suits_t and compact._t_estimate is not None else self

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """The number of values on each side."""
        return count_values(self.first, self.counts), count_values(self.second, self.counts)

    @cached_property
    def means(self) -> tuple[float | None, float | None]:
        """The mean of each side."""
        return mean(self.first, self.counts), mean(self.second, self.counts)

    @property
    def n(self) -> int:
        """The number of pairs, or the size of the smaller group."""
        return min(self.sizes)

    @cached_property
    def is_binary(self) -> bool:
        """True if all numbers are 0 or 1."""
        return differences.is_binary(self.first, self.second)

    @cached_property
    def are_scores(self) -> bool:
        """True if all numbers are from 0 to 1."""
        return all(min(side) >= 0 and max(side) <= 1 for side in (self.first, self.second) if side)

    @cached_property
    def cluster_problem(self) -> str:
        """Why there are too few clusters for an estimate; empty if there are none, or enough."""
        return next(filter(None, map(intervals.find_cluster_problem, self._all_clusters)), "")

    @cached_property
    def units(self) -> float:
        """The number of independent units: samples, or clusters of equal weight."""
        return self.n if self.clusters is None else min(map(intervals.effective_clusters, self._all_clusters))

    @property
    def _all_clusters(self) -> list[Sequence[str]]:
        return [names for names in (self.clusters, self.second_clusters) if names is not None]

    @cached_property
    def difference(self) -> float | None:
        """The mean of the first side minus the mean of the second."""
        if self.paired:
            return mean(self._differences, self.counts)
        first, second = self.means
        return None if first is None or second is None else differences.paired_differences([first], [second])[0]

    def interval(self, confidence: float = 0.95) -> intervals.Interval | None:
        """Return the confidence interval of the difference; None if there are too few numbers.

        Clustered samples get the cluster-robust t interval. Binary pairs get Bonett and Price's interval and binary
        groups Newcombe's; both are valid even if all numbers are equal. Other numbers get Student's t, which allows for
        rare values if they are scores from 0 to 1.
        """
        if self.cluster_problem:
            return None
        if self._clustered_estimate is not None:
            return self._clustered_estimate.interval(confidence)
        first, second = self._units
        if min(self._unit_sizes) < 2:
            return None
        if self._is_binary_by_unit:
            if self.paired:
                up, down = (min(self.units, self.units * f / self._unit_sizes[0]) for f in self._flips)
                return differences.paired_rate_interval(up, down, self.units, confidence)
            return differences.rate_difference_interval(sum(first), len(first), sum(second), len(second), confidence)
        has_spread = self.paired or (_has_spread(first) and _has_spread(second))
        if not has_spread or self._t_estimate is None:
            return None
        if self.paired and self.are_scores:
            return intervals.skew_adjusted_interval(self._unit_differences, confidence, self.counts)
        return self._t_estimate.interval(confidence)

    @cached_property
    def probability(self) -> tuple[float | None, str]:
        """The p-value of the difference, and the name of the test.

        The test is the exact McNemar test for binary pairs, a permutation test for few numbers, and Student's t for
        many.
        """
        if self.cluster_problem:
            return None, self.cluster_problem
        if self._clustered_estimate is not None:
            return self._clustered_estimate.p(), "cluster-robust t-test"
        first, second = self._units
        if min(self._unit_sizes) < 1 or sum(self._unit_sizes) < 3:
            return None, ""
        if self.paired and self._is_binary_by_unit:
            return sign_test(*self._flips), MCNEMAR
        if self.paired:
            p, _, method = differences.paired_test(
                self._unit_differences, self._t_estimate, method="auto" if self.counts is None else "t"
            )
            return p, method
        test = differences.compare_groups(first, second)
        return (None, "") if test is None else (test.p, test.method)

    @cached_property
    def error(self) -> float | None:
        """The standard error of the difference; None if it is unknown or 0."""
        if self.cluster_problem:
            return None
        if self._clustered_estimate is not None:
            return self._clustered_estimate.error
        if self.paired and self._unit_differences and self._is_binary_by_unit:
            (up, down), n = self._flips, self._unit_sizes[0]
            return math.sqrt(up + down - (up - down) ** 2 / n) / n or None
        return None if self._t_estimate is None else self._t_estimate.error

    def percentage_interval(self, interval: intervals.Interval | None) -> intervals.Interval | None:
        """Return the interval of the difference in percent of the second side, given that of the difference.

        None if a number is negative, or if the second side may be 0.
        """
        if interval is None or not self.error or min(min(self.first), min(self.second)) < 0:
            return None
        if self.paired and self.clusters is None:
            errors = [_estimate_error(side, self.counts) for side in (self.first, self.second)]
        else:
            zeros = [0.0] * max(self.sizes)
            sides = (self.first, zeros[: self.sizes[1]]), (zeros[: self.sizes[0]], self.second)
            errors = [
                Evidence(first, second, self.paired, self.clusters, self.second_clusters).error or 0.0
                for first, second in sides
            ]
        means = self.means[0] or 0.0, self.means[1] or 0.0
        ratio = differences.ratio_interval(means, (errors[0], errors[1], self.error), interval)
        return ratio and (100 * (ratio[0] - 1), 100 * (ratio[1] - 1))

    @cached_property
    def effect(self) -> float | None:
        """The difference in standard deviations (Hedges' g)."""
        if self.paired:
            effect = effects.measure_difference_effect(*self._moments, self.n) if self.n > 2 else None
        else:
            effect = effects.measure_effect(self.first, self.second)
        return None if effect is None else effect.g

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """The mean and the variance of the differences of pairs."""
        return differences.sample_moments(self._differences, self.counts)

    @cached_property
    def _differences(self) -> list[float]:
        return differences.paired_differences(self.first, self.second)

    @cached_property
    def _unit_differences(self) -> list[float]:
        return self._differences if self.clusters is None else differences.paired_differences(*self._units)

    @cached_property
    def _is_binary_by_unit(self) -> bool:
        return self.is_binary if self.clusters is None else differences.is_binary(*self._units)

    @cached_property
    def _flips(self) -> tuple[int, int]:
        """The number of pairs that improved, and of pairs that got worse."""
        if self.counts is None:
            return self._unit_differences.count(1), self._unit_differences.count(-1)
        up, down = (sum(compress(self.counts, map(sign.__eq__, self._differences))) for sign in (1.0, -1.0))
        return up, down

    @cached_property
    def _t_estimate(self) -> differences.TEstimate | None:
        if not self.paired:
            return differences.welch_t(*self._units)
        if self.clusters is not None:
            return differences.difference_t(self._unit_differences)
        return differences.mean_t(*self._moments, self.n) if self.n > 1 else None

    @cached_property
    def _clustered_estimate(self) -> differences.TEstimate | None:
        """The estimate for clustered samples; None without clusters, or if they do not differ."""
        if self.clusters is None:
            return None
        if self.paired:
            return effects.clustered_paired_t(self.first, self.second, self.clusters)
        if self.second_clusters is None:
            return None
        return effects.clustered_welch_t(self.first, self.clusters, self.second, self.second_clusters)

    @property
    def _unit_sizes(self) -> tuple[int, int]:
        return self.sizes if self.clusters is None else (len(self._units[0]), len(self._units[1]))

    @cached_property
    def _units(self) -> tuple[Sequence[float], Sequence[float]]:
        """The independent numbers: one per sample, or the means of the clusters."""
        if self.clusters is None:
            return self.first, self.second
        return (
            _average_clusters(self.first, self.clusters),
            _average_clusters(self.second, self.second_clusters or self.clusters),
        )


def estimate_interval(
    values: Sequence[float],
    clusters: Sequence[str] | None = None,
    trials: Sequence[tuple[str, float]] = (),
    cluster_by_sample: Mapping[str, str] | None = None,
    counts: Counts = None,
) -> intervals.Interval | None:
    """Return the 95% confidence interval of a mean; None if it cannot be estimated.

    Binary numbers get the interval of a rate, other numbers that of a mean, for clusters if there are any.
    Numbers that are all equal have no interval unless they are binary. Values that are means over epochs get the
    interval of their binary `trials` (sample and number), as in a report: the epochs of a sample are a cluster.
    `counts` is how often each value occurs, if it is not once.
    """
    n = count_values(values, counts)
    if n < 2:
        return None
    # A sample of which some epochs have no number counts as much as the others, but has fewer trials.
    if len(set(Counter(sample for sample, _ in trials).values())) == 1:
        by_sample = cluster_by_sample or {}
        clusters_of_trials = [by_sample.get(sample, sample) for sample, _ in trials]
        return intervals.clustered_rate_interval([value for _, value in trials], clusters_of_trials)
    if clusters is not None:
        if intervals.find_cluster_problem(clusters):
            return None
        if differences.is_binary(values):
            return intervals.clustered_rate_interval(values, clusters)
        return intervals.clustered_mean_interval(values, clusters) if _has_spread(values) else None
    if differences.is_binary(values):
        return intervals.wilson_interval(add_up(values, counts), n)
    return intervals.mean_interval(values, counts=counts) if _has_spread(values) else None


def _estimate_error(values: Sequence[float], counts: Counts) -> float:
    """Return the standard error of the mean of independent values; 0 if it is unknown."""
    n = count_values(values, counts)
    if differences.is_binary(values):
        ones = add_up(values, counts)
        return math.sqrt(ones - ones**2 / n) / n
    estimate = differences.mean_t(*differences.sample_moments(values, counts), n) if n > 1 else None
    return 0.0 if estimate is None else estimate.error


def _count_pairs(
    first: Sequence[float], second: Sequence[float], *, may_be_binary: bool
) -> dict[tuple[float, float], int]:
    """Count how often each pair of numbers occurs."""
    n, ones, other_ones = len(first), first.count(1.0), second.count(1.0)
    if not may_be_binary or ones + first.count(0.0) < n or other_ones + second.count(0.0) < n:
        return Counter(zip(first, second, strict=True))
    # Counting zeros and ones, the usual case, takes a third of the time of counting pairs.
    up = sum(map(gt, first, second))
    both = ones - up
    counts = {(1.0, 1.0): both, (1.0, 0.0): up, (0.0, 1.0): other_ones - both, (0.0, 0.0): n - other_ones - up}
    return {pair: count for pair, count in counts.items() if count}


def _has_spread(values: Sequence[float]) -> bool:
    return any(differences.paired_differences((min(values), max(values)), (values[0], values[0])))


def _average_clusters(values: Sequence[float], clusters: Sequence[str]) -> list[float]:
    by_cluster: dict[str, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        by_cluster.setdefault(cluster, []).append(value)
    return [mean(numbers) or 0.0 for numbers in by_cluster.values()]
