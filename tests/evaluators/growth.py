"""Compare the CPU time of a call on a short and on a long text, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable

# Shorter times are noise.
LEAST_SECONDS = 0.01


def grows_linearly(call: Callable[[str], object], make: Callable[[int], str], size: int) -> bool:
    """Return True if four times the text takes less than ten times as long; the square would take sixteen."""
    for _ in range(3):
        short, long = (_measure(call, make(length)) for length in (size, 4 * size))
        if long < 10 * max(short, LEAST_SECONDS):
            return True
    return False


def _measure(call: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    call(text)
    return time.process_time() - started
