"""Control charts with a known false-alarm rate: the two-sided CUSUM of values that are normal when nothing changes.

S+ = max(0, S+ + z - k) and S- = max(0, S- - z - k) start at 0; the chart raises an alarm when one exceeds h. The mean
and the spread of a healthy process are unknown, so the chart is self-starting (Hawkins 1987): each value is compared
with all values before it, and its Student t becomes a normal score. These scores are independent and standard normal,
so the average run length holds from the third value on, however few values there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from proctor.core.stats.distributions import normal_cdf, normal_quantile, student_t_cdf

# Half of the shift, in standard deviations, that the chart detects fastest.
REFERENCE = 0.5
NODES = 24
_LOWEST = 1e-12


class ChartPoint(NamedTuple):
    """One value on the chart: its normal score (None for the first two), and both sums after it."""

    score: float | None
    high: float
    low: float


def average_run_length(limit: float, shift: float = 0.0, reference: float = REFERENCE) -> float:
    """Return after how many values a two-sided CUSUM raises an alarm on average, if the mean shifts by `shift` sds.

    >>> round(average_run_length(4)), round(average_run_length(4, 1), 1)
    (168, 8.4)
    """
    sides = [_one_sided_run_length(limit, sign * shift, reference) for sign in (1, -1)]
    return 1 / math.fsum(1 / length for length in sides)


def find_limit(run_length: float, reference: float = REFERENCE) -> float:
    """Return the limit with which false alarms are `run_length` values apart on average."""
    low, high = 0.0, 1.0
    while average_run_length(high, 0.0, reference) < run_length:
        low, high = high, 2 * high
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if average_run_length(middle, 0.0, reference) < run_length else (low, middle)
    return high


def chart(values: Sequence[float], weights: Sequence[float] | None = None, floor: float = 0.0) -> list[ChartPoint]:
    """Return the self-starting CUSUM of values, oldest first.

    `weights` are the relative variances of the values, such as 1 / n. `floor` is the smallest standard deviation of a
    value of weight 1 that is believed: equal values do not show that the process never varies.
    """
    points: list[ChartPoint] = []
    high = low = 0.0
    seen: list[tuple[float, float]] = []
    for value, weight in zip(values, weights or [1.0] * len(values), strict=True):
        score = _score(seen, value, weight, floor)
        if score is not None:
            high, low = max(0.0, high + score - REFERENCE), max(0.0, low - score - REFERENCE)
        points.append(ChartPoint(score, high, low))
        seen.append((value, weight))
    return points


def _score(seen: Sequence[tuple[float, float]], value: float, weight: float, floor: float) -> float | None:
    """Return the normal score of a value, given the values before it; None for fewer than two."""
    if len(seen) < 2:
        return None
    total = math.fsum(1 / w for _, w in seen)
    center = math.fsum(v / w for v, w in seen) / total
    df = len(seen) - 1
    variance = math.fsum((v - center) ** 2 / w for v, w in seen) / df
    deviation = math.sqrt(max(variance, floor * floor) * (weight + 1 / total))
    if not deviation:
        return 0.0 if value == center else math.copysign(-normal_quantile(_LOWEST), value - center)
    t = (value - center) / deviation
    tail = max(_LOWEST, student_t_cdf(-abs(t), df))
    return math.copysign(-normal_quantile(tail), t)


@lru_cache(maxsize=256)
def _one_sided_run_length(limit: float, shift: float, reference: float) -> float:
    """Solve Page's integral equation L(s) = 1 + P(to 0 from s) L(0) + ∫ L(y) f(y - s + k - shift) dy by quadrature."""
    nodes, weights = _legendre(NODES)
    places = [0.0, *(limit * (node + 1) / 2 for node in nodes)]
    widths = [limit * weight / 2 for weight in weights]
    matrix = []
    for place in places:
        offset = reference - shift - place
        density = [
            width * math.exp(-((node + offset) ** 2) / 2) / math.sqrt(2 * math.pi)
            for node, width in zip(places[1:], widths, strict=True)
        ]
        matrix.append([-normal_cdf(offset), *(-value for value in density), 1.0])
    for index in range(len(places)):
        matrix[index][index] += 1.0
    return _solve(matrix)[0]


def _solve(matrix: list[list[float]]) -> list[float]:
    """Solve linear equations, each with its right side as the last number, by elimination."""
    size = len(matrix)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(matrix[row][column]))
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        for row in range(column + 1, size):
            factor = matrix[row][column] / matrix[column][column]
            if factor:
                matrix[row] = [a - factor * b for a, b in zip(matrix[row], matrix[column], strict=True)]
    solution = [0.0] * size
    for row in reversed(range(size)):
        known = math.fsum(matrix[row][column] * solution[column] for column in range(row + 1, size))
        solution[row] = (matrix[row][-1] - known) / matrix[row][row]
    return solution


@lru_cache(maxsize=4)
def _legendre(count: int) -> tuple[list[float], list[float]]:
    """Return the nodes and weights of the Gauss-Legendre quadrature from -1 to 1, by Newton's method."""
    nodes, weights = [], []
    for index in range(count):
        x, slope = math.cos(math.pi * (index + 0.75) / (count + 0.5)), 1.0
        for _ in range(50):
            previous, value = 1.0, x
            for degree in range(2, count + 1):
                previous, value = value, ((2 * degree - 1) * x * value - (degree - 1) * previous) / degree
            slope = count * (x * value - previous) / (x * x - 1)
            step = value / slope
            x -= step
            if abs(step) < 1e-15:
                break
        nodes.append(x)
        weights.append(2 / ((1 - x * x) * slope * slope))
    return nodes, weights
