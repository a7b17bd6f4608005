"""Prove that work grows with its input by counting executed lines, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_steps(work: Callable[[], object]) -> int:
    """How many lines of Python the work executes."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(previous)
    return steps


def assert_linear(prepare: Callable[[int], Callable[[], object]], size: int) -> None:
    """Four times the input takes about four times the steps; quadratic work takes sixteen times."""
    few, many = (count_steps(prepare(count)) for count in (size, 4 * size))
    assert many < 6 * few
