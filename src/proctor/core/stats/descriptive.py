"""Mean, variance, exact quantiles even of data that is too large to sort, pass@k and pass^k."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import mul
from typing import Literal

MAX_SORTED = 100_000
BINS = 1_024


# How often each value occurs; None if each occurs once.
Counts = Sequence[int] | None


def mean(values: Sequence[float], counts: Counts = None) -> float | None:
    """Return the arithmetic mean, or None without values."""
    return add_up(values, counts) / count_values(values, counts) if values else None


def count_values(values: Sequence[float], counts: Counts = None) -> int:
    """Return the number of all values."""
    return len(values) if counts is None else sum(counts)


def add_up(values: Iterable[float], counts: Counts = None) -> float:
    """Return the exact sum, rounded once, so that counted values have the same sum as if they were repeated."""
    return math.fsum(values) if counts is None else float(sum(map(mul, map(Fraction, values), counts)))


def mean_and_variance(values: Sequence[float], counts: Counts = None) -> tuple[float, float] | None:
    """Return the mean and the sample variance (divided by n - 1), or None for fewer than two values."""
    n = count_values(values, counts)
    center = mean(values, counts)
    if center is None or n < 2:
        return None
    # `map` with functions in C: these columns have one value per sample.
    deviations = array("d", map(center.__rsub__, values))
    # The second term corrects for the rounding of the mean; it is 0 in exact arithmetic.
    squares = add_up(map(mul, deviations, deviations), counts) - add_up(deviations, counts) ** 2 / n
    return center, max(0.0, squares) / (n - 1)


def order_values(values: Sequence[float], shares: Sequence[float], ranks: Iterable[int] = ()) -> OrderedValues:
    """Return values by rank, from 0: all of them, or of many only those at `ranks` and for the quantiles `shares`."""
    if len(values) <= MAX_SORTED:
        return sorted(values)
    last = len(values) - 1
    below = {int(share * last) for share in shares}
    return _OrderStatistics(values, {*ranks, *below, *(min(rank + 1, last) for rank in below)})


def quantile(sorted_values: OrderedValues, q: float) -> float | None:
    """Return the `q` quantile of sorted values, or None without values.

    It is interpolated linearly between two values (type 7, the default of NumPy and R).
    """
    if not 0 <= q <= 1:
        raise ValueError(f"a quantile must be between 0 and 1, got {q!r}")
    if not sorted_values:
        return None
    position = q * (len(sorted_values) - 1)
    below = int(position)
    low = sorted_values[below]
    high = sorted_values[min(below + 1, len(sorted_values) - 1)]
    # Written this way, equal neighbors return exactly their value, and no result exceeds the higher neighbor.
    return min(low + (position - below) * (high - low), high)


class _OrderStatistics:
    """Finds the values at a few ranks; sorting a million numbers would need forty times their memory."""

    def __init__(self, values: Sequence[float], ranks: set[int]) -> None:
        self._length = len(values)
        self._values: dict[int, float] = {}
        self._select(values, 0, ranks)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, rank: int) -> float:
        return self._values[rank]

    def _select(self, values: Sequence[float], first: int, ranks: set[int]) -> None:
        """Store the values at some ranks; the lowest of `values` has rank `first`.

        Values are counted into bins; only bins with a requested rank are searched further.
        """
        low, high = min(values), max(values)
        if low == high or len(values) <= MAX_SORTED:
            ordered = [low] if low == high else sorted(values)
            self._values |= {rank: ordered[min(rank - first, len(ordered) - 1)] for rank in ranks}
            return
        scale = (BINS - 1) / (high - low)
        counts = [0] * BINS
        for value in values:
            counts[int((value - low) * scale)] += 1
        for index, count in enumerate(counts):
            if ranks_in_bin := {rank for rank in ranks if first <= rank < first + count}:
                bin_values = array("d", (v for v in values if int((v - low) * scale) == index))
                self._select(bin_values, first, ranks_in_bin)
            first += count


OrderedValues = Sequence[float] | _OrderStatistics

PassRule = Literal["any", "all"]


def pass_at_k(trials: int, passed: int, k: int) -> float | None:
    """Return the probability that at least one of k trials passes; None for fewer than k trials."""
    ways = _count_ways(trials, passed, k)
    return None if ways is None else 1 - math.comb(trials - passed, k) / ways


def pass_hat_k(trials: int, passed: int, k: int) -> float | None:
    """Return the probability that all of k trials pass (pass^k); None for fewer than k trials."""
    ways = _count_ways(trials, passed, k)
    return None if ways is None else math.comb(passed, k) / ways


def _count_ways(trials: int, passed: int, k: int) -> int | None:
    if not 0 <= passed <= trials:
        raise ValueError(f"{passed!r} of {trials!r} trials cannot have passed")
    if k < 1:
        raise ValueError(f"k must be 1 or more, got {k!r}")
    return math.comb(trials, k) if k <= trials else None
