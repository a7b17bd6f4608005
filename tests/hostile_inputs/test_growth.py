"""The work of evaluators, finders and parsers grows with the length of a text, not with its square.

Each subject reads a few hostile shapes here, so that all subjects and all shapes are covered, and its function calls
are counted. `make growth` measures the CPU time of every pair, up to 10 MB, and that inside regular expressions too.
"""

from __future__ import annotations

import pytest
from benchmarks.growth import run_subject
from benchmarks.growth_subjects import LIMITED, SHAPES, SUBJECTS

from tests.support import count_calls

SIZE, FACTOR = 1_000, 8
# A linear subject makes 8 times as many calls for 8 times the text, a quadratic one 64 times.
LARGEST_RATIO = 24.0
# Fewer calls do not depend on the text.
LEAST_CALLS = 500
EVERY = 12


def _select_shapes(subject: str) -> list[str]:
    return list(SHAPES)[list(SUBJECTS).index(subject) % EVERY :: EVERY]


@pytest.mark.no_cover
@pytest.mark.parametrize("subject", [name for name in SUBJECTS if name not in LIMITED])
def test_work_grows_with_the_length_of_the_text(subject: str) -> None:
    """No hostile text makes a subject quadratic, or makes it raise."""
    ratios = {shape: _count_ratio(subject, shape) for shape in _select_shapes(subject)}
    assert {shape: ratio for shape, ratio in ratios.items() if ratio > LARGEST_RATIO} == {}


def _count_ratio(subject: str, shape: str) -> float:
    _read(subject, shape, SIZE // 2)  # imports and compiled patterns are not growth
    short, long = (count_calls(_read, subject, shape, size) for size in (SIZE, SIZE * FACTOR))
    return long / max(short, LEAST_CALLS)


def _read(subject: str, shape: str, size: int) -> None:
    outcome = run_subject(SUBJECTS[subject], SHAPES[shape](size))
    assert outcome in ("", "refused"), f"{subject} on {shape} of {size}: {outcome}"
