"""Flips have the texts of both sides, and can be those of one evaluator."""

from __future__ import annotations

from typing import Any

import pytest

from proctor import EvalReport, Sample, compare, evaluate
from proctor.comparison.flips import find_flips
from proctor.records.comparison import FlipResult, select_flips
from proctor.records.score import Score

SAMPLES = [Sample(name, name, "yes") for name in ("both", "exact", "polite", "error", "skip", "same")]


def exact(output: str) -> Score:
    return Score(float(output.startswith("yes")), output.startswith("yes"), f"got {output!r}", {"big": "x"})


def polite(output: str) -> Score:
    if output == "skip":
        return Score.skipped("nothing to judge")
    if output == "broken":
        return Score.error("the judge failed")
    return Score(float("please" in output), "please" in output)


OLD = dict.fromkeys(("both", "exact", "polite", "error", "skip", "same"), "yes please")
NEW = {**OLD, "both": "no", "exact": "no, please", "polite": "yes", "skip": "skip"}


def run(answers: dict[str, str], *, broken: bool = False, **options: Any) -> EvalReport:
    def target(text: str) -> str:
        if broken and text == "error":
            raise TimeoutError("no answer")
        return answers[text]

    return evaluate(target, SAMPLES, [exact, polite], history=False, progress=False, **options)


def test_the_words_of_both_sides() -> None:
    """Input, expected value, output or error, and the scores without their details."""
    comparison = compare(run(NEW, broken=True), run(OLD))
    by_id = {flip.sample_id: flip for flip in comparison.flips}
    assert set(by_id) == {"both", "exact", "polite", "error", "skip"}
    flip = by_id["polite"]
    assert (flip.lost, flip.input, flip.expected) == (True, "polite", "yes")
    assert flip.a_result == FlipResult(
        "failed", "yes", scores={"exact": Score(1.0, True, "got 'yes'"), "polite": Score(0.0, False)}
    )
    assert flip.b_result is not None
    assert flip.b_result.output == "yes please"
    assert by_id["error"].a_result == FlipResult("error", error="TimeoutError: no answer")


@pytest.mark.parametrize(
    ("metrics", "evaluator", "ids"),
    [
        (["polite"], "polite", {"both", "polite", "error"}),
        (["polite.pass_rate"], "polite", {"both", "polite", "error"}),
        (["exact.mean"], "exact", {"both", "exact", "error", "skip"}),
        (["exact", "polite"], "", {"both", "exact", "polite", "error", "skip"}),
        (["pass_rate"], "", {"both", "exact", "polite", "error", "skip"}),
        (None, "", {"both", "exact", "polite", "error", "skip"}),
    ],
)
def test_one_metric_that_is_an_evaluator_has_its_own_flips(
    metrics: list[str] | None, evaluator: str, ids: set[str]
) -> None:
    """A failed call has not passed the evaluator; what it skipped is no flip."""
    comparison = compare(run(NEW, broken=True), run(OLD), metrics=metrics)
    assert comparison.flips_of == evaluator
    assert {flip.sample_id for flip in comparison.flips} == ids
    assert all(flip.lost for flip in comparison.flips)


def test_an_evaluator_that_fails_has_not_passed() -> None:
    """As in a strict pass rate."""
    new, old = run({**OLD, "same": "broken"}), run(OLD)
    assert [flip.sample_id for flip in find_flips(new.side(), old.side(), "polite")] == ["same"]


def test_the_epoch_that_shows_the_flip_is_chosen() -> None:
    """Two of three epochs fail: the first failed one is shown, and beside it one that passed."""
    counts: dict[str, int] = {}

    def flaky(text: str) -> str:
        counts[text] = counts.get(text, 0) + 1
        return "yes please" if counts[text] == 1 else f"no {counts[text]}"

    options: dict[str, Any] = {"history": False, "progress": False, "epochs": 3, "concurrency": 1}
    new = evaluate(flaky, SAMPLES[:1], [exact, polite], **options)
    old = evaluate(OLD.__getitem__, SAMPLES[:1], [exact, polite], **options)
    [flip] = compare(new, old).flips
    assert flip.a_result is not None
    assert flip.b_result is not None
    assert (flip.a_result.epoch, flip.a_result.output) == (1, "no 2")
    assert flip.b_result.outcome == "passed"


def test_only_the_first_flips_are_read() -> None:
    """The others have their ids and scores."""
    samples = [Sample(f"s{at}", "x", "yes") for at in range(9)]
    new = evaluate(lambda _: "no", samples, exact, history=False, progress=False)
    old = evaluate(lambda _: "yes", samples, exact, history=False, progress=False)
    flips = compare(new, old).flips
    assert [flip.a_result is not None for flip in flips] == [True] * 5 + [False] * 4
    assert select_flips(flips, 5) == list(flips[:5])
