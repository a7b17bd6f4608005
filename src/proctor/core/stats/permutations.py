"""Permutation tests: the p-value of a difference under random assignment to the groups.

They assume no distribution, so ties, zero variance and tiny groups are handled correctly. Sign flips of pairs are
enumerated as far as possible; otherwise a seeded sample of rearrangements is used (Phipson and Smyth 2010).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Literal, NamedTuple

from proctor.core.stats.descriptive import mean

Direction = Literal["any", "higher", "lower"]

MAX_ENUMERATED = 20_000
RESAMPLES, MIN_RESAMPLES = 4_999, 999
# The number of resamples shrinks so that at most this many values are drawn in total.
MAX_RESAMPLED_VALUES = 100_000
# A relative difference this small is rounding.
ROUNDING = 1e-12
# Up to this many pairs are counted on a grid of this many steps; more are resampled.
MAX_COUNTED, GRID = 100, 20_000
# The bits of the fractions in a tail of the binomial distribution: far more than a float has.
FRACTION_BITS = 256
# A p-value below two to this power is 0 as a float.
MIN_EXPONENT = -1_080
OPPOSITE: dict[Direction, Direction] = {"any": "any", "higher": "lower", "lower": "higher"}


class PValue(NamedTuple):
    """A p-value, the smallest p-value that the test can give, and the name of the test."""

    p: float
    smallest: float
    method: str


def permutation_test(
    first: Sequence[float],
    second: Sequence[float],
    direction: Direction = "any",
    seed: int = 0,
    *,
    studentized: bool = False,
) -> PValue:
    """Test whether the means of two independent groups differ.

    Groups with at most two distinct values (passed and failed) are tested exactly at any size, by
    Fisher's test. `studentized` divides resampled differences by their standard errors (Janssen 1997),
    which is correct even for groups of unequal size and unequal variance.
    """
    pooled = _merge_rounded([*first, *second])
    k, n = len(first), len(pooled)
    sides = 2 if direction == "any" and 2 * k == n else 1
    arrangements = math.comb(n, k) if n <= MAX_ENUMERATED else math.inf
    exact_method = "exact permutation test"
    if len(set(pooled)) <= 2:
        high = [value > min(pooled) for value in pooled]
        p = _fisher_p(sum(high[:k]), k, sum(high), n, direction)
        return PValue(p, sides * math.exp(-_log_comb(n, k)), exact_method)
    center = mean(pooled) or 0.0
    # If the values are centered, the sum of one group determines the difference between the means.
    centered = [value - center for value in pooled]
    if arrangements <= MAX_ENUMERATED:
        smaller, sign = (k, 1.0) if 2 * k <= n else (n - k, -1.0)
        sums = (sign * math.fsum(chosen) for chosen in combinations(centered, smaller))
        extreme = _count_extreme(sums, math.fsum(centered[:k]), direction, _tolerance(pooled))
        return PValue(extreme / arrangements, sides / arrangements, exact_method)
    if not studentized and (min(centered[:k]) > max(centered[k:]) or max(centered[:k]) < min(centered[k:])):
        # Groups that do not overlap are the most extreme arrangement.
        smallest = sides * math.exp(-_log_comb(n, k))
        is_extreme = direction == "any" or (centered[0] > centered[-1]) is (direction == "higher")
        return PValue(smallest if is_extreme else 1.0, smallest, exact_method)
    if 2 * k > n:
        centered, k = centered[k:] + centered[:k], n - k
        direction = OPPOSITE[direction]
    p, resamples = _resampled_p(centered, k, direction, random.Random(seed), studentized)
    name = "studentized permutation test" if studentized else "permutation test"
    return PValue(p, 1 / (resamples + 1), f"{name} ({resamples} drawn)")


def sign_flip_test(differences: Sequence[float], direction: Direction = "any", seed: int = 0) -> PValue:
    """Test whether the differences of pairs are centered on 0, by flipping their signs."""
    nonzero = [value for value in differences if value]
    sides = 2 if direction == "any" else 1
    smallest = min(1.0, math.ldexp(sides, -len(differences)))
    if len({abs(value) for value in nonzero}) <= 1:
        up = sum(value > 0 for value in nonzero)
        return PValue(sign_test(up, len(nonzero) - up, direction), smallest, "exact sign test")
    observed, tolerance = math.fsum(nonzero), _tolerance(nonzero)
    if 2 ** len(nonzero) <= MAX_ENUMERATED:
        flips = product(*((value, -value) for value in nonzero))
        p = _count_extreme(map(math.fsum, flips), observed, direction, tolerance) / 2 ** len(nonzero)
        return PValue(p, smallest, "exact permutation test of pairs")
    if len(nonzero) <= MAX_COUNTED:
        return PValue(sign_flip_p_value(nonzero, direction), smallest, "permutation test of pairs")
    rng, sizes = random.Random(seed), Counter(map(abs, nonzero))
    sums = (
        # Each set bit is a positive sign among the values of one size.
        math.fsum(size * (2 * rng.getrandbits(count).bit_count() - count) for size, count in sizes.items())
        for _ in range(RESAMPLES)
    )
    p = (_count_extreme(sums, observed, direction, tolerance) + 1) / (RESAMPLES + 1)
    return PValue(p, 1 / (RESAMPLES + 1), f"permutation test of pairs ({RESAMPLES} drawn)")


def sign_flip_p_value(nonzero: Sequence[float], direction: Direction = "any") -> float:
    """Return the p-value of a sign-flip test over all sign arrangements of nonzero values.

    Values are rounded to a fine grid and the rounding error is added back, so the p-value is never too
    small. One long integer holds the number of arrangements for each sum, one bit field per sum; adding
    a value adds the same integer shifted by it.
    """
    total = math.fsum(map(abs, nonzero))
    steps = [round(abs(value) / total * GRID) for value in nonzero]
    width, sums = len(nonzero) + 1, 1
    for step in steps:
        sums += sums << (step * width)
    # A signed sum is twice the sum of the positive values minus the total.
    observed = math.fsum(nonzero) / total
    side = abs(observed) if direction == "any" else observed * (-1 if direction == "lower" else 1)
    tolerance = (len(nonzero) + 1) / GRID
    min_steps = math.ceil(((side - tolerance) * GRID + sum(steps)) / 2)
    # The remainder modulo 2^width - 1 adds up all bit fields.
    extreme = (sums >> (max(0, min_steps) * width)) % ((1 << width) - 1)
    return min(1.0, (2 if direction == "any" else 1) * extreme / (1 << len(nonzero)))


def sign_test(up: int, down: int, direction: Direction = "any") -> float:
    """Return the p-value of McNemar's exact test.

    `up` counts the pairs where only the first passes, `down` the pairs where only the second passes.
    """
    n = up + down
    smaller_count = min(up, down) if direction == "any" else (down if direction == "higher" else up)
    if 2 * smaller_count < n and n > -MIN_EXPONENT:
        # The integers below take long for many pairs. None of the terms of the tail is larger than the first.
        bits = (_log_comb(n, smaller_count) + math.log(2 * smaller_count + 2)) / math.log(2)
        if bits - n < MIN_EXPONENT:
            return 0.0
    # Integers, because floats overflow at about a thousand pairs. The terms of the tail are fractions of its first
    # term; a few thousand of them are not 0, however many pairs there are.
    share = shares = 1 << FRACTION_BITS
    for k in range(smaller_count, 0, -1):
        share = share * k // (n - k + 1)
        if not share:
            break
        shares += share
    tail = (math.comb(n, smaller_count) * shares + (1 << FRACTION_BITS - 1)) >> FRACTION_BITS
    return min(1.0, (2 if direction == "any" else 1) * tail / (1 << n))


def _resampled_p(
    values: Sequence[float], k: int, direction: Direction, rng: random.Random, studentized: bool
) -> tuple[float, int]:
    """Return the p-value of the first k values as a group, and the number of resamples."""
    n = len(values)
    [(mode, count)] = Counter(values).most_common(1)
    # If most values are equal, drawing the positions of the others is faster.
    others = [value - mode for value in values if value != mode] if n - count < k else None
    shifted = values if others is None else [value - mode for value in values]
    resamples = max(MIN_RESAMPLES, min(RESAMPLES, MAX_RESAMPLED_VALUES // min(k, n - count)))
    groups = (
        rng.sample(shifted, k)
        if others is None
        else [v for v, i in zip(others, rng.sample(range(n), len(others)), strict=True) if i < k]
        for _ in range(resamples)
    )
    if studentized:
        total, squares = math.fsum(shifted), math.fsum(v * v for v in shifted)
        statistics = (_welch_t(group, k, n, total, squares) for group in groups)
        observed = _welch_t(shifted[:k], k, n, total, squares)
        tolerance = 1e-9 * (1 + abs(observed))
    else:
        expected = k * math.fsum(shifted) / n
        statistics = (math.fsum(group) - expected for group in groups)
        observed, tolerance = math.fsum(shifted[:k]) - expected, _tolerance(shifted)
    return (_count_extreme(statistics, observed, direction, tolerance) + 1) / (resamples + 1), resamples


def _welch_t(group: Sequence[float], k: int, n: int, total: float, squares: float) -> float:
    """Return Welch's t of a group of k values against the other n - k; `group` may omit zeros."""
    group_sum, other_n = math.fsum(group), n - k
    group_squares = math.fsum([v * v for v in group])
    other_sum, other_squares = total - group_sum, squares - group_squares
    variance = max(0.0, group_squares - group_sum * group_sum / k) / (k * (k - 1))
    variance += max(0.0, other_squares - other_sum * other_sum / other_n) / (other_n * (other_n - 1))
    return (group_sum / k - other_sum / other_n) / math.sqrt(variance) if variance else 0.0


