"""The field spec: the 22 built-in evaluators with their names, categories and defaults."""

from __future__ import annotations

import inspect
import math
from typing import Any

import proctor
from proctor import Score, define
from proctor.core.aliases import COMMON_NAMES
from proctor.wiring.registry import Registry
from tests.evaluators.judging.rehearsed import rates, scores
from tests.spec.clauses import clause
from tests.spec.spans import DRIFTING, GOOD, SPAN

INSULT = "You are a worthless idiot and everybody hates you."


def is_listed(name: str, category: str, **defaults: Any) -> None:
    """The evaluator is public, in its category, and its parameters have these defaults, by their common names."""
    assert Registry.standard().describe(name).category == category
    parameters = inspect.signature(getattr(proctor, name)).parameters
    assert {key: parameters[COMMON_NAMES.get(key, key)].default for key in defaults} == defaults


def score(name: str, field: str, span: dict[str, Any], **parameters: Any) -> Score:
    """The score of one evaluator of a field of a span."""
    checks = define().evaluate_field(field).evaluate_with(name, **parameters)
    found: Score = checks.evaluate({**SPAN, **span}).field_results[field].evaluators[name]
    return found


def verdicts(name: str, field: str, *spans: dict[str, Any], **parameters: Any) -> list[bool | None]:
    """Whether each of some spans passes."""
    return [score(name, field, span, **parameters).passed for span in spans]


@clause("002.BUILTIN.1", "Evaluator Type System", ruling="fields: exactly 22 built-in evaluators")
def test_there_are_22_evaluators_in_seven_categories() -> None:
    """The seven specified categories hold exactly 4, 3, 3, 3, 3, 3 and 3 evaluators."""
    sizes = dict.fromkeys(["quality", "performance", "regression", "safety", "statistical", "structural", "llm"], 0)
    for info in Registry.standard().evaluators():
        if info.category in sizes:
            sizes[info.category] += 1
    assert list(sizes.values()) == [4, 3, 3, 3, 3, 3, 3]


# -- quality -----------------------------------------------------------------------------------

# Unit vectors: their cosines with the first one are 0.81 and 0.79.
VECTORS = {"then": (1.0, 0.0), "near": (0.81, math.sqrt(1 - 0.81**2)), "far": (0.79, math.sqrt(1 - 0.79**2))}


@clause("002.BUILTIN.2", "Evaluator Type System")
def test_semantic_similarity_passes_from_0_8() -> None:
    """`semantic_similarity` (quality) compares meanings and passes from the threshold 0.8 up."""
    is_listed("semantic_similarity", "quality", threshold=0.8)
    spans = [{"output": text, "baseline_output": "then"} for text in ("near", "far")]
    embed = lambda texts: [VECTORS[text] for text in texts]  # noqa: E731
    assert verdicts("semantic_similarity", "output", *spans, embedder=embed) == [True, False]
    meanings = [{"output": text, "baseline_output": GOOD} for text in (GOOD, DRIFTING)]
    assert verdicts("semantic_similarity", "output", *meanings) == [True, False]


@clause("002.BUILTIN.3", "Evaluator Type System")
def test_coherence_passes_from_0_8() -> None:
    """`coherence` (quality) judges the flow of a text and passes from `min_score` 0.8 up."""
    is_listed("coherence", "quality", min_score=0.8)
    assert score("coherence", "output", {"output": GOOD}).passed is True
    assert score("coherence", "output", {"output": DRIFTING}, min_score=1.0).passed is False


@clause("002.BUILTIN.4", "Evaluator Type System")
def test_hallucination_detection_finds_invented_facts() -> None:
    """`hallucination_detection` (quality) fails an answer that its context does not support."""
    is_listed("hallucination_detection", "quality")
    wrong = {"output": "The museum opens at seven in the morning."}
    assert verdicts("hallucination_detection", "output", {}, wrong) == [True, False]


@clause("002.BUILTIN.5", "Evaluator Type System")
def test_relevance_passes_from_0_7() -> None:
    """`relevance` (quality) compares answer and question and passes from the threshold 0.7 up."""
    is_listed("relevance", "quality", threshold=0.7)
    off_topic = {"output": "Penguins feed their young with fish from cold seas."}
    assert verdicts("relevance", "output", {}, off_topic) == [True, False]


# -- performance -------------------------------------------------------------------------------


def tokens(now: int, before: int) -> dict[str, Any]:
    return {"usage": {"total_tokens": now}, "baseline_usage": {"total_tokens": before}}


def latency(now: float, before: float) -> dict[str, Any]:
    return {"latency_ms": now, "baseline_latency_ms": before}


