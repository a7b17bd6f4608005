"""How far two groups of numbers lie apart, and how likely that is by chance alone.

Student's t in Welch's form (unequal spreads and sizes) and for pairs, where there are enough values
for it; else permutations, which assume no shape and are right with ties, rare values and groups of
very unequal size. A group is any sequence of finite numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from proctor.core.stats.descriptive import mean, mean_and_variance
from proctor.core.stats.distributions import normal_quantile, student_t_cdf, student_t_quantile
from proctor.core.stats.intervals import COUNT_ROUNDING, Interval, wilson_interval
from proctor.core.stats.permutations import ROUNDING as ROUNDING
from proctor.core.stats.permutations import Direction, Probability, flipped, shuffled


def difference_interval(
    passed: float, n: int, other: float, its_n: int, confidence: float = 0.95
) -> Interval | None:
    """Where the difference of two independent rates truly lies; None if one is of nothing.

    >>> low, high = difference_interval(56, 70, 48, 80)
    >>> round(low, 4), round(high, 4)
    (0.0524, 0.3339)
    """
    one, two = wilson_interval(passed, n, confidence), wilson_interval(other, its_n, confidence)
    if one is None or two is None:
        return None
    rate, its_rate = passed / n, other / its_n
    apart = rate - its_rate
    below = math.hypot(rate - one[0], two[1] - its_rate)
    above = math.hypot(one[1] - rate, its_rate - two[0])
    return max(-1.0, apart - below), min(1.0, apart + above)


def paired_interval(up: float, down: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Where the difference of two rates of the same n samples truly lies; None of nothing.

    `up` counts the samples where only the first holds, `down` those where only the second does.

    >>> low, high = paired_interval(1, 5, 30)
    >>> round(low, 3), round(high, 3)
    (-0.293, 0.043)
    """
    # All of a number that is not whole, as of clusters that count for less, may be rounded.
    if up < 0 or down < 0 or up + down > n * (1 + COUNT_ROUNDING):
        raise ValueError(f"{up!r} and {down!r} of {n!r} cannot be pairs that differ")
    if n == 0:
        return None
    rose, fell = (up + 1) / (n + 2), (down + 1) / (n + 2)
    apart = rose - fell
    half = normal_quantile((1 + confidence) / 2)
    half *= math.sqrt((rose + fell - apart * apart) / (n + 2))
    return max(-1.0, apart - half), min(1.0, apart + half)


TestMethod = Literal["auto", "t", "permutation"]

# Few values, or few beside the commonest one, do not make a mean that is normal.
ENOUGH, PLENTY = 30, 100
# Nor do groups of very unequal size, until the smaller one is large.
UNEQUAL = 2
# What fewer values vary by says too little to divide by.
SMALL = 8


class Difference(NamedTuple):
    """How far the first group lies above the second.

    `interval` holds the true difference with 95 %: Newcombe's where all values are 0 or 1, else
    Student's t; None where it cannot be told, as of a group without spread. `p` is how likely
    chance alone gives as much, `smallest_p` the least that so few values can give.
    """

    n: tuple[int, int]
    means: tuple[float, float]
    difference: float
    interval: Interval | None
    p: float
    smallest_p: float
    method: str


