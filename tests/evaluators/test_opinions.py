"""Panels, preferences and canaries as evaluators: in programs, in eval files, and in runs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor import Sample, Score, evaluate
from proctor.errors import EvaluatorError, ModelError
from proctor.evaluators import llm, matching, opinions
from proctor.evaluators.judges.pairwise import position_bias, preferences_in
from proctor.evaluators.opinions import panel, panel_agreement, prefer
from proctor.history.sqlite import SQLiteHistory
from proctor.records.model import ModelRequest
from proctor.records.session import Message
from proctor.wiring.registry import Registry
from tests.evaluators.judging.scripted import Scripted, block, line
from tests.support import samples, shout


def loud(request: ModelRequest) -> str:
    """A judge that prefers capitals, and rates them as good."""
    if "\n<<<FIRST" not in str(request.messages[-1].content):
        rating = "good" if block(request, "OUTPUT").isupper() else "poor"
        return line(request, "RATING", rating)
    return line(request, "BETTER", "A" if block(request, "FIRST").isupper() else "B")


def registry() -> Registry:
    """The evaluators that these tests write in files."""
    found = Registry()
    for module in (matching, llm, opinions):
        found.register(module)
    return found


def judged(evaluator: Any, output: Any, sample: Sample[Any, Any]) -> Score:
    """The score of an evaluator that is a factory's product, on one sample."""
    score: Score = evaluator(output, sample)
    return score


@pytest.mark.parametrize(
    ("output", "rival", "value", "passed", "wins"),
    [("YES", "no", 1.0, True, True), ("no", "YES", 0.0, False, False), ("YES", "YES", 0.5, True, False)],
)
def test_a_win_a_loss_and_a_tie(output: str, rival: str, value: float, passed: bool, wins: bool) -> None:
    """1, 0 and 0.5; it passes unless it loses, or only if it wins."""
    sample = Sample("1", "?", rival)
    score = judged(prefer(Scripted(loud)), output, sample)
    assert (score.value, score.passed) == (value, passed)
    strict = judged(prefer(Scripted(loud), win_required=True), output, sample)
    assert (strict.value, strict.passed) == (value, wins)


def test_the_details_have_both_verdicts_and_the_model() -> None:
    """Also the prompt and the usage."""
    score = judged(prefer(Scripted(loud), "loudness"), "YES", Sample("1", "?", "no"))
    preference = score.details["preference"]
    assert (preference["first"]["place"], preference["second"]["place"]) == ("first", "second")
    assert score.details["judge"]["model"] == "scripted:judge"
    assert score.details["judge"]["prompt"].startswith("proctor.judges/prefer@")
    assert score.details["judge"]["usage"]["input_tokens"] == 20


def test_the_rival_may_stand_in_the_metadata() -> None:
    """Where it is named, the expected value is not looked at."""
    model = Scripted(loud)
    sample = Sample("1", "?", "NOT THIS", metadata={"old": "yes"})
    assert judged(prefer(model, rival="old"), "YES", sample).value == 1.0
    assert {block(request, "INPUT") for request in model.asked} == {"?"}


def test_without_another_answer_it_is_skipped() -> None:
    """No expected value, or no such metadata: no call is made."""
    model = Scripted(loud)
    none = judged(prefer(model), "x", Sample("1", "?"))
    missing = judged(prefer(model, rival="old"), "x", Sample("1", "?", "y"))
    assert (none.status, missing.status) == ("skipped", "skipped")
    assert "'old'" in missing.reason
    assert model.asked == []


def test_the_input_can_be_hidden_from_the_judge() -> None:
    model = Scripted(loud)
    judged(prefer(model, show_input=False), "x", Sample("1", "a secret", "y"))
    assert "a secret" not in str(model.asked)


def test_it_can_be_called_with_an_output_and_a_rival() -> None:
    """As any evaluator can."""
    assert prefer(Scripted(loud))("YES", "no").value == 1.0


