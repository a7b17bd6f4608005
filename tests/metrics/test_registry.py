"""The registry: names, defaults, and whatever a user's metric gives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError
from proctor.metrics import MetricRegistry, PassRateMetric
from proctor.records.metric import MetricValue
from proctor.records.results import ResultList, Results
from tests.metrics.examples import mixed, scored
from tests.tables import each_row


class Gives:
    """A metric that gives what it was made with."""

    def __init__(self, name: str, given: Any) -> None:
        self.name = name
        self.given = given

    def compute(self, results: Results) -> Any:
        return self.given


def computed(given: Any) -> dict[str, MetricValue]:
    """What the registry makes of something that a metric gives, over seven results."""
    return MetricRegistry([Gives("mine", given)]).compute_all(mixed())


def test_the_standard_metrics_of_one_evaluator() -> None:
    """Rates, mean scores, the evaluator's own, latency, tokens and money, under flattened names."""
    assert list(MetricRegistry.standard(["exact"]).compute_all(mixed())) == [
        "pass_rate",
        "strict_pass_rate",
        "success_rate",
        "mean_score",
        "exact.pass_rate",
        "exact.mean",
        "exact.p25",
        "exact.p50",
        "exact.p75",
        "exact.p95",
        "latency_ms.mean",
        "latency_ms.p50",
        "latency_ms.p95",
        "latency_ms.max",
        "tokens.mean",
        "tokens.total",
        "cost.mean",
        "cost.total",
        "judges.tokens",
        "judges.cost",
    ]


def test_one_configuration_at_a_time() -> None:
    """The same registry serves the whole run and each configuration."""
    registry = MetricRegistry.standard(["exact"])
    assert registry.compute_all(mixed().for_configuration("default"))["pass_rate"].n == 4
    assert registry.compute_all(mixed().for_configuration("another"))["pass_rate"].value is None


def test_two_metrics_of_one_name_are_refused_when_registered() -> None:
    """Names are unique."""
    registry = MetricRegistry([PassRateMetric()])
    with pytest.raises(EvaluatorError, match="two metrics are called 'pass_rate'"):
        registry.register(Gives("pass_rate", 1.0))


def test_two_metrics_that_flatten_to_one_name_are_refused_when_computed() -> None:
    """`a.b` of one metric and `a.b` of another cannot both be kept."""
    registry = MetricRegistry([Gives("a", {"b": 1.0}), Gives("a.b", 2.0)])
    with pytest.raises(EvaluatorError, match=r"'a' and 'a\.b' both return 'a\.b'"):
        registry.compute_all(mixed())


def test_an_evaluator_named_like_a_standard_metric_is_found_before_the_run() -> None:
    """An evaluator called latency_ms would claim latency_ms.mean a second time."""
    with pytest.raises(EvaluatorError, match="two metrics are called 'latency_ms'"):
        MetricRegistry.standard(["latency_ms"])


def test_a_metric_is_found_by_name_and_a_misspelling_is_answered() -> None:
    """`get` returns what was registered, or names the nearest."""
    metric = PassRateMetric()
    registry = MetricRegistry([metric])
    assert registry.get("pass_rate") is metric
    with pytest.raises(EvaluatorError, match="did you mean 'pass_rate'"):
        registry.get("pas_rate")


def strategy_distribution(results: Results) -> dict[str, float]:
    """The share of outputs of each strategy."""
    outputs = [result.output for result in results if result.success]
    asking = sum("!" in output for output in outputs)
    return {"clarifying": asking / len(outputs), "exploratory": 1 - asking / len(outputs)}


def test_a_function_of_the_results_is_a_metric() -> None:
    """A plain function goes by its own name, and several numbers are flattened."""
    result = MetricRegistry([strategy_distribution]).compute_all(mixed())
    assert result == {
        "strategy_distribution.clarifying": MetricValue(1.0, 7),
        "strategy_distribution.exploratory": MetricValue(0.0, 7),
    }


