"""Latency, tokens and money."""

from __future__ import annotations

import msgspec
import pytest

from proctor.comparison.report import EvalReport
from proctor.comparison.sides import make_side
from proctor.core.stats.intervals import clustered_mean_interval, mean_interval
from proctor.metrics import CostMetric, JudgesMetric, LatencyMetric, TokensMetric
from proctor.records.metric import MetricValue
from proctor.records.results import ResultList
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import EvalResult, Trial
from tests.metrics.examples import failed, used


def test_the_latency_of_failed_calls_is_left_out_and_counted() -> None:
    """A timeout of 9,000 ms is not the latency of an answer; `mean_latency_ms` includes it, as ruling 4 demands."""
    results = ResultList([used("a", 1, 100), failed("d", latency_ms=9_000), used("b", 1, 100), used("c", 1, 400)])
    result = LatencyMetric().compute(results)
    _, high = mean_interval([100, 100, 400]) or (0, 0)
    assert result["mean"] == MetricValue(200.0, 3, 1, interval=(0.0, high), kind="mean", unit="ms")
    note = "fewer than 6 values: no interval"
    assert result["p50"] == MetricValue(100.0, 3, 1, kind="quantile", unit="ms", note=note)
    assert result["p95"].value == pytest.approx(370.0)
    assert result["max"] == MetricValue(400.0, 3, 1, unit="ms")
    assert EvalReport(results).mean_latency_ms == 2_400.0
    by_sample = make_side("run", results).metrics["latency_ms.mean"]
    assert by_sample == {"a": 100.0, "b": 100.0, "c": 400.0}


def test_percentiles_have_the_interval_between_two_latencies() -> None:
    """Of 10 latencies the median lies between the 2nd and the 9th (P = 97.9%); p95 needs 72 values, or 72 clusters."""
    results = ResultList([used(str(i), 1, 10 * i) for i in range(1, 11)])
    result = LatencyMetric().compute(results)
    assert (result["p50"].value, result["p50"].interval) == (55.0, (20.0, 90.0))
    assert (result["p95"].interval, result["p95"].note) == (None, "fewer than 72 values: no interval")
    twice = ResultList([used(str(i), 1, 10 * i, epoch=epoch) for i in range(1, 11) for epoch in (0, 1)])
    clustered = LatencyMetric().compute(twice)["p50"]
    assert (clustered.interval, clustered.note) == ((20.0, 90.0), "clustered")


def test_unmeasured_latencies_count_as_skipped_next_to_failed_calls() -> None:
    """A trial without a latency is skipped, a failed one is an error, whatever their order."""
    results = ResultList([used("a", 1, None), failed("b", latency_ms=400), used("c", 1, 100)])
    assert LatencyMetric().compute(results)["max"] == MetricValue(100.0, 1, 1, 1, unit="ms")


def test_no_latency_is_under_zero() -> None:
    """Student's t knows nothing of that; the interval ends at 0 ms, and is open above."""
    result = LatencyMetric().compute(ResultList([used("a", 1, 1), used("b", 1, 100)]))
    assert result["mean"].interval is not None
    assert result["mean"].interval[0] == 0.0
    assert result["mean"].interval[1] > 100


def test_latency_of_nothing_is_none() -> None:
    """Ruling 1: no trials, no numbers."""
    result = LatencyMetric().compute(ResultList([]))
    assert {value.value for value in result.values()} == {None}


def test_tokens_cover_the_trials_with_known_usage() -> None:
    """Ruling 1: of 10, 30 and unknown the mean is 20 and the total 40; the unknown is counted."""
    result = TokensMetric().compute(ResultList([used("a", 10), used("b", 30), used("c", None)]))
    assert result["mean"].value == 20.0
    assert (result["mean"].n, result["mean"].skipped, result["mean"].unit) == (2, 1, "tokens")
    assert result["total"] == MetricValue(40.0, 2, skipped=1, kind="count", unit="tokens")


def test_failed_calls_without_usage_are_errors_not_skips() -> None:
    """As for latency; a failed call whose usage is known has a value, and an answer of unknown usage is skipped."""
    paid = used("d", 5)
    paid = EvalResult(msgspec.structs.replace(paid.trial, error=failed("d").trial.error), {})
    results = ResultList([used("a", 30), failed("b"), used("c", None), paid])
    result = TokensMetric().compute(results)
    assert (result["mean"].n, result["mean"].errors, result["mean"].skipped) == (2, 1, 1)
    assert result["total"] == MetricValue(35.0, 2, 1, 1, kind="count", unit="tokens")
    unknown = TokensMetric().compute(ResultList([failed("a"), used("b", None)]))["total"]
    assert unknown == MetricValue(None, 0, 1, 1, kind="count", unit="tokens")
    costs = CostMetric().compute(ResultList([failed("a"), used("b", None)]))["total"]
    assert (costs.n, costs.errors, costs.skipped) == (0, 1, 1)