def _fisher_p(observed: int, k: int, high: int, n: int, direction: Direction) -> float:
    """Return the p-value of `observed` high values in a group of k, if `high` of all n values are high."""

    def distance(count: int) -> int:
        # Integer distance from the expected count.
        above = count * n - k * high
        return {"any": abs(above), "higher": above, "lower": -above}[direction]

    threshold, log_total = distance(observed), _log_comb(n, k)
    counts = range(max(0, k + high - n), min(k, high) + 1)
    extreme = [
        math.exp(_log_comb(high, count) + _log_comb(n - high, k - count) - log_total)
        for count in counts
        if distance(count) >= threshold
    ]
    return 1.0 if len(extreme) == len(counts) else min(1.0, math.fsum(extreme))


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _merge_rounded(values: Sequence[float]) -> list[float]:
    """Make values that differ only by rounding equal."""
    merged: dict[float, float] = {}
    last = None
    for value in sorted(set(values)):
        if last is None or value - last > ROUNDING * max(abs(value), abs(last)):
            last = value
        merged[value] = last
    return [merged[value] for value in values]


def _count_extreme(statistics: Iterable[float], observed: float, direction: Direction, tolerance: float) -> int:
    """Count the statistics that are at least as extreme as the observed statistic, including ties."""
    if direction == "any":
        threshold = abs(observed) - tolerance
        return sum(abs(statistic) >= threshold for statistic in statistics)
    side = 1.0 if direction == "higher" else -1.0
    threshold = side * observed - tolerance
    return sum(side * statistic >= threshold for statistic in statistics)


def _tolerance(values: Sequence[float]) -> float:
    """Return the largest rounding difference between two sums of the same values."""
    return 1e-15 * len(values) * max(map(abs, values))
