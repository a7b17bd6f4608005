"""Definitions: fields, evaluators, combinations and configurations, chained or in a block."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from proctor import (
    FieldContext,
    FieldMissing,
    Reply,
    Sample,
    Score,
    Usage,
    attach,
    configuration,
    contains,
    define,
    exact_match,
    register_evaluator,
)
from proctor.errors import ConfigError, EvaluatorError
from proctor.wiring.registry import Registry

SPAN = {
    "id": "7",
    "input": "greet Ada",
    "expected": "Hello",
    "output": "Hello Ada",
    "usage": {"total_tokens": 12},
    "latency_ms": 40.0,
}


def short(output: Any, *, limit: int = 20) -> bool:
    """Passes if the output is short."""
    return len(str(output)) <= limit


def few(tokens: int) -> bool:
    return tokens < 100


def test_a_chain_and_a_block_are_equivalent() -> None:
    """The same fields, evaluators and results."""
    chain = (
        define("greetings")
        .select("usage.total_tokens", as_="tokens")
        .evaluate_field("output")
        .evaluate_with(short, limit=9)
        .evaluate_with("contains")
        .combine_with("and")
        .evaluate_field("tokens", few)
    )
    with define("greetings") as block:
        block.select("usage.total_tokens", as_="tokens")
        block.evaluate_field("output", attach(short, parameters={"limit": 9}), contains)
        block.evaluate_field("tokens", few, combine_with="and")
    assert chain.fields == block.fields == {"tokens": "usage.total_tokens", "output": "output"}
    first, second = chain.evaluate(SPAN), block.evaluate(SPAN)
    assert first.passed
    assert second.passed
    assert [r.scores for r in first.results] == [r.scores for r in second.results]
    assert repr(chain) == "<Definition greetings: output, tokens>"
    assert repr(define()) == "<Definition without a name: no fields yet>"


def test_blocks_of_one_field_merge_in_order() -> None:
    """Also by name and by path; the same combination may be set twice."""
    checks = (
        define()
        .select("usage.total_tokens", as_="tokens")
        .evaluate_field("tokens", few, combine_with="or")
        .evaluate_field("output", short)
        .evaluate_field("usage.total_tokens", short, combine_with="or")
    )
    found = checks.evaluate(SPAN).field_results
    assert list(found) == ["tokens", "output"]
    assert list(found["tokens"].evaluators) == ["few", "short"]


def test_one_evaluator_twice_has_two_names() -> None:
    """With other parameters it is another evaluator."""
    checks = define().evaluate_field("output").evaluate_with(short).evaluate_with(short, limit=3)
    assert {name: one.passed for name, one in result(checks).evaluators.items()} == {
        "short": True, "short_2": False,
    }  # fmt: skip


def result(checks: Any, span: Any = SPAN, field: str = "output") -> Any:
    return checks.evaluate(span).field_results[field]


def test_parameters_may_be_set_by_a_function() -> None:
    """In addition to keyword arguments; it can read what it has set."""

    def strict(config: Any) -> None:
        config.limit = 5
        config.limit = config.limit + 1

    checks = define().evaluate_field("output").evaluate_with(short, strict)
    assert not result(checks).passed
    named = define().evaluate_field("output")
    named.evaluate_with("contains", lambda c: setattr(c, "case_sensitive", False))
    assert result(named, {**SPAN, "output": "HELLO"}).passed
    with pytest.raises(EvaluatorError, match="did you mean 'limit'"):
        define().evaluate_field("output").evaluate_with(short, lambda c: setattr(c, "limt", 3))
    with pytest.raises(AttributeError, match="was not set"):
        define().evaluate_field("output").evaluate_with(short, lambda c: c.limit)


def test_evaluators_may_be_written_as_in_an_eval_file() -> None:
    """As a mapping that contains its parameters."""
    checks = define().evaluate_field("output", {"contains": {"case_sensitive": False}})
    assert result(checks, {**SPAN, "output": "HELLO"}).passed


class Polite:
    evaluator_name = "polite_here"

    def evaluate(self, field_context: FieldContext, **options: Any) -> dict[str, Any]:
        return {"passed": options.get("word", "please") in field_context.value}


def test_an_evaluator_can_be_registered_for_one_definition() -> None:
    """By its own name or another."""
    checks = define().register_evaluator(Polite).register_evaluator(short, "brief")
    checks.evaluate_field("output").evaluate_with("polite_here", word="Ada").evaluate_with("brief")
    assert result(checks).passed
    with pytest.raises(EvaluatorError, match="unknown evaluator 'polite_here'"):
        define().evaluate_field("output").evaluate_with("polite_here")


def test_an_evaluator_can_be_registered_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every later definition and registry; a second registration replaces it."""
    from proctor.wiring import registry

    monkeypatch.setattr(registry, "_process_evaluators", {})

    class Fresh(Polite):
        evaluator_name = "polite_everywhere"

    class Newer(Fresh):
        def evaluate(self, field_context: FieldContext, **options: Any) -> dict[str, Any]:
            return {"passed": True, "message": "newer"}

    assert register_evaluator(Fresh) == ("polite_everywhere",)
    checks = define().evaluate_field("output").evaluate_with("polite_everywhere", word="Hello")
    assert result(checks).passed
    register_evaluator(Newer)
    again = define().evaluate_field("output").evaluate_with("polite_everywhere")
    assert result(again).score.reason == "newer"
    assert Registry.standard().describe("polite_everywhere").name == "polite_everywhere"
    with pytest.raises(EvaluatorError, match="an evaluator is already named 'contains'"):
        register_evaluator(short, "contains")
    define().evaluate_field("output").evaluate_with("contains")


