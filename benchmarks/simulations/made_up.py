"""Generate data with a known truth, and check whether an interval contains it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.simulations.claim import Chance
from proctor.core.stats.intervals import Interval


def flips(chance: Chance, n: int, up: float, down: float) -> tuple[list[float], list[float]]:
    """Return pass or fail, new and old: the shares `up` and `down` flip, half of the rest pass."""
    old, new = [], []
    for _ in range(n):
        draw = chance.random()
        same = float(chance.random() < 0.5)
        old.append(0.0 if draw < up else 1.0 if draw < up + down else same)
        new.append(1.0 if draw < up else 0.0 if draw < up + down else same)
    return new, old


def graded(chance: Chance, n: int, gap: float = 0.0) -> tuple[list[float], list[float]]:
    """Return the scores of two systems for which the same samples are difficult."""
    hard = [chance.gauss(0, 0.3) for _ in range(n)]
    return ([h + gap + chance.gauss(0, 0.2) for h in hard], [h + chance.gauss(0, 0.2) for h in hard])


# One cluster has a quarter of all samples, and many are small: as precise as ten clusters of equal size.
UNEQUAL = (60, 30, 20, 20, *(10 for _ in range(8)), *(2 for _ in range(15)))


def named(sizes: Sequence[int]) -> list[str]:
    """Return the cluster of each value."""
    return [str(place) for place, size in enumerate(sizes) for _ in range(size)]


def in_clusters(chance: Chance, sizes: Sequence[int], icc: float = 0.4) -> list[float]:
    """Return values around 0 whose clusters share a part of the variance."""
    values = []
    for size in sizes:
        common = chance.gauss(0, math.sqrt(icc))
        values += [common + chance.gauss(0, math.sqrt(1 - icc)) for _ in range(size)]
    return values


def collapsing(chance: Chance, n: int, share: float) -> tuple[list[float], list[float]]:
    """Return scores that vary a little each time; a share of the new scores drops from about 0.8 to 0."""
    old = [chance.uniform(0.7, 0.9) for _ in range(n)]
    new = [0.0 if chance.random() < share else item + chance.gauss(0, 0.01) for item in old]
    return new, old


def epochs(chance: Chance, n: int, of: int, p: float) -> list[float]:
    """Return the mean of several tries of each sample; a try passes with probability p."""
    return [sum(coin(chance, of, p)) / of for _ in range(n)]


def coin(chance: Chance, n: int, p: float) -> list[float]:
    return [float(chance.random() < p) for _ in range(n)]


def holds(interval: Interval | None, truth: float) -> float:
    return float(interval is not None and interval[0] <= truth <= interval[1])
