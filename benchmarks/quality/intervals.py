"""Correlations, kappa and bootstrap intervals of the quality benchmark."""

from __future__ import annotations

import random
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from proctor.core.stats.intervals import wilson_interval

RESAMPLES = 400
Statistic = Callable[[Sequence[float], Sequence[float]], float]


class Interval(NamedTuple):
    """A 95% interval, and the number of rows it was computed from."""

    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"95% {self.low:.3f} to {self.high:.3f}, n = {self.n}"


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


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Return the agreement of two raters, corrected for chance (Cohen 1960); items with a None are left out."""
    pairs = [pair for pair in zip(first, second, strict=True) if None not in pair]
    rows, columns = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = sum(a != b for a, b in pairs)
    expected = sum(rows[a] * columns[b] for a in rows for b in columns if a != b)
    return 1 - len(pairs) * observed / expected if expected else None


def bootstrap(statistic: Statistic, left: Sequence[float], right: Sequence[float], seed: int = 1) -> Interval:
    """Return the interval of a statistic over resampled pairs."""
    chance, size = random.Random(seed), len(left)
    values = []
    for _ in range(RESAMPLES):
        places = chance.choices(range(size), k=size)
        values.append(statistic([left[place] for place in places], [right[place] for place in places]))
    values.sort()
    return Interval(values[RESAMPLES // 40], values[-RESAMPLES // 40 - 1], size)


def rate(outcomes: Sequence[bool]) -> tuple[float, Interval]:
    """Return the share of true outcomes, with its Wilson interval."""
    low, high = wilson_interval(sum(outcomes), len(outcomes)) or (0.0, 1.0)
    return sum(outcomes) / len(outcomes), Interval(low, high, len(outcomes))


def auroc(values: Sequence[float], labels: Sequence[float]) -> float:
    """Return the probability that a positive has the higher value; ties count half."""
    negative = sorted(value for value, label in zip(values, labels, strict=True) if not label)
    positive = [value for value, label in zip(values, labels, strict=True) if label]
    wins = sum(bisect_left(negative, item) + bisect_right(negative, item) for item in positive)
    return wins / (2 * len(positive) * len(negative)) if positive and negative else 0.5


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
