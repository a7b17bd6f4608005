"""The loop spec: results, reports, requests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from proctor import EvalReport, EvalRequest, EvalResult, Sample, Score
from proctor.records.trial import Failure, Trial
from tests.spec.clauses import clause


def result(name: str, score: Score | None, latency: float, error: str = "") -> EvalResult:
    """A result of one trial: with a score, or with the error of its target."""
    failure = Failure("KeyError", error) if error else None
    trial = Trial(Sample(name, "x", "y"), error=failure, latency_ms=latency)
    return EvalResult(trial, {} if score is None else {"check": score})


PASSED = result("a", Score(1.0, True), 100)
FAILED = result("b", Score(0.25, False, "too short"), 200)
ERROR = result("c", None, 600, "'x'")
REPORT = EvalReport(results=(PASSED, FAILED, ERROR))


@clause("000.RESULT.1", "EvalResult")
def test_a_result_has_sample_id_score_latency_and_error() -> None:
    """A result names its sample, its score, its latency and its error."""
    assert (PASSED.sample_id, PASSED.score.value, PASSED.latency_ms) == ("a", 1.0, 100)
    assert PASSED.error is None
    assert "KeyError" in str(ERROR.error)


@clause("000.RESULT.2", "EvalResult")
def test_a_result_without_an_error_is_a_success() -> None:
    """`success` is True exactly if there is no error."""
    assert (PASSED.success, FAILED.success, ERROR.success) == (True, True, False)


@clause("000.RESULT.3", "EvalResult")
def test_a_result_cannot_be_changed() -> None:
    """A result is frozen."""
    with pytest.raises(AttributeError):
        PASSED.trial = ERROR.trial  # type: ignore[misc]


@clause("000.REPORT.1", "EvalReport")
def test_total_counts_all_results() -> None:
    """`total` is the number of results."""
    assert REPORT.total == 3


@clause("000.REPORT.2", "EvalReport")
def test_successful_counts_results_without_error() -> None:
    """`successful` is the number of results without an error."""
    assert REPORT.successful == 2


@clause("000.REPORT.3", "EvalReport")
def test_pass_rate_is_of_results_without_error() -> None:
    """`pass_rate` is the share of successful results that passed."""
    assert REPORT.pass_rate == 0.5


@clause("000.REPORT.4", "EvalReport")
def test_mean_score_is_of_results_without_error() -> None:
    """`mean_score` is the mean value of successful results."""
    assert REPORT.mean_score == 0.625


@clause("000.REPORT.5", "EvalReport", ruling="latency is measured also for failures")
def test_mean_latency_is_of_all_results() -> None:
    """`mean_latency_ms` is taken over all results, failures included."""
    assert REPORT.mean_latency_ms == 300.0


@clause("000.REPORT.6", "EvalReport")
def test_failed_samples_did_not_pass_and_have_no_error() -> None:
    """`failed_samples()` are the results without error that did not pass."""
    assert [r.sample_id for r in REPORT.failed_samples()] == ["b"]


@clause("000.REPORT.7", "EvalReport", ruling="a metric over nothing is no number")
@pytest.mark.parametrize("results", [(), (ERROR,)], ids=["no results", "only errors"])
def test_a_rate_over_nothing_is_no_number(results: Any) -> None:
    """Without a single verdict `pass_rate` and `mean_score` are not 0 but no number."""
    report = EvalReport(results=results)
    assert report.pass_rate is None
    assert report.mean_score is None


@clause("000.REPORT.8", "EvalReport", ruling="pass_rate never stands alone")
def test_errors_count_against_the_strict_pass_rate() -> None:
    """`strict_pass_rate` counts errors as not passed, and errors are counted."""
    assert REPORT.strict_pass_rate == pytest.approx(1 / 3)
    assert REPORT.errors == 1


@clause("000.REQUEST.1", "EvalRequest")
def test_a_request_carries_its_sample() -> None:
    """A request holds the sample to evaluate."""
    sample = Sample("1", "a", "b")
    assert EvalRequest(sample=sample).sample == sample


@clause("000.REQUEST.2", "EvalRequest")
def test_each_request_has_an_id_of_its_own() -> None:
    """Two requests for one sample have different ids."""
    sample = Sample("1", "a", "b")
    assert EvalRequest(sample=sample).request_id != EvalRequest(sample=sample).request_id


@clause("000.REQUEST.3", "EvalRequest", ruling="time is aware UTC")
def test_a_request_knows_when_it_was_made() -> None:
    """`created_at` is the moment in UTC, with its time zone."""
    before = datetime.now(UTC)
    created_at = EvalRequest(sample=Sample("1", "a", "b")).created_at
    assert created_at.tzinfo is not None
    assert before <= created_at <= datetime.now(UTC)
