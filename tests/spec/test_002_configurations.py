"""The field spec: configurations, their comparison and their ranking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor import EvalReport, Reply, Usage, configuration, define
from proctor.errors import ConfigError
from tests.spec.clauses import clause
from tests.spec.spans import SPAN, agent, passes

TEMPERATURES = {"low_temp": 0.3, "med_temp": 0.7, "high_temp": 1.0}


def by_words(output: str) -> float:
    """0.5 for "good", 1.0 for "good good"."""
    return output.count("good") / 2


def three() -> EvalReport:
    """Three configurations of one span: 430, 470 and 500 tokens."""
    checks = define().select("usage.total_tokens", as_="tokens").evaluate_field("output", passes)
    configurations = [configuration(name, temperature=t) for name, t in TEMPERATURES.items()]
    return checks.evaluate(SPAN, target=agent, configurations=configurations)


def recorded(field: str = "tokens", **values: Any) -> EvalReport:
    """A report of configurations that recorded a value of a field."""
    checks = define().select(field).evaluate_field("output", passes)
    results = {name: {"output": "x", field: value} for name, value in values.items()}
    return checks.evaluate({}, recorded=results)


@clause("002.CONFIG.1", "DSL API Surface", ruling="fields: configurations are run anew")
def test_the_target_is_called_with_the_options_of_each_configuration() -> None:
    """Every configuration is a call of the target with its options."""
    calls: list[Any] = []

    def target(question: str, *, temperature: float, model: str = "a") -> str:
        calls.append((question, temperature, model))
        return "x"

    define().evaluate_field("output", passes).evaluate(
        SPAN,
        target=target,
        configurations=[configuration("low", temperature=0.3), configuration("high", temperature=1.0, model="b")],
    )
    question = SPAN["input"]
    assert sorted(calls) == [(question, 0.3, "a"), (question, 1.0, "b")]


@clause("002.CONFIG.2", "DSL API Surface", ruling="fields: recorded results")
def test_recorded_results_take_the_place_of_a_target() -> None:
    """Without a target the recorded result of each configuration is evaluated."""
    checks = define().evaluate_field("output", lambda output: output == "x")
    report = checks.evaluate(SPAN, recorded={"a": {"output": "x"}, "b": {"output": "y"}})
    passed = {result.trial.configuration: result.passed for result in report.results}
    assert passed == {"a": True, "b": False}


@clause("002.CONFIG.3", "DSL API Surface", ruling="fields: recorded results")
def test_several_configurations_need_a_target_or_results() -> None:
    """One recorded output does not stand for several configurations: it is an error."""
    checks = define().evaluate_field("output", passes)
    with pytest.raises(ConfigError, match="the configurations a, b have no recorded results"):
        checks.evaluate(SPAN, configurations=["a", "b"])


@clause("002.COMPARE.1", "Cross-Configuration Comparison")
def test_two_configurations_of_a_run_are_compared() -> None:
    """`compare(a, b)` gives the difference of each numeric field, a minus b: 430 - 500."""
    assert three().compare("low_temp", "high_temp").deltas["tokens"]["absolute"] == -70.0


@clause("002.COMPARE.2", "Cross-Configuration Comparison")
def test_a_comparison_has_percentages() -> None:
    """The change is also given in percent of b: -70 of 500."""
    assert three().compare("low_temp", "high_temp").deltas["tokens"]["percentage"] == -14.0


@clause("002.COMPARE.3", "Cross-Configuration Comparison", ruling="baselines: no percentage of zero")
def test_there_is_no_percentage_of_zero() -> None:
    """The percentage is None where b is 0."""
    deltas = recorded(a=5, b=0).compare("a", "b").deltas
    assert deltas["tokens"] == {"absolute": 5.0, "percentage": None}


@clause("002.COMPARE.4", "Cross-Configuration Comparison")
def test_a_comparison_is_an_object_with_metadata() -> None:
    """The comparison names both configurations and says for each number on how many it rests."""
    comparison = three().compare("low_temp", "high_temp")
    assert (comparison.a, comparison.b) == ("low_temp", "high_temp")
    tokens = comparison.fields["tokens"]
    assert (tokens.a, tokens.b, tokens.n) == (430.0, 500.0, 1)


@clause("002.COMPARE.5", "Cross-Configuration Comparison")
def test_scores_are_compared() -> None:
    """The scores of evaluators are compared like fields: 1.0 - 0.5."""
    checks = define().evaluate_field("output", by_words)
    results = {"a": {"output": "good good"}, "b": {"output": "good"}}
    comparison = checks.evaluate({}, recorded=results).compare("a", "b")
    assert comparison.score_deltas["output.by_words"] == {"absolute": 0.5, "percentage": 100.0}


@clause("002.COMPARE.6", "Cross-Configuration Comparison")
def test_semantic_similarity_scores_are_compared() -> None:
    """The configuration whose answer keeps the meaning has the higher similarity score."""
    checks = define().evaluate_field("output", "semantic_similarity")
    results = {
        "close": {"output": "The museum opens at nine.", "expected": ""},
        "far": {"output": "Whales sing at night."},
    }
    span = {"input": "q", "expected": "The museum opens at nine."}
    comparison = checks.evaluate(span, recorded=results).compare("close", "far")
    change = comparison.score_deltas["output.semantic_similarity"]["absolute"]
    assert change is not None
    assert change > 0


@clause("002.COMPARE.7", "Cross-Configuration Comparison")
def test_configurations_are_ranked_ascending() -> None:
    """`rank_by(field, "asc")` puts the lowest value first."""
    ranking = three().rank_by("tokens", "asc")
    assert [place.configuration for place in ranking.places] == list(TEMPERATURES)
    assert [place.value for place in ranking.places] == [430.0, 470.0, 500.0]


@clause("002.COMPARE.8", "Cross-Configuration Comparison")
def test_configurations_are_ranked_descending() -> None:
    """`rank_by(field, "desc")` puts the highest value first."""
    ranking = three().rank_by("tokens", "desc")
    assert [place.configuration for place in ranking.places] == list(TEMPERATURES)[::-1]


@clause("002.COMPARE.9", "Cross-Configuration Comparison")
def test_a_ranking_is_by_one_field() -> None:
    """A ranking names the one field and the order that it is by."""
    ranking = three().rank_by("tokens", "desc")
    assert (ranking.field, ranking.order) == ("tokens", "desc")


@clause("002.COMPARE.10", "Cross-Configuration Comparison")
def test_a_ranking_names_the_best_and_the_worst() -> None:
    """`best` is the first and `worst` the last configuration of the ranking."""
    ranking = three().rank_by("tokens", "asc")
    assert (ranking.best, ranking.worst) == ("low_temp", "high_temp")


@clause("002.COMPARE.11", "Cross-Configuration Comparison")
def test_comparisons_and_rankings_are_plain_data_for_plots() -> None:
    """The rows of a comparison, a ranking and a report are lists of mappings that JSON holds."""
    report = three()
    tables = [report.compare("low_temp", "high_temp").rows(), report.rank_by("tokens").data, report.rows()]
    assert json.loads(json.dumps(tables)) == tables
    assert [row["tokens"] for row in report.rows()] == [430, 470, 500]


@clause("002.COMPARE.12", "Cross-Configuration Comparison", ruling="cross-run comparison is separate")
def test_a_comparison_stays_within_its_run() -> None:
    """A configuration that the run does not have cannot be compared."""
    with pytest.raises(ConfigError, match="unknown configuration 'other' in this run"):
        three().compare("low_temp", "other")


@clause("002.COMPARE.13", "Cross-Configuration Comparison", ruling="rank: ties by name, missing last")
def test_ties_go_by_name_and_missing_values_come_last() -> None:
    """Equal values are ordered by name in either order, and null comes after all numbers."""
    report = recorded(d=1, c=None, b=2, a=2)
    ranked = [[place.configuration for place in report.rank_by("tokens", order).places] for order in ("asc", "desc")]
    assert ranked == [["d", "a", "b", "c"], ["a", "b", "d", "c"]]


@clause("002.COMPARE.14", "Cross-Configuration Comparison")
def test_a_ranking_can_be_by_an_unselected_path() -> None:
    """`rank_by("usage.total_tokens", "asc")` ranks like the field's alias."""
    report = three()
    by_path = report.rank_by("usage.total_tokens", "asc")
    assert [(p.configuration, p.value) for p in by_path.places] == [
        ("low_temp", 430.0), ("med_temp", 470.0), ("high_temp", 500.0),
    ]  # fmt: skip


