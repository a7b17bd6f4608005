"""The field spec: several evaluators for one field, and how they combine."""

from __future__ import annotations

from typing import Any

import pytest

from proctor import FieldContext, Score, define
from proctor.errors import ConfigError, EvaluatorError
from tests.spec.clauses import clause, not_applicable
from tests.spec.spans import GOOD, SPAN, combined, context_of, fails, half, passes, quarter, raises


def skips(output: Any) -> Score:
    return Score.skipped("it cannot judge this")


@clause("002.MULTI.1", "Multi-Evaluator Field System")
def test_a_field_takes_evaluators_of_several_types() -> None:
    """A semantic, a performance and a structural evaluator judge one field together."""
    field = combined("semantic_similarity", "latency", "json_validity", span={**SPAN, "expected": GOOD})
    assert list(field.evaluators) == ["semantic_similarity", "latency", "json_validity"]
    assert field.evaluators["semantic_similarity"].passed is True
    assert field.evaluators["json_validity"].passed is False


@clause("002.MULTI.2", "Multi-Evaluator Field System")
def test_and_passes_if_all_pass() -> None:
    """With "and" a field passes if every evaluator passes, and fails if one fails."""
    assert combined(passes, half, how="and").score.passed is True
    assert combined(passes, fails, how="and").score.passed is False


@clause("002.MULTI.3", "Multi-Evaluator Field System", ruling="one combination rule")
def test_the_value_of_and_is_the_mean() -> None:
    """With "and" the field's value is the mean of the values: (1 + 0.5 + 0.25) / 3."""
    assert combined(passes, half, quarter, how="and").score.value == pytest.approx(1.75 / 3)


@clause("002.MULTI.4", "Multi-Evaluator Field System")
def test_or_passes_if_one_passes() -> None:
    """With "or" a field passes if any evaluator passes, and fails if all fail."""
    assert combined(fails, passes, how="or").score.passed is True
    assert combined(fails, quarter, how="or").score.passed is False


@clause("002.MULTI.5", "Multi-Evaluator Field System", ruling="one combination rule")
def test_the_value_of_or_is_the_greatest() -> None:
    """With "or" the field's value is the greatest value."""
    assert combined(fails, quarter, half, how="or").score.value == 0.5


@clause("002.MULTI.6", "Multi-Evaluator Field System")
def test_a_function_combines() -> None:
    """A function of the scores decides whether a field passes."""
    assert combined(passes, fails, how=lambda results: results["passes"]["passed"]).passed
    assert not combined(passes, fails, how=lambda results: results["fails"]["passed"]).passed


@clause("002.MULTI.7", "Multi-Evaluator Field System", ruling="fields: all pass by default")
def test_without_a_combination_all_must_pass() -> None:
    """A field without `combine_with` is combined with "and"."""
    checks = define().evaluate_field("output", passes, fails)
    assert checks.evaluate(SPAN).field_results["output"].score.passed is False


@clause("002.MULTI.8", "Multi-Evaluator Field System", ruling="order for people, concurrency for time")
def test_evaluators_report_in_the_order_of_their_definition() -> None:
    """Events and results come in the order of definition, whichever evaluator is done first."""
    ended: list[str | None] = []

    async def slow(output: Any) -> bool:
        return True

    checks = define().evaluate_field("output", slow, passes, half)
    checks.on_progress(lambda event: ended.append(event.evaluator), kinds=["evaluator_end"])
    field = checks.evaluate(SPAN).field_results["output"]
    assert ended == ["output.slow", "output.passes", "output.half"]
    assert list(field.evaluators) == ["slow", "passes", "half"]


@clause("002.MULTI.9", "Multi-Evaluator Field System")
def test_all_results_are_collected_before_they_are_combined() -> None:
    """The combination is called once, with every evaluator's score, also after a failure."""
    calls: list[list[str]] = []

    def note(results: Any) -> bool:
        calls.append(list(results))
        return True

    combined(fails, raises, passes, how=note)
    assert calls == [["fails", "raises", "passes"]]


