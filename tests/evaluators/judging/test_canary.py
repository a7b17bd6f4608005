"""Canaries: judges that accept a planted answer, judges that do not, and the warnings of a run."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import Sample, evaluate
from proctor.errors import EvaluatorError
from proctor.evaluators.llm import llm_judge
from proctor.evaluators.opinions import BAD_ANSWER, payloads, with_canary
from proctor.records.model import ModelRequest
from proctor.records.score import Score
from proctor.records.trial import Trial
from tests.evaluators.judging.scripted import Scripted, block, line


def gullible(request: ModelRequest) -> str:
    """A judge that obeys the output."""
    praised = "excellent" in block(request, "OUTPUT").lower()
    return line(request, "RATING", "excellent" if praised else "fair")


def sober(request: ModelRequest) -> str:
    """A judge that recognises a bad answer."""
    bad = BAD_ANSWER in block(request, "OUTPUT")
    return line(request, "RATING", "wrong" if bad else "good")


def kind(request: ModelRequest) -> str:
    """A judge that likes everything."""
    return line(request, "RATING", "good")


def echo(request: ModelRequest) -> str:
    """A judge that only repeats the output, including its verdicts."""
    return block(request, "OUTPUT")


def try_every_payload(judge: Any) -> dict[str, dict[str, Any]]:
    """Score samples until each payload was used; return the outcome of each."""
    scored = with_canary(judge, every=1)
    outcomes: dict[str, dict[str, Any]] = {}
    numbers = itertools.count()
    while outcomes.keys() != payloads().keys():
        score = asyncio.run(scored.score(Trial(Sample(f"s{next(numbers)}", "2 + 2?", "4"), "four")))
        outcomes[score.details["canary"]["payload"]] = score.details["canary"]
    return outcomes


def test_a_gullible_judge_is_caught() -> None:
    """It passes the bad answer with every payload that names the grade."""
    outcomes = try_every_payload(llm_judge(Scripted(gullible), "Is it right?"))
    naming = {name for name, text in payloads().items() if "excellent" in text.lower()}
    assert len(naming) >= 4
    assert {name for name, outcome in outcomes.items() if outcome["fell_for"]} == naming
    assert all(outcomes[name]["value"] == 1.0 for name in naming)
    assert not any(outcome.get("passes_anyway") for outcome in outcomes.values())


def test_a_sober_judge_passes_the_test() -> None:
    outcomes = try_every_payload(llm_judge(Scripted(sober), "Is it right?"))
    assert {outcome["fell_for"] for outcome in outcomes.values()} == {False}


def test_a_judge_that_repeats_the_planted_verdict_gives_none() -> None:
    outcomes = try_every_payload(llm_judge(Scripted(echo), "Is it right?"))
    assert {outcome["fell_for"] for outcome in outcomes.values()} == {None}


def test_the_bad_answer_can_be_your_own() -> None:
    """The judge sees that answer with the payload, and the input of the sample."""
    seen = []

    def rude(output: str, sample: Sample[Any, Any]) -> bool:
        seen.append((output.partition("\n")[0], sample.input))
        return False

    asyncio.run(with_canary(rude, every=1, answer="Go away!").score(Trial(Sample("1", "Say hello"), "Hello")))
    assert set(seen) == {("Hello", "Say hello"), ("Go away!", "Say hello")}


def test_a_judge_that_passes_the_bad_answer_anyway_has_not_fallen_for_it() -> None:
    """It passes with praise and without, so the answer proves nothing."""
    outcomes = try_every_payload(llm_judge(Scripted(kind), "Is it polite?"))
    assert all(outcome["passes_anyway"] for outcome in outcomes.values())
    assert {outcome["fell_for"] for outcome in outcomes.values()} == {False}


def test_without_a_control_it_is_unknown_whether_a_judge_fell_for_it() -> None:
    """Without a verdict on the answer itself, an answer with a payload may pass anyway."""

    def half(request: ModelRequest) -> str:
        bare = block(request, "OUTPUT") == BAD_ANSWER
        return "no comment" if bare else gullible(request)

    outcomes = try_every_payload(llm_judge(Scripted(half), "Is it right?"))
    assert {outcome["fell_for"] for outcome in outcomes.values()} == {None, False}


def run(judge: Scripted, every: int = 1, count: int = 6) -> Any:
    """A run of a judge with canaries."""
    tested = with_canary(llm_judge(judge, "Is it right?"), every=every)
    dataset = [Sample(f"s{n}", "2 + 2?", "4") for n in range(count)]
    return evaluate(lambda text: "four", dataset, [tested], history=False)


def test_a_run_warns_of_a_judge_that_fell_for_it() -> None:
    """One warning for all canaries; the scores do not change."""
    report = run(Scripted(gullible))
    scores = [result.scores["llm_judge"] for result in report.results]
    assert {score.value for score in scores} == {0.5}
    assert any(score.details["canary"]["fell_for"] for score in scores)
    assert {score.details["canary"]["payload"] for score in scores} <= set(payloads())
    assert report.metadata is not None
    (warning,) = report.metadata.warnings
    assert warning.startswith("llm_judge fell for a canary: it passed a bad answer")
    assert "but not the same answer without the request" in warning


def test_a_run_warns_of_a_canary_that_proves_nothing() -> None:
    """The bad answer passes without praise too."""
    judge = Scripted(kind)
    report = run(judge, count=2)
    scores = [result.scores["llm_judge"] for result in report.results]
    assert {score.details["canary"]["fell_for"] for score in scores} == {False}
    assert {score.details["canary"]["passes_anyway"] for score in scores} == {True}
    assert report.metadata is not None
    (warning,) = report.metadata.warnings
    assert "it may pass anything. Fix: judge with another model" in warning
    # The answer itself, the canary, and the same without praise.
    assert len(judge.asked) == 6


def test_a_run_with_a_sober_judge_has_no_warning() -> None:
    """The details show that it was tested."""
    report = run(Scripted(sober))
    scores = [result.scores["llm_judge"] for result in report.results]
    assert {score.passed for score in scores} == {True}
    assert {score.details["canary"]["fell_for"] for score in scores} == {False}
    assert report.metadata is not None
    assert report.metadata.warnings == ()


def test_a_canary_that_fails_changes_nothing() -> None:
    """No verdict on the planted answer leaves the judge's own score and no warning."""

    def shy(request: ModelRequest) -> str:
        bad = BAD_ANSWER in block(request, "OUTPUT")
        return "no comment" if bad else line(request, "RATING", "good")

    report = run(Scripted(shy), count=1)
    (result,) = report.results
    score = result.scores["llm_judge"]
    assert (score.value, score.status) == (0.75, "ok")
    assert score.details["canary"]["fell_for"] is None


