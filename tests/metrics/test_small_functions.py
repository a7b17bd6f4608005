"""Small functions of `proctor.metrics`, each by an example."""

from __future__ import annotations

from array import array

from proctor.evaluators.score_conversion import NO_SESSION
from proctor.metrics.builtin import (
    AccuracyMetric,
    CostMetric,
    JudgesMetric,
    LatencyMetric,
    MeanScoreMetric,
    PassRateMetric,
    ScoreDistributionMetric,
    StrictPassRateMetric,
    SuccessRateMetric,
    TokensMetric,
)
from proctor.metrics.estimates import compute_outcome_rate, estimate_mean, estimate_rate, estimate_unbounded_mean
from proctor.metrics.registry import is_metric
from proctor.metrics.warnings import MAX_REASON_LENGTH, MissingVerdicts, _shorten_reason, describe_judge, find_evaluator
from proctor.records.results import Column, ResultList


def test_reasons_are_cut_after_a_word() -> None:
    """The reason for a missing session is whole; a longer one ends with a word and an ellipsis."""
    assert _shorten_reason(NO_SESSION) == NO_SESSION
    assert _shorten_reason("word " * 100) == f"{'word ' * (MAX_REASON_LENGTH // 5 - 1)}word …"
    assert len(_shorten_reason("x" * 1000)) == MAX_REASON_LENGTH + 2


def test_success_rate_metric() -> None:
    """The share of results whose target returned an output."""
    assert SuccessRateMetric().compute(ResultList([])).value is None


def test_pass_rate_metric() -> None:
    """The share of results with a verdict that passed: of one evaluator, or of all combined."""
    assert (PassRateMetric().name, PassRateMetric("exact_match").name) == ("pass_rate", "exact_match.pass_rate")


def test_strict_pass_rate_metric() -> None:
    """The share that passed, with errors counted as not passed. Gates use this one."""
    assert StrictPassRateMetric().name == "strict_pass_rate"


def test_mean_score_metric() -> None:
    """The mean score of one evaluator, or of all combined if none is named."""
    assert (MeanScoreMetric("exact_match").name, MeanScoreMetric().name) == ("exact_match.mean", "mean_score")


def test_accuracy_metric() -> None:
    """The share of an evaluator's scores that reach a threshold: `score >= threshold`."""
    assert AccuracyMetric("similarity", threshold=0.8).name == "similarity.accuracy"


def test_score_distribution_metric() -> None:
    """The percentiles p25, p50, p75 and p95 of an evaluator's scores, named `exact_match.p50` and so on."""
    assert ScoreDistributionMetric("exact_match").name == "exact_match"


def test_latency_metric() -> None:
    """The latency of the target in milliseconds, failures included: mean, p50, p95 and max."""
    assert LatencyMetric().name == "latency_ms"


def test_tokens_metric() -> None:
    """The tokens that the results used: mean and total, over the trials with a known usage."""
    assert TokensMetric().name == "tokens"


def test_cost_metric() -> None:
    """The cost of the target's models in US dollars: mean and total."""
    assert CostMetric().name == "cost"


def test_judges_metric() -> None:
    """The total usage of the evaluators' models: tokens and US dollars."""
    assert JudgesMetric().name == "judges"


def test_estimate_rate() -> None:
    """Return the rate of independent results, with Wilson's interval."""
    assert estimate_rate(3, 4).value == 0.75


def test_estimate_mean() -> None:
    """Return the mean of a column; its interval has no numbers below 0, and no scores above 1."""
    assert estimate_mean(Column(array("d", [0.5, 1.0]))).interval == (0.0, 1.0)


def test_estimate_unbounded_mean() -> None:
    """Return the mean of a column of any numbers."""
    assert estimate_unbounded_mean(Column(array("d", [-2.0, 4.0]))).value == 1.0


def test_compute_outcome_rate() -> None:
    """Return the rate of results by outcome; `counted` holds 1 or 0 for each outcome that counts."""
    assert compute_outcome_rate(ResultList([]), {"passed": 1.0, "failed": 0.0}).value is None


def test_is_metric() -> None:
    """True for an object or class with `compute`, and for a function of the results."""
    assert (is_metric(PassRateMetric), is_metric(lambda results: 0.0), is_metric(lambda output: True)) == (
        True,
        True,
        False,
    )


def test_describe_judge() -> None:
    """Describe the measured quality of a local model as a judge; empty for any other model."""
    assert describe_judge("openai:gpt-4o-mini") == ""


def test_missing_verdicts_exceeds_limit() -> None:
    """True if more than a tenth is missing."""
    assert (MissingVerdicts(1, 10).exceeds_limit, MissingVerdicts(2, 10).exceeds_limit) == (False, True)


def test_find_evaluator() -> None:
    """Say whether a metric is based on scores, and of which evaluator; None means all evaluators."""
    assert (find_evaluator("pass_rate", None), find_evaluator("latency_ms.p50", None)) == ((True, None), (False, None))
