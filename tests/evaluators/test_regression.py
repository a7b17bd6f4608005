"""Regression evaluators: worse in which direction, and by how much."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.decorator import get_info
from proctor.evaluators.regression import latency_regression, no_regression, token_regression
from proctor.records.fields.context import FieldContext
from proctor.records.numbers import higher_is_better
from proctor.records.sample import Sample
from proctor.records.trial import Trial
from tests.tables import each_row


def field(name: str, now: Any, before: Any) -> FieldContext:
    """A field with its recorded baseline."""
    return FieldContext(name, {name: now, f"baseline_{name}": before})


@each_row(
    ("name", "now", "before", "passed", "value"),
    [
        ("score", 0.9, 0.8, True, 1.0),
        ("score", 0.8, 0.8, True, 1.0),
        ("score", 0.6, 0.8, False, 0.75),
        ("cost", 0.6, 0.8, True, 1.0),
        ("cost", 1.0, 0.8, False, 0.75),
        ("total_tokens", 2000, 500, False, 0.0),
        ("latency_ms", 90, 100, True, 1.0),
        ("errors", 0, 0, True, 1.0),
        ("errors", 1, 0, False, 0.0),
        ("accuracy", 1, 0, True, 1.0),
        ("reward", -3, -2, False, 0.5),
        ("passed", False, True, False, 0.0),
        ("passed", True, False, True, 1.0),
    ],
)
def test_worse_depends_on_what_it_is(name: str, now: float, before: float, passed: bool, value: float) -> None:
    """Less is worse for a score and better for a cost; the value is 1 - the share it is worse."""
    score = no_regression(field(name, now, before))
    assert score.passed is passed
    assert score.value == pytest.approx(value)
    assert score.details["higher_is_better"] is higher_is_better(name)


def test_an_explicit_direction_overrides_the_name() -> None:
    assert no_regression(field("cost", 2, 1), direction="higher").passed
    assert not no_regression(field("warmth", 2, 1), direction="lower").passed
    renamed = FieldContext(
        "speed", {"usage": {"total_tokens": 2}, "baseline_usage": {"total_tokens": 1}},
        path="usage.total_tokens",
    )  # fmt: skip
    assert not no_regression(renamed).passed


def test_a_name_without_direction_is_skipped_unless_unchanged() -> None:
    changed = no_regression(field("warmth", 2, 1))
    assert changed.status == "skipped"
    assert "direction='higher'" in changed.reason
    assert no_regression(field("warmth", 2, 2)).passed


def test_a_tolerance_is_a_share_of_the_baseline() -> None:
    """5% worse passes with a tolerance of 0.05, and not with 0.04; of 0 there is no share."""
    assert no_regression(field("score", 0.95, 1.0), tolerance=0.05).value == 1.0
    assert not no_regression(field("score", 0.95, 1.0), tolerance=0.04).passed
    zero = no_regression(field("errors", 1, 0), tolerance=0.5)
    assert not zero.passed
    assert "baseline of 0" in zero.reason


@pytest.mark.parametrize(("now", "before"), [("Paris", "Lyon"), ([1, 2], [2, 1]), ("4", 4), (True, 1.0), (5, "5")])
def test_values_that_are_not_numbers_cannot_be_worse(now: Any, before: Any) -> None:
    score = no_regression(field("score", now, before))
    assert score.status == "skipped"
    assert "only numbers can be better or worse" in score.reason


def test_an_unchanged_text_passes() -> None:
    assert no_regression(field("output", "Paris", "Paris")).passed
    assert no_regression(field("output", {"a": 1, "b": 2}, {"b": 2, "a": 1})).value == 1.0


def test_nothing_to_compare_is_skipped_and_nan_is_an_error() -> None:
    assert no_regression(field("score", 0.5, None)).status == "skipped"
    assert no_regression(field("score", None, 0.5)).status == "skipped"
    assert no_regression(field("score", math.nan, 0.5)).status == "error"
    assert no_regression(field("score", 0.5, math.nan)).status == "error"


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e6))
def test_of_two_different_numbers_one_way_is_a_regression(now: float, before: float) -> None:
    there = no_regression(field("cost", now, before)).passed
    back = no_regression(field("cost", before, now)).passed
    assert (there and back) is (now == before)
    assert there or back


@pytest.mark.parametrize(("now", "passed", "value"), [(550, True, 1.0), (650, False, 0.7), (1200, False, 0.0)])
def test_token_regression_is_a_share_of_the_baseline(now: int, passed: bool, value: float) -> None:
    """10% more passes; the value is then 1 - increase."""
    score = token_regression(field("tokens", now, 500))
    assert score.passed is passed
    assert score.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("now", "before", "passed", "value"),
    [
        (1200, 1000, True, 1.0),
        (1400, 1000, False, 0.5),
        (900, 1000, True, 1.0),
        (200, 0, True, 1.0),
        (201, 0, False, 200 / 201),
    ],
)
def test_latency_regression_is_a_difference(now: float, before: float, passed: bool, value: float) -> None:
    """200 ms more pass, from a baseline of 0 too; then it is the limit's share of the rise."""
    score = latency_regression(field("latency_ms", now, before))
    assert score.passed is passed
    assert score.value == pytest.approx(value)


