"""The field spec: selecting fields by path and alias."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from proctor import FieldMissing, define
from proctor.errors import ConfigError
from proctor.records.fields.path import parse_path
from tests.spec.clauses import clause
from tests.spec.spans import SPAN, passes


def values_seen(path: str, span: Any, **select: Any) -> list[Any]:
    """What an evaluator of a field is given as its value."""
    seen: list[Any] = []

    def look(value: Any) -> bool:
        seen.append(value)
        return True

    checks = define().select(path, **select)
    checks.evaluate_field(select.get("as_", path), look).evaluate(span)
    return seen


@clause("002.FIELD.1", "Field Selection System")
def test_a_path_with_dots_reads_a_nested_field() -> None:
    """A path such as `usage.total_tokens` leads to the nested value."""
    assert values_seen("usage.total_tokens", SPAN) == [500]


@clause("002.FIELD.2", "Field Selection System")
def test_an_alias_names_a_field() -> None:
    """A field selected with `as_` is evaluated and reported under its alias."""
    checks = define().select("usage.total_tokens", as_="tokens").evaluate_field("tokens", passes)
    report = checks.evaluate(SPAN)
    assert list(report.field_results) == ["tokens"]
    assert report.rows()[0]["tokens"] == 500


@clause("002.FIELD.3", "Field Selection System", ruling="fields: syntax when defined, existence later")
@pytest.mark.parametrize("path", ["", "usage..tokens", ".usage", "usage.", "items[0]", " usage", 3])
def test_the_syntax_of_a_path_is_checked_when_it_is_defined(path: Any) -> None:
    """A path that cannot be read is refused when the field is selected, before any span."""
    with pytest.raises(ConfigError, match="is not a path to a field"):
        define().select(path)
    with pytest.raises(ConfigError, match="is not a path to a field"):
        define().evaluate_field(path)


@clause("002.FIELD.4", "Field Selection System")
def test_values_are_extracted_during_the_evaluation() -> None:
    """Evaluators get the field's value; they never walk through the result themselves."""
    assert values_seen("usage.total_tokens", SPAN, as_="tokens") == [500]


@clause("002.FIELD.5", "Field Selection System", ruling="fields: Python has text for symbols")
def test_names_may_be_texts_or_enumerated_texts() -> None:
    """A plain text and a member of a text enumeration select the same field."""

    class Name(StrEnum):
        TOKENS = "usage.total_tokens"

    assert values_seen(Name.TOKENS, SPAN) == values_seen("usage.total_tokens", SPAN) == [500]


@clause("002.FIELD.6", "Field Selection System")
def test_a_selected_field_that_the_span_lacks_raises() -> None:
    """Evaluating a span without a selected field raises, evaluated or not."""
    only_selected = define().select("usage.cost", as_="cost").evaluate_field("output", passes)
    with pytest.raises(FieldMissing):
        only_selected.evaluate(SPAN)
    with pytest.raises(FieldMissing):
        define().evaluate_field("usage.cost", passes).evaluate(SPAN)


@clause("002.FIELD.7", "Field Selection System")
def test_a_path_is_read_once() -> None:
    """A path that was parsed before is not parsed again."""
    assert parse_path("usage.total_tokens") is parse_path("usage.total_tokens")


@clause("002.FIELD.8", "Field Selection System", ruling="fields: null is a value")
def test_null_is_a_value() -> None:
    """A field whose value is null is there, and its evaluators see None."""
    assert values_seen("note", {**SPAN, "note": None}) == [None]


@clause("002.FIELD.9", "Field Selection System", ruling="fields: lists")
def test_an_index_reads_an_item_of_a_list() -> None:
    """`items.0.name` reads the first item's name."""
    assert values_seen("items.0.name", {**SPAN, "items": [{"name": "a"}, {"name": "b"}]}) == ["a"]


@clause("002.FIELD.10", "Field Selection System", ruling="fields: lists")
def test_a_star_reads_every_item_of_a_list() -> None:
    """`items.*.name` reads the names of all items as a list."""
    span = {**SPAN, "items": [{"name": "a"}, {"name": "b"}]}
    assert values_seen("items.*.name", span) == [["a", "b"]]


