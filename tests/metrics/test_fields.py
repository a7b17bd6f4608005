"""Means of fields, and of the evaluators that a field's score is made of."""

from __future__ import annotations

import math
from typing import Any

import pytest

from proctor import EvalResult, MetricRegistry, MetricValue, Sample, Score, Trial, Usage
from proctor.errors import EvaluatorError
from proctor.metrics.estimates import FieldsMetric
from proctor.records.results import ResultList
from proctor.records.run import EvaluatorSpec
from proctor.records.trial import Failure


def repr_of(value: Any) -> str:
    return repr(value)[:10]


FIELDS = {"tokens": "usage.total_tokens", "out": "output", "absent": "metadata.absent"}


def result(number: int, output: Any = "x", **scores: Score) -> EvalResult:
    sample: Sample[str, str] = Sample(f"s{number}", "q")
    return EvalResult(Trial(sample, output, usage=Usage(number, 1)), scores)


def failed(number: int) -> EvalResult:
    sample: Sample[str, str] = Sample(f"s{number}", "q")
    return EvalResult(Trial(sample, error=Failure("ValueError", "no")))


def computed(*results: EvalResult, fields: dict[str, str] = FIELDS) -> dict[str, MetricValue]:
    return FieldsMetric(fields).compute(ResultList(results))


def test_the_mean_of_a_field_that_has_numbers() -> None:
    """With how many there are, how many failed, how many have none, and an interval."""
    actual = computed(result(1, 4), result(3, "four"), result(5, 6), failed(9))
    assert set(actual) == {"tokens", "out"}
    assert actual["tokens"].value == 4.0
    assert (actual["tokens"].n, actual["tokens"].errors, actual["tokens"].skipped) == (3, 1, 0)
    assert (actual["out"].value, actual["out"].n, actual["out"].skipped) == (5.0, 2, 1)
    assert actual["tokens"].interval is not None
    # 4 ± 4.303 (Student's t, 2 degrees) × 2 / √3.
    assert actual["tokens"].interval[0] == pytest.approx(4 - 4.9683, abs=1e-3)
    assert actual["tokens"].interval[1] == pytest.approx(4 + 4.9683, abs=1e-3)


@pytest.mark.parametrize("odd", [None, "4", [4], math.nan, math.inf, 10**400], ids=repr_of)
def test_what_is_no_number_has_no_mean(odd: Any) -> None:
    """Texts, lists, NaN, infinity and what no float holds have no mean."""
    assert "out" not in computed(result(1, odd))


def test_booleans_count_as_0_and_1() -> None:
    """Their mean is the share that is true, as in comparisons and rankings."""
    actual = computed(result(1, True), result(2, False), result(3, True), result(4, True))
    assert (actual["out"].value, actual["out"].n) == (0.75, 4)


def test_the_evaluators_of_a_field_have_means_of_their_own() -> None:
    """From the scores it was made of, as they are in memory and as they were stored."""
    parts = {"a": Score(0.5, True), "b": Score.error("no")}
    stored = {"a": {"value": 1.0, "passed": True}, "b": {"value": 0.25, "passed": False}}
    actual = computed(
        result(1, out=Score(0.5, True, details={"parts": parts})),
        result(2, out=Score(1.0, True, details={"parts": stored})),
    )
    assert (actual["out.a"].value, actual["out.a"].n) == (0.75, 2)
    assert (actual["out.b"].value, actual["out.b"].n, actual["out.b"].skipped) == (0.25, 1, 1)


@pytest.mark.parametrize("parts", [{"a": 1}, {"a": {"value": "much"}}, {"a": None}, ["a"], "a"])
def test_details_of_another_kind_are_passed_over(parts: Any) -> None:
    """An evaluator may call something `parts` as it likes; the fields' means do not suffer."""
    actual = computed(result(3, out=Score(1.0, True, details={"parts": parts})))
    assert set(actual) == {"tokens"}


def test_only_parts_of_fields_are_listed() -> None:
    """A combination that is no field has none of its numbers among them."""
    parts = {"a": Score(0.5, True)}
    actual = computed(result(1, all_of=Score(0.5, True, details={"parts": parts})))
    assert set(actual) == {"tokens"}


def spec(name: str, uses: str = "field", *parts: str) -> EvaluatorSpec:
    return EvaluatorSpec(name, uses, {"evaluators": [{"name": part} for part in parts]})


def test_a_run_with_fields_has_their_metrics() -> None:
    """Those of a field's score begin with `field.`: a field may be called as a metric is."""
    registry = MetricRegistry.of_run(
        [spec("tokens", "field", "few"), spec("exact_match", "exact_match")], {"tokens": "usage.total_tokens"}
    )
    score = Score(1.0, True, details={"parts": {"few": Score(1.0, True)}})
    actual = registry.compute_all(ResultList([result(1, tokens=score, exact_match=Score(0.0, False))]))
    assert actual["field.tokens"].value == 2.0
    assert actual["field.tokens.few"].value == 1.0
    assert actual["field.tokens.pass_rate"].value == 1.0
    assert actual["field.tokens.score"].value == 1.0
    assert actual["exact_match.pass_rate"].value == 0.0
    assert actual["tokens.mean"].value == 2.0


def test_without_fields_there_are_none() -> None:
    """Runs as before have the metrics they had."""
    specs = [spec("exact_match", "exact_match")]
    with_none = MetricRegistry.of_run(specs, {}).compute_all(ResultList([]))
    assert with_none.keys() == MetricRegistry.standard(["exact_match"]).compute_all(ResultList([])).keys()


@pytest.mark.parametrize("name", ["pass_rate", "score", "p50"])
def test_an_evaluator_may_not_be_called_like_a_number_of_its_field(name: str) -> None:
    """Two metrics would have one name: it is refused before the run, not after it."""
    with pytest.raises(EvaluatorError, match="has the name of a metric of the field"):
        MetricRegistry.of_run([spec("out", "field", name)], {"out": "output"})


def test_without_numbers_it_says_so() -> None:
    """A metric over nothing has no value."""
    registry = MetricRegistry.of_run([], {"absent": "metadata.absent"})
    actual = registry.compute_all(ResultList([result(1)]))
    assert actual["field"].value is None
