"""The field spec: what an evaluator reads in its FieldContext."""

from __future__ import annotations

from typing import Any

import pytest

from proctor import FieldContext, FieldMissing, define
from tests.spec.clauses import clause
from tests.spec.spans import GOOD, SPAN, context_of

BEFORE: dict[str, Any] = {
    "baseline_output": "It is closed.",
    "baseline_usage": {"total_tokens": 400},
    "baseline_latency_ms": 250.0,
}
COMPARED: dict[str, Any] = {**SPAN, **BEFORE}


@clause("002.CONTEXT.1", "FieldContext Methods")
def test_value_is_the_value_of_the_field() -> None:
    """`value` is the value of the field that is evaluated."""
    assert context_of("output", SPAN).value == GOOD
    assert context_of("latency_ms", SPAN).value == 300.0


@clause("002.CONTEXT.2", "FieldContext Methods")
def test_baseline_value_is_found_by_its_prefix() -> None:
    """`baseline_value` of `output` is what the span records as `baseline_output`."""
    assert context_of("output", COMPARED).baseline_value == "It is closed."


@clause("002.CONTEXT.3", "FieldContext Methods")
def test_baseline_value_of_a_nested_field_is_found() -> None:
    """`baseline_value` of `usage.total_tokens` is `baseline_usage.total_tokens`."""
    assert context_of("usage.total_tokens", COMPARED).baseline_value == 400


@clause("002.CONTEXT.4", "FieldContext Methods")
def test_baseline_value_of_an_aliased_field_is_found() -> None:
    """A field known as `tokens` finds `baseline_tokens`, or the baseline of its path."""
    by_alias = context_of("usage.total_tokens", {**SPAN, "baseline_tokens": 410}, alias="tokens")
    by_path = context_of("usage.total_tokens", COMPARED, alias="tokens")
    assert (by_alias.baseline_value, by_path.baseline_value) == (410, 400)


@clause("002.CONTEXT.5", "FieldContext Methods")
def test_baseline_value_is_none_without_a_baseline() -> None:
    """`baseline_value` is None where nothing was recorded to compare with."""
    assert context_of("output", SPAN).baseline_value is None


@clause("002.CONTEXT.6", "FieldContext Methods")
def test_delta_is_absolute() -> None:
    """`delta["absolute"]` is the value minus its baseline: 500 - 400."""
    delta = context_of("usage.total_tokens", COMPARED).delta
    assert delta is not None
    assert delta["absolute"] == delta.absolute == 100


@clause("002.CONTEXT.7", "FieldContext Methods")
def test_delta_is_a_percentage() -> None:
    """`delta["percentage"]` is the change in percent of the baseline: 100 of 400."""
    delta = context_of("usage.total_tokens", COMPARED).delta
    assert delta is not None
    assert delta["percentage"] == delta.percentage == 25.0


@clause("002.CONTEXT.8", "FieldContext Methods")
def test_delta_is_for_numbers_only() -> None:
    """`delta` is None for a field that is not a number, and where there is no baseline."""
    assert context_of("output", COMPARED).delta is None
    assert context_of("latency_ms", SPAN).delta is None


@clause("002.CONTEXT.9", "FieldContext Methods", ruling="baselines: no percentage of zero")
def test_delta_of_a_zero_baseline_has_no_percentage() -> None:
    """The percentage is None where the baseline is 0; the absolute change is there."""
    delta = context_of("latency_ms", {**SPAN, "baseline_latency_ms": 0}).delta
    assert delta is not None
    assert (delta.absolute, delta.percentage) == (300.0, None)


@clause("002.CONTEXT.10", "FieldContext Methods")
def test_field_name_is_the_name_it_was_selected_under() -> None:
    """`field_name` is the alias of a field, or its path where it has none."""
    assert context_of("usage.total_tokens", SPAN, alias="tokens").field_name == "tokens"
    assert context_of("usage.total_tokens", SPAN).field_name == "usage.total_tokens"


@clause("002.CONTEXT.11", "FieldContext Methods")
def test_brackets_read_any_field() -> None:
    """`context["latency_ms"]` reads another field of the result."""
    context = context_of("output", SPAN)
    assert context["latency_ms"] == 300.0
    assert context["usage"]["total_tokens"] == 500


@clause("002.CONTEXT.12", "FieldContext Methods")
def test_brackets_read_nested_paths() -> None:
    """`context["usage.total_tokens"]` follows the path."""
    assert context_of("output", SPAN)["usage.total_tokens"] == 500


@clause("002.CONTEXT.13", "FieldContext Methods")
def test_output_is_the_output() -> None:
    """`output` is the output, whichever field is evaluated."""
    assert context_of("latency_ms", SPAN).output == GOOD


