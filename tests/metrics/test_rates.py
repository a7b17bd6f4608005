"""Success rate, pass rate and strict pass rate."""

from __future__ import annotations

import pytest

from proctor.core.stats.intervals import clustered_rate_interval, wilson_interval
from proctor.metrics import PassRateMetric, StrictPassRateMetric, SuccessRateMetric
from proctor.records.metric import MetricValue
from proctor.records.results import ResultList
from tests.metrics.examples import failed, mixed, repeated, scored

METRICS = (SuccessRateMetric(), PassRateMetric(), PassRateMetric("exact"), StrictPassRateMetric())


def test_the_success_rate_is_of_all_results() -> None:
    """Six of seven targets gave an output; nothing is missing from that."""
    result = SuccessRateMetric().compute(mixed())
    assert result == MetricValue(6 / 7, 7, interval=wilson_interval(6, 7), kind="rate")


@pytest.mark.parametrize("metric", [PassRateMetric(), PassRateMetric("exact")])
def test_the_pass_rate_covers_verdicts_and_counts_errors_separately(metric: PassRateMetric) -> None:
    """Ruling 3: three of four verdicts passed; two errors and a skip are counted separately."""
    result = metric.compute(mixed())
    assert result == MetricValue(3 / 4, 4, 2, 1, wilson_interval(3, 4), kind="rate")


def test_the_strict_pass_rate_holds_errors_against_the_target() -> None:
    """Ruling 3: three of six, for the two errors count as not passed; only the skip is left out."""
    result = StrictPassRateMetric().compute(mixed())
    assert result == MetricValue(3 / 6, 6, 0, 1, wilson_interval(3, 6), kind="rate")


def test_an_evaluator_that_nobody_used_has_no_rate() -> None:
    """Ruling 1: without a verdict there is no number, and what was left out is counted."""
    result = PassRateMetric("unheard_of").compute(mixed())
    assert result == MetricValue(None, 0, 1, 6, kind="rate")


@pytest.mark.parametrize("metric", METRICS)
def test_a_rate_of_nothing_is_none(metric: SuccessRateMetric | PassRateMetric | StrictPassRateMetric) -> None:
    """Ruling 1: a metric over nothing is None, never 0."""
    assert metric.compute(ResultList([])) == MetricValue(None, 0, kind="rate")


EPOCHS: dict[str, list[float | None]] = {
    "a": [1.0, 1.0],
    "b": [1.0, 0.0],
    "c": [0.0, None],
    "d": [0.7, 0.7],
    "e": [0.2, 0.1],
}
VERDICTS = [1, 1, 1, 0, 0, 1, 1, 0, 0]


def test_epochs_of_one_sample_widen_the_pass_rate() -> None:
    """Verdicts on one sample are not independent: the interval is clustered, and says so."""
    expected = clustered_rate_interval(VERDICTS, "aabbcddee")
    assert expected is not None
    for metric in (PassRateMetric(), PassRateMetric("exact")):
        result = metric.compute(repeated(EPOCHS))
        assert result.value == 5 / 9
        assert (result.n, result.errors, result.skipped, result.note) == (9, 1, 0, "clustered")
        assert result.interval == expected


def test_epochs_cluster_the_strict_and_the_success_rate_too() -> None:
    """The time-out is a 0 in its own sample's cluster."""
    results = repeated(EPOCHS)
    strict = StrictPassRateMetric().compute(results)
    expected = clustered_rate_interval([1, 1, 1, 0, 0, 0, 1, 1, 0, 0], "aabbccddee")
    assert expected is not None
    assert (strict.value, strict.n, strict.note) == (0.5, 10, "clustered")
    assert strict.interval == expected
    success = SuccessRateMetric().compute(results)
    assert (success.value, success.n, success.note) == (0.9, 10, "clustered")


def test_clusters_that_all_agree_still_leave_doubt() -> None:
    """Ten passes of five samples are five pieces of evidence, not certainty."""
    results = repeated({name: [1.0, 1.0] for name in "abcde"})
    result = PassRateMetric().compute(results)
    assert (result.value, result.n) == (1.0, 10)
    assert result.interval == wilson_interval(5, 5)


def test_too_few_clusters_give_no_interval() -> None:
    """Below five clusters the rate stands without an interval, and the note says why."""
    result = PassRateMetric().compute(repeated({"a": [1.0, 0.0], "b": [1.0, 1.0]}))
    assert (result.value, result.interval) == (0.75, None)
    assert result.note == "clustered, with fewer than 5 clusters: no interval"


def test_samples_of_one_document_are_clustered() -> None:
    """A cluster named in the metadata counts like repeated samples do."""
    results = ResultList([scored(f"{i}", i % 2, cluster=f"document {i // 2}") for i in range(12)])
    result = PassRateMetric().compute(results)
    assert (result.value, result.n, result.note) == (0.5, 12, "clustered")
    # The measured design effect is 1 at least, the largest 2, with 4 × (1 - 6/10) = 1.6 clusters: 9.2 / 7.6. Student's
    # quantile of 5 degrees of freedom is 2.5706 instead of 1.96, and counts for 6/10.
    known = 12 * 7.6 / 9.2 * (1.95996 / 2.57058) ** 1.2
    assert result.interval == pytest.approx(wilson_interval(known / 2, known), abs=1e-5)


def test_a_run_of_errors_has_a_strict_rate_only() -> None:
    """With errors alone nothing has a verdict; strictly, none passed."""
    results = ResultList([failed("a"), failed("b")])
    assert PassRateMetric().compute(results) == MetricValue(None, 0, errors=2, kind="rate")
    assert StrictPassRateMetric().compute(results).value == 0.0