def test_a_metric_reads_scores_of_results() -> None:
    """The shape of the runner spec: iterate, look at scores, return a number."""

    def best(results: Results) -> float:
        return max(result.scores["exact"].value or 0.0 for result in results)

    assert MetricRegistry([best]).compute_all(ResultList([scored("a", 0.4)]))["best"].value == 0.4


@pytest.mark.parametrize(
    ("given", "value"), [(0.25, 0.25), (3, 3.0), (np.float32(0.5), 0.5), (Fraction(1, 4), 0.25), (None, None)]
)
def test_numbers_of_every_kind_are_taken(given: Any, value: float | None) -> None:
    """Floats, integers, other real numbers and None become a value with the number of results."""
    assert computed(given) == {"mine": MetricValue(value, 7)}


def test_a_metric_value_is_not_changed() -> None:
    """A metric that knows its own n, interval and unit is believed."""
    value = MetricValue(0.5, 3, errors=4, interval=(0.1, 0.9), kind="mean", unit="km", note="far")
    assert computed(value) == {"mine": value}


@each_row(
    "given",
    [
        math.nan,
        math.inf,
        "0.5",
        True,
        [0.5],
        MetricValue(math.nan, 3),
        MetricValue("high", 3),  # type: ignore[arg-type]
        MetricValue(0.5, 3, interval=(0.1, math.inf)),
    ],
)
def test_what_is_no_number_has_no_value_and_a_note(given: Any) -> None:
    """Ruling 1: NaN, infinity and other types never pass for a number."""
    result = computed(given)["mine"]
    assert (result.value, result.n, result.interval) == (None, 0, None)
    assert result.note.endswith("which is not a finite number")


def test_one_bad_part_does_not_spoil_its_neighbours() -> None:
    """Of several numbers only the wrong one has no value."""
    result = computed({"good": 1, "bad": "x"})
    assert result["mine.good"] == MetricValue(1.0, 7)
    assert result["mine.bad"].note == "the metric returned 'x', which is not a finite number"


def test_no_numbers_at_all_are_noted() -> None:
    """An empty mapping leaves a trace."""
    assert computed({}) == {"mine": MetricValue(None, 0, note="the metric returned no numbers")}


class Crumbling(Mapping[str, float]):
    """A mapping that fails when it is read."""

    def __getitem__(self, key: str) -> float:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        yield "p50"

    def __len__(self) -> int:
        return 1


def test_a_failing_metric_is_noted_and_does_not_affect_the_others() -> None:
    """Ruling 2: an exception is that metric's alone."""

    def broken(results: Results) -> float:
        return 1 / 0

    registry = MetricRegistry([broken, Gives("late", Crumbling()), PassRateMetric()])
    result = registry.compute_all(mixed())
    assert result["broken"].note == "the metric failed: ZeroDivisionError: division by zero"
    assert result["late"].note == "the metric failed: KeyError: 'p50'"
    assert result["pass_rate"].value == 0.75


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.binary(),
        lambda inner: st.dictionaries(st.text(), inner, max_size=3) | st.lists(inner, max_size=3),
        max_leaves=6,
    )
)
def test_whatever_a_metric_gives_becomes_finite_values_or_none(given: Any) -> None:
    """No answer of a metric raises, and none puts a NaN or an infinity into the report."""
    for value in computed(given).values():
        assert value.value is None or math.isfinite(value.value)


async def asynchronous(results: Results) -> float:
    """A metric that nobody would await."""
    return 1.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (PassRateMetric, "PassRateMetric is a class"),
        (3, "3 is not a metric"),
        (Gives("", 1.0), "Gives has no name"),
        (asynchronous, "cannot be async"),
    ],
)
def test_what_is_no_metric_is_refused_when_registered(given: Any, message: str) -> None:
    """Classes, numbers, nameless objects and async functions are distinguished from metrics."""
    with pytest.raises(EvaluatorError, match=message):
        MetricRegistry().register(given)
