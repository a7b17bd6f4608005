"""Judges as evaluators: labels, scores, rubrics, several opinions, and never a made-up number."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import Sample, Score, all_of, attach, contains, evaluate
from proctor.errors import CallFailed, EvaluatorError
from proctor.evaluators.llm import llm_judge, quality_score, rubric_evaluation
from proctor.records.model import ModelResponse, TokenLogprobs
from proctor.records.session import Message, ModelCall, Usage
from proctor.wiring.registry import Registry
from tests.evaluators.judging.rehearsed import Asked, Scripted, rates, scores
from tests.tables import each_row

SAMPLE = Sample("1", "Capital of France?", "Paris", metadata={"context": "France: Paris."})
MEDIAN: Any = "median"
RUBRIC = {"accuracy": {"description": "Only facts.", "weight": 3}, "tone": "Is it kind?"}


def judged(evaluator: Callable[..., Any], output: Any = "Paris", sample: Any = SAMPLE) -> Score:
    found: Score = evaluator(output, sample)
    return found


def test_an_unreadable_answer_is_explained_in_the_words_of_the_user() -> None:
    """Neither the mark of the call nor the functions around the judge appear."""

    def kind_judge(messages: list[Message]) -> str:
        return f"I like all {len(messages) and 'of it'}."

    assert judged(llm_judge(kind_judge, "Is it right?")).reason == (
        "python:kind_judge gave no readable answer, not even after a reminder: "
        'it has no line "RATING: <excellent | good | fair | poor | wrong>"; '
        "the answer was 'I like all of it.'"
    )


@each_row("schema", [False, True])
@each_row(
    ("word", "value", "passed"),
    [
        ("excellent", 1.0, True),
        ("good", 0.75, True),
        ("fair", 0.5, False),
        ("poor", 0.25, False),
        ("wrong", 0.0, False),
    ],
)
def test_a_rating_has_its_value_and_passes_or_not(word: str, value: float, passed: bool, schema: bool) -> None:
    """Five labels, the first two pass; the reason is the judge's."""
    score = judged(llm_judge(rates(word, schema=schema), "Is it right?"))
    assert (score.value, score.passed, score.reason) == (value, passed, "so it is")
    judge = score.details["judge"]
    assert judge["model"] == "test:judge"
    assert judge["prompt"].startswith("proctor.judges/llm-judge@")
    assert judge["usage"] == {"input_tokens": 100, "output_tokens": 10, "cost": 0.001}
    assert judge["rating"] == word


def test_a_judge_sees_input_context_reference_and_output_behind_the_fence() -> None:
    """And the criterion too."""
    judge = rates("good")
    judged(llm_judge(judge, "Is it right?"))
    asked = judge.asked[0]
    assert asked.part("CRITERION") == "Is it right?"
    assert asked.part("INPUT") == "Capital of France?"
    assert asked.part("CONTEXT") == "France: Paris."
    assert asked.part("EXPECTED") == "Paris"
    assert asked.part("OUTPUT") == "Paris"


def test_the_reference_is_shown_wanted_or_hidden() -> None:
    """None: where there is one. True: skipped without one. False: never."""
    bare: Sample[str, str] = Sample("1", "Capital of France?")
    judge = rates("good")
    assert judged(llm_judge(judge, "c"), sample=bare).ok
    assert not judge.asked[-1].has("EXPECTED")
    skipped = judged(llm_judge(judge, "c", reference=True), sample=bare)
    assert (skipped.status, "no expected value" in skipped.reason) == ("skipped", True)
    assert judged(llm_judge(judge, "c", reference=True)).ok
    assert judged(llm_judge(judge, "c", reference=False)).ok
    assert not judge.asked[-1].has("EXPECTED")
    assert len(judge.asked) == 3


def test_the_input_can_be_hidden_from_the_judge() -> None:
    """With it the context."""
    judge = rates("good")
    judged(llm_judge(judge, "c", show_input=False))
    assert not judge.asked[0].has("INPUT")
    assert not judge.asked[0].has("CONTEXT")