def test_a_judge_without_a_verdict_is_an_error() -> None:
    """The reason names the model, and the details have its answer."""
    score = judged(prefer(Scripted(lambda request: "hm")), "x", Sample("1", "?", "y"))
    assert (score.status, score.value) == ("error", None)
    assert "scripted:judge" in score.reason
    assert score.details["judge"]["answer"] == "hm"
    # Both orders were asked twice.
    assert score.details["judge"]["usage"]["input_tokens"] == 40


def test_an_order_that_was_answered_is_paid_for_though_the_other_failed() -> None:
    """One call for the first order, two for the other."""

    def half(request: ModelRequest) -> str:
        return loud(request) if block(request, "FIRST") == "YES" else "hm"

    score = judged(prefer(Scripted(half)), "YES", Sample("1", "?", "no"))
    assert score.status == "error"
    assert score.details["judge"]["usage"]["input_tokens"] == 30


def test_an_unknown_address_is_refused_on_creation() -> None:
    """Before anything runs."""
    with pytest.raises(ModelError, match="nowhere"):
        prefer("nowhere:at_all")


EVAL_FILE = """
- panel:
    judges:
      - exact_match
      - llm_judge: {adapter: "tests.evaluators.test_opinions:loud", criterion: "Is it loud?"}
      - uses: llm_judge
        name: second_judge
        adapter: "tests.evaluators.test_opinions:loud"
        criterion: Is it really loud?
    rule: unanimous
- prefer: {adapter: "tests.evaluators.test_opinions:loud", criterion: "Which is louder?"}
- with_canary:
    judge: {llm_judge: {adapter: "tests.evaluators.test_opinions:loud", criterion: "Is it loud?"}}
    every: 1
"""


def test_all_of_them_can_be_written_in_an_eval_file_and_run(tmp_path: Path) -> None:
    """A run of ten samples: every score, the exchanges, agreement and bias from the history."""
    built = registry().build_all(yaml.safe_load(EVAL_FILE))
    assert [one.spec.name for one in built] == ["panel", "prefer", "llm_judge"]
    dataset = [Sample(s.id, s.input, s.expected) for s in samples(9)]
    dataset.append(Sample("quiet", "word", "word"))
    with contextlib.closing(SQLiteHistory(tmp_path / "runs.db")) as history:
        run = evaluate(shout, dataset, built, history=history)
        results = list(history.report(run.run_id).results)
    agreement, bias = panel_agreement(results), position_bias(preferences_in(results))
    assert [result.scores["panel"].passed for result in results] == [True] * 9 + [False]
    assert [result.scores["prefer"].value for result in results] == [0.5] * 9 + [1.0]
    assert results[0].scores["panel"].details["verdicts"] == {
        "exact_match": True,
        "llm_judge": True,
        "second_judge": True,
    }
    assert all("canary" in result.scores["llm_judge"].details for result in results)
    # Nine samples on which all three agree; on the last only exact_match differs.
    assert (agreement.samples, agreement.agreement) == (10, 28 / 30)
    assert agreement.pass_rates == {"exact_match": 0.9, "llm_judge": 1.0, "second_judge": 1.0}
    assert (bias.pairs, bias.flips, bias.to_first, bias.favours) == (10, 9, 9, "first")
    answer = [m.role for m in results[0].sessions["panel"][Message]]
    assert answer == ["system", "user", "assistant"] * 2


def test_a_built_evaluator_can_be_built_again_from_its_data() -> None:
    """The spec of each is enough for the next process, if the model has an address."""
    model = "http://127.0.0.1:9/v1#judge"
    written = EVAL_FILE.replace("tests.evaluators.test_opinions:loud", model)
    for one in registry().build_all(yaml.safe_load(written)):
        again = registry().build(one.spec)
        assert again.spec == one.spec


def test_a_panel_takes_a_single_judge_and_names_unknown_judges() -> None:
    """A single judge needs no list; the error for an unknown judge names its position."""
    assert panel(matching.contains)("ab", "a").value == 1.0  # type: ignore[arg-type]
    with pytest.raises(EvaluatorError, match="panel: its evaluators cannot be built") as caught:
        registry().build({"panel": {"judges": ["exact_match", "exact_macth"]}})
    assert "judges[1]" in str(caught.value)
    assert "did you mean 'exact_match'" in str(caught.value)
