"""Evaluators that judged fewer samples on one side than on the other."""

from __future__ import annotations

from datetime import UTC, datetime

from proctor.comparison.compare import compare
from proctor.comparison.coverage import Coverage, compute_coverage
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.sides import Side, make_side
from proctor.records.results import ResultList
from proctor.records.run import EvaluatorSpec, RunMetadata, RunOptions
from proctor.records.sample import Sample
from proctor.records.score import NOT_LAST_EPOCH, Score
from proctor.records.trial import EvalResult, Trial

GOOD, BAD, SILENT = Score(1.0, True), Score(0.0, False), Score.skipped("cannot read it")
FAILED, NOT_YET = Score.error("the judge was away"), Score.skipped(NOT_LAST_EPOCH)


def side(name: str, judge: list[Score], *, epochs: int = 1, prefix: str = "s", other: Score = GOOD) -> Side:
    """A run that ignores skips: `contains` gives the same score everywhere, `judge` these."""
    results = [
        EvalResult(
            Trial(Sample(f"{prefix}{at // epochs}", "Q"), epoch=at % epochs),
            {"contains": other, "judge": score},
            skipped="ignore",
        )
        for at, score in enumerate(judge)
    ]
    run = RunMetadata(
        name,
        name,
        datetime(2026, 1, 1, tzinfo=UTC),
        "completed",
        evaluators=(EvaluatorSpec("contains", "contains"), EvaluatorSpec("judge", "judge")),
        options=RunOptions(skipped="ignore", epochs=epochs),
    )
    return make_side(name, ResultList(results), run)


def test_verdicts_that_only_one_side_has_are_counted() -> None:
    """Of 60 pairs the judge is silent on 10 others in either: 10 lost, 10 gained, 50 each."""
    new = side("new", [SILENT] * 10 + [GOOD] * 50)
    old = side("old", [GOOD] * 50 + [SILENT] * 10)
    contains, judge = compute_coverage(new, old)
    assert contains == Coverage("contains", 60, 60, 60, 0, 0)
    assert judge == Coverage("judge", 50, 50, 60, 10, 10)
    assert judge.is_uneven


def test_a_tenth_may_be_missing() -> None:
    """6 of 60 are a tenth and change nothing; with 7 nothing is called equal or better."""
    for silent, verdict in ((6, "pass"), (7, "inconclusive")):
        new = side("new", [SILENT] * silent + [GOOD] * (60 - silent))
        result = decide([(new, side("old", [GOOD] * 60))], GateConfig({"pass_rate": 0.1}))
        assert result.verdict == verdict
        compared = compare(new, side("old", [GOOD] * 60)).metrics["pass_rate"].verdict
        assert (compared == "not comparable") is (verdict == "inconclusive")


def test_red_stays_red() -> None:
    """A silent evaluator makes no failed run inconclusive."""
    new = side("new", [SILENT] * 60, other=BAD)
    assert decide([(new, side("old", [GOOD] * 60))], GateConfig({"pass_rate": 0.1})).verdict == "fail"


def test_an_evaluator_that_judges_more_than_before_does_not_hold_up_a_pass_rate() -> None:
    """One more check passed too. A mean over other checks is another number: inconclusive."""
    new, old = side("new", [GOOD] * 60), side("old", [SILENT] * 60)
    assert decide([(new, old)], GateConfig({"pass_rate": 0.1})).verdict == "pass"
    assert decide([(new, old)], GateConfig({"mean_score": 0.1})).verdict == "inconclusive"


def test_epochs_are_counted_one_by_one() -> None:
    """Each sample has one verdict of five, so every sample has a number: 80 of 100 are lost."""
    new = side("new", [GOOD, *[SILENT] * 4] * 20, epochs=5)
    judge = compute_coverage(new, side("old", [GOOD] * 100, epochs=5))[1]
    assert judge == Coverage("judge", 20, 100, 100, 80, 0, "trials")


def test_another_number_of_epochs_is_no_loss() -> None:
    """20 samples in one epoch against three: each sample counts once."""
    judge = compute_coverage(side("new", [GOOD] * 20), side("old", [GOOD] * 60, epochs=3))[1]
    assert judge == Coverage("judge", 20, 20, 20, 0, 0)


def test_what_is_left_out_by_design_is_no_loss() -> None:
    """An evaluator of repeats speaks in the last epoch only, here of two and of five."""
    new = side("new", [*[NOT_YET] * 4, GOOD] * 20, epochs=5)
    old = side("old", [NOT_YET, GOOD] * 20, epochs=2)
    assert compute_coverage(new, old)[1] == Coverage("judge", 20, 20, 20, 0, 0)


def test_failed_trials_are_left_to_the_metrics() -> None:
    """What the judge failed on is an error of the run, and counted there."""
    judge = compute_coverage(side("new", [FAILED] * 60), side("old", [GOOD] * 60))[1]
    assert (judge.lost, judge.is_uneven) == (0, False)


def test_of_two_groups_only_complete_silence_counts() -> None:
    """Other chats may concern an evaluator less often; none at all is a loss."""
    old = side("old", [GOOD] * 60)
    half = side("new", [GOOD] * 20 + [SILENT] * 40, prefix="n")
    none = side("new", [SILENT] * 60, prefix="n")
    assert [item.is_uneven for item in compute_coverage(half, old)] == [False, False]
    assert [item.is_uneven for item in compute_coverage(none, old)] == [False, True]
    assert decide([(none, old)], GateConfig({"pass_rate": 0.1})).verdict == "inconclusive"