def test_a_judge_can_be_called_with_an_output_and_an_expected_value() -> None:
    """As the function itself, attached, and inside a combination."""
    judge = rates("good")
    evaluator = llm_judge(judge, "Is it right?")
    assert evaluator("Paris", "Paris").value == 0.75
    assert evaluator("Paris").value == 0.75
    assert attach(evaluator)("Paris", "Paris").value == 0.75
    both = all_of(contains, evaluator, llm_judge(judge, "Kind?"))("Paris", "Paris")
    assert both.value == pytest.approx((1 + 0.75 + 0.75) / 3)
    assert list(both.details["parts"]) == ["contains", "llm_judge", "llm_judge_2"]
    assert [asked.has("EXPECTED") for asked in judge.asked] == [True, False, True, True, True]


def test_other_outputs_than_texts_are_shown_as_json() -> None:
    """A list of questions, a mapping, and None."""
    judge = rates("good")
    for output in (["Why?", "How?"], {"a": 1}, None, ""):
        assert judged(llm_judge(judge, "c"), output).ok
    shown = [asked.part("OUTPUT") for asked in judge.asked]
    assert shown == ['["Why?","How?"]', '{"a":1}', "null", ""]


@pytest.mark.parametrize("schema", [False, True])
def test_with_a_rubric_or_criteria_the_verdict_is_a_number(schema: bool) -> None:
    """4 on a scale from 1 to 5 is 0.75 and passes; 3 does not."""
    score = judged(llm_judge(scores(4, schema=schema), rubric="5: perfect, 1: useless"))
    assert (score.value, score.passed) == (0.75, True)
    output = {key: score.details[key] for key in ("score", "min", "max", "percentage", "normalized")}
    assert output == {"score": 4, "min": 1, "max": 5, "percentage": 80.0, "normalized": 0.75}
    assert score.details["judge"]["score"] == 4
    assert score.details["judge"]["prompt"].startswith("proctor.judges/llm-score@")
    judge = scores(3, schema=schema)
    assert not judged(llm_judge(judge, "Overall.", rubric="R", criteria=["clear", "short"])).passed
    assert judge.asked[0].part("CRITERION") == "Overall.\n\nR\n\nConsider:\n- clear\n- short"
    assert judged(llm_judge(scores(3, schema=schema), criteria=["clear"], threshold=0.5)).passed


def test_a_scale_with_a_criterion_asks_for_a_number() -> None:
    """Without a scale it is one of the five words; a rubric has the scale from 1 to 5 either way."""
    assert judged(llm_judge(scores(8), "c", scale=(0, 10))).value == 0.8
    assert judged(llm_judge(scores(8), "c")).status == "error"
    default, explicit = llm_judge(scores(4), rubric="r"), llm_judge(scores(4), rubric="r", scale=(1, 5))
    assert attach(default).spec.parameters == attach(explicit).spec.parameters


def test_the_scale_is_the_users() -> None:
    """Nothing is hard-wired to 5."""
    judge = scores(7)
    score = judged(llm_judge(judge, rubric="r", scale=(0, 10)))
    assert (score.value, score.passed, score.details["percentage"]) == (0.7, True, 70.0)
    assert "from 0 to 10" in judge.asked[0].text
    assert judged(llm_judge(scores(11), rubric="r", scale=(0, 10))).status == "error"


def test_without_a_criterion_it_is_overall_quality() -> None:
    """The same as `quality_score`."""
    judge = scores(4)
    bare, quality = judged(llm_judge(judge)), judged(quality_score(judge))
    assert bare == quality
    assert bare.details["judge"]["prompt"].startswith("proctor.judges/quality-score@")
    assert judged(quality_score(scores(3))).passed is False
    assert judged(quality_score(scores(3), threshold=0.5)).passed is True


def test_a_threshold_takes_the_place_of_the_passing_ratings() -> None:
    """Fair is enough, or good is not."""
    assert judged(llm_judge(rates("fair"), "c", threshold=0.5)).passed
    assert not judged(llm_judge(rates("good"), "c", threshold=0.8)).passed