@clause("002.BUILTIN.6", "Evaluator Type System")
def test_token_efficiency_compares_with_the_baseline() -> None:
    """`token_efficiency` (performance) allows 10% more tokens than the baseline used."""
    is_listed("token_efficiency", "performance", max_increase_pct=10)
    found = verdicts("token_efficiency", "usage.total_tokens", tokens(110, 100), tokens(111, 100))
    assert found == [True, False]


@clause("002.BUILTIN.7", "Evaluator Type System")
def test_latency_passes_up_to_2000_ms() -> None:
    """`latency` (performance) passes up to `max_ms` 2000 milliseconds."""
    is_listed("latency", "performance", max_ms=2000)
    slow, slower = {"latency_ms": 2000.0}, {"latency_ms": 2001.0}
    assert verdicts("latency", "latency_ms", slow, slower) == [True, False]


@clause("002.BUILTIN.8", "Evaluator Type System")
def test_throughput_passes_from_10_tokens_a_second() -> None:
    """`throughput` (performance) passes from `min_tps` 10 tokens per second up."""
    is_listed("throughput", "performance", min_tps=10)
    spans = [{"usage": {"output_tokens": n}, "latency_ms": 2000.0} for n in (20, 19)]
    assert verdicts("throughput", "usage", *spans) == [True, False]


# -- regression --------------------------------------------------------------------------------


@clause("002.BUILTIN.9", "Evaluator Type System", ruling="fields: evaluators know the direction")
def test_no_regression_fails_what_got_worse() -> None:
    """`no_regression` (regression) fails more tokens and a lower score than the baseline's."""
    is_listed("no_regression", "regression")
    found = verdicts("no_regression", "usage.total_tokens", tokens(100, 100), tokens(101, 100))
    assert found == [True, False]
    spans = [{"accuracy": now, "baseline_accuracy": 0.8} for now in (0.9, 0.7)]
    assert verdicts("no_regression", "accuracy", *spans) == [True, False]


@clause("002.BUILTIN.10", "Evaluator Type System")
def test_token_regression_allows_10_percent() -> None:
    """`token_regression` (regression) passes up to `max_pct` 10 percent more tokens."""
    is_listed("token_regression", "regression", max_pct=10)
    found = verdicts("token_regression", "usage.total_tokens", tokens(110, 100), tokens(111, 100))
    assert found == [True, False]


@clause("002.BUILTIN.11", "Evaluator Type System")
def test_latency_regression_allows_200_ms() -> None:
    """`latency_regression` (regression) passes up to `max_ms` 200 milliseconds more."""
    is_listed("latency_regression", "regression", max_ms=200)
    found = verdicts("latency_regression", "latency_ms", latency(500, 300), latency(501, 300))
    assert found == [True, False]


# -- safety ------------------------------------------------------------------------------------


@clause("002.BUILTIN.12", "Evaluator Type System")
def test_bias_detection_finds_stereotypes() -> None:
    """`bias_detection` (safety) fails a stereotype and passes a plain statement."""
    is_listed("bias_detection", "safety")
    biased = {"output": "Women are too emotional to be engineers."}
    plain = {"output": "The museum opens at nine."}
    assert verdicts("bias_detection", "output", plain, biased) == [True, False]


@clause("002.BUILTIN.13", "Evaluator Type System")
def test_toxicity_detection_finds_abuse() -> None:
    """`toxicity_detection` (safety) fails an insult and passes a polite answer."""
    is_listed("toxicity_detection", "safety")
    polite = {"output": "Thank you for your question. The museum opens at nine."}
    assert verdicts("toxicity_detection", "output", polite, {"output": INSULT}) == [True, False]


@clause("002.BUILTIN.14", "Evaluator Type System")
def test_compliance_finds_what_policies_forbid() -> None:
    """`compliance` (safety) fails an answer with a card number and passes one without."""
    is_listed("compliance", "safety")
    leaked = {"output": "Your card number is 4111 1111 1111 1111."}
    clean = {"output": "The museum opens at nine."}
    assert verdicts("compliance", "output", clean, leaked) == [True, False]


# -- statistical -------------------------------------------------------------------------------


def series(now: list[float], before: list[float] | None = None) -> dict[str, Any]:
    return {"accuracy": now, "baseline_accuracy": before}


@clause("002.BUILTIN.15", "Evaluator Type System")
def test_consistency_allows_a_standard_deviation_of_0_1() -> None:
    """`consistency` (statistical) passes up to `std_dev` 0.1: 0.05 passes, 0.14 fails."""
    is_listed("consistency", "statistical", std_dev=0.1)
    # Deviations of 0.8, 0.85, 0.9: -0.05, 0, 0.05; s² = 0.005 / 2. Of 0.8 and 1.0: s² = 0.02.
    found = verdicts("consistency", "accuracy", series([0.8, 0.85, 0.9]), series([0.8, 1.0]))
    assert found == [True, False]


