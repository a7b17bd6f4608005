"""The context of a field: its value, its baseline, and their difference."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import FieldContext, FieldMissing
from proctor.records.fields.context import Delta
from tests.tables import each_row

RESULT: dict[str, Any] = {
    "id": "7",
    "input": "2 + 2?",
    "expected": "4",
    "output": "four",
    "usage": {"total_tokens": 450, "cost": 0.1},
    "latency_ms": 120.0,
    "configuration": {"name": "low", "temperature": 0.3},
    "nothing": None,
    "baseline_output": "4",
    "baseline_usage": {"total_tokens": 500},
    "baseline_latency_ms": 100.0,
}


def test_every_listed_evaluator_exists() -> None:
    """Value, baseline, delta, names, any field by its path, and the accessors."""
    context = FieldContext("tokens", RESULT, path="usage.total_tokens")
    assert (context.field_name, context.path) == ("tokens", "usage.total_tokens")
    assert (context.value, context.baseline_value) == (450, 500)
    assert context.delta == Delta(-50, -10.0)
    assert context.delta is not None
    assert (context.delta["absolute"], context.delta["percentage"]) == (-50, -10.0)
    assert context["usage"]["total_tokens"] == context["usage.total_tokens"] == 450
    assert (context.input, context.expected) == ("2 + 2?", "4")
    assert (context.output, context.baseline_output) == ("four", "4")
    assert (context.usage, context.baseline_usage) == (RESULT["usage"], {"total_tokens": 500})
    assert (context.latency_ms, context.baseline_latency_ms) == (120.0, 100.0)
    assert context.configuration == {"name": "low", "temperature": 0.3}
    assert context.full_result is RESULT
    assert context.get("metadata.topic", "none") == "none"
    assert context.field_exists("nothing")
    assert not context.field_exists("usage.input_tokens")
    assert repr(context).startswith("<FieldContext 'tokens' of id, input")


def test_without_a_path_the_name_is_one() -> None:
    """`usage.total_tokens` is both; null is a value."""
    assert FieldContext("usage.total_tokens", RESULT).value == 450
    assert FieldContext("nothing", RESULT).value is None


def test_a_missing_field_is_an_error_and_a_missing_baseline_is_none() -> None:
    """`value` and brackets raise; `get`, accessors and baselines return None."""
    context = FieldContext("speed", {"output": "x"})
    with pytest.raises(FieldMissing, match="has no field 'speed'"):
        _ = context.value
    with pytest.raises(FieldMissing, match="has no field 'usage'"):
        _ = context["usage.total_tokens"]
    with pytest.raises(FieldMissing):
        _ = context.delta
    assert context.baseline_value is None
    empty = [context.usage, context.latency_ms, context.input, context.baseline_output]
    assert empty == [None] * 4
    assert context.configuration == {}


def test_a_configuration_may_be_a_name_alone() -> None:
    """As some programs record it."""
    assert FieldContext("output", {"configuration": "low"}).configuration == {"name": "low"}


@pytest.mark.parametrize(
    "recorded",
    [
        {"baseline_tokens": 500},
        {"baseline_usage": {"total_tokens": 500}},
        {"usage": {"total_tokens": 450, "baseline_total_tokens": 500}},
        {"baseline_total_tokens": 500},
        {"baseline": {"usage": {"total_tokens": 500}}},
    ],
)
def test_a_baseline_is_found_flat_and_nested(recorded: dict[str, Any]) -> None:
    """By the name of the field, next to its first or last key, or in a mapping `baseline`."""
    result = {"usage": {"total_tokens": 450}, **recorded}
    context = FieldContext("tokens", result, path="usage.total_tokens")
    assert (context.baseline_value, context.delta) == (500, Delta(-50, -10.0))


def test_the_nearest_baseline_holds() -> None:
    """The field's own name before its path, a flat record before the mapping `baseline`."""
    result = {
        "usage": {"total_tokens": 1},
        "baseline_tokens": 2,
        "baseline_usage": {"total_tokens": 3},
        "baseline": {"usage": {"total_tokens": 4}},
    }
    assert FieldContext("tokens", result, path="usage.total_tokens").baseline_value == 2
    assert FieldContext("usage.total_tokens", result).baseline_value == 3
    assert FieldContext("cost", result, path="usage.cost").baseline_value is None


@pytest.mark.parametrize("odd", ["gpt-3", 3, None, [1]])
def test_a_baseline_of_another_type_does_not_count(odd: Any) -> None:
    """A result may use the word for something else."""
    assert FieldContext("output", {"output": "x", "baseline": odd}).baseline_value is None


def test_the_result_of_a_baseline_configuration_comes_first() -> None:
    """Recorded baselines are then ignored, even if the result has no such field."""
    context = FieldContext("output", RESULT, baseline={"output": "vier"})
    assert (context.baseline_value, context.baseline_output) == ("vier", "vier")
    assert (context.baseline_usage, context.baseline_latency_ms) == (None, None)
    assert FieldContext("output", RESULT, baseline={}).baseline_value is None


@each_row(
    ("value", "baseline", "delta"),
    [
        (450, 500, (-50, -10.0)),
        (3, 0, (3, None)),
        (0, 0, (0, None)),
        (-5, -10, (5, 50.0)),
        (1.5, 1, (0.5, 50.0)),
        (0.0, 4, (-4.0, -100.0)),
        (1.0, 5e-324, (1.0, None)),
        (3, None, None),
        (None, 3, None),
        (True, False, (1, None)),
        (False, True, (-1, -100.0)),
        (True, 1, None),
        (1, False, None),
        ("4", 3, None),
        (3, "4", None),
        (3, math.nan, None),
        (math.inf, 3, None),
        (10**400, 3, None),
        (3, -(10**400), None),
        ([1], [1], None),
    ],
)
def test_deltas(value: Any, baseline: Any, delta: tuple[float, float | None] | None) -> None:
    """Of two numbers or booleans; there is no percentage of zero, and never an infinite one."""
    found = FieldContext("x", {"x": value, "baseline_x": baseline}).delta
    assert found == (None if delta is None else Delta(*delta))


def test_a_delta_has_two_parts() -> None:
    """Another name is refused as a mapping would."""
    with pytest.raises(KeyError):
        _ = Delta(1.0, None)["relative"]


NUMBERS = st.integers() | st.floats()


@given(NUMBERS, NUMBERS)
def test_a_delta_never_fails_and_is_finite(value: float, baseline: float) -> None:
    """For any two numbers there is no delta, or one with finite parts of one sign."""
    delta = FieldContext("x", {"x": value, "baseline_x": baseline}).delta
    if delta is None:
        return
    assert math.isfinite(delta.absolute)
    if delta.percentage is not None:
        assert math.isfinite(delta.percentage)
        assert delta.absolute * delta.percentage >= 0


def test_epochs_stay_in_order() -> None:
    """As many as were given, on both sides."""
    context = FieldContext("x", {"x": 3}, epochs=[1, 2, 3], baseline_epochs=[4])
    assert (context.epochs, context.baseline_epochs) == ((1, 2, 3), (4,))
    assert FieldContext("x", {"x": 3}).epochs == ()