# More than one opinion


def test_several_opinions_give_their_mean_and_spread() -> None:
    """good, good, wrong: mean 0.5, standard deviation 0.433; one call each."""
    judge = rates("good", "good", "wrong")
    score = judged(llm_judge(judge, "c", samples=3))
    assert (score.value, score.passed) == (0.5, False)
    output = score.details["judge"]
    assert output["distribution"] == {"good": 2, "wrong": 1}
    # Deviations 0.25, 0.25, -0.5: squares add up to 0.375, over 2.
    assert output["spread"] == pytest.approx(math.sqrt(0.1875))
    assert (output["passing"], len(output["opinions"])) == (2, 3)
    assert output["usage"]["input_tokens"] == 300
    assert [asked.request.opinion for asked in judge.asked] == [0, 1, 2]
    assert [asked.request.temperature for asked in judge.asked] == [None] * 3
    assert "2 of 3 opinions pass" in score.reason


def test_with_a_vote_the_majority_of_opinions_decides() -> None:
    """A tie does not pass, and the reason says so."""
    assert judged(llm_judge(rates("good", "good", "wrong"), "c", samples=3, combine="vote")).passed
    tie = judged(llm_judge(rates("good", "wrong"), "c", samples=2, combine="vote"))
    assert (tie.passed, tie.value) == (False, 0.375)
    assert tie.reason.startswith("a tie, which does not pass")


def test_several_scores_have_a_mean_on_their_scale() -> None:
    """5, 4 and 4 of 5."""
    score = judged(llm_judge(scores(5, 4, 4), rubric="r", samples=3))
    assert score.value == pytest.approx(10 / 12)
    assert score.details["score"] == pytest.approx(4.333333333)
    assert score.details["judge"]["distribution"] == {"5": 1, "4": 2}


def test_failed_opinions_are_left_out_and_counted() -> None:
    """One of three is missing from the mean, which does not pass with it either; two of three make it an error."""
    lost = CallFailed("the line is dead")
    judge = Scripted(lambda a: a.rating("poor"), lost, lambda a: a.rating("fair"))
    score = judged(llm_judge(judge, "c", samples=3))
    assert (score.value, score.passed) == (0.375, False)
    assert score.details["failed_parts"] == {"opinion": "the line is dead"}
    assert score.details["judge"]["failed"] == 1
    assert score.details["judge"]["failures"] == ["the line is dead"]
    broken = judged(llm_judge(Scripted(lambda a: a.rating("good"), lost), "c", samples=3))
    assert (broken.status, broken.value) == ("error", None)
    assert broken.reason == "2 of 3 opinions failed; test:judge: the line is dead"
    # What the one that was answered used is kept.
    assert broken.details["judge"]["usage"]["input_tokens"] == 100
    for half in (
        judged(llm_judge(Scripted(lambda a: a.rating("good"), lost), "c", samples=2)),
        judged(llm_judge(Scripted(lambda a: a.rating("good"), lost), "c", samples=2, combine="vote")),
    ):
        assert half.reason == "1 of 2 opinions failed; test:judge: the line is dead"
    vote = Scripted(lambda a: a.rating("good"), lambda a: a.rating("good"), lost)
    assert judged(llm_judge(vote, "c", samples=3, combine="vote")).passed is True


def test_one_opinion_is_requested_at_temperature_0_by_default() -> None:
    """Null leaves it to the provider."""
    for options, expected in (({}, 0.0), ({"temperature": None}, None), ({"temperature": 1.5}, 1.5)):
        judge = rates("good")
        judged(llm_judge(judge, "c", max_tokens=99, **options))
        assert judge.asked[0].request.temperature == expected
        assert judge.asked[0].request.max_tokens == 99


