"""The field spec: evaluators that users write themselves."""

from __future__ import annotations

from typing import Any

import pytest

from proctor import FieldContext, Score, define, register_evaluator
from proctor.errors import EvaluatorError
from proctor.wiring import registry as registry_module
from tests.definition.custom import SmartQuality, TokenEfficiency
from tests.spec.clauses import clause
from tests.spec.spans import GOOD, SPAN


class CitationGrounding:
    """The spec's first example: passes if every citation is in the knowledge base."""

    evaluator_name = "citation_grounding"

    def evaluate(self, field_context: FieldContext, **options: Any) -> dict[str, Any]:
        text, known = field_context.value, options["knowledge_base"]
        model = field_context["configuration"]["model"]
        tokens = field_context["usage"]["total_tokens"]
        cited = [text[at + 1] for at, sign in enumerate(text) if sign == "["]
        verified = [number for number in cited if number in known]
        return {
            "passed": verified == cited,
            "score": len(verified) / len(cited),
            "details": {
                "field_evaluated": field_context.field_name,
                "total_citations": len(cited),
                "context": {"model": model, "tokens": tokens},
            },
            "message": f"{len(verified)}/{len(cited)} citations grounded",
        }


class Fixed:
    """An evaluator that returns what it was made with."""

    evaluator_name = "fixed"

    def __init__(self, verdict: Any) -> None:
        self.verdict = verdict

    def evaluate(self, field_context: FieldContext, **options: Any) -> Any:
        return self.verdict


def score_of(evaluator: Any, span: Any = SPAN, **parameters: Any) -> Score:
    checks = define().evaluate_field("output").evaluate_with(evaluator, **parameters)
    (score,) = checks.evaluate(span).field_results["output"].evaluators.values()
    return score


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_process_evaluators", {})


@clause("002.CUSTOM.1", "Evaluator Interface Requirements")
def test_an_evaluator_class_has_a_name() -> None:
    """`evaluator_name` of the class is the name by which definitions refer to it."""
    checks = define().register_evaluator(CitationGrounding).evaluate_field("output")
    field = checks.evaluate_with("citation_grounding", knowledge_base={"1", "2"}).evaluate(SPAN)
    assert list(field.field_results["output"].evaluators) == ["citation_grounding"]


@clause("002.CUSTOM.2", "Evaluator Interface Requirements")
def test_evaluate_gets_a_field_context() -> None:
    """The method `evaluate` gets the FieldContext of the field that is evaluated."""
    seen: list[Any] = []

    class Looks:
        evaluator_name = "looks"

        def evaluate(self, field_context: FieldContext, **options: Any) -> bool:
            seen.append((type(field_context), field_context.field_name, field_context.value))
            return True

    score_of(Looks)
    assert seen == [(FieldContext, "output", GOOD)]


@clause("002.CUSTOM.3", "Evaluator Interface Requirements")
def test_evaluate_gets_options_by_keyword() -> None:
    """Parameters of `evaluate_with` reach `evaluate` as keyword arguments."""
    seen: list[Any] = []

    class Looks:
        evaluator_name = "looks"

        def evaluate(self, field_context: FieldContext, **options: Any) -> bool:
            seen.append(options)
            return True

    score_of(Looks, knowledge_base=["a"], strict=True)
    assert seen == [{"knowledge_base": ["a"], "strict": True}]


@clause("002.CUSTOM.4", "Evaluator Interface Requirements")
def test_passed_decides_the_verdict() -> None:
    """The key "passed" of the returned mapping decides whether the evaluation passed."""
    assert score_of(Fixed({"passed": True})).passed is True
    assert score_of(Fixed({"passed": False})).passed is False


@clause("002.CUSTOM.5", "Evaluator Interface Requirements")
def test_score_is_an_optional_number_from_0_to_1() -> None:
    """The key "score" is the value; without it a pass is 1 and a failure 0."""
    assert score_of(Fixed({"passed": True, "score": 0.6})).value == 0.6
    assert score_of(Fixed({"passed": True})).value == 1.0
    assert score_of(Fixed({"passed": False})).value == 0.0
    assert score_of(Fixed({"passed": True, "score": 1.2})).status == "error"


@clause("002.CUSTOM.6", "Evaluator Interface Requirements")
def test_details_are_an_optional_mapping() -> None:
    """The key "details" is kept with the score; without it there are none."""
    assert score_of(Fixed({"passed": True, "details": {"a": [1]}})).details == {"a": [1]}
    assert score_of(Fixed({"passed": True})).details == {}


@clause("002.CUSTOM.7", "Evaluator Interface Requirements")
def test_message_is_an_optional_text() -> None:
    """The key "message" is the score's reason; without it the reason is empty."""
    assert score_of(Fixed({"passed": True, "message": "fine"})).reason == "fine"
    assert score_of(Fixed({"passed": True})).reason == ""


@clause("002.CUSTOM.8", "Evaluator Interface Requirements", ruling="one score")
def test_evaluate_may_return_a_score() -> None:
    """A Score is the same to readers of the result as the mapping with its parts."""
    as_mapping = Fixed({"passed": True, "score": 0.5, "message": "why"})
    assert score_of(Fixed(Score(0.5, True, "why"))) == score_of(as_mapping)


