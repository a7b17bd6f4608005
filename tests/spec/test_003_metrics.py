"""The runner spec: metrics and their registry."""

from __future__ import annotations

from typing import Any

import pytest

from proctor import EvalRunner, MetricRegistry, ProctorError, Sample, evaluate, exact_match
from proctor.metrics import AccuracyMetric, MeanScoreMetric, ScoreDistributionMetric, SuccessRateMetric
from proctor.records.results import ResultList
from tests.spec.clauses import clause
from tests.spec.runner_examples import double, report_of

ROWS = [("1", "a", "aa"), ("2", "b", "x"), ("3", "c", "cc"), ("4", "bad", "x")]


class Longest:
    """A metric object: a name, and a method `compute`."""

    name = "longest"

    def compute(self, results: Any) -> float:
        """The length of the longest output."""
        return float(max(len(result.output or "") for result in results))


def graded(values: list[float]) -> Any:
    """The results of an evaluator `grade` that gives these values."""
    samples: list[Sample[str, str]] = [Sample(str(n), str(value)) for n, value in enumerate(values)]

    def grade(output: str) -> float:
        return float(output)

    return evaluate(lambda text: text, samples, {"grade": grade}, history=False).results


@clause("003.METRIC.1", "4. Metrics")
def test_an_object_with_name_and_compute_is_a_metric() -> None:
    """An object with `name` and `compute(results)` is a metric, without a base class."""
    report = EvalRunner(double, exact_match, [Longest()]).run([Sample("1", "abc"), Sample("2", "a")], history=False)
    assert report.metrics["longest"].value == 6.0


@clause("003.METRIC.2", "4. Metrics")
def test_a_metric_is_registered_and_found_by_name() -> None:
    """A registry gives a registered metric back by its name."""
    registry, metric = MetricRegistry(), Longest()
    registry.register(metric)
    assert registry.get("longest") is metric


@clause("003.METRIC.3", "4. Metrics")
def test_an_unknown_metric_is_named_with_the_nearest() -> None:
    """Asking a registry for an unknown name raises an error that suggests a known one."""
    with pytest.raises(ProctorError, match="did you mean 'longest'"):
        MetricRegistry([Longest()]).get("longst")


@clause("003.METRIC.4", "4. Metrics", ruling="runner: metric names are unique")
def test_the_name_of_a_metric_is_unique() -> None:
    """Two metrics of one name are refused when the second is registered."""
    with pytest.raises(ProctorError, match="two metrics are called 'longest'"):
        MetricRegistry([Longest(), Longest()])


@clause("003.METRIC.5", "4. Metrics")
def test_a_registry_computes_all_its_metrics() -> None:
    """`compute_all` gives the value of every registered metric by name."""
    results = report_of(ROWS).results
    computed = MetricRegistry([Longest(), SuccessRateMetric()]).compute_all(results)
    assert {name: value.value for name, value in computed.items()} == {
        "longest": 2.0, "success_rate": 0.75,
    }  # fmt: skip


@clause("003.METRIC.6", "4. Metrics")
def test_the_registry_of_a_run_has_defaults() -> None:
    """Without metrics of the user's own a run has the built-in ones."""
    metrics = report_of(ROWS).metrics
    assert {"success_rate", "pass_rate", "exact_match.mean", "exact_match.p50"} <= metrics.keys()


@clause("003.METRIC.7", "4. Metrics")
def test_the_mean_score_is_the_average_of_an_evaluator() -> None:
    """The mean score of 0.2, 0.4 and 0.9 is 0.5."""
    assert MeanScoreMetric("grade").compute(graded([0.2, 0.4, 0.9])).value == pytest.approx(0.5)


@clause("003.METRIC.8", "4. Metrics", ruling="one score")
def test_errors_are_left_out_of_the_mean_and_counted() -> None:
    """A result without a verdict is no 0 in the mean; it is counted as missing."""
    mean = report_of(ROWS).metrics["exact_match.mean"]
    assert mean.value == pytest.approx(2 / 3)
    assert (mean.n, mean.errors) == (3, 1)


