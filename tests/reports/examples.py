"""Reports made by hand, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.records.metric import MetricValue
from proctor.records.run import DatasetInfo, RunMetadata, TargetSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Failure, Trial

RIGHT, WRONG = Score(1.0, True), Score(0.0, False, "expected 'Paris', found 'Lyon'")


def result(
    sample_id: str,
    scores: Mapping[str, Score] | None = None,
    *,
    output: Any = "Lyon",
    error: Failure | None = None,
    configuration: str = "default",
) -> EvalResult:
    """One result on the question every test asks."""
    sample = Sample(sample_id, "What is the capital of France?", "Paris")
    trial = Trial(sample, None if error else output, error, latency_ms=120.0, configuration=configuration)
    return EvalResult(trial, dict(scores or {}))


METRICS = {
    "pass_rate": MetricValue(0.5, 4, 2, 1, (0.15, 0.85), kind="rate"),
    "strict_pass_rate": MetricValue(2 / 6, 6, 0, 1, (0.0968, 0.7), kind="rate"),
    "exact.mean": MetricValue(0.55, 4, 2, 1, (0.0, 1.0), kind="mean", note="clustered"),
    "exact.p25": MetricValue(0.15, 4, 2, 1, kind="quantile"),
    "exact.p50": MetricValue(0.6, 4, 2, 1, kind="quantile"),
    "exact.p75": MetricValue(1.0, 4, 2, 1, kind="quantile"),
    "exact.p95": MetricValue(1.0, 4, 2, 1, kind="quantile"),
    "latency_ms.mean": MetricValue(120.0, 7, interval=(88.4, 151.6), kind="mean", unit="ms"),
    "tokens.total": MetricValue(None, 0, skipped=7, kind="count", unit="tokens"),
    "length": MetricValue(None, 0, note="the metric failed: ZeroDivisionError: division by zero"),
}


def run(**changes: Any) -> RunMetadata:
    """A finished run over a file of seven questions."""
    facts: dict[str, Any] = {
        "run_id": "20240127-143000-abc123",
        "name": "capitals",
        "started_at": datetime(2024, 1, 27, 14, 30, tzinfo=UTC),
        "status": "completed",
        "duration_seconds": 45.2,
        "total": 7,
        "dataset": DatasetInfo("capitals.jsonl", length=7),
        "target": TargetSpec("geographer", "python"),
        "environment": {"proctor": "1.2.3"},
    }
    return RunMetadata(**{**facts, **changes})


def mixed_report(**changes: Any) -> EvalReport:
    """Two passed, two failed, one time-out, one broken evaluator, one skipped."""
    results = [
        result("q1", {"exact": RIGHT}, output="Paris"),
        result("q2", {"exact": Score(0.2, False, "not the same")}, output="Lyon,\nI think"),
        result("q3", {"exact": RIGHT}, output="Paris"),
        result("q4", {"exact": WRONG}),
        result("q5", error=Failure("TimeoutError", "no answer after 30 s")),
        result("q6", {"exact": Score.error("the judge gave no verdict")}),
        result("q7", {"exact": Score.skipped("no expected value")}),
    ]
    return EvalReport(results, run(**changes), METRICS)


def two_configurations() -> EvalReport:
    """The same question asked of a fast and of a careful configuration."""
    careful = {
        "pass_rate": MetricValue(1.0, 2, interval=(0.3424, 1.0), kind="rate"),
        "exact.p50": MetricValue(1.0, 2, kind="quantile"),
    }
    fast = {
        "pass_rate": MetricValue(0.0, 1, 1, interval=(0.0, 0.7935), kind="rate"),
        "latency_ms.mean": MetricValue(12.5, 2, kind="mean", unit="ms"),
    }
    results = [
        result("q1", {"exact": RIGHT}, output="Paris", configuration="careful"),
        result("q1", {"exact": WRONG}, configuration="fast"),
        result("q2", {"exact": RIGHT}, output="Paris", configuration="careful"),
        result("q2", error=Failure("TimeoutError", ""), configuration="fast"),
    ]
    metadata = run(configurations=(Configuration("careful"), Configuration("fast")), total=4)
    overall = {
        "pass_rate": MetricValue(2 / 3, 3, 1, interval=(0.2077, 0.9385), kind="rate"),
        "exact.p50": MetricValue(1.0, 3, kind="quantile"),
    }
    return EvalReport(results, metadata, overall, {"careful": careful, "fast": fast})
