"""Power analysis: samples needed and power, for the predictions of the simulations.

Based on standard errors and normal quantiles (Miller 2024, arXiv 2411.00640). `variance` is that of one
sample's difference: Var(new - old) for pairs, the sum of both variances for independent groups (n is then
the size of each). Below about twenty samples Student's t needs about two more.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from proctor.core.stats.distributions import normal_cdf, normal_quantile

Sides = Literal[1, 2]


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
    """Return how many pairs (or samples per group) detect a difference of `effect`; None for 0."""
    if not effect:
        return None
    return max(2, math.ceil(variance * (design.detectable_errors / effect) ** 2))


def power_of_test(effect: float, variance: float, n: int, design: StudyDesign = DEFAULT_DESIGN) -> float:
    """Return the probability that n pairs (or n samples per group) detect a true `effect`."""
    if not variance:
        return 1.0 if effect else 0.0
    errors = abs(effect) / math.sqrt(variance / n)
    other_side = normal_cdf(-design.critical_value - errors) if design.sides == 2 else 0.0
    return normal_cdf(errors - design.critical_value) + other_side


def variance_with_epochs(between: float, within: tuple[float, float], epochs: tuple[int, int]) -> float:
    """Return the variance of one sample's difference if each side is the mean of several epochs.

    `between` is the variance of the true differences, `within` the variance between the epochs of one
    sample, for each side.
    """
    return between + sum(variance / n for variance, n in zip(within, epochs, strict=True))


def variance_of_flips(up: float, down: float) -> float:
    """Return the variance of one pair's difference, given the shares that flip up and down."""
    if min(up, down) < 0 or up + down > 1:
        raise ValueError(f"{up!r} up and {down!r} down are not shares of the samples")
    return up + down - (up - down) ** 2


def flips_needed(up: float, down: float, design: StudyDesign = DEFAULT_DESIGN) -> int | None:
    """Return how many pass/fail pairs McNemar's test needs to detect these shares; None if equal.

    Connor (1987), plus one flip for the exact test (as with a continuity correction).
    """
    difference = abs(up - down)
    deviation = math.sqrt(variance_of_flips(up, down))
    if not difference:
        return None
    needed = design.critical_value * math.sqrt(up + down) + normal_quantile(design.power) * deviation
    return max(2, math.ceil((needed / difference) ** 2 + 1 / difference))


def rates_needed(first: float, second: float, design: StudyDesign = DEFAULT_DESIGN) -> int | None:
    """Return how many samples per group the pooled two-rate test needs; None for equal rates."""
    if not (0 <= first <= 1 and 0 <= second <= 1):
        raise ValueError(f"rates must be between 0 and 1, got {first!r} and {second!r}")
    if first == second:
        return None
    pooled = (first + second) / 2
    null_deviation = math.sqrt(2 * pooled * (1 - pooled))
    deviation = math.sqrt(first * (1 - first) + second * (1 - second))
    needed = design.critical_value * null_deviation + normal_quantile(design.power) * deviation
    return max(2, math.ceil((needed / (first - second)) ** 2))
