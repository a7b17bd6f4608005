"""Power analysis: samples needed, smallest detectable difference, and power.

Based on standard errors and normal quantiles (Miller 2024, arXiv 2411.00640). `variance` is that of one
sample's difference: Var(new - old) for pairs, the sum of both variances for independent groups (n is then
the size of each). Below about twenty samples Student's t needs about two more.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from proctor.core.stats.distributions import log_incomplete_beta, normal_cdf, normal_quantile

Sides = Literal[1, 2]

NEGLIGIBLE = 1e-15


class StudyDesign(NamedTuple):
    """The significance `level`, the `power` and the number of `sides` of a test."""

    level: float = 0.05
    power: float = 0.8
    sides: Sides = 2

    @property
    def critical_value(self) -> float:
        """How many standard errors from zero are significant."""
        return normal_quantile(1 - self.level / self.sides)

    @property
    def detectable_errors(self) -> float:
        """How many standard errors a true difference must be to reach the power."""
        return self.critical_value + normal_quantile(self.power)


DEFAULT_DESIGN = StudyDesign()


def samples_needed(effect: float, variance: float, design: StudyDesign = DEFAULT_DESIGN) -> int | None:
    """Return how many pairs (or samples per group) detect a difference of `effect`; None for 0.

    >>> samples_needed(0.05, variance=0.198)
    622
    """
    if not effect:
        return None
    return max(2, math.ceil(variance * (design.detectable_errors / effect) ** 2))


def smallest_effect(n: int, variance: float, design: StudyDesign = DEFAULT_DESIGN) -> float:
    """Return the smallest difference that n pairs (or n samples per group) detect.

    >>> round(smallest_effect(622, variance=0.198), 4)
    0.05
    """
    return design.detectable_errors * math.sqrt(variance / n)


def power_of_test(effect: float, variance: float, n: int, design: StudyDesign = DEFAULT_DESIGN) -> float:
    """Return the probability that n pairs (or n samples per group) detect a true `effect`.

    >>> round(power_of_test(0.05, variance=0.198, n=622), 3)
    0.8
    """
    if not variance:
        return 1.0 if effect else 0.0
    errors = abs(effect) / math.sqrt(variance / n)
    other_side = normal_cdf(-design.critical_value - errors) if design.sides == 2 else 0.0
    return normal_cdf(errors - design.critical_value) + other_side


def more_samples(n: int, difference: float, error: float, design: StudyDesign = DEFAULT_DESIGN) -> int | None:
    """Return about how many more samples are needed, extrapolating from the first n.

    `error` is the observed standard error. `difference` is the one to detect: the observed difference,
    the smallest relevant one, or the distance from a margin. None if it is 0.

    >>> more_samples(100, difference=0.05, error=0.0445)
    522
    """
    needed = samples_needed(difference, n * error * error, design)
    return None if needed is None else max(0, needed - n)


def variance_with_epochs(between: float, within: tuple[float, float], epochs: tuple[int, int]) -> float:
    """Return the variance of one sample's difference if each side is the mean of several epochs.

    `between` is the variance of the true differences, `within` the variance between the epochs of one
    sample, for each side.

    >>> round(variance_with_epochs(0.1, within=(0.09, 0.12), epochs=(3, 4)), 3)
    0.16
    """
    return between + sum(variance / n for variance, n in zip(within, epochs, strict=True))


def variance_of_flips(up: float, down: float) -> float:
    """Return the variance of one pair's difference, given the shares that flip up and down.

    >>> round(variance_of_flips(0.125, 0.075), 4)
    0.1975
    """
    if min(up, down) < 0 or up + down > 1:
        raise ValueError(f"{up!r} up and {down!r} down are not shares of the samples")
    return up + down - (up - down) ** 2


def flips_needed(up: float, down: float, design: StudyDesign = DEFAULT_DESIGN) -> int | None:
    """Return how many pass/fail pairs McNemar's test needs to detect these shares; None if equal.

    Connor (1987), plus one flip for the exact test (as with a continuity correction).

    >>> flips_needed(0.125, 0.075)
    646
    """
    difference = abs(up - down)
    deviation = math.sqrt(variance_of_flips(up, down))
    if not difference:
        return None
    needed = design.critical_value * math.sqrt(up + down) + normal_quantile(design.power) * deviation
    return max(2, math.ceil((needed / difference) ** 2 + 1 / difference))


def power_of_flips(up: float, down: float, n: int, design: StudyDesign = DEFAULT_DESIGN) -> float:
    """Return the exact power of McNemar's exact test with n pairs, given the shares of flips.

    >>> round(power_of_flips(0.2, 0.05, 100), 3)
    0.837
    """
    variance_of_flips(up, down)  # validates the shares
    flips = up + down
    if not flips:
        return 0.0
    share, level = max(up, down) / flips, design.level / design.sides
    power, most = 0.0, -1
    for count in range(n + 1):
        # The most flips in the other direction that are significant; it never decreases.
        while binomial_cdf(most + 1, count, 0.5) <= level:
            most += 1
        p = binomial(count, n, flips)
        if p > NEGLIGIBLE:
            tails = binomial_cdf(most, count, 1 - share)
            tails += binomial_cdf(most, count, share) if design.sides == 2 else 0.0
            power += p * tails
    return power


def rates_needed(first: float, second: float, design: StudyDesign = DEFAULT_DESIGN) -> int | None:
    """Return how many samples per group the pooled two-rate test needs; None for equal rates.

    >>> rates_needed(0.6, 0.7)
    356
    """
    if not (0 <= first <= 1 and 0 <= second <= 1):
        raise ValueError(f"rates must be between 0 and 1, got {first!r} and {second!r}")
    if first == second:
        return None
    pooled = (first + second) / 2
    null_deviation = math.sqrt(2 * pooled * (1 - pooled))
    deviation = math.sqrt(first * (1 - first) + second * (1 - second))
    needed = design.critical_value * null_deviation + normal_quantile(design.power) * deviation
    return max(2, math.ceil((needed / (first - second)) ** 2))


def binomial(k: int, n: int, p: float) -> float:
    """Return the probability of exactly k successes in n trials.

    >>> round(binomial(2, 4, 0.5), 6)
    0.375
    """
    if p in (0.0, 1.0):
        return float(k == n * p)
    log_ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log_ways + k * math.log(p) + (n - k) * math.log1p(-p))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Return the probability of at most k successes in n trials.

    >>> round(binomial_cdf(1, 4, 0.5), 6)
    0.3125
    """
    if k < 0 or k >= n or p in (0.0, 1.0):
        return float(k >= n * p) if k < n else 1.0
    return math.exp(log_incomplete_beta(math.log1p(-p) - math.log(p), n - k, k + 1))
