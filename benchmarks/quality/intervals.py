"""Correlations and bootstrap intervals of the quality benchmark."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence

RESAMPLES = 400
Statistic = Callable[[Sequence[float], Sequence[float]], float]


def pearson(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the correlation; 0 if one side does not vary."""
    try:
        return statistics.correlation(left, right)
    except statistics.StatisticsError:
        return 0.0


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the rank correlation."""
    try:
        return statistics.correlation(_rank(left), _rank(right))
    except statistics.StatisticsError:
        return 0.0


def share_at_least(mark: float) -> Statistic:
    """Return a statistic: the share of the first numbers that reach a mark."""
    return lambda values, _: sum(value >= mark for value in values) / len(values)


def interval(statistic: Statistic, left: Sequence[float], right: Sequence[float], seed: int = 1) -> str:
    """Return the 95 % interval of a statistic over resampled pairs, as text."""
    chance, size = random.Random(seed), len(left)
    values = []
    for _ in range(RESAMPLES):
        places = chance.choices(range(size), k=size)
        values.append(statistic([left[place] for place in places], [right[place] for place in places]))
    values.sort()
    return f"95 % {values[RESAMPLES // 40]:.3f} to {values[-RESAMPLES // 40 - 1]:.3f}, n = {size}"


def _rank(values: Sequence[float]) -> list[float]:
    """Return ranks; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + end - 1) / 2
        start = end
    return ranks
