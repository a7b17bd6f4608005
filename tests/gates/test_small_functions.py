"""Small functions of `proctor.comparison.gates`, each by an example."""

from __future__ import annotations

from proctor.comparison.describe import describe_count, describe_flips
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.gates.gaps import Gap
from proctor.comparison.gates.margins import resolve_margins
from proctor.comparison.gates.thresholds import read_threshold, suggest_metric
from proctor.comparison.sides import Side
from proctor.records.metric import MetricValue


def test_decide() -> None:
    """Check a run against its baseline: one pair of sides per configuration, the new one first."""
    passed = {str(i): 1.0 for i in range(200)}
    new, old = (Side(n, {"pass_rate": passed}, samples=tuple(passed)) for n in ("new", "old"))
    assert decide([(new, old)], GateConfig({"pass_rate": 0.02})).verdict == "pass"


def test_resolve_margins() -> None:
    """Return the margin of each metric, `margin` by default; the strict pass rate if none is named."""
    assert (resolve_margins({}), resolve_margins({"latency_ms.mean": 0.1, "pass_rate": None}, 0.03)) == (
        {"strict_pass_rate": 0.02},
        {"latency_ms.mean": 0.1, "pass_rate": 0.03},
    )


def test_describe_count() -> None:
    """Say how many values a metric is computed from, and how many it could not use."""
    assert describe_count(MetricValue(0.9, 38, errors=22)) == " (n = 38, 22 missing, no interval)"


def test_describe_flips() -> None:
    """Say how many samples were lost, and how many may be."""
    assert describe_flips(1, 3) == "1 sample passed in the baseline and fails now; the limit is 3"


def test_gap_exceeds() -> None:
    """True if more are missing than the limit: a share, or a count if it is an integer."""
    assert (Gap(3, 30).exceeds(0.1), Gap(4, 30).exceeds(0.1), Gap(4, 30).exceeds(5)) == (False, True, False)


def test_gap_describe() -> None:
    """The description names the missing samples."""
    assert Gap(4, 30, 3).describe("this run") == "4 of 30 samples have no value in this run, or an incomplete one (3)"


def test_read_threshold() -> None:
    """Read a threshold from a file, an option or Python: a number, or a text: 0.8 or 80%."""
    assert (read_threshold("80%", "fail_under"), read_threshold(0.5, "fail_under")) == (0.8, 0.5)


def test_suggest_metric() -> None:
    """Suggest a metric: one of the evaluator of that name, one with that prefix, or the nearest."""
    assert suggest_metric("total", ["cost.total", "total_score"]) == "did you mean 'total_score'?"