# -- spans -------------------------------------------------------------------------------------


@dataclass
class Span:
    output: Any
    expected: str = "Hello"

    @property
    def words(self) -> int:
        return len(str(self.output).split())


class StructSpan(msgspec.Struct):
    output: str
    expected: str = "Hello"


class ModelSpan(pydantic.BaseModel):
    output: str
    expected: str = "Hello"


@pytest.mark.parametrize(
    "span",
    [
        SPAN,
        Span("Hello"),
        StructSpan("Hello"),
        ModelSpan(output="Hello"),
        Sample("1", "x", "Hello", {"output": "Hello"}),
    ],
)
def test_a_span_is_anything_with_fields(span: Any) -> None:
    """A mapping, a dataclass, a struct, a model, a sample."""
    assert define().evaluate_field("output", "contains").evaluate(span).passed


def test_paths_lead_through_objects_in_a_span() -> None:
    """Including their properties, which are not stored."""
    checks = define().evaluate_field("output.words", lambda words: words == 2)
    assert checks.evaluate({"output": Span("Hello Ada")}).passed


@pytest.mark.parametrize("thing", [3, object(), {"outputs": "x"}, {}])
def test_an_invalid_span_is_refused(thing: Any) -> None:
    """Without fields, or without an output."""
    with pytest.raises((ConfigError, FieldMissing)):
        define().evaluate_field("output", short).evaluate(thing)


def test_many_spans_are_a_dataset(tmp_path: Path) -> None:
    """A list or a file; each span has its own id."""
    checks = define().evaluate_field("output", "contains")
    spans = [SPAN, {"output": "x", "expected": "y"}, Span("Hello")]
    report = checks.evaluate(spans)
    assert [r.sample_id for r in report.results] == ["7", "span-2", "span-3"]
    assert [r.passed for r in report.results] == [True, False, True]
    path = tmp_path / "spans.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(one) for one in (SPAN, {**SPAN, "id": "8"})))
    assert checks.evaluate(path).passed
    assert checks.evaluate(str(path)).total == 2


def test_metadata_of_a_span_becomes_fields() -> None:
    """The keys of a mapping are fields; anything else is one field."""
    here = define().evaluate_field("topic", lambda topic: topic == "sums")
    assert here.evaluate({"output": 1, "metadata": {"topic": "sums"}}).passed
    odd = define().evaluate_field("metadata.metadata", lambda told: told == "free text")
    assert odd.evaluate({"output": 1, "metadata": "free text"}).passed


def test_a_missing_field_raises_for_one_span_and_not_for_many() -> None:
    """For one span an error names the path; in a dataset only that trial fails."""
    checks = define().select("usage.total_tokens", as_="tokens").evaluate_field("output", short)
    with pytest.raises(FieldMissing, match=r"usage\.total_tokens: the result has no field 'usage'"):
        checks.evaluate({"output": "x"})
    evaluated = define().evaluate_field("usage.total_tokens", few)
    with pytest.raises(FieldMissing, match="did you mean 'total_token'"):
        evaluated.evaluate({"output": "x", "usage": {"total_token": 3}})
    report = evaluated.evaluate([{"output": "x"}, SPAN])
    assert [r.outcome for r in report.results] == ["unscored", "passed"]
    null = define().evaluate_field("output", lambda output: output is None)
    assert null.evaluate({"output": None}).passed


# -- configurations ----------------------------------------------------------------------------


def target(text: str, *, temperature: float = 0.0) -> Reply:
    return Reply(f"{text} at {temperature}", Usage(10, int(100 * temperature)))


