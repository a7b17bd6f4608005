"""Quantiles of data."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(sorted_values: Sequence[float], q: float) -> float | None:
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
