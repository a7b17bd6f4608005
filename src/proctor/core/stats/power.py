"""How many samples it takes, what can be found with those there are, and how many more are needed.

A difference is told from chance if it is some standard errors off zero (Miller 2024, arXiv
2411.00640). The variance is that of one sample's difference: Var(new - old) for pairs, the sum of
both variances for independent groups (n is then the size of each). Normal quantiles are used
throughout; below some twenty samples Student's t wants about two more.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from proctor.core.stats.distributions import log_incomplete_beta, normal_cdf, normal_quantile

Sides = Literal[1, 2]

NEVER = 1e-15


class Aim(NamedTuple):
    """How sure one wants to be: false alarms at `level`, real differences found with `power`."""

    level: float = 0.05
    power: float = 0.8
    sides: Sides = 2

    @property
    def line(self) -> float:
        """How many standard errors off zero counts as different."""
        return normal_quantile(1 - self.level / self.sides)

    @property
    def reach(self) -> float:
        """How many standard errors a real difference must be, to be found with that power."""
        return self.line + normal_quantile(self.power)


USUAL = Aim()


def samples_needed(effect: float, variance: float, aim: Aim = USUAL) -> int | None:
    """How many pairs (or samples in each group) find a difference of `effect`; None for none.

    >>> samples_needed(0.05, variance=0.198)
    622
    """
    if not effect:
        return None
    return max(2, math.ceil(variance * (aim.reach / effect) ** 2))


def smallest_effect(n: int, variance: float, aim: Aim = USUAL) -> float:
    """The smallest difference that n pairs (or n in each group) find with that power.

    >>> round(smallest_effect(622, variance=0.198), 4)
    0.05
    """
    return aim.reach * math.sqrt(variance / n)


def power_of(effect: float, variance: float, n: int, aim: Aim = USUAL) -> float:
    """How likely a true difference of `effect` is found with n pairs (or n in each group).

    >>> round(power_of(0.05, variance=0.198, n=622), 3)
    0.8
    """
    if not variance:
        return 1.0 if effect else 0.0
    errors = abs(effect) / math.sqrt(variance / n)
    other_side = normal_cdf(-aim.line - errors) if aim.sides == 2 else 0.0
    return normal_cdf(errors - aim.line) + other_side


def more_samples(n: int, difference: float, error: float, aim: Aim = USUAL) -> int | None:
    """About how many more samples would settle it, if things stay as n of them showed.

    `error` is the standard error that was found, of pairs, groups or clusters alike. `difference`
    is what shall be found: the difference as seen, the smallest worth the name, or the distance
    from a margin. None where no number would do, because there is no difference.

    >>> more_samples(100, difference=0.05, error=0.0445)
    522
    """
    needed = samples_needed(difference, n * error * error, aim)
    return None if needed is None else max(0, needed - n)


def variance_with_epochs(between: float, within: tuple[float, float], epochs: tuple[int, int]) -> float:
    """The variance of one sample's difference if each side is the mean of some epochs.

    `between` is the variance of the true differences, `within` that of the epochs of one sample
    under either side.

    >>> round(variance_with_epochs(0.1, within=(0.09, 0.12), epochs=(3, 4)), 3)
    0.16
    """
    return between + sum(one / times for one, times in zip(within, epochs, strict=True))


def variance_of_flips(up: float, down: float) -> float:
    """The variance of one pair's difference, if a share goes up, a share down, and the rest stay.

    >>> round(variance_of_flips(0.125, 0.075), 4)
    0.1975
    """
    if min(up, down) < 0 or up + down > 1:
        raise ValueError(f"{up!r} up and {down!r} down are no shares of the samples")
    return up + down - (up - down) ** 2


def flips_needed(up: float, down: float, aim: Aim = USUAL) -> int | None:
    """How many pairs of yes and no find by McNemar's test that more go up than down; None if not.

    Connor (1987), and what the exact test costs beyond it (one flip, as with a continuity
    correction).

    >>> flips_needed(0.125, 0.075)
    646
    """
    apart = abs(up - down)
    spread = math.sqrt(variance_of_flips(up, down))
    if not apart:
        return None
    reach = aim.line * math.sqrt(up + down) + normal_quantile(aim.power) * spread
    return max(2, math.ceil((reach / apart) ** 2 + 1 / apart))


def power_of_flips(up: float, down: float, n: int, aim: Aim = USUAL) -> float:
    """How likely McNemar's exact test finds with n pairs that more go up than down.

    Exact: over every number of flips, and every number of them that go up.

    >>> round(power_of_flips(0.2, 0.05, 100), 3)
    0.837
    """
    variance_of_flips(up, down)  # refuses what are no shares
    flips = up + down
    if not flips:
        return 0.0
    share, level = max(up, down) / flips, aim.level / aim.sides
    found, most = 0.0, -1
    for count in range(n + 1):
        # The most that may go the other way, for the test to be significant: it never falls.
        while binomial_cdf(most + 1, count, 0.5) <= level:
            most += 1
        chance = binomial(count, n, flips)
        if chance > NEVER:
            tails = binomial_cdf(most, count, 1 - share)
            tails += binomial_cdf(most, count, share) if aim.sides == 2 else 0.0
            found += chance * tails
    return found


def rates_needed(first: float, second: float, aim: Aim = USUAL) -> int | None:
    """How many samples in each of two independent groups tell one rate from the other.

    By the pooled two-rate test; None for equal rates.

    >>> rates_needed(0.6, 0.7)
    356
    """
    if not (0 <= first <= 1 and 0 <= second <= 1):
        raise ValueError(f"rates lie within 0 and 1, got {first!r} and {second!r}")
    if first == second:
        return None
    pooled = (first + second) / 2
    reach = aim.line * math.sqrt(2 * pooled * (1 - pooled)) + normal_quantile(aim.power) * math.sqrt(
        first * (1 - first) + second * (1 - second)
    )
    return max(2, math.ceil((reach / (first - second)) ** 2))


def binomial(k: int, n: int, p: float) -> float:
    """How likely exactly k of n tries succeed, each with probability p.

    >>> round(binomial(2, 4, 0.5), 6)
    0.375
    """
    if p in (0.0, 1.0):
        return float(k == n * p)
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """How likely at most k of n tries succeed, each with probability p.

    >>> round(binomial_cdf(1, 4, 0.5), 6)
    0.3125
    """
    if k < 0 or k >= n or p in (0.0, 1.0):
        return float(k >= n * p) if k < n else 1.0
    return math.exp(log_incomplete_beta(math.log1p(-p) - math.log(p), n - k, k + 1))
