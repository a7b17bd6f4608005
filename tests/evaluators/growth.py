"""Compare the work of a call on a short and on a long text; `make growth` measures the time."""

from __future__ import annotations

from collections.abc import Callable

from tests.support import count_calls

# Fewer calls do not depend on the text.
LEAST_CALLS = 200


def grows_linearly(call: Callable[[str], object], make: Callable[[int], str], size: int) -> bool:
    """Return True if four times the text takes less than eight times as many calls; the square would take sixteen."""
    call(make(size))  # what is loaded and compiled once is not growth
    short, long = (count_calls(call, make(length)) for length in (size, 4 * size))
    return long < 8 * max(short, LEAST_CALLS)
