"""Rates, means and bounds of known results."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport
from proctor.records.results import Counts, ResultList
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult
from tests.records.examples import any_runs, failed, run_of, scored, skipped

MIXED = [
    scored("a", 1.0),
    scored("b", 0.5),
    scored("c", 0.0),
    failed("d", latency_ms=400.0),
    scored("e", None),
    skipped("f"),
]


def test_ruling_3_rates_on_a_mixture() -> None:
    """Ruling 3: 2 of 3 verdicts passed; strictly 2 of 5, as error and broken evaluator count."""
    report = EvalReport(MIXED)
    assert report.counts == Counts(passed=2, failed=1, error=1, unscored=1, skipped=1)
    assert report.pass_rate == 2 / 3
    assert report.strict_pass_rate == 2 / 5
    assert (report.total, report.successful, report.errors) == (6, 5, 2)
    assert report.mean_score == 0.5
    assert [result.sample_id for result in report.failed_samples()] == ["c"]


@pytest.mark.parametrize(
    ("results", "rate", "strict"),
    [
        ([], None, None),
        ([skipped("a")], None, None),
        ([failed("a")], None, 0.0),
        ([scored("a", None)], None, 0.0),
        ([scored("a", 1.0)], 1.0, 1.0),
        ([scored("a", 1.0), failed("b")], 1.0, 0.5),
        ([scored("a", 1.0), skipped("b")], 1.0, 1.0),
        ([scored("a", 0.0), failed("b"), skipped("c")], 0.0, 0.0),
    ],
)
def test_ruling_3_rates_where_there_is_little(
    results: list[EvalResult], rate: float | None, strict: float | None
) -> None:
    """Ruling 3: a rate over nothing is None, never 0; errors weigh on the strict rate alone."""
    report = EvalReport(results)
    assert (report.pass_rate, report.strict_pass_rate) == (rate, strict)


def test_an_empty_report_has_no_numbers() -> None:
    """Nothing divided by nothing is None everywhere."""
    report = EvalReport([])
    assert report.mean_score is None
    assert report.mean_latency_ms is None
    assert report.failed_samples() == ()
    assert report.run_id == ""
    assert (report.total, report.errors) == (0, 0)


def test_ruling_4_latency_counts_for_failures() -> None:
    """Ruling 4: (100 + 100 + 100 + 400 + 100 + 0) / 6, the failed trial's 400 ms among them."""
    assert EvalReport(MIXED).mean_latency_ms == 800 / 6


@settings(max_examples=40)
@given(any_runs())
def test_ruling_3_the_strict_rate_is_never_above_the_other(made: tuple[RunMetadata, list[EvalResult]]) -> None:
    """Ruling 3: errors can only lower the strict rate, and both lie within 0 and 1."""
    report = EvalReport(made[1])
    if report.pass_rate is not None:
        assert report.strict_pass_rate is not None
        assert 0.0 <= report.strict_pass_rate <= report.pass_rate <= 1.0
    assert report.counts.total == report.total == len(made[1])


def test_a_report_takes_results_metadata_and_metrics() -> None:
    """Lists become results; tables are copied, so that later changes have no effect."""
    metrics = {"pass_rate": MetricValue(1.0, 1, kind="rate")}
    results = ResultList([scored("a", 1.0)])
    report = EvalReport(results, run_of("r1"), metrics, {"default": metrics})
    metrics.clear()
    assert report.results is results
    assert report.run_id == "r1"
    assert list(report.metrics) == list(report.by_configuration["default"]) == ["pass_rate"]


def test_the_bounds_of_a_rate_show_what_is_missing() -> None:
    """3 of 4 passed, 1 error and 1 skip: between 3/6 and 5/6 if the missing were known."""
    rate = MetricValue(0.75, 4, errors=1, skipped=1, kind="rate")
    assert rate.missing == 2
    assert rate.bounds == (3 / 6, 5 / 6)


@pytest.mark.parametrize(
    "value",
    [
        MetricValue(None, 0, kind="rate"),
        MetricValue(0.5, 4, kind="quantile"),
        MetricValue(120.0, 4, kind="mean", unit="ms"),
        MetricValue(0.5, 0, kind="rate"),
    ],
)
def test_other_numbers_have_no_bounds(value: MetricValue) -> None:
    """Only shares and means from 0 to 1 that rest on something can be bounded."""
    assert value.bounds is None
