"""Check numbers that come from users, files, evaluators and servers."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from numbers import Integral, Real
from typing import Any


def is_number(value: Any) -> bool:
    """True for a finite number; a boolean is not a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # The integer is too large for a float.
        return False


def read_percent(text: Any) -> float | None:
    """Convert a percentage to a share; return None for any other text."""
    if not isinstance(text, str) or not text.rstrip().endswith("%"):
        return None
    try:
        share = float(Decimal(text.rstrip()[:-1].strip()) / 100)
    except InvalidOperation:
        return None
    return share if math.isfinite(share) else None


def is_fraction(value: Any) -> bool:
    """True for a number from 0 to 1."""
    return is_number(value) and 0 <= value <= 1


# No call uses more tokens or costs more than this; larger reported values are errors.
MAX_TOKENS = 10**12
MAX_COST = 1e9


def token_count(value: Any) -> int | None:
    """Read a reported number of tokens; return None if it is impossible."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    count = int(value)
    return count if 0 <= count <= MAX_TOKENS else None


def total_tokens(*counts: Any) -> Any:
    """Return the sum of the known counts, or the first impossible count so that it is noticed."""
    reported = [count for count in counts if count is not None]
    impossible = [count for count in reported if token_count(count) is None]
    if impossible:
        return impossible[0]
    return sum(map(int, reported)) if reported else None
