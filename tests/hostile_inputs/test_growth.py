"""The cost of evaluators, finders and parsers grows with the length of a text, not with its square.

Each subject reads a few hostile shapes here, so that all subjects and all shapes are covered.
`make growth` measures every pair, up to 10 MB.
"""

from __future__ import annotations

import time

import pytest
from benchmarks.growth import run_subject
from benchmarks.growth_subjects import LIMITED, SHAPES, SUBJECTS

SIZE, FACTOR = 1_000, 8
# A linear subject needs 8 times as long for 8 times the text, a quadratic one 64 times.
LARGEST_RATIO = 32.0
# Shorter times are noise.
LEAST_SECONDS = 0.002
EVERY = 9


def _select_shapes(subject: str) -> list[str]:
    return list(SHAPES)[list(SUBJECTS).index(subject) % EVERY :: EVERY]


@pytest.mark.no_cover
@pytest.mark.parametrize("subject", [name for name in SUBJECTS if name not in LIMITED])
def test_cost_grows_with_the_length_of_the_text(subject: str) -> None:
    """No hostile text makes a subject quadratic, or makes it raise."""
    ratios = {shape: _measure_ratio(subject, shape) for shape in _select_shapes(subject)}
    assert {shape: ratio for shape, ratio in ratios.items() if ratio > LARGEST_RATIO} == {}


def _measure_ratio(subject: str, shape: str) -> float:
    run_subject(SUBJECTS[subject], SHAPES[shape](SIZE // 2))  # imports and compiled patterns are not growth
    ratio = float("inf")
    # One slow moment of the machine looks like growth; three do not.
    for _ in range(3):
        short, long = (_measure(subject, shape, size) for size in (SIZE, SIZE * FACTOR))
        ratio = min(ratio, long / max(short, LEAST_SECONDS))
        if ratio <= LARGEST_RATIO:
            break
    return ratio


def _measure(subject: str, shape: str, size: int) -> float:
    text = SHAPES[shape](size)
    began = time.process_time()
    outcome = run_subject(SUBJECTS[subject], text)
    seconds = time.process_time() - began
    assert outcome in ("", "refused"), f"{subject} on {shape} of {size}: {outcome}"
    return seconds
