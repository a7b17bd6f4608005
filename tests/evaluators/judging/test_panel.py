"""Panels: their rules, judges without a verdict, and agreement."""

from __future__ import annotations

import asyncio
import time
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError, StopRun
from proctor.evaluators.llm import llm_judge
from proctor.evaluators.opinions import Rule, combine_scores, panel, panel_agreement
from proctor.records.model import ModelRequest
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Message, Session
from proctor.records.trial import EvalResult, Trial
from proctor.sessions import current as sessions
from tests.evaluators.judging.scripted import Scripted, line
from tests.tables import each_row

GOOD, FAIR, BAD = Score(1.0, True, "fine"), Score(0.5, False), Score(0.0, False, "off")
LOST = Score.error("no answer")
VERDICTS = st.lists(st.sampled_from([GOOD, FAIR, BAD, LOST, Score.skipped("nothing")]), min_size=1)


def named(*scores: Score) -> dict[str, Score]:
    """Scores under the names a, b, c …"""
    return dict(zip("abcdefgh", scores, strict=False))


def rating(word: str) -> Scripted:
    """A judge that always gives the same rating."""
    return Scripted(lambda request: f"It is {word}.\n" + line(request, "RATING", word))


def test_the_majority_decides_and_the_value_is_the_mean() -> None:
    """Two of three: passed, with (1 + 1 + 0) / 3; one pair of three agrees."""
    score = combine_scores(named(GOOD, GOOD, BAD), "majority")
    assert score.value == pytest.approx(2 / 3)
    assert score.passed is True
    assert score.details["verdicts"] == {"a": True, "b": True, "c": False}
    assert score.details["agreement"] == pytest.approx(1 / 3)
    assert score.reason == "2 of 3 judges passed the output; a: fine; b: fine; c: off"


def test_a_tie_is_not_a_majority_and_the_reason_says_so() -> None:
    """One against one does not pass."""
    score = combine_scores(named(GOOD, BAD), "majority")
    assert (score.value, score.passed) == (0.5, False)
    assert "1 of 2 judges passed the output, a tie, which does not pass" in score.reason


def test_the_mean_passes_from_the_threshold_up() -> None:
    """(1 + 0.5 + 0) / 3 is 0.5, which is enough for 0.5 and not for 0.6."""
    enough, less = (combine_scores(named(GOOD, FAIR, BAD), "mean", least) for least in (0.5, 0.6))
    assert (enough.passed, less.passed) == (True, False)
    assert enough.reason == "the mean of 3 judges is 0.5, at least 0.5; a: fine; c: off"
    assert less.reason.startswith("the mean of 3 judges is 0.5, below 0.6; ")


def test_a_unanimous_panel_needs_all_judges() -> None:
    assert combine_scores(named(GOOD, GOOD), "unanimous").passed is True
    assert combine_scores(named(GOOD, GOOD, FAIR), "unanimous").passed is False


def test_a_failed_judge_leaves_a_unanimous_panel_open() -> None:
    """As in `all_of`: a failing verdict decides, otherwise the result is open."""
    open_ = combine_scores(named(GOOD, GOOD, LOST), "unanimous")
    assert (open_.status, open_.value) == ("error", None)
    assert open_.reason == "1 of 3 judges failed: c: no answer"
    decided = combine_scores(named(LOST, LOST, BAD), "unanimous")
    assert (decided.status, decided.value, decided.passed) == ("ok", 0.0, False)
    assert "without a verdict, which could not change the result: a, b" in decided.reason


def test_a_failed_judge_that_could_not_change_the_verdict_is_left_out_and_named() -> None:
    """Three of five pass, whatever the fourth would say."""
    score = combine_scores(named(GOOD, LOST, BAD, GOOD, GOOD), "majority")
    assert score.value == pytest.approx(3 / 4)
    assert score.passed is True
    assert (score.details["failed"], score.details["incomplete"]) == (["b"], True)
    assert score.reason.startswith(
        "3 of 5 judges passed the output; without a verdict, which could not change the result: b; "
    )


@each_row("rule", ["majority", "mean"])
def test_a_failed_judge_that_could_change_the_verdict_leaves_none(rule: Any) -> None:
    """One of two judges passes, the other is dead: with a fail there would be a tie."""
    score = combine_scores(named(GOOD, LOST), rule, 0.6)
    assert (score.status, score.reason) == ("error", "1 of 2 judges failed: b: no answer")
    assert combine_scores(named(GOOD, LOST, BAD, GOOD), rule, 0.6).status == "error"
    assert combine_scores(named(GOOD, Score.skipped("?")), rule, 0.6).status == "skipped"


def test_if_most_judges_fail_there_is_no_verdict() -> None:
    """Two of three failed: an error with their names and reasons, never a number."""
    score = combine_scores(named(GOOD, LOST, LOST), "mean")
    assert (score.status, score.value) == ("error", None)
    assert score.reason == "2 of 3 judges failed: b: no answer; c: no answer"


def test_a_panel_is_skipped_if_all_judges_skip() -> None:
    """All judges skip, so the panel does."""
    assert combine_scores(named(Score.skipped("?"), Score.skipped("?")), "majority").status == "skipped"


