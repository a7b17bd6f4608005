"""What counts as a number among a field's values: one rule for means, comparisons and rankings."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

# Beyond it differences and shares need not fit a float any more.
GREATEST = 1e300


def as_number(value: Any) -> float | None:
    """A value as a number: a boolean is 0 or 1; None of what is none, or is not finite.

    >>> as_number(True), as_number(450), as_number("450"), as_number(float("nan"))
    (1.0, 450.0, None, None)
    """
    if not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        # An integer that no float can hold.
        return None
    # NaN is not at most anything.
    return number if math.fabs(number) <= GREATEST else None