def test_unknown_usage_is_not_zero_tokens() -> None:
    """Ruling 1: without known usage, both numbers are None with n = 0."""
    result = TokensMetric().compute(ResultList([used("a", None)]))
    assert result["mean"] == MetricValue(None, 0, skipped=1, kind="mean", unit="tokens")
    assert result["total"] == MetricValue(None, 0, skipped=1, kind="count", unit="tokens")


def test_epochs_cluster_time_and_tokens() -> None:
    """Long questions are slow each time they are asked: their latencies are one cluster."""
    trials = [
        used(name, tokens=10 * index, latency_ms=100.0 * index, epoch=epoch).trial
        for index, name in enumerate("abcde")
        for epoch in (0, 1)
    ]
    results = ResultList([EvalResult(trial, {"exact": Score(1.0, True)}) for trial in trials])
    latency = LatencyMetric().compute(results)["mean"]
    tokens = TokensMetric().compute(results)["mean"]
    clusters = "aabbccddee"
    assert latency.interval == clustered_mean_interval([t.latency_ms or 0.0 for t in trials], clusters)
    assert tokens.interval == clustered_mean_interval([0, 0, 10, 10, 20, 20, 30, 30, 40, 40], clusters)
    assert (latency.note, tokens.note) == ("clustered", "clustered")


def test_clustered_trials_without_usage_have_no_tokens() -> None:
    """Repeated trials without usage give no number and no note about clusters."""
    trials = [used("a", None, epoch=epoch).trial for epoch in (0, 1)]
    results = ResultList([EvalResult(trial, {"exact": Score(1.0, True)}) for trial in trials])
    result = TokensMetric().compute(results)["mean"]
    assert result == MetricValue(None, 0, skipped=2, kind="mean", unit="tokens")


def test_only_some_clustered_trials_have_known_usage() -> None:
    """The mean covers trials with known usage; the others are counted."""
    trials = [used(name, 10 if name == "a" else None, epoch=e).trial for name in "ab" for e in (0, 1)]
    results = ResultList([EvalResult(trial, {"exact": Score(1.0, True)}) for trial in trials])
    result = TokensMetric().compute(results)["mean"]
    assert (result.value, result.n, result.skipped, result.interval) == (10.0, 2, 2, None)


def spending(name: str, cost: float | None, judge: Usage | None) -> EvalResult:
    """A result whose target cost something and whose judge used something."""
    sessions = {} if judge is None else {"judge": Session([ModelCall("m", judge)])}
    result = Usage(input_tokens=1, cost=cost)
    trial = Trial(Sample(name, "question"), "answer", usage=result)
    return EvalResult(trial, {"judge": Score(1.0, True)}, sessions)


def test_money_is_of_the_trials_whose_price_is_known() -> None:
    """0.2 and 0.4 dollars and one unknown: the mean is 0.3, the total 0.6, one is counted."""
    results = ResultList([spending("a", 0.2, None), spending("b", 0.4, None)])
    results = ResultList([*results, spending("c", None, None)])
    result = CostMetric().compute(results)
    assert result["mean"].value == pytest.approx(0.3)
    assert result["total"].value == pytest.approx(0.6)
    assert (result["total"].n, result["total"].skipped, result["total"].unit) == (2, 1, "USD")


def test_what_judges_used_is_counted_apart() -> None:
    """15 + 30 tokens; one call's price is unknown, which is said and not guessed."""
    results = ResultList(
        [spending("a", None, Usage(10, 5, cost=0.01)), spending("b", None, Usage(20, 10)), spending("c", None, None)]
    )
    result = JudgesMetric().compute(results)
    assert (result["tokens"].value, result["tokens"].n) == (45.0, 2)
    assert (result["cost"].value, result["cost"].n, result["cost"].skipped) == (0.01, 1, 1)
    assert CostMetric().compute(results)["total"].value is None


def test_without_models_there_is_no_money() -> None:
    """Nothing was asked, so there are no numbers, not zeros."""
    results = ResultList([used("a", None)])
    assert CostMetric().compute(results)["total"].value is None
    assert JudgesMetric().compute(results)["tokens"] == MetricValue(None, 0, kind="count", unit="tokens")


def test_free_calls_leave_no_doubt_about_their_cost() -> None:
    """Three calls for nothing are not three failures of a yes-or-no question: no interval."""
    results = ResultList([spending(name, 0.0, None) for name in "abc"])
    assert CostMetric().compute(results)["mean"].interval is None
