"""How many more samples a verdict takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from proctor.statistics.distributions import normal_cdf, normal_quantile

CONFIDENCE = 0.95
SURE = 0.8


class Seen(NamedTuple):
    """What n samples have shown: the difference, its standard error, and what is worth the name.

    `level` is how little chance a difference must leave; `step` is by how many samples more than
    Student's t an exact test of yes and no wants; `jump` is how far a single sample may move that
    is unlike all that were seen.
    """

    n: int
    difference: float
    error: float
    worth: float
    level: float
    step: float = 0.0
    jump: float = 0.0

    def chance(self, total: int) -> float:
        """How likely `total` samples, these among them, lead to a verdict."""
        error, unknown = _ahead(self.n, self.error, total)
        apart = normal_quantile(1 - self.level / 2) * error + self.step / total
        z = normal_quantile((1 + CONFIDENCE) / 2)
        alike = self.worth - max(z * error, _unseen(self.jump, z, total))
        if alike >= apart:
            return 1.0
        return 1 - self._within(apart, unknown) + self._within(alike, unknown)

    def _within(self, line: float, unknown: float) -> float:
        """How likely the mean of all samples will lie between -line and line."""
        if line <= 0:
            return 0.0
        return _below(line, self.difference, unknown) - _below(-line, self.difference, unknown)


class Held(NamedTuple):
    """What n samples have shown of a margin: how far from it they lie, above 0 is better.

    `passes` and `fails` are how likely each verdict may be wrong.
    """

    n: int
    room: float
    error: float
    passes: float
    fails: float
    jump: float = 0.0

    def chance(self, total: int) -> float:
        """How likely `total` samples, these among them, lead to a verdict."""
        error, unknown = _ahead(self.n, self.error, total)
        z = normal_quantile(1 - self.passes)
        above = max(z * error, _unseen(self.jump, z, total))
        below = -normal_quantile(1 - self.fails) * error
        return 1 - _below(above, self.room, unknown) + _below(below, self.room, unknown)


def more_for_a_verdict(seen: Seen | Held, sure: float = SURE) -> int:
    """About how many more samples lead to a verdict that often.

    A verdict is that there is a difference, or that there is none worth the name; of a margin, that
    it is kept or that it is not. It is not asked as if the difference were the one that was seen,
    which a few samples do not tell: the mean of all samples will lie around it, as far off as what
    is not known yet.

    >>> more_for_a_verdict(Seen(100, 0.08, 0.045, worth=0.01, level=0.05))
    233
    >>> more_for_a_verdict(Held(100, 0.08, 0.045, passes=0.025, fails=0.025))
    233
    """
    return _more(seen.n, seen.chance, sure)


def _more(n: int, chance: Callable[[int], float], sure: float) -> int:
    enough = n
    while chance(enough) < sure:
        enough *= 2
    low = max(n, enough // 2)
    while low + 1 < enough:
        middle = (low + enough) // 2
        low, enough = (low, middle) if chance(middle) >= sure else (middle, enough)
    return max(1, enough - n)


def _ahead(n: int, error: float, total: int) -> tuple[float, float]:
    """The error of the mean of so many samples in all, and how far it may lie from that of n."""
    variance = n * error * error
    return math.sqrt(variance / total), math.sqrt(max(0.0, variance * (1 / n - 1 / total)))


def _unseen(jump: float, z: float, total: int) -> float:
    """How far samples may move the mean that are so rare that none is among so many (Wilson)."""
    return jump * z * z / (total + z * z)


def _below(line: float, centre: float, unknown: float) -> float:
    """How likely the mean of all samples will lie below a line."""
    return normal_cdf((line - centre) / unknown) if unknown else float(centre <= line)