@clause("002.CUSTOM.9", "Evaluator Interface Requirements")
def test_a_class_without_evaluate_is_refused() -> None:
    """A class that lacks `evaluate` cannot be registered."""

    class Nothing:
        evaluator_name = "nothing"

    with pytest.raises(EvaluatorError, match="evaluate"):
        define().register_evaluator(Nothing)


@clause("002.CUSTOM.10", "Evaluator Registration")
def test_an_evaluator_can_be_registered_for_all_definitions() -> None:
    """After `register_evaluator(cls)` every definition knows the evaluator by its name."""
    register_evaluator(CitationGrounding)
    for _ in range(2):
        assert score_of("citation_grounding", knowledge_base={"1", "2"}).passed is True


@clause("002.CUSTOM.11", "Evaluator Registration")
def test_an_evaluator_can_be_registered_in_one_definition() -> None:
    """`register_evaluator` of a definition makes the name known there and nowhere else."""
    define().register_evaluator(CitationGrounding).evaluate_field("output").evaluate_with(
        "citation_grounding", knowledge_base=set()
    )
    with pytest.raises(EvaluatorError, match="unknown evaluator 'citation_grounding'"):
        define().evaluate_field("output").evaluate_with("citation_grounding")


@clause("002.CUSTOM.12", "Custom Evaluator Support")
def test_the_citation_example_runs() -> None:
    """The spec's citation evaluator verifies one of two citations of a recorded span."""
    register_evaluator(CitationGrounding)
    score = score_of("citation_grounding", knowledge_base={"1"})
    assert (score.passed, score.value) == (False, 0.5)
    assert score.reason == "1/2 citations grounded"
    assert score.details == {
        "field_evaluated": "output",
        "total_citations": 2,
        "context": {"model": "gpt-4o", "tokens": 500},
    }


@clause("002.CUSTOM.13", "Example: Token Efficiency Evaluator Using Delta")
def test_the_token_efficiency_example_runs() -> None:
    """The spec's token evaluator reads the delta: 25% more than the baseline fails at 0.75."""
    checks = define().register_evaluator(TokenEfficiency)
    checks.select("usage.total_tokens", as_="tokens").evaluate_field("tokens")
    checks.evaluate_with("own_token_efficiency", max_increase_pct=10)
    span = {**SPAN, "baseline_usage": {"total_tokens": 400}}
    score = checks.evaluate(span).field_results["tokens"].score
    assert (score.passed, score.value) == (False, 0.75)


@clause("002.CUSTOM.14", "Example: Token Efficiency Evaluator Using Delta", ruling="no evidence, no verdict")
def test_without_a_baseline_the_token_efficiency_example_gives_no_verdict() -> None:
    """Where there is no baseline the comparison is skipped; it neither passes nor fails."""
    checks = define().register_evaluator(TokenEfficiency).evaluate_field("usage.total_tokens")
    checks.evaluate_with("own_token_efficiency")
    score = checks.evaluate(SPAN).field_results["usage.total_tokens"].score
    assert (score.status, score.value) == ("skipped", None)


@clause("002.CUSTOM.15", "Example: Cross-Field Context-Aware Evaluator")
@pytest.mark.parametrize(
    ("model", "tokens", "value"), [("gpt-4o", 10, 0.85), ("gpt-3.5-turbo", 10, 0.935), ("gpt-4o", 2000, 0.75)]
)
def test_the_cross_field_example_runs(model: str, tokens: int, value: float) -> None:
    """The spec's quality evaluator reads tokens and model of a recorded span in addition to its field."""
    span = {
        "output": "short",
        "usage": {"total_tokens": tokens},
        "latency_ms": 100.0,
        "configuration": {"model": model},
    }
    score = score_of(SmartQuality, span)
    assert score.value == pytest.approx(value)
    assert f"model {model}, {tokens} tokens" in score.reason


@clause("002.CUSTOM.16", "Custom Evaluator Support", ruling="names of the specs stay as aliases")
def test_use_evaluator_is_another_name_of_evaluate_with() -> None:
    """`use_evaluator`, as the spec's examples write it, attaches an evaluator by name."""
    checks = define().register_evaluator(CitationGrounding).evaluate_field("output")
    checks.use_evaluator("citation_grounding", knowledge_base={"1", "2"}).combine_with("and")
    assert checks.evaluate(SPAN).passed


@clause("002.DELIVERABLE.8", "Functional Deliverables")
def test_a_custom_evaluator_is_registered_and_used_with_a_parameter() -> None:
    """A registered citation evaluator with a knowledge base returns passed, score and message."""
    register_evaluator(CitationGrounding)
    checks = define().evaluate_field("output")
    checks.evaluate_with("citation_grounding", knowledge_base={"1", "2"}).combine_with("and")
    score = checks.evaluate(SPAN).field_results["output"].score
    assert (score["passed"], score["score"]) == (True, 1.0)
    assert score["message"] == "2/2 citations grounded"
