"""Reliability: pass@k and pass^k."""

from __future__ import annotations

import math
from typing import Literal

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
