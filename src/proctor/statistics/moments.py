"""Mean and variance, summed so that no digit is lost on the way."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean, or None of nothing.

    >>> mean([0.1] * 10)
    0.1
    >>> mean([]) is None
    True
    """
    return math.fsum(values) / len(values) if values else None


def mean_and_variance(values: Sequence[float]) -> tuple[float, float] | None:
    """The mean and the variance of a sample (divided by n - 1), or None below two values.

    >>> mean_and_variance([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    (5.0, 4.571428571428571)
    """
    n = len(values)
    centre = mean(values)
    if centre is None or n < 2:
        return None
    deviations = array("d", (value - centre for value in values))
    # The second term is 0 but for the rounding of the mean, which it takes back out.
    squares = math.fsum(d * d for d in deviations) - math.fsum(deviations) ** 2 / n
    return centre, max(0.0, squares) / (n - 1)