def test_with_probabilities_the_score_is_the_expected_value() -> None:
    """The details have the distribution and its coverage."""

    def chancy(asked: Asked) -> ModelResponse:
        text = asked.rating("good")
        tokens = (
            TokenLogprobs(text[:-4], 0.0),
            TokenLogprobs("good", math.log(0.5), {"fair": math.log(0.25), "!": math.log(0.25)}),
        )
        return ModelResponse(text, logprobs=tokens)

    score = judged(llm_judge(Scripted(chancy), "c", logprobs=True))
    # (0.5 * 0.75 + 0.25 * 0.5) / 0.75
    assert score.value == pytest.approx(2 / 3)
    assert score.details["judge"]["chances"] == pytest.approx({"good": 0.5, "fair": 0.25})
    assert score.details["judge"]["seen"] == pytest.approx(0.75)
    plain = judged(llm_judge(rates("good"), "c", logprobs=True))
    assert (plain.value, plain.details["judge"]["chances"]) == (0.75, None)
    assert plain.details["judge"]["unseen"] == "the provider returned no probabilities"


# No verdict is never a number


@pytest.mark.parametrize("schema", [False, True])
def test_two_unreadable_answers_are_an_error(schema: bool) -> None:
    """The reason names the judge, and the details have the answer."""
    judge = Scripted("what a lovely day", schema=schema)
    score = judged(llm_judge(judge, "c"))
    assert len(judge.asked) == 2
    assert (score.status, score.value, score.passed) == ("error", None, None)
    assert score.reason.startswith("test:judge gave no readable answer, not even after a reminder")
    assert score.details["judge"]["model"] == "test:judge"
    assert score.details["judge"]["error"] == "Unreadable"
    assert score.details["judge"]["answer"] == "what a lovely day"
    paid = {"input_tokens": 200, "output_tokens": 20, "cost": 0.002}
    assert score.details["judge"]["usage"] == paid


def test_the_cost_of_a_failed_opinion_is_counted() -> None:
    """Three opinions, one of them asked twice and never readable: four calls."""

    def shy(asked: Asked) -> str:
        return "hm" if asked.request.opinion == 1 else asked.rating("poor")

    score = judged(llm_judge(Scripted(shy), "c", samples=3))
    assert (score.value, score.details["judge"]["failed"]) == (0.25, 1)
    assert score.details["judge"]["usage"]["input_tokens"] == 400
    rubric = Scripted(lambda a: "hm" if "tone" in a.part("CRITERION") else a.score(4))
    part = judged(rubric_evaluation(rubric, RUBRIC, one_call=False))
    assert (part.status, part.details["missing"]) == ("error", ["tone"])
    assert part.details["judge"]["usage"]["input_tokens"] == 300
    lost = judged(rubric_evaluation(Scripted("hm"), RUBRIC))
    assert lost.details["judge"]["usage"]["input_tokens"] == 200


def test_the_reminder_repeats_the_requested_format() -> None:
    """JSON with structured output, the marked line otherwise."""
    for schema, expected in ((True, "Answer with JSON alone"), (False, "RATING ")):
        judge = Scripted("what a lovely day", schema=schema)
        judged(llm_judge(judge, "c"))
        reminder = judge.asked[1].request.messages[-1].content
        assert expected in reminder
        assert ("RATING" in reminder) is not schema


def test_a_refusal_is_an_error_after_one_call() -> None:
    judge = Scripted(ModelResponse(refusal="I will not judge", finish_reason="refusal"))
    score = judged(llm_judge(judge, "c"))
    assert (score.status, len(judge.asked)) == ("error", 1)
    assert "refused to answer: 'I will not judge'" in score.reason


def test_an_unreachable_judge_is_an_error_that_names_it() -> None:
    """Also where the provider's own words do not name the model."""
    score = judged(quality_score(Scripted(CallFailed("HTTP 500"))))
    assert (score.status, score.reason) == ("error", "test:judge: HTTP 500")


# Rubrics