@clause("002.COMPARE.15", "Cross-Configuration Comparison", ruling="baselines: a configuration")
def test_a_configuration_can_be_the_baseline_of_evaluators() -> None:
    """With `baseline`, evaluators that compare hold each configuration against that one."""
    checks = define().select("usage.total_tokens", as_="tokens").evaluate_field("tokens")
    checks.evaluate_with("token_regression", max_pct=10).baseline("low")

    def target(question: str, *, tokens: int) -> Reply:
        return Reply("x", Usage(tokens, 0))

    options = {"low": 100, "mid": 110, "high": 111}
    report = checks.evaluate(SPAN, target=target, configurations={name: {"tokens": n} for name, n in options.items()})
    field = report.field_results["tokens"]
    statuses = {one.configuration: one.score.status for one in field.scores}
    assert statuses == {"low": "skipped", "mid": "ok", "high": "ok"}
    assert [field.for_configuration(name).score.passed for name in ("mid", "high")] == [True, False]


@clause("002.COMPARE.16", "Cross-Configuration Comparison")
def test_field_results_of_several_configurations_are_complete() -> None:
    """`field_results[name]` has the score and evaluators over all configurations and of each."""
    checks = define().evaluate_field("output", by_words, passes)
    results = {"a": {"output": "good good"}, "b": {"output": "good"}}
    field = checks.evaluate({}, recorded=results).field_results["output"]
    assert field.evaluators["by_words"].value == 0.75
    assert field.by_configuration["b"].evaluators["by_words"].value == 0.5
    assert field.score.value == 0.875


