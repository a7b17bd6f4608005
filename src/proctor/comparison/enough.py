"""How many more samples a verdict takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from proctor.statistics.distributions import normal_cdf, normal_quantile

CONFIDENCE = 0.95
SURE = 0.8
# So many times as many samples settle nothing that anybody will see.
NEVER = 10**9


class Part(NamedTuple):
    """A group of samples, and the standard error of its mean."""

    n: int
    error: float


class Seen(NamedTuple):
    """What n samples have shown: the difference, its standard error, and what is worth the name.

    `level` is how little chance a difference must leave; `step` is by how many samples more than
    Student's t an exact test of yes and no wants; `jump` is how far a single sample may move that
    is unlike all that were seen. Of two groups n and the error are those of the smaller one, and
    `beside` is the other: both grow by as many.
    """

    n: int
    difference: float
    error: float
    worth: float
    level: float
    step: float = 0.0
    jump: float = 0.0
    beside: Part | None = None

    def chance(self, total: int) -> float:
        """How likely `total` samples, these among them, lead to a verdict."""
        error, unknown = ahead(self.n, self.error, total, self.beside)
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

    `passes` and `fails` are how likely each verdict may be wrong, `beside` as of what is seen.
    `halves` tells of so many samples in all how far their interval would reach to the worse and to
    the better if the others were like these; without it, it is that of a normal mean.
    """

    n: int
    room: float
    error: float
    passes: float
    fails: float
    beside: Part | None = None
    halves: Callable[[int], tuple[float, float]] | None = None

    def chance(self, total: int) -> float:
        """How likely `total` samples, these among them, lead to a verdict."""
        worse, better = self._reach(total)
        _, unknown = ahead(self.n, self.error, total, self.beside)
        return 1 - _below(worse, self.room, unknown) + _below(-better, self.room, unknown)

    def tells(self, total: int) -> bool:
        """True if `total` samples would lead to a verdict if the others were like these."""
        worse, better = self._reach(total)
        return self.room > worse or self.room < -better

    def _reach(self, total: int) -> tuple[float, float]:
        if self.halves is not None:
            return self.halves(total)
        error, _ = ahead(self.n, self.error, total, self.beside)
        worse, better = (normal_quantile(1 - wrong) for wrong in (self.passes, self.fails))
        return worse * error, better * error


def more_for_a_verdict(
    seen: Seen | Held, sure: float = SURE, tells: Callable[[int], bool] | None = None
) -> int:
    """About how many more samples lead to a verdict that often.

    A verdict is that there is a difference, or that there is none worth the name; of a margin, that
    it is kept or that it is not. It is not asked as if the difference were the one that was seen,
    which a few samples do not tell: the mean of all samples will lie around it, as far off as what
    is not known yet. `tells` says of so many samples in all whether they would lead to a verdict if
    the others were like these; fewer than that are never enough.

    >>> more_for_a_verdict(Seen(100, 0.08, 0.045, worth=0.01, level=0.05))
    233
    >>> more_for_a_verdict(Held(100, 0.08, 0.045, passes=0.025, fails=0.025))
    233
    """
    return _more(
        seen.n, lambda total: seen.chance(total) >= sure and (tells is None or tells(total))
    )


def ahead(n: int, error: float, total: int, beside: Part | None = None) -> tuple[float, float]:
    """The error of the mean of so many samples in all, and how far it may lie from that of n.

    >>> [round(one, 3) for one in ahead(100, 0.2, 400)]
    [0.1, 0.173]
    """
    parts = [Part(n, error), *([] if beside is None else [beside])]
    now = math.fsum(part.error**2 for part in parts)
    then = math.fsum(part.error**2 * part.n / (part.n + total - n) for part in parts)
    return math.sqrt(then), math.sqrt(max(0.0, now - then))


def _more(n: int, is_enough: Callable[[int], bool]) -> int:
    enough = n
    while enough < NEVER * n and not is_enough(enough):
        enough *= 2
    low = max(n, enough // 2)
    while low + 1 < enough:
        middle = (low + enough) // 2
        low, enough = (low, middle) if is_enough(middle) else (middle, enough)
    return max(1, enough - n)


def _unseen(jump: float, z: float, total: int) -> float:
    """How far samples may move the mean that are so rare that none is among so many (Wilson)."""
    return jump * z * z / (total + z * z)


def _below(line: float, centre: float, unknown: float) -> float:
    """How likely the mean of all samples will lie below a line."""
    return normal_cdf((line - centre) / unknown) if unknown else float(centre <= line)
