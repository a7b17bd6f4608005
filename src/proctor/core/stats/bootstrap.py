"""The bootstrap: intervals and p-values of numbers that have no value per sample, such as percentiles.

Samples, or whole clusters of samples, are drawn with replacement. Percentile intervals are expanded by Student's t
(Hesterberg 2015, arXiv 1411.5279), because the spread of few resampled units is too small.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeVar

from proctor.core.stats.descriptive import mean_and_variance, quantile
from proctor.core.stats.distributions import normal_cdf, normal_quantile, student_t_cdf, student_t_quantile
from proctor.core.stats.intervals import Interval, find_cluster_problem

T = TypeVar("T")
R = TypeVar("R")

# The number of resamples shrinks so that at most this many values are drawn in total.
MAX_RESAMPLED_VALUES = 4_000_000
MIN_RESAMPLES, MAX_RESAMPLES = 1_000, 4_000


def resample(
    strata: Sequence[Sequence[T]], compute: Callable[[list[T]], R], *, resamples: int, seed: int = 0
) -> list[R]:
    """Compute a number, or several, for many resamples: each stratum is drawn again to its own size."""
    rng = random.Random(seed)
    return [compute([unit for units in strata for unit in rng.choices(units, k=len(units))]) for _ in range(resamples)]


def count_resamples(values: int) -> int:
    """Return the number of resamples of this many values."""
    return max(MIN_RESAMPLES, min(MAX_RESAMPLES, MAX_RESAMPLED_VALUES // max(1, values)))


class Resampled(NamedTuple):
    """The values of a number in many resamples of `units` samples or clusters."""

    values: Sequence[float]
    units: float

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the expanded percentile interval."""
        factor = math.sqrt(self.units / (self.units - 1))
        tail = normal_cdf(-factor * student_t_quantile((1 + confidence) / 2, self.units - 1))
        return _quantile_interval(self.values, tail)

    def p(self) -> float:
        """Return the two-sided p-value of 0: the smallest level whose interval excludes it."""
        total = len(self.values) + 1
        below, above = (sum(sign * value <= 0 for value in self.values) for sign in (1, -1))
        tail = (min(below, above) + 1) / total
        if tail >= 0.5:
            return 1.0
        factor = math.sqrt((self.units - 1) / self.units)
        return min(1.0, 2 * student_t_cdf(factor * normal_quantile(tail), self.units - 1))

    @property
    def error(self) -> float:
        """The standard error of the number."""
        moments = mean_and_variance(self.values)
        return 0.0 if moments is None else math.sqrt(moments[1])


def bootstrap_interval(
    values: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """Return the percentile bootstrap interval of any statistic; with `clusters`, resample whole clusters.

    Return None for fewer than two values or too few clusters.
    """
    if len(values) < 2 or (clusters is not None and find_cluster_problem(clusters)):
        return None
    groups: dict[Hashable, list[T]] = {}
    for value, cluster in zip(values, range(len(values)) if clusters is None else clusters, strict=True):
        groups.setdefault(cluster, []).append(value)
    resampled = resample(
        [list(groups.values())],
        lambda units: statistic([value for unit in units for value in unit]),
        resamples=count_resamples(len(values)),
        seed=seed,
    )
    return _quantile_interval(resampled, (1 - confidence) / 2)


def _quantile_interval(values: Sequence[float], tail: float) -> Interval:
    ordered = sorted(values)
    return quantile(ordered, tail) or 0.0, quantile(ordered, 1 - tail) or 0.0