@clause("002.STORY.5", "Story 5: Compare Configurations and Rank Results")
def test_the_cheapest_configuration_is_found() -> None:
    """Three configurations are run, two compared, and all ranked by their tokens."""
    report = three()
    assert report.compare("low_temp", "high_temp").deltas["tokens"]["absolute"] == -70.0
    assert report.rank_by("usage.total_tokens", "asc").best == "low_temp"


@clause("002.DELIVERABLE.6", "Functional Deliverables")
def test_three_configurations_are_compared_and_ranked() -> None:
    """Of three configurations the first two differ by 40 tokens, and the order is by tokens."""
    report = three()
    deltas = report.compare("low_temp", "med_temp").deltas["tokens"]
    assert deltas["absolute"] == -40.0
    assert deltas["percentage"] == pytest.approx(-40 / 470 * 100)
    assert [place.configuration for place in report.rank_by("tokens").places] == list(TEMPERATURES)


@clause("002.DELIVERABLE.7", "Functional Deliverables")
def test_configurations_of_a_stored_run_can_still_be_compared(tmp_path: Path) -> None:
    """A run from the history is compared and ranked like a new one."""
    checks = define("chat").select("usage.total_tokens", as_="tokens")
    checks.evaluate_field("output", passes).history(where=tmp_path / "history.db")
    checks.evaluate(SPAN, target=agent, configurations={"a": {"temperature": 0.5}, "b": {}})
    (stored,) = checks.history.last()
    assert stored.compare("a", "b").deltas["tokens"]["absolute"] == 50.0
    assert stored.rank_by("tokens").best == "b"