@given(VERDICTS, st.sampled_from(get_args(Rule)))
def test_a_panel_always_gives_a_valid_score(scores: list[Score], rule: Any) -> None:
    """If it passes by majority or unanimously, a judge passed it."""
    score = combine_scores({str(n): one for n, one in enumerate(scores)}, rule)
    errors, verdicts = scores.count(LOST), [one for one in scores if one.ok]
    possible = {
        combine_scores({str(n): one if one.ok else other for n, one in enumerate(scores)}, rule).passed
        for other in (GOOD, BAD)
    }
    if len(possible) == 2 or not verdicts:
        assert score.status == ("error" if errors else "skipped")
    else:
        assert score.ok
        assert not score.passed or rule == "mean" or any(one.passed for one in verdicts)


def test_judges_are_asked_concurrently() -> None:
    """None of five judges, blocking or not, answers before all have been asked."""
    asked: list[str] = []
    until = time.monotonic() + 20

    async def slow(output: Any) -> bool:
        asked.append("slow")
        while len(asked) < 5 and time.monotonic() < until:
            await asyncio.sleep(0.005)
        return len(asked) == 5

    def blocking(output: Any) -> bool:
        asked.append("blocking")
        while len(asked) < 5 and time.monotonic() < until:
            time.sleep(0.005)
        return len(asked) == 5

    score = panel([slow, slow, slow, blocking, blocking])("x", None)
    assert score.passed
    assert list(score.details["verdicts"]) == ["slow", "slow_2", "slow_3", "blocking", "blocking_2"]


def test_a_panel_of_models() -> None:
    """One of three judges is unreadable: it is asked twice, then left out."""
    mute = Scripted(lambda request: "I would rather not say")
    judges = [llm_judge(judge, "polite?") for judge in (rating("good"), rating("poor"), mute)]
    score = panel(judges, "unanimous")("Hello", None)
    assert score.details["failed"] == ["llm_judge_3"]
    assert (score.value, score.passed) == (0.5, False)
    parts = score.details["parts"]
    assert parts["llm_judge"].details["judge"]["rating"] == "good"
    assert len(mute.asked) == 2
    lost = parts["llm_judge_3"].details["judge"]
    assert lost["usage"] == {"input_tokens": 20, "output_tokens": 10, "cost": 0.002}


def test_the_exchanges_of_judges_are_recorded_in_sequence() -> None:
    async def asked() -> Session:
        session = Session()
        sessions.current.set(session)
        judges = [llm_judge(rating("good"), "polite?"), llm_judge(rating("poor"), "polite?")]
        await panel(judges)("Hello", None)
        return session

    roles = [message.role for message in asyncio.run(asked())[Message]]
    assert roles == ["system", "user", "assistant"] * 2


def test_interrupts_end_the_run() -> None:
    """A spent budget is not a judge that failed."""

    def spent(request: ModelRequest) -> str:
        raise StopRun("the budget is spent")

    judges = [llm_judge(Scripted(spent), "?"), llm_judge(rating("good"), "?")]
    with pytest.raises(StopRun):
        panel(judges)("x", None)


def test_agreement_over_a_run() -> None:
    """Verdicts by hand: a and b on 4 samples, c missing on one.

    Rows ++- ++- --- +-(none): pairs that agree 1 of 3, 1 of 3, 3 of 3, 0 of 1 = 5 of 10. Fleiss
    takes the first three: p+ = 4/9, observed 5/9, by chance 41/81, so (45 - 41) / (81 - 41) = 0.1.
    """
    rows = ["++-", "++-", "---", "+-"]
    results = [
        EvalResult(
            Trial(Sample(str(n), "?"), "x"),
            {"panel": combine_scores(named(*(GOOD if v == "+" else BAD for v in row)), "majority")},
        )
        for n, row in enumerate(rows)
    ]
    results += [
        EvalResult(Trial(Sample("e", "?"), "x"), {"panel": combine_scores(named(LOST), "mean")}),
        EvalResult(Trial(Sample("f", "?"), "x"), {}),
    ]
    found = panel_agreement(results)
    assert (found.samples, found.agreement) == (4, 0.5)
    assert found.kappa == pytest.approx(0.1)
    # n = 11, n+ = 5, n- = 6; disagreeing 4/2 + 4/2 + 0 + 2/1 = 6; by chance 60 / 10.
    assert found.alpha == pytest.approx(0.0)
    assert found.pass_rates == {"a": 0.75, "b": 0.5, "c": 0.0}


def test_a_panel_that_cannot_be_is_refused_when_made() -> None:
    """No judges, an unknown rule, a threshold out of range."""
    with pytest.raises(EvaluatorError, match="no evaluator is given") as caught:
        panel([])
    assert caught.value.fix == "pass at least one, as in panel([exact_match, contains])"
    with pytest.raises(EvaluatorError, match="unknown rule 'most'"):
        panel([llm_judge(rating("good"), "?")], "most")  # type: ignore[arg-type]
    with pytest.raises(EvaluatorError, match="threshold must be between 0 and 1, got 2"):
        panel([llm_judge(rating("good"), "?")], "mean", 2.0)
