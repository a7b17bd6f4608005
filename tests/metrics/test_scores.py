"""Mean score, accuracy and the distribution of scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.intervals import clustered_mean_interval, clustered_rate_interval, wilson_interval
from proctor.errors import EvaluatorError
from proctor.metrics import AccuracyMetric, MeanScoreMetric, ScoreDistributionMetric
from proctor.records.metric import MetricValue
from proctor.records.results import ResultList
from tests.metrics.examples import mixed, repeated, scored


@pytest.mark.parametrize("metric", [MeanScoreMetric("exact"), MeanScoreMetric()])
def test_the_mean_is_of_the_verdicts(metric: MeanScoreMetric) -> None:
    """Ruling 1: (1 + 1 + 0.5 + 0) / 4 = 0.625; errors and skips are counted, not averaged."""
    result = metric.compute(mixed())
    assert result == MetricValue(0.625, 4, 2, 1, (0.0, 1.0), kind="mean")


def test_the_interval_of_a_mean_score_is_students() -> None:
    """Scores .2 .4 .6 .8: 0.5 ± 3.18245 · 0.12910."""
    results = ResultList([scored(f"{i}", i / 10) for i in (2, 4, 6, 8)])
    result = MeanScoreMetric("exact").compute(results)
    assert result.interval == pytest.approx((0.08915, 0.91085), abs=1e-5)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_no_interval_of_scores_leaves_the_scale(values: list[float]) -> None:
    """An interval of scores lies within 0..1 and around the mean."""
    results = ResultList([scored(f"{i}", value) for i, value in enumerate(values)])
    result = MeanScoreMetric("exact").compute(results)
    assert result.value is not None
    if result.interval is None:
        assert len(set(values)) == 1
        assert result.note == "all values are equal: no interval"
        return
    assert 0 <= result.interval[0] <= result.value + 1e-15
    assert result.value - 1e-15 <= result.interval[1] <= 1


def test_a_mean_over_epochs_is_clustered() -> None:
    """Two epochs of five samples: the clustered interval, named in the note."""
    results = repeated({"a": [0.9, 0.8], "b": [0.7, 0.8], "c": [0.5, 0.6], "d": [0.9, 1.0], "e": [0.6, 0.7]})
    result = MeanScoreMetric("exact").compute(results)
    scores = [0.9, 0.8, 0.7, 0.8, 0.5, 0.6, 0.9, 1.0, 0.6, 0.7]
    assert result.interval == clustered_mean_interval(scores, "aabbccddee")
    assert result.note == "clustered"


def test_a_mean_of_one_score_has_no_interval_and_of_none_no_value() -> None:
    """One value has a mean and no spread; nothing has neither."""
    item = MeanScoreMetric("exact").compute(ResultList([scored("a", 0.5)]))
    assert item == MetricValue(0.5, 1, kind="mean")
    assert MeanScoreMetric("exact").compute(ResultList([])) == MetricValue(None, 0, kind="mean")


@pytest.mark.parametrize(("threshold", "reached"), [(0.5, 3), (0.51, 2), (0.0, 4), (1.0, 2)])
def test_accuracy_counts_scores_that_reach_the_threshold(threshold: float, reached: int) -> None:
    """A score equal to the threshold counts: of 1, 1, 0.5, 0 three reach 0.5."""
    result = AccuracyMetric("exact", threshold).compute(mixed())
    interval = wilson_interval(reached, 4)
    assert result == MetricValue(reached / 4, 4, 2, 1, interval, kind="rate")


def test_accuracy_over_epochs_is_clustered() -> None:
    """The share above the line is clustered like every other rate."""
    results = repeated({name: [1.0, 0.0 if name in "ab" else 0.6] for name in "abcde"})
    result = AccuracyMetric("exact").compute(results)
    expected = clustered_rate_interval([1, 0, 1, 0, 1, 1, 1, 1, 1, 1], "aabbccddee")
    assert expected is not None
    assert (result.value, result.note) == (0.8, "clustered")
    assert result.interval == expected


@pytest.mark.parametrize("threshold", [-0.1, 1.5, float("nan")])
def test_a_threshold_off_the_scale_is_refused(threshold: float) -> None:
    """A threshold that no score, or every score, would reach is a mistake."""
    with pytest.raises(EvaluatorError, match="from 0 to 1"):
        AccuracyMetric("exact", threshold)


def test_the_distribution_gives_four_percentiles() -> None:
    """Of 0, 0.5, 1, 1: p25 = 0.375, p50 = 0.75, p75 = 1, p95 = 1."""
    result = ScoreDistributionMetric("exact").compute(mixed())
    assert {name: value.value for name, value in result.items()} == {"p25": 0.375, "p50": 0.75, "p75": 1.0, "p95": 1.0}
    assert result["p50"] == MetricValue(0.75, 4, 2, 1, kind="quantile", note="fewer than 6 values: no interval")


def test_the_distribution_of_nothing_is_none() -> None:
    """Ruling 1: no scores, no percentiles."""
    result = ScoreDistributionMetric("exact").compute(ResultList([]))
    assert {value.value for value in result.values()} == {None}


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_yes_or_no_scores_leave_doubt(value: float) -> None:
    """Ten of ten is not certainty: the interval is Wilson's, as for the pass rate."""
    results = ResultList([scored(f"{i}", value) for i in range(10)])
    result = MeanScoreMetric("exact").compute(results)
    assert result.interval == wilson_interval(10 * value, 10)


def test_equal_scores_of_clusters_count_each_cluster_once() -> None:
    """Ten ones of five samples are worth five."""
    results = ResultList([scored(f"{i // 2}", 1.0, epoch=i % 2) for i in range(10)])
    result = MeanScoreMetric("exact").compute(results)
    assert result.interval == wilson_interval(5, 5)
    assert result.note == "clustered"
