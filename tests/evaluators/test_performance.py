"""Performance evaluators: limits, missing and zero baselines, values that cannot be."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError, FieldMissing
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.decorator import get_info
from proctor.evaluators.performance import latency, throughput, token_efficiency
from proctor.records.fields.context import FieldContext
from proctor.records.sample import Sample
from proctor.records.session import Usage
from proctor.records.trial import Trial
from tests.tables import each_row


def tokens(now: Any, before: Any = None) -> FieldContext:
    """A field of tokens with its baseline."""
    return FieldContext("tokens", {"tokens": now, "baseline_tokens": before})


@each_row(
    ("now", "before", "passed", "value"),
    [
        (540, 500, True, 1.0),
        (550, 500, True, 1.0),  # just the limit
        (551, 500, False, 0.898),
        (650, 500, False, 0.7),
        (1100, 500, False, 0.0),  # more than twice: not below 0
        (100, 500, True, 1.0),
        (0, 0, True, 1.0),
        (3, 0, False, 0.0),
        (0, 500, True, 1.0),
    ],
)
def test_token_efficiency_follows_the_formula(now: int, before: int, passed: bool, value: float) -> None:
    """1 up to +10%, then 1 - increase; from a baseline of 0 only 0 passes."""
    score = token_efficiency(tokens(now, before))
    assert score.passed is passed
    assert score.value == pytest.approx(value)


def test_token_efficiency_says_what_it_saw() -> None:
    score = token_efficiency(tokens(650, 500))
    assert score.reason == "tokens 500 -> 650: +30.0% (allowed: +10%)"
    assert score.details == {
        "method": "percentage of the baseline",
        "field": "tokens",
        "value": 650,
        "baseline": 500,
        "delta": {"absolute": 150, "percentage": 30.0},
        "limit": 10,
    }
    assert "the baseline is 0" in token_efficiency(tokens(3, 0)).reason


@given(st.integers(0, 10_000), st.integers(1, 10_000), st.floats(0, 200))
def test_an_increase_passes_up_to_the_limit_and_never_leaves_the_scale(now: int, before: int, limit: float) -> None:
    """It passes if the increase is at most the limit; passing is worth 1, failing less or 0%."""
    score = token_efficiency(tokens(now, before), max_increase_pct=limit)
    increase = 100 * (now - before) / before
    if abs(increase - limit) > 1e-6:
        assert score.passed is (increase <= limit)
    assert score.value is not None
    assert score.value == 1.0 if score.passed else score.value < 1.0


def test_a_missing_baseline_is_skipped() -> None:
    assert token_efficiency(tokens(500)).status == "skipped"
    assert token_efficiency(tokens(500)).reason.startswith("there is no baseline")
    assert token_efficiency(tokens(None, 500)).status == "skipped"


@pytest.mark.parametrize("odd", [True, "500", math.nan, math.inf, -1, [500]])
def test_values_that_are_not_amounts_are_errors(odd: Any) -> None:
    for context in (tokens(odd, 500), tokens(500, odd)):
        assert token_efficiency(context).status == "error"
    assert latency(FieldContext("latency_ms", {"latency_ms": odd})).status == "error"
    usage = {"usage": {"output_tokens": odd}, "latency_ms": 5}
    assert throughput(FieldContext("usage", usage)).status == "error"


@pytest.mark.parametrize(
    ("taken", "passed", "value"), [(0, True, 1.0), (2000, True, 1.0), (2500, False, 0.8), (4000.0, False, 0.5)]
)
def test_latency_is_held_against_its_limit(taken: float, passed: bool, value: float) -> None:
    """1 within two seconds, then the limit's share of the time."""
    score = latency(FieldContext("latency_ms", {"latency_ms": taken}))
    assert (score.passed, score.value) == (passed, value)
    assert score.details["method"] == "limit"


def test_unknown_latency_is_skipped() -> None:
    """Null is skipped, a limit of 0 lets only 0 pass, a missing field is named."""
    assert latency(FieldContext("latency_ms", {"latency_ms": None})).status == "skipped"
    assert latency(FieldContext("latency_ms", {"latency_ms": 1}), max_ms=0).value == 0.0
    with pytest.raises(FieldMissing, match="latency_ms"):
        latency(FieldContext("latency_ms", {"output": "x"}))


@pytest.mark.parametrize(
    ("usage", "taken", "passed", "value"),
    [
        ({"output_tokens": 30}, 2000, True, 1.0),
        ({"output_tokens": 20}, 2000, True, 1.0),
        ({"output_tokens": 5, "total_tokens": 900}, 2000, False, 0.25),
        ({"total_tokens": 10}, 2000.0, False, 0.5),
        ({"output_tokens": 0}, 2000, False, 0.0),
    ],
)
def test_throughput_counts_output_tokens_a_second(
    usage: dict[str, int], taken: float, passed: bool, value: float
) -> None:
    score = throughput(FieldContext("usage", {"usage": usage, "latency_ms": taken}))
    assert score.passed is passed
    assert score.value == pytest.approx(value)
    assert score.details["counted"] == next(iter(usage))


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"latency_ms": 100}, "usage.total_tokens is not known"),
        ({"usage": None, "latency_ms": 100}, "usage.total_tokens is not known"),
        ({"usage": {"output_tokens": 5}}, "latency_ms is not known"),
        ({"usage": {"output_tokens": 5}, "latency_ms": 0}, "latency_ms is 0"),
    ],
)
def test_throughput_needs_usage_and_latency(result: dict[str, Any], reason: str) -> None:
    score = throughput(FieldContext("usage", result))
    assert score.status == "skipped"
    assert reason in score.reason


def test_no_speed_is_asked_for() -> None:
    """With a limit of 0 even silence passes."""
    silent = {"usage": {"output_tokens": 0}, "latency_ms": 10}
    assert throughput(FieldContext("usage", silent), min_tps=0).value == 1.0


@each_row(
    ("evaluator", "option"), [(token_efficiency, "max_increase_pct"), (latency, "max_ms"), (throughput, "min_tps")]
)
@each_row("bad", [-1, math.nan, math.inf])
def test_bad_limits_are_refused_when_attached(evaluator: Any, option: str, bad: float) -> None:
    """A limit below 0, or that is not a number, is refused before anything runs."""
    with pytest.raises(EvaluatorError, match=f"{option} must be a number, 0 or more"):
        attach(evaluator, parameters={option: bad})


def test_outside_a_field_block_each_looks_at_its_own_field() -> None:
    usage = Usage(input_tokens=400, output_tokens=140)
    sample: Sample[str, Any] = Sample("1", "2 + 2?", metadata={"baseline_usage": {"total_tokens": 500}})
    trial = Trial(sample, "4", usage=usage, latency_ms=7000.0)
    scores = {one: attach(one).score(trial) for one in (token_efficiency, latency, throughput)}
    assert scores[token_efficiency].reason == "usage.total_tokens 500 -> 540: +8.0% (allowed: +10%)"
    assert scores[latency].value == pytest.approx(2000 / 7000)
    assert scores[throughput].details["value"] == pytest.approx(20.0)


def test_the_catalogue_names_category_parameters_and_defaults() -> None:
    found = {}
    for one in (token_efficiency, latency, throughput):
        info = get_info(one)
        assert info is not None
        assert info.category == "performance"
        found[info.name] = {p.name: p.default for p in info.parameters}
    assert found == {
        "token_efficiency": {"max_increase_pct": 10},
        "latency": {"max_ms": 2000},
        "throughput": {"min_tps": 10},
    }