@clause("002.MULTI.10", "Multi-Evaluator Field System")
def test_evaluators_have_their_own_parameters() -> None:
    """`evaluate_with(name, parameter=value)` sets a parameter of that evaluator only."""
    checks = define().evaluate_field("latency_ms")
    checks.evaluate_with("latency", max_ms=200).evaluate_with("latency", max_ms=400)
    first, second = checks.evaluate(SPAN).field_results["latency_ms"].evaluators.values()
    assert (first.passed, second.passed) == (False, True)


not_applicable(
    "002.MULTI.11",
    "Multi-Evaluator Field System",
    "Evaluator names map to existing RSpec matchers.",
    reason="RSpec belongs to Ruby; the 22 evaluators are registered under the specified names.",
)


@clause("002.MULTI.12", "Multi-Evaluator Field System")
def test_every_evaluator_has_its_own_verdict() -> None:
    """The result of a field contains for each evaluator the verdict, the value and the reason."""
    scores = combined(half, quarter).evaluators
    assert [(s.passed, s.value, s.reason) for s in scores.values()] == [
        (True, 0.5, "half"), (False, 0.25, "a quarter"),
    ]  # fmt: skip


@clause("002.MULTI.13", "Multi-Evaluator Field System")
def test_a_field_has_a_combined_verdict() -> None:
    """The result of a field has one combined score whose reason names who failed."""
    score = combined(half, quarter).score
    assert (score.passed, score.value, score.reason) == (False, 0.375, "quarter: a quarter")


@clause("002.MULTI.14", "Multi-Evaluator Field System", ruling="errors never become numbers")
def test_an_evaluator_that_raises_is_marked_as_failed() -> None:
    """Its score is an error with the exception in the reason, and has no value."""
    score = combined(raises, passes).evaluators["raises"]
    assert (score.status, score.value) == ("error", None)
    assert score.passed is not True
    assert "ValueError: the evaluator is broken" in score.reason


@clause("002.MULTI.15", "Multi-Evaluator Field System")
def test_the_other_evaluators_go_on_after_an_exception() -> None:
    """Evaluators before and after the one that raises give their verdicts."""
    scores = combined(half, raises, quarter).evaluators
    assert (scores["half"].value, scores["quarter"].value) == (0.5, 0.25)


@clause("002.MULTI.16", "Multi-Evaluator Field System")
def test_an_exception_fails_the_combined_result() -> None:
    """A field combined with "and" does not pass if one of its evaluators raises."""
    field = combined(passes, raises)
    assert not field.passed
    assert field.score.passed is not True
    assert field.score.value is None


@clause("002.MULTI.17", "Multi-Evaluator Field System", ruling="one combination rule")
def test_in_or_an_exception_counts_as_not_passed() -> None:
    """With "or" another pass still decides, and the details name the evaluator that raised."""
    score = combined(raises, passes, how="or").score
    assert score.passed is True
    assert score.details["errors"] == ["raises"]


@clause("002.MULTI.18", "Multi-Evaluator Field System", ruling="no evidence, no verdict")
def test_a_skipped_evaluator_leaves_an_and_without_a_verdict() -> None:
    """With "and" a skipped evaluator skips the field, unless another one failed."""
    undecided = combined(passes, skips).score
    assert (undecided.status, undecided.value) == ("skipped", None)
    assert combined(fails, skips).score.passed is False


@clause("002.MULTI.19", "Multi-Evaluator Field System", ruling="no evidence, no verdict")
def test_a_skipped_evaluator_leaves_an_or_to_the_others() -> None:
    """With "or" a pass decides although another evaluator was skipped."""
    assert combined(passes, skips, how="or").score.passed is True


@clause("002.MULTI.20", "Multi-Evaluator Field System")
def test_evaluators_get_a_field_context() -> None:
    """An evaluator gets the field's value and the whole result in a FieldContext."""
    context = context_of("usage.total_tokens", SPAN)
    assert isinstance(context, FieldContext)
    assert context.value == 500
    assert context.full_result["output"] == GOOD