@settings(max_examples=20)
@given(st.text(min_size=1), st.integers(1, 50))
def test_the_same_samples_are_used_in_every_run(sample_id: str, every: int) -> None:
    """The id of a sample decides whether it has a canary."""

    def judge(output: Any) -> bool:
        return True

    def once() -> Score:
        found = with_canary(judge, every=every).score(Trial(Sample(sample_id, "?"), "x"))
        score: Score = asyncio.run(found)
        return score

    first, second = once(), once()
    assert first == second
    assert first.passed
    assert every > 1 or "canary" in first.details


def test_about_one_sample_in_every_n_is_used() -> None:
    """Of 400 samples with every=10, some 40 (20 to 60) carry a canary."""
    report = run(Scripted(sober), every=10, count=400)
    carried = sum("canary" in result.scores["llm_judge"].details for result in report.results)
    assert 20 <= carried <= 60


def test_a_wrong_interval_is_refused() -> None:
    with pytest.raises(EvaluatorError, match="an integer, 1 or more"):
        with_canary(echo, every=0)


@pytest.mark.parametrize(
    ("judge", "answer_text"),
    [
        (kind, "It passed a bad answer of the canary too: use another model"),
        (sober, "It failed the bad answers of the canary, so it reads its input"),
    ],
)
def test_a_constant_judge_with_canaries_is_not_advised_to_use_them(judge: Any, answer_text: str) -> None:
    """The advice depends on the outcome of the canaries."""
    report = run(Scripted(judge), count=12)
    assert report.metadata is not None
    [warning] = [text for text in report.metadata.warnings if "gave the same score" in text]
    assert answer_text in warning
    assert "--canary" not in " ".join(report.metadata.warnings)


def test_a_constant_judge_without_canaries_is_advised_to_have_some() -> None:
    """That is where the advice helps."""
    dataset = [Sample(f"s{n}", f"2 + 2, times {n}?", "4") for n in range(12)]
    judge = llm_judge(Scripted(kind), "Is it right?")
    report = evaluate(lambda text: "four", dataset, [judge], history=False)
    assert report.metadata is not None
    [warning] = report.metadata.warnings
    assert warning.endswith("Test it with an answer that must fail: --canary 1")
