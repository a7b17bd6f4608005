"""Differences between two groups of numbers: estimates, confidence intervals and p-values.

Welch's t (unequal variances and sizes) and the paired t where the groups are large enough; otherwise
permutation tests, which assume no distribution. A group is any sequence of finite numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, starmap
from operator import sub
from typing import Literal, NamedTuple

from proctor.core.stats.descriptive import Counts, count_values, mean, mean_and_variance
from proctor.core.stats.distributions import normal_quantile, student_t_cdf, student_t_quantile
from proctor.core.stats.intervals import COUNT_ROUNDING, Interval, wilson_interval
from proctor.core.stats.permutations import ROUNDING as ROUNDING
from proctor.core.stats.permutations import Direction, PValue, permutation_test, sign_flip_test

TestMethod = Literal["auto", "t", "permutation"]

# A t-test needs this many values that differ from the most common one ...
MIN_VARIED = 30
# Most often, so many values show that there are enough of them.
MAX_CHECKED = 1_000
# ... and this many if one group is more than twice as large as the other.
MIN_VARIED_UNEQUAL, UNEQUAL_RATIO = 100, 2
# Studentizing needs this many varied values for a usable standard error.
MIN_STUDENTIZED = 7


def rate_difference_interval(
    passed: float, n: int, other_passed: float, other_n: int, confidence: float = 0.95
) -> Interval | None:
    """Return Newcombe's interval of the difference between two independent rates; None if an n is 0."""
    interval = wilson_interval(passed, n, confidence)
    other_interval = wilson_interval(other_passed, other_n, confidence)
    if interval is None or other_interval is None:
        return None
    rate, other_rate = passed / n, other_passed / other_n
    difference = rate - other_rate
    below = math.hypot(rate - interval[0], other_interval[1] - other_rate)
    above = math.hypot(interval[1] - rate, other_rate - other_interval[0])
    return max(-1.0, difference - below), min(1.0, difference + above)