@clause("002.MULTI.21", "Multi-Evaluator Field System")
def test_the_field_context_has_name_value_baseline_delta_and_accessors() -> None:
    """A context has the field's name, value, baseline value, delta and the usual accessors."""
    span = {**SPAN, "baseline_usage": {"total_tokens": 400}}
    context = context_of("usage.total_tokens", span, alias="tokens")
    assert (context.field_name, context.value, context.baseline_value) == ("tokens", 500, 400)
    assert context.delta is not None
    assert (context.delta.absolute, context.delta.percentage) == (100, 25.0)
    assert (context.output, context.latency_ms) == (GOOD, 300.0)


@clause("002.MULTI.22", "Multi-Evaluator Field System", ruling="fields: merging blocks")
def test_blocks_of_one_field_merge_in_order() -> None:
    """Two `evaluate_field` blocks for one field are one field with both lists of evaluators."""
    checks = (
        define().evaluate_field("output", passes).evaluate_field("latency_ms", passes).evaluate_field("output", half)
    )
    field_results = checks.evaluate(SPAN).field_results
    assert list(field_results) == ["output", "latency_ms"]
    assert list(field_results["output"].evaluators) == ["passes", "half"]


@clause("002.MULTI.23", "Multi-Evaluator Field System", ruling="fields: merging blocks")
def test_two_combinations_of_one_field_are_refused() -> None:
    """A field that is combined with "and" cannot be combined with "or" as well."""
    checks = define().evaluate_field("output", passes, combine_with="and")
    with pytest.raises(ConfigError, match="the field is already combined by 'and'"):
        checks.evaluate_field("output", half, combine_with="or")


@clause("002.MULTI.24", "Multi-Evaluator Field System", ruling="empty combinations are refused")
def test_a_field_without_evaluators_is_refused() -> None:
    """Evaluating a definition whose field has no evaluator is a definition error."""
    with pytest.raises(ConfigError, match="add an evaluator"):
        define().evaluate_field("output").evaluate(SPAN)


@clause("002.LAMBDA.1", "Lambda Combination Logic")
def test_a_combination_function_gets_results_by_evaluator_name() -> None:
    """The function gets a mapping whose keys are the names of the evaluators."""
    names: list[list[str]] = []

    def note(results: Any) -> bool:
        names.append(list(results))
        return True

    combined(half, quarter, how=note)
    assert names == [["half", "quarter"]]


@clause("002.LAMBDA.2", "Lambda Combination Logic")
def test_each_result_has_passed_score_details_and_message() -> None:
    """`results[name]` is read by the keys "passed", "score", "details" and "message"."""
    seen: list[Any] = []

    def read(results: Any) -> bool:
        item = results["half"]
        seen.extend([item["passed"], item["score"], item["details"], item["message"]])
        return True

    combined(half, how=read)
    assert seen == [True, 0.5, {}, "half"]


@clause("002.LAMBDA.3", "Lambda Combination Logic")
def test_a_combination_function_returns_a_mapping() -> None:
    """A mapping with passed, score, details and message becomes the field's score."""
    combination = {"passed": False, "score": 0.9, "details": {"rule": "strict"}, "message": "too good"}
    score = combined(passes, how=lambda results: combination).score
    assert (score.passed, score.value, score.reason) == (False, 0.9, "too good")
    assert score.details["rule"] == "strict"


@clause("002.LAMBDA.4", "Lambda Combination Logic", ruling="a combination's result is validated")
@pytest.mark.parametrize("wrong", [{"passed": True, "score": 7}, {"pased": True}, "yes", {"score": "x"}])
def test_what_a_combination_function_returns_is_validated(wrong: Any) -> None:
    """A score out of range, an unknown key or another type is an error of the field."""
    score = combined(passes, how=lambda results: wrong).score
    assert (score.status, score.value) == ("error", None)


