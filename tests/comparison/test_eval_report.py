"""The one report type: rates, means and bounds of known results; read-only; the same from every entry point."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import (
    EvalLoop,
    EvalRunner,
    InMemoryMailbox,
    SQLiteHistory,
    collect_results,
    evaluate,
    exact_match,
    rescore,
    submit_dataset,
)
from proctor.comparison.report import EvalReport
from proctor.records.metric import MetricValue
from proctor.records.results import Counts, ResultList
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult
from tests.records.examples import any_runs, failed, run_of, scored, skipped
from tests.tables import each_row

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
    assert (report.total, report.successful, report.errors) == (6, 4, 2)
    assert report.mean_score == 0.5
    assert [result.sample_id for result in report.failed_samples()] == ["c"]


@given(st.lists(st.sampled_from(MIXED), max_size=12))
def test_the_numbers_of_a_report_add_up(results: list[EvalResult]) -> None:
    """Every result is successful or an error, and a successful one passed, failed or was skipped."""
    report = EvalReport(results)
    counts = report.counts
    assert report.successful + report.errors == report.total
    assert counts.passed + counts.failed + counts.skipped == report.successful


@each_row(
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


# One type from every entry point

WORDS = [{"id": "1", "input": "yes", "expected": "YES"}, {"id": "2", "input": "no", "expected": "no"}]


def _report_of(entry_point: str, folder: Path) -> Any:
    history = SQLiteHistory(folder / "history.db")
    if entry_point == "collect_results":
        requests: InMemoryMailbox[Any] = InMemoryMailbox("requests")
        results: InMemoryMailbox[Any] = InMemoryMailbox("results")
        submission = submit_dataset(WORDS, requests)
        loop = EvalLoop(loop=str.upper, evaluator=exact_match, requests=requests, results=results)
        loop.run(max_iterations=1)
        return collect_results(results, submission)
    if entry_point == "EvalRunner":
        return EvalRunner(str.upper, exact_match).run(WORDS, history=history)
    report = evaluate(str.upper, WORDS, exact_match, history=history)
    if entry_point == "rescore":
        return rescore(report.run_id, exact_match, history=history)
    return history.report("latest") if entry_point == "history.report" else report


@pytest.mark.parametrize("entry_point", ["evaluate", "rescore", "EvalRunner", "collect_results", "history.report"])
def test_every_entry_point_returns_the_same_report(entry_point: str, tmp_path: Path) -> None:
    """One of two words passes; the report can be compared, ranked and made into a table."""
    report = _report_of(entry_point, tmp_path)
    assert type(report) is EvalReport
    assert (report.pass_rate, report.passed, report.configurations) == (0.5, False, ("default",))
    assert [place.configuration for place in report.rank_by("pass_rate").places] == ["default"]
    assert [(row["sample_id"], row["exact_match.score"]) for row in report.rows()] == [("1", 1.0), ("2", 0.0)]
    assert report.field_results["exact_match"].passed is False
    comparison = report.compare("default", "default", metrics=["pass_rate"])
    assert comparison.metrics["pass_rate"].absolute == 0.0


# Read-only


def test_a_report_cannot_be_changed() -> None:
    """Neither an attribute, nor a metric, nor a table of fields."""
    metrics = {"pass_rate": MetricValue(1.0, 1, kind="rate")}
    report: Any = EvalReport([scored("a", 1.0)], run_of("r1"), metrics, {"default": metrics})
    for name in ("metrics", "results", "pass_rate", "something_else"):
        with pytest.raises(AttributeError):
            setattr(report, name, None)
    with pytest.raises(AttributeError):
        del report.metadata
    for table in (report.metrics, report.by_configuration, report.by_configuration["default"], report.field_results):
        with pytest.raises(TypeError, match="does not support item assignment"):
            table["x"] = 1
    assert report.counts is report.counts  # computed once, all the same


def test_a_changed_copy_leaves_the_original_alone() -> None:
    """`dataclasses.replace` gives a new report with other metadata."""
    report = EvalReport([scored("a", 1.0)], run_of("r1"), {"pass_rate": MetricValue(1.0, 1)})
    other = dataclasses.replace(report, metadata=run_of("r2"))
    assert (report.run_id, other.run_id, other.metrics == report.metrics) == ("r1", "r2", True)


def test_a_report_can_be_pickled() -> None:
    """As a process pool or a cache does it."""
    metrics = {"pass_rate": MetricValue(1.0, 1, kind="rate")}
    report = EvalReport([scored("a", 1.0)], run_of("r1"), metrics, {"default": metrics})
    copy = pickle.loads(pickle.dumps(report))
    assert (copy.metadata, copy.metrics, copy.by_configuration) == (run_of("r1"), metrics, {"default": metrics})
    assert list(copy.results) == list(report.results)