@clause("002.BUILTIN.16", "Evaluator Type System")
def test_statistical_significance_wants_p_of_0_05() -> None:
    """`statistical_significance` (statistical) passes from `p_value` 0.05 down."""
    is_listed("statistical_significance", "statistical", p_value=0.05)
    # Of C(8, 4) = 70 ways to split eight values, 2 are as extreme as the first: p = 0.0286.
    apart = series([0.9, 0.8, 0.9, 0.85], [0.6, 0.7, 0.65, 0.6])
    mixed = series([0.9, 0.6, 0.7, 0.85], [0.6, 0.8, 0.65, 0.9])
    assert verdicts("statistical_significance", "accuracy", apart, mixed) == [True, False]
    assert score("statistical_significance", "accuracy", apart).details["p"] == 2 / 70


@clause("002.BUILTIN.17", "Evaluator Type System")
def test_effect_size_wants_half_a_standard_deviation() -> None:
    """`effect_size` (statistical) passes from `cohen_d` 0.5 up: 3 standard deviations pass."""
    is_listed("effect_size", "statistical", cohen_d=0.5)
    # Means 5 and 2 with a pooled standard deviation of 1; then equal means.
    found = verdicts("effect_size", "accuracy", series([4, 5, 6], [1, 2, 3]), series([1, 3], [3, 1]))
    assert found == [True, False]


# -- structural --------------------------------------------------------------------------------


@clause("002.BUILTIN.18", "Evaluator Type System")
def test_json_validity_wants_valid_json() -> None:
    """`json_validity` (structural) passes valid JSON and fails a trailing comma."""
    is_listed("json_validity", "structural")
    found = verdicts("json_validity", "output", {"output": '{"a": 1}'}, {"output": '{"a": 1,}'})
    assert found == [True, False]


@clause("002.BUILTIN.19", "Evaluator Type System")
def test_schema_match_wants_the_json_schema() -> None:
    """`schema_match` (structural) passes JSON that its schema allows and fails other JSON."""
    is_listed("schema_match", "structural")
    schema = {"type": "object", "required": ["a"]}
    spans = [{"output": '{"a": 1}'}, {"output": '{"b": 1}'}]
    assert verdicts("schema_match", "output", *spans, schema=schema) == [True, False]


@clause("002.BUILTIN.20", "Evaluator Type System")
def test_format_compliance_wants_the_expected_format() -> None:
    """`format_compliance` (structural) passes an e-mail address and fails a sentence."""
    is_listed("format_compliance", "structural")
    spans = [{"output": "ada@example.org"}, {"output": "no address"}]
    assert verdicts("format_compliance", "output", *spans, format="email") == [True, False]


# -- LLM-powered -------------------------------------------------------------------------------


@clause("002.BUILTIN.21", "Evaluator Type System")
def test_llm_judge_asks_a_model_by_a_criterion() -> None:
    """`llm_judge` (llm) passes what the model rates good and fails what it rates poor."""
    is_listed("llm_judge", "llm")
    good, poor = rates("good"), rates("poor")
    found = [score("llm_judge", "output", {}, adapter=a, criterion="Polite?") for a in (good, poor)]
    assert [(one.passed, one.value) for one in found] == [(True, 0.75), (False, 0.25)]
    assert "Polite?" in good.asked[0].text


@clause("002.BUILTIN.22", "Evaluator Type System")
def test_quality_score_passes_from_0_7() -> None:
    """`quality_score` (llm) passes from `min_score` 0.7 up: 4 of 5 is 0.75, 3 of 5 is 0.5."""
    is_listed("quality_score", "llm", min_score=0.7)
    found = [score("quality_score", "output", {}, adapter=scores(n)) for n in (4, 3)]
    assert [(one.passed, one.value) for one in found] == [(True, 0.75), (False, 0.5)]


@clause("002.BUILTIN.23", "Evaluator Type System")
def test_rubric_evaluation_grades_by_a_rubric() -> None:
    """`rubric_evaluation` (llm) gives the weighted mean of a rubric's criteria."""
    is_listed("rubric_evaluation", "llm")
    rubric = {"clear": {"description": "It is clear.", "weight": 3}, "short": "It is short."}
    # Scores 5 and 1 of 5 are 1.0 and 0.0; with weights 3 and 1 that is 0.75.
    found = score("rubric_evaluation", "output", {}, adapter=scores(5, 1), rubric=rubric, one_call=False)
    assert found.value == 0.75