class Student(NamedTuple):
    """A difference, its standard error and degrees of freedom."""

    difference: float
    error: float
    df: float

    @property
    def t(self) -> float:
        """The difference in standard errors."""
        return self.difference / self.error

    def p(self, direction: Direction = "any") -> float:
        """How likely chance alone gives as much in that direction."""
        if direction == "any":
            return 2 * student_t_cdf(-abs(self.t), self.df)
        return student_t_cdf(-self.t if direction == "higher" else self.t, self.df)

    def interval(self, confidence: float = 0.95) -> Interval:
        """Where the true difference lies."""
        half = student_t_quantile((1 + confidence) / 2, self.df) * self.error
        return self.difference - half, self.difference + half


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the variance of at least one value; of one, and of equal ones, it is 0.

    >>> spread([0.1, 0.1, 0.1])
    (0.1, 0.0)
    """
    low, high = min(values), max(values)
    moments = mean_and_variance(values)
    if moments is None or high - low <= ROUNDING * max(abs(low), abs(high)):
        return (values[0] if low == high else mean(values) or 0.0), 0.0
    return moments


def welch(first: Sequence[float], second: Sequence[float]) -> Student | None:
    """Welch's t of two independent groups; None below two values in either, or without spread.

    >>> found = welch([20.0, 22.0, 19.0, 20.0], [22.0, 26.0, 23.0, 25.0, 24.0])
    >>> round(found.t, 3), round(found.df, 2), round(found.p(), 4)
    (-3.962, 6.99, 0.0055)
    """
    if min(len(first), len(second)) < 2:
        return None
    (centre, variance), (other, its_variance) = spread(first), spread(second)
    share, its_share = variance / len(first), its_variance / len(second)
    total = share + its_share
    if total == 0:
        return None
    # Divided first, so that tiny variances are not squared into nothing.
    df = 1 / ((share / total) ** 2 / (len(first) - 1) + (its_share / total) ** 2 / (len(second) - 1))
    return Student(centre - other, math.sqrt(total), df)


def paired(first: Sequence[float], second: Sequence[float]) -> Student | None:
    """Student's t of pairs; None below two pairs, or where all pairs differ by the same.

    >>> found = paired([1.0, 3.0, 5.0], [0.0, 1.0, 2.0])
    >>> round(found.t, 3), round(found.p(), 4)
    (3.464, 0.0742)
    """
    return student_of(differences(first, second))


def student_of(apart: Sequence[float]) -> Student | None:
    """Student's t of the differences of pairs; None below two, or where all are the same.

    >>> student_of([1.0, 2.0, 3.0]).difference
    2.0
    """
    if len(apart) < 2:
        return None
    centre, variance = spread(apart)
    return Student(centre, math.sqrt(variance / len(apart)), len(apart) - 1) if variance else None


def chance_of_pairs(
    apart: Sequence[float],
    student: Student | None,
    direction: Direction = "any",
    method: TestMethod = "auto",
    seed: int = 0,
) -> Probability:
    """How likely the differences of pairs are by chance: by t where there are enough, else flipped.

    `student` is what `student_of` gives of them.

    >>> chance_of_pairs([1.0, 2.0, 3.0], None).p
    0.25
    """
    by_t = method == "t" or (method == "auto" and _varied(apart) >= ENOUGH)
    if by_t and student is not None:
        return Probability(student.p(direction), 0.0, "paired t-test")
    return flipped(apart, direction, seed)


def differences(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """What each of the first lies above its partner of the second.

    What is left of equal numbers after rounding is taken for nothing.

    >>> differences([0.3, 2.0], [0.1 + 0.2, 1.0])
    [0.0, 1.0]
    """
    # Beyond what rounding leaves of the largest number there is nothing to look at twice.
    slack = ROUNDING * max(map(abs, (*first, *second)), default=0.0)
    return [
        apart if apart > slack or apart < -slack or not apart else _rounded(one, other)
        for one, other in zip(first, second, strict=True)
        for apart in (one - other,)
    ]


def _rounded(one: float, other: float) -> float:
    return 0.0 if abs(one - other) <= ROUNDING * max(abs(one), abs(other)) else one - other


def interval_of_pairs(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """Where the true difference of pairs lies (95 %).

    Of pairs that are 0 or 1 each it is Bonett and Price's interval, which is right also where no
    two differ, or all do; else Student's t. None below two pairs, or where these all differ by the
    same: then there is no spread to tell it by.

    >>> [round(end, 2) for end in interval_of_pairs([1.0] * 10, [1.0] * 10)]
    [-0.23, 0.23]
    >>> interval_of_pairs([0.5] * 10, [0.4] * 10) is None
    True
    """
    if len(first) > 1 and is_binary(first, second):
        apart = differences(first, second)
        return paired_interval(apart.count(1), apart.count(-1), len(apart))
    student = paired(first, second)
    return None if student is None else student.interval()


def difference_of(
    first: Sequence[float],
    second: Sequence[float],
    *,
    pairs: bool = False,
    direction: Direction = "any",
    method: TestMethod = "auto",
    seed: int = 0,
) -> Difference | None:
    """Whether the first group differs from the second by more than chance would give.

    With `pairs` the first of one belongs to the first of the other, and so on. By itself it takes
    Student's t where each group (or the differences of the pairs) has thirty values beside its
    commonest one and the sizes are alike, or the smaller has a hundred; else permutations. They
    are studentised where the sizes differ, so that unequal spreads are no difference.
    None where nothing can be told: less than three values together, or a `method` that cannot.

    >>> found = difference_of([5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0])
    >>> found.difference, round(found.p, 4), found.method
    (4.0, 0.0286, 'exact permutation test')
    """
    if not first or not second or len(first) + len(second) < 3:
        return None
    student = paired(first, second) if pairs else welch(first, second)
    if method == "t" and student is None:
        return None
    if pairs:
        found = chance_of_pairs(differences(first, second), student, direction, method, seed)
    elif student is not None and (method == "t" or (method == "auto" and _suits_groups(first, second))):
        found = Probability(student.p(direction), 0.0, "Welch's t-test")
    else:
        found = shuffled(first, second, direction, seed, studentised=_by_error(first, second))
    means = spread(first)[0], spread(second)[0]
    return Difference(
        (len(first), len(second)),
        means,
        means[0] - means[1],
        _interval(first, second, student, pairs=pairs),
        found.p,
        found.smallest,
        found.method,
    )


def is_binary(*groups: Sequence[float]) -> bool:
    """True if all values are 0 or 1: passed or not.

    >>> is_binary([0.0, 1.0], [1.0]), is_binary([0.5])
    (True, False)
    """
    return all(value in (0, 1) for group in groups for value in group)


def _varied(values: Sequence[float]) -> int:
    """How many values there are beside the commonest one."""
    return len(values) - Counter(values).most_common(1)[0][1]


def _suits_groups(first: Sequence[float], second: Sequence[float]) -> bool:
    """True if two groups are large and alike enough for Student's t."""
    fewest = min(_varied(first), _varied(second))
    sizes = sorted([len(first), len(second)])
    return fewest >= PLENTY or (fewest >= ENOUGH and sizes[1] <= UNEQUAL * sizes[0])


def _by_error(first: Sequence[float], second: Sequence[float]) -> bool:
    """True if a difference is to be seen beside its standard error."""
    varied = min(_varied(first), _varied(second))
    return len(first) != len(second) and varied >= SMALL - 1


def _interval(
    first: Sequence[float], second: Sequence[float], student: Student | None, *, pairs: bool
) -> Interval | None:
    if pairs:
        return interval_of_pairs(first, second)
    if is_binary(first, second):
        return difference_interval(sum(first), len(first), sum(second), len(second))
    # The spread of one group says nothing of another that seems to have none.
    has_spread = spread(first)[1] and spread(second)[1]
    return student.interval() if student is not None and has_spread else None
