"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.reports.format import (
    format_bounds,
    format_duration,
    format_interval,
    format_metric,
    format_missing,
    format_percent,
)
from tests.tables import each_row


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0.0%"), (0.0001, "<0.1%"), (0.6833, "68.3%"), (0.9996, ">99.9%"), (1.0, "100.0%")]
)
def test_percentages_never_round_to_a_claim(share: float, text: str) -> None:
    """Only all is 100.0% and only none is 0.0%."""
    assert format_percent(share) == text


@each_row(
    ("metric", "text"),
    [
        (MetricValue(None, 0), "—"),
        (MetricValue(0.72, 9, kind="mean"), "0.720"),
        (MetricValue(0.5, 9, kind="quantile"), "0.500"),
        (MetricValue(0.5, 9, kind="rate"), "50.0%"),
        (MetricValue(1234.5, 9, kind="mean", unit="ms"), "1,234 ms"),
        (MetricValue(31.24, 9, kind="mean", unit="ms"), "31.2 ms"),
        (MetricValue(0.0312, 9, kind="mean", unit="ms"), "0.0312 ms"),
        (MetricValue(12.0, 9, kind="count", unit="tokens"), "12 tokens"),
        (MetricValue(3.0, 9), "3"),
        (MetricValue(-3.14159, 9), "-3.14"),
        (MetricValue(1e300, 9), "1e+300"),
    ],
)
def test_a_figure_has_the_digits_that_matter(metric: MetricValue, text: str) -> None:
    """Rates are percentages, scores have three decimals, the rest goes by size and unit."""
    assert format_metric(metric) == text


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (MetricValue(0.5, 9), "—"),
        (MetricValue(0.5, 9, interval=(0.25, 0.75), kind="rate"), "25.0–75.0%"),
        (MetricValue(0.5, 9, interval=(0.25, 0.75), kind="mean"), "0.250–0.750"),
        (MetricValue(50, 9, interval=(-5, 105.2), kind="mean", unit="ms"), "-5 to 105 ms"),
    ],
)
def test_an_interval_has_one_unit(metric: MetricValue, text: str) -> None:
    """Two ends, one unit, and no minus next to a dash."""
    assert format_interval(metric) == text


def test_missing_results_are_counted_by_cause() -> None:
    """Errors and skips are named; nothing missing is 0."""
    assert format_missing(MetricValue(0.5, 9)) == "0"
    assert format_missing(MetricValue(0.5, 9, errors=1)) == "1 error"
    assert format_missing(MetricValue(0.5, 9, errors=1200, skipped=3)) == "1,200 errors, 3 skipped"


def test_bounds_are_shown_when_many_results_are_missing() -> None:
    """5 of 105 is few, 2 of 10 is not; a metric with a unit has no bounds."""
    assert format_bounds(MetricValue(0.5, 100, errors=5, kind="rate")) == ""
    expected = "2 of 10 are missing: 0.400–0.600, depending on whether they fail or pass"
    assert format_bounds(MetricValue(0.5, 8, errors=1, skipped=1, kind="mean")) == expected
    assert format_bounds(MetricValue(50, 8, errors=2, kind="mean", unit="ms")) == ""
    assert format_bounds(MetricValue(None, 0, errors=2, kind="rate")) == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 seconds"), (59.9, "59.9 seconds"), (60, "1 min 00 s"), (3600, "1 h 00 min")]
)
def test_durations_are_in_the_unit_that_fits(seconds: float, text: str) -> None:
    """Seconds, minutes or hours."""
    assert format_duration(seconds) == text


def test_counts_agree_with_their_word() -> None:
    """One sample, two samples, two boxes."""
    assert format_count(1, "sample") == "1 sample"
    assert format_count(2, "sample") == "2 samples"
    assert format_count(2, "box", "boxes") == "2 boxes"


@given(st.floats(0, 1), st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_has_a_short_figure(share: float, number: float) -> None:
    """No value makes a figure too wide for a table."""
    assert len(format_percent(share)) <= 7
    assert len(format_metric(MetricValue(number, 1))) <= 20
