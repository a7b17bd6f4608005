"""The cost of evaluators, finders and parsers grows with the length of a text, not its square.

This is the short form of `python -m benchmarks.growth`: CPU times of doubled texts in one process,
compared with each other. Times too short to be told from noise prove nothing and are left out.
"""

from __future__ import annotations

import time

import pytest
from benchmarks.growth import LEAST_SECONDS, exponent, run_subject
from benchmarks.growth_subjects import LIMITED, SHAPES, SUBJECTS

SIZES = [250 * 2**step for step in range(7)]
ENOUGH_SECONDS = 0.05
# A subject that takes this long for the smallest text is too slow to be measured, and to be used.
FIRST_SECONDS = 1.0
# A linear subject measures 0.8 to 1.2 here, a quadratic one 1.8 to 2.2.
LARGEST_GROWTH = 1.6


@pytest.mark.no_cover
@pytest.mark.parametrize("subject", [name for name in SUBJECTS if name not in LIMITED])
def test_cost_grows_with_the_length_of_the_text(subject: str) -> None:
    """No hostile text makes a subject quadratic, raise, or hang."""
    grown = {shape: _growth(subject, shape) for shape in SHAPES}
    suspects = {shape for shape, growth in grown.items() if growth > LARGEST_GROWTH}
    # One slow moment of the machine looks like growth; three do not.
    confirmed = {shape: min(_growth(subject, shape) for _ in range(3)) for shape in suspects}
    assert {shape: k for shape, k in confirmed.items() if k > LARGEST_GROWTH} == {}


def _growth(subject: str, shape: str) -> float:
    call, make = SUBJECTS[subject], SHAPES[shape]
    times: list[tuple[int, float]] = []
    run_subject(call, make(500))  # what is imported and compiled once is not growth
    for size in SIZES:
        text = make(size)
        began = time.process_time()
        outcome = run_subject(call, text)
        times.append((size, time.process_time() - began))
        assert outcome in ("", "refused"), f"{subject} on {shape} of {size}: {outcome}"
        assert size > SIZES[0] or times[-1][1] < FIRST_SECONDS, f"{subject} on {shape}"
        measured = [seconds for _, seconds in times if seconds >= LEAST_SECONDS]
        if len(measured) >= 3 and times[-1][1] > ENOUGH_SECONDS:
            break
    return exponent(times) or 0.0
