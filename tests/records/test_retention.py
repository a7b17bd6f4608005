"""Retention of runs: by days, or by count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.records.run import Retention, RunMetadata


def at(day: float) -> RunMetadata:
    return RunMetadata(str(day), "exam", NOW - timedelta(days=day))


NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "most", "left"),
    [
        (None, None, [0, 1, 10, 29, 30, 31, 90]),
        (30, None, [0, 1, 10, 29, 30]),
        (None, 2, [0, 1]),
        (10, 5, [0, 1, 10, 29, 30]),
        (30, 2, [0, 1, 10, 29, 30]),
        (0.5, 100, [0, 1, 10, 29, 30, 31, 90]),
    ],
)
def test_a_run_stays_while_either_limit_keeps_it(days: float | None, most: int | None, left: list[float]) -> None:
    """Deleted only when both are exceeded; one limit alone rules; none keeps all."""
    runs = [at(day) for day in (0, 1, 10, 29, 30, 31, 90)]
    keeps = Retention(days, most).keeps
    kept = [run for place, run in enumerate(runs) if keeps(place, run.started_at, NOW)]
    assert kept == [at(day) for day in left]


@given(st.lists(st.integers(0, 100), max_size=20, unique=True), st.floats(0.1, 100), st.integers(1, 20))
def test_nothing_within_a_limit_is_ever_deleted(ages: list[int], days: float, most: int) -> None:
    """Whatever the ages: what goes is too old, and not among the newest."""
    runs = [at(age) for age in sorted(ages)]
    for place, run in enumerate(runs):
        old = NOW - run.started_at > timedelta(days=days)
        goes = not Retention(days, most).keeps(place, run.started_at, NOW)
        assert goes == (old and place >= most)
