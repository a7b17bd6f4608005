"""What the numbers of two sides say about their difference: an interval, and a probability.

Pairs of the same sample are told apart from independent groups, yes and no from other numbers, and
samples that belong together (clusters) from those that stand alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from proctor.core.stats.descriptive import mean
from proctor.core.stats.differences import (
    Student,
    chance_of_pairs,
    difference_interval,
    difference_of,
    differences,
    is_binary,
    paired_interval,
    student_of,
    welch,
)
from proctor.core.stats.effects import clustered_groups, clustered_pairs, effect_of, effect_of_pairs
from proctor.core.stats.intervals import (
    Interval,
    clustered_mean_interval,
    effective_clusters,
    mean_interval,
    skewed_interval,
    too_few_clusters,
    wilson_interval,
)
from proctor.core.stats.permutations import sign_test
from proctor.core.stats.power import variance_of_flips

MCNEMAR = "exact McNemar test"


class Evidence:
    """How far the first side lies above the second, and how sure that is.

    `first` and `second` are numbers of the same samples if `pairs`, else of two groups. The
    clusters are None where every sample stands alone.
    """

    def __init__(
        self,
        first: Sequence[float],
        second: Sequence[float],
        pairs: bool = True,
        clusters: Sequence[str] | None = None,
        second_clusters: Sequence[str] | None = None,
    ) -> None:
        self.first = first
        self.second = second
        self.pairs = pairs
        self.clusters = clusters
        self.second_clusters = second_clusters

    @property
    def n(self) -> int:
        """How many samples there are: pairs, or the smaller group."""
        return min(len(self.first), len(self.second))

    @cached_property
    def is_binary(self) -> bool:
        """True if all numbers are yes or no."""
        return is_binary(self.first, self.second)

    @cached_property
    def are_scores(self) -> bool:
        """True if all numbers lie from 0 to 1."""
        return all(0 <= value <= 1 for side in (self.first, self.second) for value in side)

    @cached_property
    def too_few_clusters(self) -> str:
        """Why the clusters cannot tell the difference; nothing where there are none, or enough."""
        each = [held for held in (self.clusters, self.second_clusters) if held is not None]
        return next(filter(None, map(too_few_clusters, each)), "")

    @cached_property
    def units(self) -> float:
        """How many samples are independent: all, or as many as their clusters weigh."""
        if self.clusters is None:
            return self.n
        each = [held for held in (self.clusters, self.second_clusters) if held is not None]
        return min(map(effective_clusters, each))

    @cached_property
    def difference(self) -> float | None:
        """The mean of the first less that of the second."""
        if self.pairs:
            return mean(self._apart)
        one, other = mean(self.first), mean(self.second)
        return None if one is None or other is None else differences([one], [other])[0]

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Where the true difference lies; None where the numbers cannot tell it.

        In clusters it is the cluster-robust t interval. Of yes and no it is Bonett and Price's for
        pairs and Newcombe's for groups, right also where no two differ; else Student's t, of scores
        from 0 to 1 with room for what is rare.
        """
        if self.too_few_clusters:
            return None
        if self._clustered is not None:
            return self._clustered.interval(confidence)
        first, second = self._units
        if len(first) < 2 or len(second) < 2:
            return None
        if self._are_yes_or_no:
            if self.pairs:
                up, down = (min(self.units, self.units * f / len(first)) for f in self._flips)
                return paired_interval(up, down, self.units, confidence)
            return difference_interval(sum(first), len(first), sum(second), len(second), confidence)
        if not self.pairs and not (_has_spread(first) and _has_spread(second)):
            return None
        if self._student is None:
            return None
        if self.pairs and self.are_scores:
            return skewed_interval(self._unit_differences, confidence)
        return self._student.interval(confidence)

    def probability(self) -> tuple[float | None, str]:
        """How likely chance alone gives as much, and by which test.

        Of pairs of yes and no it is the exact McNemar test; of few numbers permutations, of many
        Student's t.
        """
        if self.too_few_clusters:
            return None, self.too_few_clusters
        if self._clustered is not None:
            return self._clustered.p(), "cluster-robust t-test"
        first, second = self._units
        if not first or not second or len(first) + len(second) < 3:
            return None, ""
        if self.pairs and self._are_yes_or_no:
            return sign_test(*self._flips), MCNEMAR
        if self.pairs:
            p, _, method = chance_of_pairs(self._unit_differences, self._student)
            return p, method
        found = difference_of(first, second)
        return (None, "") if found is None else (found.p, found.method)

    @cached_property
    def error(self) -> float | None:
        """The standard error of the difference; None where it is not known, or seems to be 0."""
        if self.too_few_clusters:
            return None
        if self._clustered is not None:
            return self._clustered.error
        if self.pairs and self._unit_differences and self._are_yes_or_no:
            (up, down), n = self._flips, len(self._unit_differences)
            return math.sqrt(variance_of_flips(up / n, down / n) / n) or None
        return None if self._student is None else self._student.error

    @property
    def effect(self) -> float | None:
        """The difference in standard deviations (Hedges' g)."""
        found = (effect_of_pairs if self.pairs else effect_of)(self.first, self.second)
        return None if found is None else found.g

    @cached_property
    def _apart(self) -> list[float]:
        return differences(self.first, self.second)

    @cached_property
    def _unit_differences(self) -> list[float]:
        return self._apart if self.clusters is None else differences(*self._units)

    @cached_property
    def _are_yes_or_no(self) -> bool:
        return self.is_binary if self.clusters is None else is_binary(*self._units)

    @cached_property
    def _flips(self) -> tuple[int, int]:
        """How many pairs go up, and how many down."""
        return self._unit_differences.count(1), self._unit_differences.count(-1)

    @cached_property
    def _student(self) -> Student | None:
        return student_of(self._unit_differences) if self.pairs else welch(*self._units)

    @cached_property
    def _clustered(self) -> Student | None:
        """The difference of clustered samples; None where there are none, or none that differ."""
        if self.clusters is None:
            return None
        if self.pairs:
            return clustered_pairs(self.first, self.second, self.clusters)
        if self.second_clusters is None:
            return None
        return clustered_groups(self.first, self.clusters, self.second, self.second_clusters)

    @cached_property
    def _units(self) -> tuple[Sequence[float], Sequence[float]]:
        """What is independent: the samples, or the means of clusters that do not differ."""
        if self.clusters is None:
            return self.first, self.second
        return (
            _by_cluster(self.first, self.clusters),
            _by_cluster(self.second, self.second_clusters or self.clusters),
        )


def interval_of(values: Sequence[float], clusters: Sequence[str] | None = None) -> Interval | None:
    """Where the mean truly lies (95 %), None where it cannot be told.

    In clusters it allows for them. Of numbers that are 0 or 1 it is Wilson's interval, else
    Student's t. Where all are equal, their spread is no measure of doubt.

    >>> interval_of([5.0] * 9) is None, interval_of([1.0, 3.0]) is None
    (True, False)
    """
    if len(values) < 2:
        return None
    if clusters is not None:
        if too_few_clusters(clusters):
            return None
        if _has_spread(values):
            return clustered_mean_interval(values, clusters)
    if is_binary(values):
        n = len(values) if clusters is None else effective_clusters(clusters)
        return wilson_interval(n * sum(values) / len(values), n)
    return mean_interval(values) if _has_spread(values) else None


def _has_spread(values: Sequence[float]) -> bool:
    return any(differences(values, [values[0]] * len(values)))


def _by_cluster(values: Sequence[float], clusters: Sequence[str]) -> list[float]:
    held: dict[str, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        held.setdefault(cluster, []).append(value)
    return [mean(one) or 0.0 for one in held.values()]