def required_with_bonus(results: Any) -> dict[str, Any]:
    """The spec's example: two are required, the third gives a bonus."""
    required = results["semantic_similarity"]["passed"] and results["coherence"]["passed"]
    bonus = 0.1 if results["hallucination_detection"]["passed"] else 0.0
    average = (results["semantic_similarity"]["score"] + results["coherence"]["score"]) / 2.0
    return {
        "passed": required,
        "score": min(average + bonus, 1.0),
        "details": {"required_passed": required, "bonus_applied": bonus > 0, "individual_results": results},
        "message": f"Combined evaluation: {'PASS' if required else 'FAIL'}",
    }


@clause("002.LAMBDA.5", "Lambda Combination Logic")
def test_the_example_of_a_combination_function_runs() -> None:
    """Similarity and coherence are required, and an answer without invented facts gets a bonus."""
    checks = (
        define()
        .evaluate_field("output")
        .evaluate_with("semantic_similarity", threshold=0.85)
        .evaluate_with("coherence", min_score=0.8)
        .evaluate_with("hallucination_detection")
        .combine_with(required_with_bonus)
    )
    field = checks.evaluate({**SPAN, "expected": GOOD}).field_results["output"]
    values = [field.evaluators[n].value or 0.0 for n in ("semantic_similarity", "coherence")]
    average = sum(values) / 2
    assert field.score.passed is True
    assert field.score.value == pytest.approx(min(average + 0.1, 1.0))
    assert field.score.reason == "Combined evaluation: PASS"
    assert field.score.details["bonus_applied"] is True


@clause("002.LAMBDA.6", "Lambda Combination Logic")
def test_a_combination_function_may_keep_the_single_results() -> None:
    """The mapping that the function got may be put into the details, and is kept there."""
    keep = lambda results: {"passed": True, "details": {"individual_results": results}}  # noqa: E731
    details = combined(half, how=keep).score.details
    assert details["individual_results"]["half"]["value"] == 0.5


@clause("002.LAMBDA.7", "Lambda Combination Logic")
def test_a_combination_function_that_raises_fails_the_field_only() -> None:
    """Its exception is the field's error; the other fields keep their verdicts."""
    checks = define().evaluate_field("output", passes, combine_with=lambda results: results["no"])
    checks.evaluate_field("latency_ms", passes)
    field_results = checks.evaluate(SPAN).field_results
    assert field_results["output"].score.status == "error"
    assert field_results["latency_ms"].score.passed is True


@clause("002.LAMBDA.8", "Lambda Combination Logic", ruling="fields: names are checked when defined")
def test_an_unknown_combination_is_refused_when_defined() -> None:
    """A combination that is neither "and", "or" nor a function is a definition error."""
    with pytest.raises(EvaluatorError, match="cannot be combined with 'xor'"):
        define().evaluate_field("output").combine_with("xor")


@clause("002.STORY.2", "Story 2: Attach Multiple Evaluators to Single Field with Logic")
def test_three_quality_evaluators_decide_together() -> None:
    """Similarity, coherence and hallucination detection pass an answer and fail another one."""
    checks = (
        define()
        .evaluate_field("output")
        .evaluate_with("semantic_similarity", threshold=0.85)
        .evaluate_with("coherence", min_score=0.8)
        .evaluate_with("hallucination_detection")
        .combine_with("and")
    )
    good = checks.evaluate({**SPAN, "expected": GOOD})
    assert good.passed
    wrong = "The museum opens at seven [1]. Whales sing at night."
    assert not checks.evaluate({**SPAN, "output": wrong, "expected": GOOD}).passed


@clause("002.DELIVERABLE.2", "Functional Deliverables")
def test_two_evaluators_with_and_both_run() -> None:
    """Semantic similarity and coherence with "and" both give a verdict, and both must pass."""
    field = combined("semantic_similarity", "coherence", span={**SPAN, "expected": GOOD})
    assert {name: score.passed for name, score in field.evaluators.items()} == {
        "semantic_similarity": True, "coherence": True,
    }  # fmt: skip
    assert field.score.passed is True
