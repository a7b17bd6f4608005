"""Thresholds are lowest allowed values; for metrics where lower is better, the error suggests an alternative."""

from __future__ import annotations

import pytest

from proctor import evaluate, exact_match
from proctor.comparison.gates.thresholds import LOWER_IS_BETTER, find_shortfalls, require_reachable
from proctor.errors import ConfigError
from proctor.metrics.registry import MetricRegistry
from proctor.records.results import ResultList


def shout(text: str) -> str:
    return text.upper()


def fail(text: str) -> str:
    raise ValueError(text)


@pytest.mark.parametrize(
    ("metric", "alternative"),
    [
        ("latency_ms.mean", "latency: {max_ms: 2000}"),
        ("latency_ms.p95", "--metric latency_ms.mean=10%"),
        ("tokens.total", "--budget tokens=100000"),
        ("cost.total", "--budget cost=5"),
        ("judges.cost", "--budget cost=5"),
    ],
)
def test_a_limit_on_what_should_be_low_is_refused_with_what_limits_it(metric: str, alternative: str) -> None:
    """10 would mean "at least 10 ms" or "at least $10"; a share such as 0.8 is no way out."""
    with pytest.raises(ConfigError) as caught:
        require_reachable({metric: 10.0})
    assert f"lower is better for {metric}" in caught.value.what
    assert alternative in (caught.value.fix or "")
    assert "0.8" not in (caught.value.fix or "")
    report = evaluate(shout, [{"id": "1", "input": "a"}], [exact_match], history=False)
    with pytest.raises(ConfigError, match="lower is better"):
        find_shortfalls(report, {metric: 10.0})


def test_every_standard_metric_has_a_direction() -> None:
    """What is neither a rate nor a score from 0 to 1 is among those where lower is better."""
    names = MetricRegistry.of_run((), {}).compute_all(ResultList(()))
    bounded = {name for name in names if name.endswith("rate") or name == "mean_score"}
    assert bounded == {"pass_rate", "strict_pass_rate", "success_rate", "mean_score"}
    assert all(name.startswith(tuple(LOWER_IS_BETTER)) for name in set(names) - bounded)


def test_a_metric_without_a_value_does_not_reach_its_threshold() -> None:
    """It is not called "unknown, below 0.9": there is nothing that could be below."""
    report = evaluate(fail, [{"id": "1", "input": "a"}], [exact_match], history=False)
    assert find_shortfalls(report, {"exact_match.mean": 0.9}) == [
        "exact_match.mean has no value, because no result was scored; the threshold is 0.9 (n = 0, 1 missing)"
    ]