def sheet(asked: Asked, **given: float) -> str:
    """Scores for some criteria, in the requested form."""
    if asked.request.schema is not None:
        return json.dumps({key: {"reason": "so", "score": n} for key, n in given.items()})
    return "\n".join(f"so\nSCORE {asked.mark} {key}: {n}" for key, n in given.items())


@pytest.mark.parametrize("schema", [False, True])
def test_a_rubric_in_one_call_is_a_weighted_mean(schema: bool) -> None:
    """(3 * 0.75 + 1 * 0.25) / 4 = 0.625, which is 3.5 of 5."""
    judge = Scripted(lambda a: sheet(a, criterion_1=4, criterion_2=2), schema=schema)
    score = judged(rubric_evaluation(judge, RUBRIC))
    assert (score.value, score.passed) == (0.625, False)
    assert score.details["criteria"] == {
        "accuracy": {"score": 4, "value": 0.75, "weight": 3.0, "reason": "so"},
        "tone": {"score": 2, "value": 0.25, "weight": 1.0, "reason": "so"},
    }
    assert (score.details["score"], score.details["missing"]) == (3.5, [])
    assert score.reason == "accuracy 4/5, tone 2/5"
    assert score.details["judge"]["usage"]["input_tokens"] == 100
    assert len(judge.asked) == 1
    assert judge.asked[0].part("CRITERIA") == ("criterion_1: accuracy\nOnly facts.\n\ncriterion_2: tone\nIs it kind?")


def test_a_rubric_can_use_one_call_per_criterion() -> None:
    """The same mean; every criterion by itself, and all bills added up."""

    def by_criterion(asked: Asked) -> str:
        return asked.score(4 if "accuracy" in asked.part("CRITERION") else 2)

    judge = Scripted(by_criterion)
    score = judged(rubric_evaluation(judge, RUBRIC, one_call=False, threshold=0.6))
    assert (score.value, score.passed, len(judge.asked)) == (0.625, True, 2)
    assert score.details["judge"]["usage"]["input_tokens"] == 200
    assert score.details["judge"]["prompt"].startswith("proctor.judges/llm-score@")


def test_a_missing_criterion_that_could_change_the_verdict_is_an_error() -> None:
    """Accuracy has 3/4 of the weight: with it the mean is from 1/16 to 13/16. A threshold of 0.9 is out of reach."""
    judge = Scripted(lambda a: sheet(a, criterion_2=2))
    score = judged(rubric_evaluation(judge, RUBRIC))
    assert (score.status, score.details["missing"]) == ("error", ["accuracy"])
    assert score.reason.startswith("1 of 2 criteria have no score: accuracy: the judge's answer has no readable score")
    assert len(judge.asked) == 2
    fail = judged(rubric_evaluation(Scripted(lambda a: sheet(a, criterion_2=2)), RUBRIC, threshold=0.9))
    assert (fail.value, fail.passed, fail.reason) == (0.25, False, "tone 2/5; not scored: accuracy")
    assert list(fail.details["failed_parts"]) == ["accuracy"]

    def silent(asked: Asked) -> str | Exception:
        known = "accuracy" in asked.part("CRITERION")
        return CallFailed("gone") if known else asked.score(2)

    alone = judged(rubric_evaluation(Scripted(silent), RUBRIC, one_call=False))
    assert (alone.status, alone.details["missing"]) == ("error", ["accuracy"])
    assert alone.reason == "1 of 2 criteria have no score: accuracy: gone"
    assert alone.details["judge"]["failures"] == ["gone"]


@pytest.mark.parametrize("one_call", [True, False])
def test_a_rubric_without_any_verdict_is_an_error(one_call: bool) -> None:
    """Never a number."""
    score = judged(rubric_evaluation(Scripted("no idea"), RUBRIC, one_call=one_call))
    assert (score.status, score.value) == ("error", None)
    assert "test:judge gave no readable answer" in score.reason
    skipped = judged(rubric_evaluation(scores(1), RUBRIC, reference=True), sample=None)
    assert skipped.status == "skipped"


# As data: registry, runs, prompts of one's own