@clause("002.FIELD.11", "Field Selection System", ruling="fields: missing raises")
def test_the_error_of_a_missing_field_says_where_and_what_is_there() -> None:
    """The error names the path, the missing key and the keys that are there."""
    with pytest.raises(FieldMissing) as caught:
        define().evaluate_field("usage.cost", passes).evaluate(SPAN)
    text = str(caught.value)
    assert text.startswith("usage.cost: 'usage' has no field 'cost'")
    assert "choose one of: input_tokens, output_tokens, total_tokens" in text


@clause("002.FIELD.12", "Field Selection System", ruling="fields: aliases are checked")
@pytest.mark.parametrize("alias", ["a.b", "", " tokens", "latency_ms"])
def test_an_alias_is_checked_when_it_is_defined(alias: str) -> None:
    """An alias with dots or spaces, or one that hides a field of every result, is refused."""
    with pytest.raises(ConfigError):
        define().select("usage.total_tokens", as_=alias)


@clause("002.FIELD.13", "Field Selection System", ruling="fields: aliases are checked")
def test_two_fields_cannot_have_one_alias() -> None:
    """An alias that already names another path is refused."""
    checks = define().select("usage.total_tokens", as_="tokens")
    with pytest.raises(ConfigError, match="already has the name 'tokens'"):
        checks.select("usage.input_tokens", as_="tokens")


@clause("002.FIELD.14", "Field Selection System", ruling="fields: missing over a dataset")
def test_a_field_missing_in_one_sample_is_an_error_of_that_sample() -> None:
    """Over a dataset the sample that lacks an evaluated field has an error score; others go on."""
    report = define().evaluate_field("usage.total_tokens", passes).evaluate([SPAN, {"id": "b", "output": "x"}])
    scores = [result.scores["usage.total_tokens"] for result in report.results]
    assert [(score.status, score.value) for score in scores] == [("ok", 1.0), ("error", None)]
    assert "the result has no field 'usage'" in scores[1].reason


@clause("002.FIELD.15", "Field Selection System", ruling="fields: missing over a dataset")
def test_a_field_missing_in_all_samples_is_reported() -> None:
    """A selected field that no sample has is a warning of the run, and the report fails."""
    checks = define().select("usage.cost", as_="cost").evaluate_field("output", passes)
    report = checks.evaluate([SPAN, {**SPAN, "id": "b"}])
    assert report.metadata is not None
    assert "the selected field 'cost' is missing in all 2 results" in report.metadata.warnings[0]
    assert not report.passed


@clause("002.STORY.1", "Story 1: Define Multi-Field Evaluator with Nested Paths")
def test_a_definition_evaluates_only_the_fields_that_matter() -> None:
    """Two nested fields of a span are evaluated, and nothing else of it."""
    checks = (
        define()
        .select("usage.total_tokens", as_="tokens")
        .select("baseline_comparison.quality_change", as_="change")
        .evaluate_field("tokens", lambda tokens: tokens <= 500)
        .evaluate_field("change", lambda change: change > 0)
    )
    report = checks.evaluate({**SPAN, "baseline_comparison": {"quality_change": -0.1}})
    assert {name: field.passed for name, field in report.field_results.items()} == {
        "tokens": True, "change": False,
    }  # fmt: skip


@clause("002.DELIVERABLE.1", "Functional Deliverables")
def test_the_alias_of_a_nested_field_works_everywhere() -> None:
    """`usage.total_tokens` as `tokens` is read by evaluators, rows, rankings and metrics."""
    checks = define().select("usage.total_tokens", as_="tokens")
    checks.evaluate_field("tokens", lambda tokens: tokens == 500)
    report = checks.evaluate(SPAN)
    assert report.passed
    assert report.rows()[0]["tokens"] == 500
    assert report.rank_by("tokens").places[0].value == 500.0
    assert report.metrics["field.tokens"].value == 500.0
