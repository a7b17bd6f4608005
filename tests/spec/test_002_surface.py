"""The field spec: the surface of definitions, the complete example, and what is out of scope."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from proctor import Definition, EvalReport, ProgressEvent, configuration, define, register_evaluator
from proctor.errors import ConfigError, EvaluatorError
from proctor.records.fields.field_result import FieldResult
from proctor.wiring import registry as registry_module
from tests.definition.custom import CitationGrounding
from tests.spec.clauses import clause
from tests.spec.spans import GOOD, SPAN, agent, half, passes

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_process_evaluators", {})


@clause("002.SURFACE.1", "DSL API Surface")
def test_define_returns_a_definition() -> None:
    """`define(name)` returns a Definition with this name."""
    checks = define("chat")
    assert isinstance(checks, Definition)
    assert checks.name == "chat"


@clause("002.SURFACE.2", "DSL API Surface")
def test_every_method_of_a_definition_can_be_chained(tmp_path: Path) -> None:
    """Each method that configures a definition returns the same definition."""
    checks = define("chat")
    steps = [
        checks.select("usage.total_tokens", as_="tokens"),
        checks.register_evaluator(CitationGrounding),
        checks.evaluate_field("output"),
        checks.evaluate_with(passes),
        checks.combine_with("and"),
        checks.on_progress(lambda event: None),
        checks.history(where=tmp_path / "h.db"),
        checks.configuration("low", temperature=0.3),
        checks.baseline("low"),
    ]
    assert all(step is checks for step in steps)


@clause("002.SURFACE.3", "DSL API Surface", ruling="fields: chain and block are one thing")
def test_a_chain_and_a_block_give_the_same() -> None:
    """A definition written as a chain and one written in a `with` block judge alike."""
    chain = define().evaluate_field("output").evaluate_with(half).combine_with("or")
    with define() as block:
        block.evaluate_field("output", half)
        block.combine_with("or")
    scores = [checks.evaluate(SPAN).field_results["output"].score for checks in (chain, block)]
    assert scores[0] == scores[1]


@clause("002.SURFACE.4", "DSL API Surface")
def test_evaluate_field_attaches_evaluators_to_a_field() -> None:
    """Evaluators after `evaluate_field(name)` judge this field and no other."""
    checks = define().evaluate_field("output").evaluate_with(half).evaluate_with(passes)
    checks.evaluate_field("latency_ms").evaluate_with(passes)
    found = checks.evaluate(SPAN).field_results
    assert {name: list(field.evaluators) for name, field in found.items()} == {
        "output": ["half", "passes"], "latency_ms": ["passes"],
    }  # fmt: skip


@clause("002.SURFACE.5", "DSL API Surface")
def test_on_progress_registers_a_callback() -> None:
    """A function given to `on_progress` is called while a span is evaluated."""
    heard: list[ProgressEvent] = []
    define().evaluate_field("output", passes).on_progress(heard.append).evaluate(SPAN)
    assert [event.kind for event in heard][::5] == ["start", "end"]


@clause("002.SURFACE.6", "DSL API Surface")
def test_history_configures_what_is_kept(tmp_path: Path) -> None:
    """`history` takes auto_save, retention_days, retention_count and tags."""
    checks = define("chat").evaluate_field("output", passes)
    checks.history(
        auto_save=True,
        retention_days=30,
        retention_count=100,
        tags={"environment": "production"},
        where=tmp_path / "h.db",
    )
    checks.evaluate(SPAN)
    assert len(checks.history.query(tags={"environment": "production"})) == 1


@clause("002.SURFACE.7", "DSL API Surface")
def test_evaluate_runs_the_configurations_of_its_call() -> None:
    """`evaluate(span, configurations=…)` evaluates the span in each configuration."""
    report = (
        define()
        .evaluate_field("output", passes)
        .evaluate(SPAN, target=agent, configurations=[configuration("low", temperature=0.3), configuration("high")])
    )
    assert report.configurations == ("low", "high")


@clause("002.SURFACE.8", "DSL API Surface")
def test_configuration_has_a_name_and_options() -> None:
    """`configuration(name, **options)` is a name with the options that reach the target."""
    low = configuration("low_temp", temperature=0.3, model="gpt-4o")
    assert (low.name, low.options) == ("low_temp", {"temperature": 0.3, "model": "gpt-4o"})


@clause("002.SURFACE.9", "DSL API Surface")
def test_parameters_are_given_by_keyword() -> None:
    """`evaluate_with(name, parameter=value)` sets a parameter."""
    checks = define().evaluate_field("latency_ms").evaluate_with("latency", max_ms=299)
    assert not checks.evaluate(SPAN).passed


@clause("002.SURFACE.10", "DSL API Surface")
def test_parameters_are_given_by_a_block() -> None:
    """`evaluate_with(name, function)` lets the function set parameters on its argument."""

    def strictly(config: Any) -> None:
        config.max_ms = 299

    checks = define().evaluate_field("latency_ms").evaluate_with("latency", strictly)
    assert not checks.evaluate(SPAN).passed


@clause("002.SURFACE.11", "DSL API Surface")
def test_the_result_says_whether_it_passed() -> None:
    """`passed` is True if every field passed, and False if one did not."""
    good = define().evaluate_field("output", passes).evaluate(SPAN)
    bad = define().evaluate_field("output", passes).evaluate_field("latency_ms", lambda ms: ms < 1)
    assert good.passed is True
    assert bad.evaluate(SPAN).passed is False


@clause("002.SURFACE.12", "DSL API Surface")
def test_the_result_has_field_results() -> None:
    """`field_results[name]` has the verdict of a field with its score and evaluators."""
    report = define().evaluate_field("output", half).evaluate(SPAN)
    field = report.field_results["output"]
    assert isinstance(report, EvalReport)
    assert isinstance(field, FieldResult)
    assert (field.passed, field.score.value, field.evaluators["half"].value) == (True, 0.5, 0.5)


@clause("002.SURFACE.13", "DSL API Surface")
def test_the_result_compares_and_ranks() -> None:
    """`compare` and `rank_by` of a result work on its configurations."""
    checks = define().evaluate_field("n", passes)
    report = checks.evaluate({}, recorded={k: {"output": 1, "n": n} for k, n in {"a": 1, "b": 3}.items()})
    assert report.compare("a", "b").deltas["n"]["absolute"] == -2.0
    assert report.rank_by("n", "desc").best == "b"


@clause("002.SURFACE.14", "DSL API Surface")
def test_an_unknown_evaluator_is_refused_when_defined() -> None:
    """The error comes from the definition, before any span, and names the nearest evaluator."""
    with pytest.raises(EvaluatorError, match="did you mean 'coherence'"):
        define().evaluate_field("output").evaluate_with("coherense")


@clause("002.SURFACE.15", "DSL API Surface")
def test_an_unknown_parameter_is_refused_when_defined() -> None:
    """The error comes from the definition and names the nearest parameter."""
    with pytest.raises(EvaluatorError, match="did you mean 'threshold'"):
        define().evaluate_field("output").evaluate_with("semantic_similarity", treshold=0.9)


@clause("002.SURFACE.16", "DSL API Surface")
def test_a_parameter_of_the_wrong_type_is_refused_when_defined() -> None:
    """The error comes from the definition and says what type was expected."""
    with pytest.raises(EvaluatorError, match="threshold must be of type float, got 'high'"):
        define().evaluate_field("output").evaluate_with("coherence", min_score="high")


@clause("002.SURFACE.17", "DSL API Surface", ruling="fields: all faults at once")
def test_a_block_reports_all_its_faults_together() -> None:
    """A `with` block with three faults raises one error that lists all three."""

    def write() -> None:
        with define("chat") as checks:
            checks.select("usage..tokens")
            checks.evaluate_field("output").evaluate_with("coherense").combine_with("xor")

    with pytest.raises(ConfigError) as caught:
        write()
    assert len(caught.value.problems) == 3


@clause("002.SURFACE.18", "Complete DSL API Example", ruling="fields: configurations are run anew")
def test_the_complete_example_runs(tmp_path: Path) -> None:
    """Define, evaluate three configurations, compare, rank, query and see the trend."""
    heard: list[str] = []
    register_evaluator(CitationGrounding)
    evaluator = (
        define("chat")
        .select("output", as_="output")
        .select("usage.total_tokens", as_="tokens")
        .select("latency_ms", as_="latency")
        .evaluate_field("output")
        .evaluate_with("semantic_similarity", threshold=0.85)
        .evaluate_with("coherence", min_score=0.8)
        .evaluate_with("hallucination_detection")
        .combine_with("and")
        .evaluate_field("tokens")
        .evaluate_with("token_efficiency", max_increase_pct=10)
        .evaluate_field("latency")
        .evaluate_with("latency_regression", max_ms=200)
        .evaluate_field("output")
        .evaluate_with("citation_grounding", knowledge_base={"1", "2"})
        .on_progress(lambda e: heard.append(f"{e.status}: {e.progress}% - {e.current_field}"))
        .history(
            auto_save=True,
            retention_days=30,
            retention_count=100,
            tags={"environment": "production", "feature": "chat"},
            where=tmp_path / "history.db",
        )
    )
    result = evaluator.evaluate(
        SPAN,
        target=agent,
        configurations=[
            configuration("low_temp", temperature=0.3),
            configuration("med_temp", temperature=0.7),
            configuration("high_temp", temperature=1.0),
        ],
    )
    assert result.passed is False
    output = result.field_results["output"].by_configuration
    assert {name: field.passed for name, field in output.items()} == {
        "low_temp": True, "med_temp": True, "high_temp": False,
    }  # fmt: skip
    comparison = result.compare("low_temp", "high_temp")
    assert comparison.deltas["tokens"] == {"absolute": -70.0, "percentage": -14.0}
    ranking = result.rank_by("tokens", "asc")
    assert (ranking.best, ranking.worst) == ("low_temp", "high_temp")
    now = datetime.now(UTC)
    history = evaluator.history.query(
        configuration="low_temp", date_range=(now - timedelta(days=30), now), tags={"environment": "production"}
    )
    assert [report.run_id for report in history] == [result.run_id]
    trend = evaluator.history.trend("tokens", configurations=["low_temp"])
    assert [point["value"] for point in trend.data] == [430.0]
    assert (heard[0], heard[-1]) == ("pending: 0.0% - None", "completed: 100.0% - None")


@clause("002.SURFACE.19", "DSL API Surface", ruling="fields: names are kept to the letter")
def test_evaluate_can_be_awaited() -> None:
    """`aevaluate` is the same evaluation inside a running event loop."""
    checks = define().evaluate_field("output", passes)
    assert inspect.iscoroutinefunction(checks.aevaluate)
    report = asyncio.run(checks.aevaluate(SPAN))
    assert report.results[0].output == GOOD