def paired_rate_interval(up: float, down: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Return Bonett and Price's interval of the difference between two rates of the same n samples.

    `up` counts the samples where only the first passes, `down` the samples where only the second passes. None if n is
    0.
    """
    # Effective counts of clusters are not integers, so their sum may exceed n by rounding.
    if up < 0 or down < 0 or up + down > n * (1 + COUNT_ROUNDING):
        raise ValueError(f"{up!r} and {down!r} cannot be the discordant pairs of {n!r} pairs")
    if n == 0:
        return None
    up_rate, down_rate = (up + 1) / (n + 2), (down + 1) / (n + 2)
    difference = up_rate - down_rate
    half = normal_quantile((1 + confidence) / 2)
    half *= math.sqrt((up_rate + down_rate - difference * difference) / (n + 2))
    return max(-1.0, difference - half), min(1.0, difference + half)


class Difference(NamedTuple):
    """The difference between two groups, first minus second, with its 95% interval and p-value.

    `interval` is Newcombe's or Bonett and Price's for values of 0 and 1, otherwise Student's t; None if
    it cannot be estimated. `smallest_p` is the smallest p-value that the test can give.
    """

    n: tuple[int, int]
    means: tuple[float, float]
    difference: float
    interval: Interval | None
    p: float
    smallest_p: float
    method: str


class TEstimate(NamedTuple):
    """A difference with its standard error and degrees of freedom."""

    difference: float
    error: float
    df: float

    @property
    def t(self) -> float:
        """The difference in standard errors."""
        return self.difference / self.error

    def p(self, direction: Direction = "any") -> float:
        """Return the p-value in a direction."""
        if direction == "any":
            return 2 * student_t_cdf(-abs(self.t), self.df)
        return student_t_cdf(-self.t if direction == "higher" else self.t, self.df)

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the confidence interval of the difference."""
        half = student_t_quantile((1 + confidence) / 2, self.df) * self.error
        return self.difference - half, self.difference + half


def sample_moments(values: Sequence[float], counts: Counts = None) -> tuple[float, float]:
    """Return the mean and the variance of at least one value; the variance is 0 if the values are equal up to
    rounding."""
    low, high = min(values), max(values)
    moments = mean_and_variance(values, counts)
    if moments is None or high - low <= ROUNDING * max(abs(low), abs(high)):
        return (values[0] if low == high else mean(values, counts) or 0.0), 0.0
    return moments


def welch_t(first: Sequence[float], second: Sequence[float]) -> TEstimate | None:
    """Return Welch's t of two independent groups; None for fewer than two values in a group or without variance."""
    if min(len(first), len(second)) < 2:
        return None
    (center, variance), (other_center, other_variance) = sample_moments(first), sample_moments(second)
    share, other_share = variance / len(first), other_variance / len(second)
    total = share + other_share
    if total == 0:
        return None
    # Divide before squaring, so that tiny variances do not underflow.
    df = 1 / ((share / total) ** 2 / (len(first) - 1) + (other_share / total) ** 2 / (len(second) - 1))
    return TEstimate(center - other_center, math.sqrt(total), df)


def paired_t(first: Sequence[float], second: Sequence[float]) -> TEstimate | None:
    """Return the paired t; None for fewer than two pairs, or if all pairs differ by the same amount."""
    return difference_t(paired_differences(first, second))


def difference_t(differences: Sequence[float]) -> TEstimate | None:
    """Return Student's t of the differences of pairs; None for fewer than two, or if all are equal."""
    n = len(differences)
    return mean_t(*sample_moments(differences), n) if n > 1 else None


def mean_t(center: float, variance: float, n: int) -> TEstimate | None:
    """Return Student's t of a mean of at least two values; None without variance."""
    return TEstimate(center, math.sqrt(variance / n), n - 1) if variance else None


def paired_test(
    differences: Sequence[float],
    student: TEstimate | None,
    direction: Direction = "any",
    method: TestMethod = "auto",
    seed: int = 0,
) -> PValue:
    """Test the differences of pairs: with Student's t if they vary enough, otherwise with sign flips.

    `student` is the t of the differences, as `difference_t` returns it.
    """
    use_t = method == "t" or (method == "auto" and varies_enough(differences))
    if use_t and student is not None:
        return PValue(student.p(direction), 0.0, "paired t-test")
    return sign_flip_test(differences, direction, seed)


def paired_differences(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return first minus second for each pair; differences within rounding are 0."""
    # A difference above the rounding error of the largest value needs no separate check.
    tolerance = ROUNDING * max((abs(end(side)) for side in (first, second) if side for end in (min, max)), default=0.0)
    deltas = list(starmap(sub, zip(first, second, strict=True)))
    if min(filter(None, map(abs, deltas)), default=math.inf) > tolerance:
        return deltas
    return [
        0.0 if delta and -tolerance <= delta <= tolerance and _is_rounding(a, b) else delta
        for a, b, delta in zip(first, second, deltas, strict=True)
    ]


def _is_rounding(a: float, b: float) -> bool:
    return abs(a - b) <= ROUNDING * max(abs(a), abs(b))


def paired_difference_interval(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """Return the 95% interval of the mean difference of pairs.

    Pairs of 0 and 1 get Bonett and Price's interval, which is valid even if no pair differs or all pairs differ; other
    pairs get Student's t. None for fewer than two pairs, or if all pairs differ by the same amount.
    """
    if len(first) > 1 and is_binary(first, second):
        deltas = paired_differences(first, second)
        return paired_rate_interval(deltas.count(1), deltas.count(-1), len(deltas))
    student = paired_t(first, second)
    return None if student is None else student.interval()


def compare_groups(
    first: Sequence[float],
    second: Sequence[float],
    *,
    paired: bool = False,
    direction: Direction = "any",
    method: TestMethod = "auto",
    seed: int = 0,
) -> Difference | None:
    """Test whether the first group differs from the second.

    If `paired`, the groups are matched by position. The "auto" method is Student's t if each group (or
    the differences of the pairs) has thirty values besides its most common one and the sizes are
    similar, or if the smaller group has a hundred; otherwise a permutation test, studentized if the
    sizes differ. Return None for fewer than three values in total, or if the `method` does not apply.
    """
    if not first or not second or len(first) + len(second) < 3:
        return None
    student = paired_t(first, second) if paired else welch_t(first, second)
    if method == "t" and student is None:
        return None
    if paired:
        interval = paired_difference_interval(first, second)
        result = paired_test(paired_differences(first, second), student, direction, method, seed)
    else:
        interval = _independent_interval(first, second, student)
        result = _compare_independent(first, second, student, direction, method, seed)
    means = sample_moments(first)[0], sample_moments(second)[0]
    return Difference((len(first), len(second)), means, means[0] - means[1], interval, *result)


def is_binary(*groups: Sequence[float]) -> bool:
    """Return whether all values are 0 or 1."""
    return all(map({0, 1}.__contains__, chain(*groups)))


def varies_enough(values: Sequence[float], counts: Counts = None) -> bool:
    """True if a t-test of the values is better than a permutation test."""
    # All but one of the different values differ from the most common one: counting them all would take long.
    return len(set(values[:MAX_CHECKED])) > MIN_VARIED or count_varied(values, counts) >= MIN_VARIED


def count_varied(values: Sequence[float], counts: Counts = None) -> int:
    """Count the values that differ from the most common one."""
    by_value = Counter(values)
    if counts is not None:
        by_value = Counter()
        for value, count in zip(values, counts, strict=True):
            by_value[value] += count
    return count_values(values, counts) - by_value.most_common(1)[0][1]


def _compare_independent(
    first: Sequence[float],
    second: Sequence[float],
    student: TEstimate | None,
    direction: Direction,
    method: TestMethod,
    seed: int,
) -> PValue:
    varied = min(count_varied(first), count_varied(second))
    small, large = sorted([len(first), len(second)])
    is_similar = large <= UNEQUAL_RATIO * small
    suits_t = varied >= MIN_VARIED_UNEQUAL or (varied >= MIN_VARIED and is_similar)
    if student is not None and (method == "t" or (method == "auto" and suits_t)):
        return PValue(student.p(direction), 0.0, "Welch's t-test")
    studentized = small != large and varied >= MIN_STUDENTIZED
    return permutation_test(first, second, direction, seed, studentized=studentized)


def _independent_interval(
    first: Sequence[float], second: Sequence[float], student: TEstimate | None
) -> Interval | None:
    if is_binary(first, second):
        return rate_difference_interval(sum(first), len(first), sum(second), len(second))
    # The standard error of a group without variance cannot be estimated.
    has_variance = sample_moments(first)[1] and sample_moments(second)[1]
    return student.interval() if student is not None and has_variance else None


def ratio_interval(
    means: tuple[float, float], errors: tuple[float, float, float], interval: Interval | None
) -> Interval | None:
    """Return the interval of the ratio of two means of numbers that are never negative; None if it has no ends.

    `errors` are the standard errors of the first mean, of the second, and of their difference, whose `interval` is
    known. The ratios r are those for which first - r * second may be 0 (Fieller 1954). So the interval contains 1 if
    that of the difference contains 0, allows for the error of the second mean, and does not go below 0. If the second
    mean may be 0, the ratio has no upper end.
    """
    first, second = means
    difference, error = first - second, errors[2]
    if interval is None or not error or second <= 0 or first < 0:
        return None
    covariance = (errors[0] ** 2 + errors[1] ** 2 - error**2) / 2

    def solve(half_width: float, sign: int) -> float | None:
        squared = (half_width / error) ** 2
        a, b = second**2 - squared * errors[1] ** 2, first * second - squared * covariance
        c = first**2 - squared * errors[0] ** 2
        discriminant = b * b - a * c
        if a <= 0 or discriminant < -1e-9 * b * b:
            return None
        return max(0.0, (b + sign * math.sqrt(max(0.0, discriminant))) / a)

    low, high = solve(difference - interval[0], -1), solve(interval[1] - difference, 1)
    return None if low is None or high is None else (low, high)