@clause("003.METRIC.9", "4. Metrics")
def test_accuracy_is_the_share_that_reaches_a_threshold() -> None:
    """Of 0.2, 0.6 and 0.9 two thirds reach 0.5, and one third 0.7."""
    results = graded([0.2, 0.6, 0.9])
    assert AccuracyMetric("grade").compute(results).value == pytest.approx(2 / 3)
    assert AccuracyMetric("grade", threshold=0.7).compute(results).value == pytest.approx(1 / 3)


@clause("003.METRIC.10", "4. Metrics")
def test_the_success_rate_is_the_share_without_error() -> None:
    """Three of four samples gave an output: the success rate is 0.75."""
    assert report_of(ROWS).metrics["success_rate"].value == 0.75


@clause("003.METRIC.11", "4. Metrics", ruling="runner: metrics are flattened")
def test_the_score_distribution_gives_percentiles() -> None:
    """The percentiles p25, p50, p75 and p95 of 0, 1/4, 1/2, 3/4 and 1 are 0.25, 0.5, 0.75, 0.95."""
    result = ScoreDistributionMetric("grade").compute(graded([0.0, 0.25, 0.5, 0.75, 1.0]))
    assert {name: value.value for name, value in result.items()} == pytest.approx(
        {"p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
    )


@clause("003.METRIC.12", "4. Metrics", ruling="one score")
def test_a_metric_over_nothing_has_no_value() -> None:
    """A mean, an accuracy or a rate over no results is unknown, not 0."""
    nothing = ResultList([])
    metrics: list[Any] = [MeanScoreMetric("x"), AccuracyMetric("x"), SuccessRateMetric()]
    assert [metric.compute(nothing).value for metric in metrics] == [None, None, None]


@clause("003.METRIC.13", "4. Metrics", ruling="a bad trial is data")
def test_a_metric_that_fails_does_not_touch_the_others() -> None:
    """A metric that raises has no value and a note with the reason; the run and the rest stay."""

    class Broken:
        name = "broken"

        def compute(self, results: Any) -> float:
            raise RuntimeError("no")

    report = EvalRunner(double, exact_match, [Broken()]).run([Sample("1", "a", "aa")], history=False)
    assert report.metrics["broken"].value is None
    assert "RuntimeError: no" in report.metrics["broken"].note
    assert report.metrics["pass_rate"].value == 1.0


class StrategyDistribution:
    """The spec's custom metric: the share of each strategy among all questions."""

    name = "strategy_distribution"

    def compute(self, results: Any) -> dict[str, float]:
        """Three shares that add up to 1."""
        counts = {"clarifying": 0, "exploratory": 0, "deepening": 0}
        for result in results:
            for question in result.output:
                if "clarify" in question.lower():
                    counts["clarifying"] += 1
                elif "explore" in question.lower():
                    counts["exploratory"] += 1
                else:
                    counts["deepening"] += 1
        total = sum(counts.values()) or 1
        return {name: count / total for name, count in counts.items()}


@clause("003.EXTENSION.5", "Custom Metric", ruling="runner: metrics are flattened")
def test_the_custom_metric_of_the_spec_gives_several_numbers() -> None:
    """A metric that gives several numbers is kept as `name.part` for each of them."""
    samples: list[Sample[Any, Any]] = [Sample("1", ["Clarify this?", "Explore that?"]), Sample("2", ["Why?", "How?"])]
    report = EvalRunner(lambda texts: texts, [lambda output: True], [StrategyDistribution()]).run(
        samples, history=False
    )
    assert {
        name: value.value for name, value in report.metrics.items() if name.startswith("strategy_distribution.")
    } == {
        "strategy_distribution.clarifying": 0.25,
        "strategy_distribution.exploratory": 0.25,
        "strategy_distribution.deepening": 0.5,
    }