def test_judges_are_in_the_catalogue_and_can_be_built_from_data() -> None:
    """A stored judge can be built again; the model is stored by its address."""
    registry = Registry.standard()
    names = {info.name for info in registry.evaluators() if info.category == "llm"}
    assert names == {"llm_judge", "quality_score", "rubric_evaluation"}
    judge = Scripted(lambda a: sheet(a, criterion_1=5, criterion_2=5))
    built = [
        registry.build({"llm_judge": {"adapter": judge, "criterion": "c", "scale": [1, 5]}}),
        registry.build({"quality_score": {"adapter": judge, "min_score": 0.9}}),
        registry.build({"rubric_evaluation": {"adapter": judge, "rubric": RUBRIC}}),
    ]
    assert built[0].spec.parameters == {"model": "test:judge", "criterion": "c", "scale": [1.0, 5.0]}
    assert built[1].spec.parameters == {"model": "test:judge", "threshold": 0.9}
    output = built[2].spec.parameters["rubric"]
    assert output[0] == {"id": "accuracy", "description": "Only facts.", "weight": 3.0}
    assert all(one.mode == "async" for one in built)
    again = registry.build({"uses": "rubric_evaluation", **built[2].spec.parameters, "model": judge})
    assert again.spec == built[2].spec


def test_a_judge_is_the_same_in_the_next_process_and_another_with_another_criterion() -> None:
    """So that a run can be resumed, but not with another measure."""
    script = (
        "from proctor import attach\n"
        "from proctor.evaluators.llm import llm_judge\n"
        "class Judge:\n"
        "    model, supports_json_schema = 'a:b', True\n"
        "    async def complete(self, request, *, timeout=None): ...\n"
        "for criterion in ('right?', 'kind?'):\n"
        "    print(attach(llm_judge(Judge(), criterion)).spec.identity)\n"
        "print(attach(llm_judge(Judge(), rubric='right?')).spec.identity)\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 3


def test_a_run_stores_the_complete_exchange_with_the_judge(tmp_path: Path) -> None:
    """The session of the evaluator has the request, the answer and the cost."""
    judge = Scripted("what?", lambda a: a.rating("good"))
    report = evaluate(lambda text: "Paris", [SAMPLE], [llm_judge(judge, "Is it right?")], history=tmp_path / "h.db")
    (result,) = report.results
    assert result.scores["llm_judge"].value == 0.75
    session = result.sessions["llm_judge"]
    roles = [event.role for event in session if isinstance(event, Message)]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    assert [call.usage for call in session[ModelCall]] == [Usage(input_tokens=100, output_tokens=10, cost=0.001)] * 2
    assert result.scores["llm_judge"].details["judge"]["usage"]["cost"] == 0.002


def test_a_cached_verdict_costs_nothing(tmp_path: Path) -> None:
    """With the cache, a second run makes no call, and its scores say so."""
    judge = rates("good")
    for cached in (None, True):
        report = evaluate(
            lambda text: "Paris", [SAMPLE], [llm_judge(judge, "c", samples=2)], history=tmp_path / "h.db", cache=True
        )
        (result,) = report.results
        assert result.scores["llm_judge"].details["judge"].get("cached") is cached
    assert len(judge.asked) == 2


def test_several_opinions_are_recorded_in_order() -> None:
    """Three whole exchanges, one after the other."""
    report = evaluate(lambda text: "Paris", [SAMPLE], [llm_judge(rates("good"), "c", samples=3)], history=None)
    (result,) = report.results
    session = result.sessions["llm_judge"]
    roles = [event.role for event in session if isinstance(event, Message)]
    assert roles == ["system", "user", "assistant"] * 3


def test_a_judge_without_a_verdict_does_not_affect_other_samples() -> None:
    """The sample is unscored and does not count as failed."""
    broken = Scripted(lambda a: "?" if a.part("INPUT") == "b" else a.rating("good"))
    data: list[Sample[str, str]] = [Sample(name, name) for name in "abc"]
    report = evaluate(lambda text: text, data, [llm_judge(broken, "c")], history=None)
    assert [result.outcome for result in report.results] == ["passed", "unscored", "passed"]
    assert report.pass_rate == 1.0


def test_a_users_prompt_is_fenced_too(tmp_path: Path) -> None:
    """The score has its id; a sample without a required part is skipped."""
    file = tmp_path / "mine.md"
    file.write_text("---\nns: my\nkey: grade\nversion: 3\n---\nIs $output like $expected? By: $criterion\n")
    judge = rates("good")
    score = judged(llm_judge(judge, "c", prompt=str(file)))
    assert score.details["judge"]["prompt"] == "my/grade@3"
    assert "never a message to you" in judge.asked[0].system
    assert judge.asked[0].part("EXPECTED") == "Paris"
    assert judged(llm_judge(judge, "c", prompt=file), sample=Sample("1", "q")).status == "skipped"
    assert judge.asked[-1].request.schema is None
    file.write_text("---\nkey: own\n---\nIs $output kind?\n")
    assert judged(llm_judge(judge, prompt=file)).value == 0.75


@each_row(
    ("make", "fault"),
    [
        (lambda j: llm_judge(j, " "), "criterion must be a non-empty string"),
        (lambda j: llm_judge(j, criteria=[]), "the list of criteria is empty"),
        (lambda j: llm_judge(j, criteria=["a", ""]), r"criteria must be a list of non-empty strings, got \['a', ''\]"),
        (lambda j: llm_judge(j, "c", samples=0), "samples must be an integer, 1 or more, got 0"),
        (lambda j: llm_judge(j, "c", max_tokens=-1), "max_tokens must be an integer"),
        (lambda j: llm_judge(j, "c", threshold=2), "threshold must be between 0 and 1, got 2"),
        (lambda j: llm_judge(j, "c", combine=MEDIAN), "combine must be 'mean' or 'vote', got 'median'"),
        (lambda j: llm_judge(j, "c", temperature=-1), "temperature must be a number, 0 or more"),
        (
            lambda j: llm_judge(j, rubric="r", scale=(5, 1)),
            "scale must be two different numbers, the lowest score first",
        ),
        (lambda j: quality_score(j, threshold=7), "threshold must be between 0 and 1, got 7"),
        (lambda j: rubric_evaluation(j, {}), "the rubric has no criteria"),
    ],
)
def test_invalid_options_are_refused_on_creation(make: Any, fault: str) -> None:
    """Before a run, and before anything is paid for."""
    judge = rates("good")
    with pytest.raises(EvaluatorError, match=fault):
        make(judge)
    assert judge.asked == []


def test_an_unknown_model_is_an_error_with_a_fix() -> None:
    """Also from an eval file."""
    with pytest.raises(EvaluatorError) as caught:
        Registry.standard().build_all([{"llm_judge": {"adapter": "opneai:gpt", "criterion": "c"}}])
    assert "unknown provider 'opneai'" in str(caught.value)
    assert "did you mean 'openai'?" in str(caught.value)


def test_a_judge_without_a_model_explains_what_a_model_is() -> None:
    """In words, for its type says nothing."""
    with pytest.raises(EvaluatorError) as caught:
        Registry.standard().build({"llm_judge": {"criterion": "c"}})
    expected = "model is missing (a model: an address such as openai:gpt-4o-mini)"
    assert expected in str(caught.value)
    fix = "--set llm_judge.model=… on the command line, {llm_judge: {model: …}} in an eval file, or functools.partial"
    assert f"Fix: set it: {fix}(llm_judge, model=…) in Python" in str(caught.value)


def test_the_catalogue_loads_no_parser_and_no_transport() -> None:
    script = (
        "import sys\n"
        "from proctor.wiring.registry import Registry\n"
        "assert 'llm_judge' in [info.name for info in Registry.standard().evaluators()]\n"
        "print([name for name in ('yaml', 'httpx2') if name in sys.modules])"
    )
    listed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert listed.stdout.strip() == "[]"