def test_the_target_runs_for_every_configuration() -> None:
    """With its options; the recorded result is the baseline."""
    checks = (
        define()
        .select("usage.total_tokens", as_="tokens")
        .evaluate_field("tokens", lambda field_context: field_context.delta.absolute < 60)
    )
    report = checks.evaluate(
        SPAN,
        target=target,
        configurations=[configuration("low", temperature=0.3), configuration("high", temperature=1)],
    )
    assert [r.output for r in report.results] == ["greet Ada at 0.3", "greet Ada at 1"]
    assert {one.configuration: one.passed for one in report.field_results["tokens"].scores} == {
        "low": True, "high": False,
    }  # fmt: skip
    assert not report.passed
    assert report.field_results["tokens"].for_configuration("low").passed
    as_mapping = checks.evaluate([SPAN], target=target, configurations={"low": {"temperature": 0.3}})
    assert as_mapping.passed


def test_recorded_results_by_configuration() -> None:
    """By name for one span, inside the spans of a dataset."""
    checks = define().evaluate_field("output", short).evaluate_field("judge", lambda j: j > 2)
    recorded = {"a": {"output": "x", "judge": 3}, "b": {"output": "y", "judge": 1}}
    one = checks.evaluate({"input": "q"}, recorded=recorded)
    many = checks.evaluate([{"input": "q", "recorded": recorded}], configurations={"a": {}, "b": {}})
    for report in (one, many):
        assert report.configurations == ("a", "b")
        assert [r.passed for r in report.results] == [True, False]
    only = checks.evaluate({"input": "q"}, recorded=recorded, configurations={"a": {}})
    assert only.passed


@pytest.mark.parametrize(
    ("recorded", "words"), [("x", "is a str, not a mapping"), ({"error": "gone"}, "gone"), ({}, "no output recorded")]
)
def test_a_recording_without_an_output_is_an_error(recorded: Any, words: str) -> None:
    """Of its trial, with the reason."""
    checks = define().evaluate_field("output", short)
    report = checks.evaluate([{"recorded": {"a": recorded}}], configurations={"a": {}})
    assert words in (report.results[0].error or "")


def test_a_single_recording_is_rejected_for_several_configurations() -> None:
    """Otherwise a recording would be compared with itself."""
    checks = define().evaluate_field("output", short)
    with pytest.raises(ConfigError, match="the configurations a, b have no recorded results"):
        checks.evaluate(SPAN, configurations={"a": {}, "b": {}})
    with pytest.raises(ConfigError, match="no recorded results by configuration"):
        checks.evaluate([SPAN], configurations={"a": {}, "b": {}})
    mixed = [{**SPAN, "recorded": {"a": SPAN, "b": SPAN}}, {**SPAN, "id": "8"}]
    report = checks.evaluate(mixed, configurations={"a": {}, "b": {}})
    assert report.errors == 2
    assert "has one recording, not one for configuration 'a'" in (report.results[2].error or "")
    assert checks.evaluate(SPAN, configurations={"a": {}}).passed


def test_configurations_of_the_definition_and_of_the_call() -> None:
    """Those of the call have priority; the baseline is the definition's."""
    heard: list[Any] = []

    def beside(field_context: FieldContext) -> Score:
        heard.append((field_context.configuration["name"], field_context.baseline_value))
        return Score(1.0, True)

    checks = (
        define()
        .configuration("low", temperature=0)
        .configuration("high", temperature=1)
        .baseline("high")
        .evaluate_field("output", beside)
    )
    assert checks.evaluate(SPAN, target=target).configurations == ("low", "high")
    assert sorted(heard, key=str) == [
        ("high", None), ("low", "greet Ada at 1"),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="no configuration is named 'high'"):
        checks.evaluate(SPAN, target=target, configurations={"other": {}})


def test_aevaluate_works_in_an_event_loop() -> None:
    """With the same result."""
    checks = define().evaluate_field("output", exact_match)
    assert asyncio.run(checks.aevaluate(Span("Hello"))).passed


@pytest.mark.parametrize(
    ("recorded", "path", "value"),
    [
        ({"usage": {"prompt": 3}}, "usage.prompt", 3),
        ({"usage": {"input_tokens": "many"}}, "usage.input_tokens", "many"),
        ({"usage": "cheap"}, "usage", "cheap"),
        ({"latency_ms": "slow"}, "latency_ms", "slow"),
        ({"session": {"turns": 3}}, "session.turns", 3),
    ],
)
def test_fields_of_other_types_are_available(recorded: dict[str, Any], path: str, value: Any) -> None:
    """Spans of other tools are used unchanged."""
    seen: list[Any] = []

    def look(found: Any) -> bool:
        seen.append(found)
        return True

    assert define().evaluate_field(path, look).evaluate({"output": "x", **recorded}).passed
    assert seen == [value]