def test_regressions_without_a_baseline_are_skipped() -> None:
    for one in (token_regression, latency_regression):
        assert one(field("tokens", 500, None)).status == "skipped"
        assert one(field("tokens", "500", 500)).status == "error"


def test_latency_regression_says_what_it_saw() -> None:
    score = latency_regression(field("latency_ms", 1234.56, 1000.25))
    assert score.reason == "latency_ms 1000.2 -> 1234.6: +234.3 ms (allowed: +200 ms)"
    assert score.details["delta"]["absolute"] == pytest.approx(234.31)


@pytest.mark.parametrize(
    ("evaluator", "option"),
    [(no_regression, "tolerance"), (token_regression, "max_pct"), (latency_regression, "max_ms")],
)
def test_bad_options_are_refused_when_attached(evaluator: Any, option: str) -> None:
    with pytest.raises(EvaluatorError, match=option):
        attach(evaluator, parameters={option: -1})
    with pytest.raises(EvaluatorError, match=r"direction must be 'auto', 'higher' or 'lower', got 'up'"):
        attach(no_regression, parameters={"direction": "up"})


def test_outside_a_field_block_each_looks_at_its_own_field() -> None:
    sample: Sample[str, Any] = Sample("1", "?", metadata={"baseline_latency_ms": 1000.0, "baseline_output": "4"})
    trial = Trial(sample, "4", latency_ms=1100.0)
    assert attach(latency_regression).score(trial).reason.startswith("latency_ms 1000 -> 1100")
    assert attach(no_regression).score(trial).reason == "output is unchanged"


def test_the_catalogue_names_category_parameters_and_defaults() -> None:
    found = {}
    for one in (no_regression, token_regression, latency_regression):
        info = get_info(one)
        assert info is not None
        assert info.category == "regression"
        found[info.name] = {p.name: p.default for p in info.parameters}
    assert found == {
        "no_regression": {"direction": "auto", "tolerance": 0.0},
        "token_regression": {"max_pct": 10},
        "latency_regression": {"max_ms": 200},
    }


@each_row(
    ("name", "better"),
    [
        ("usage.total_tokens", False),
        ("latency_ms", False),
        ("totalTokens", False),
        ("error_rate", False),
        ("latency_score", True),
        ("tokens_per_second", True),
        ("cost_per_token", False),
        ("errors_per_second", False),
        ("scores.output.tone", True),
        ("F1", True),
        ("output", None),
        ("timestamp", None),
        ("tokens_saved", True),
        ("time_saved", True),
        ("cost_savings", True),
        ("errors_fixed", True),
        ("error_free", True),
        ("errorsFixedPerRun", True),
        ("tokens_left", None),
        ("token_limit", None),
        ("limits.tokens", None),
        ("max_tokens", None),
        ("timeout_ms", None),
        ("fixed_cost", None),
        ("cached_tokens", None),
        ("time_saved_limit", None),
        ("max_errors_fixed", None),
        ("score_threshold", None),
        ("saved", None),
    ],
)
def test_a_name_tells_which_way_is_better(name: str, better: bool | None) -> None:
    assert higher_is_better(name) is better