@clause("002.CONTEXT.14", "FieldContext Methods")
def test_baseline_output_is_the_recorded_one() -> None:
    """`baseline_output` is the baseline's output, and None without a baseline."""
    assert context_of("latency_ms", COMPARED).baseline_output == "It is closed."
    assert context_of("latency_ms", SPAN).baseline_output is None


@clause("002.CONTEXT.15", "FieldContext Methods")
def test_usage_is_the_token_usage() -> None:
    """`usage` is a mapping with the tokens that were used."""
    assert context_of("output", SPAN).usage["total_tokens"] == 500


@clause("002.CONTEXT.16", "FieldContext Methods")
def test_baseline_usage_is_the_recorded_one() -> None:
    """`baseline_usage` is the baseline's usage."""
    assert context_of("output", COMPARED).baseline_usage == {"total_tokens": 400}


@clause("002.CONTEXT.17", "FieldContext Methods")
def test_latency_ms_is_the_latency() -> None:
    """`latency_ms` is the time in milliseconds."""
    assert context_of("output", SPAN).latency_ms == 300.0


@clause("002.CONTEXT.18", "FieldContext Methods")
def test_configuration_is_the_one_of_the_span() -> None:
    """`configuration` of a recorded span holds what it records, such as the model."""
    context = context_of("output", SPAN)
    assert context.configuration["model"] == "gpt-4o"
    assert context["configuration"]["model"] == context["configuration.model"] == "gpt-4o"


@clause("002.CONTEXT.19", "FieldContext Methods")
def test_full_result_is_everything() -> None:
    """`full_result` is a mapping with all that is known of the result."""
    full = context_of("latency_ms", COMPARED).full_result
    assert full["output"] == GOOD
    assert full["usage"]["total_tokens"] == 500
    assert full["baseline_usage"] == {"total_tokens": 400}
    assert full["context"] == SPAN["context"]


@clause("002.CONTEXT.20", "FieldContext Methods")
def test_field_exists_says_whether_a_field_is_there() -> None:
    """`field_exists` is True for a field or path of the result, null included, else False."""
    context = context_of("output", {**SPAN, "note": None})
    assert context.field_exists("usage.total_tokens")
    assert context.field_exists("note")
    assert not context.field_exists("usage.cost")
    assert not context.field_exists("cost")


@clause("002.CONTEXT.21", "FieldContext Implementation")
def test_a_context_wraps_a_result() -> None:
    """A context is made of a field's name and a result, and keeps both."""
    result = {"output": "x", "usage": {"total_tokens": 5}}
    context = FieldContext("output", result)
    assert (context.field_name, context.full_result, context.value) == ("output", result, "x")


@clause("002.CONTEXT.22", "FieldContext Implementation")
def test_a_context_follows_nested_paths() -> None:
    """A field whose name is a path is read through the nested mappings."""
    context = FieldContext("usage.total_tokens", {"usage": {"total_tokens": 5}})
    assert context.value == 5


@clause("002.CONTEXT.23", "FieldContext Implementation", ruling="fields: Python has text for symbols")
def test_objects_and_mappings_are_read_alike() -> None:
    """A path goes through mappings and objects with attributes in the same way."""

    class Usage:
        def __init__(self) -> None:
            self.total_tokens = 5

    context = FieldContext("usage.total_tokens", {"usage": Usage()})
    assert context.value == context["usage.total_tokens"] == 5


@clause("002.CONTEXT.24", "FieldContext Implementation")
def test_reading_a_field_that_is_not_there_explains_itself() -> None:
    """The error names the path, the key that is missing, and the keys that are there."""
    context = context_of("output", SPAN)
    with pytest.raises(FieldMissing) as caught:
        context["usage.cost"]
    assert "usage.cost: 'usage' has no field 'cost'" in str(caught.value)
    assert "total_tokens" in str(caught.value)


@clause("002.CONTEXT.25", "FieldContext Implementation", ruling="baselines: a configuration")
def test_a_named_baseline_comes_before_a_recorded_one() -> None:
    """Where a configuration is the baseline, its result is compared with, not the recorded one."""
    seen: dict[str, Any] = {}

    def look(field_context: FieldContext) -> bool:
        seen[field_context.configuration["name"]] = field_context.baseline_value
        return True

    checks = define().evaluate_field("latency_ms", look).baseline("low")
    recorded = {name: {**COMPARED, "latency_ms": ms} for name, ms in {"low": 1, "high": 2}.items()}
    checks.evaluate({}, recorded=recorded)
    assert seen == {"low": None, "high": 1}
