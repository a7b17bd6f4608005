"""Quantiles of data, exact, also where there is too much of it to be sorted at once."""

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


SORTED_UP_TO = 100_000
BINS = 1_024


def quantiles(values: Sequence[float], shares: Sequence[float]) -> list[float | None]:
    """Several quantiles of values in any order.

    >>> quantiles([4.0, 1.0, 3.0, 2.0], [0.25, 0.5])
    [1.75, 2.5]
    """
    if len(values) <= SORTED_UP_TO:
        ordered: Sequence[float] | _Ranks = sorted(values)
    else:
        last = len(values) - 1
        below = {int(share * last) for share in shares}
        ordered = _Ranks(values, below | {min(rank + 1, last) for rank in below})
    return [quantile(ordered, share) for share in shares]


def quantile(sorted_values: Sequence[float] | _Ranks, q: float) -> float | None:
    """The value below which a share `q` of sorted values lies, or None of nothing.

    Between two values it is interpolated linearly (type 7, as spreadsheets, NumPy and R do).

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.5
    """
    if not 0 <= q <= 1:
        raise ValueError(f"a quantile is asked for by a share from 0 to 1, got {q!r}")
    if not sorted_values:
        return None
    place = q * (len(sorted_values) - 1)
    below = int(place)
    low = sorted_values[below]
    high = sorted_values[min(below + 1, len(sorted_values) - 1)]
    # Written so that equal neighbours give exactly themselves, and never beyond the higher one.
    return min(low + (place - below) * (high - low), high)


class _Ranks:
    """A few places of a sorted sequence that is never made: a sorted list of a million numbers
    would take forty times the memory of the numbers."""

    def __init__(self, values: Sequence[float], ranks: set[int]) -> None:
        self._length = len(values)
        self._found: dict[int, float] = {}
        self._find(values, 0, ranks)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, rank: int) -> float:
        return self._found[rank]

    def _find(self, values: Sequence[float], first: int, ranks: set[int]) -> None:
        """The values at some ranks, the lowest of `values` having the rank `first`.

        They are counted into bins; only the bins that hold a wanted rank are looked into again.
        """
        low, high = min(values), max(values)
        if low == high or len(values) <= SORTED_UP_TO:
            ordered = [low] if low == high else sorted(values)
            self._found |= {rank: ordered[min(rank - first, len(ordered) - 1)] for rank in ranks}
            return
        scale = (BINS - 1) / (high - low)
        counts = [0] * BINS
        for value in values:
            counts[int((value - low) * scale)] += 1
        for bin_, count in enumerate(counts):
            wanted = {rank for rank in ranks if first <= rank < first + count}
            if wanted:
                inside = array("d", (v for v in values if int((v - low) * scale) == bin_))
                self._find(inside, first, wanted)
            first += count
