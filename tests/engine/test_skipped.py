"""A skipped check has not passed: results, warnings, thresholds and gates say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import FieldContext, Score, all_of, evaluate
from proctor.cli.outcome import report_outcome
from proctor.comparison.compare import compare
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import make_side
from proctor.errors import ResumeRefused
from proctor.evaluators.bound_evaluator import attach
from proctor.history.exchange.parts import EndPart
from proctor.history.exchange.read import Tally
from proctor.history.sqlite import SQLiteHistory
from proctor.reports.summary import headlines

TEXTS = ["fine", "gut", "gut", "gut", "gut", "gut"]
DATASET = [{"id": str(at), "input": text, "expected": text} for at, text in enumerate(TEXTS)]
NOT_ENGLISH = "the text is not in English"


def toxicity(output: str) -> Score:
    """A check that can judge one of the six texts."""
    return Score(1.0, True) if output == "fine" else Score.skipped(NOT_ENGLISH)


def echo(text: str) -> str:
    return text


def same(output: str, expected: str) -> bool:
    return output == expected


def run(evaluators: Any, **options: Any) -> EvalReport:
    return evaluate(echo, DATASET, evaluators, history=False, progress=False, **options)


@pytest.mark.parametrize("evaluators", [[same, toxicity], all_of(same, toxicity)])
def test_a_check_that_could_not_judge_is_not_a_pass(evaluators: Any) -> None:
    """The toxicity check could not judge five of six: one passed, and five are skipped."""
    report = run(evaluators)
    assert (report.counts.passed, report.counts.skipped, report.counts.total) == (1, 5, 6)
    assert headlines(report)[-1].startswith("1 of 1 judged passed (100.0%")
    assert headlines(report)[-1].endswith("5 skipped")
    assert report.results[1].score.reason.endswith(f"toxicity: {NOT_ENGLISH}")
    assert not report.passed


def test_skipped_checks_are_ignored_on_request() -> None:
    """`skipped="ignore"` lets the other checks decide, in the results and in what is stored."""
    report = run([same, toxicity], skipped="ignore")
    assert (report.counts.passed, report.counts.skipped) == (6, 0)
    assert headlines(report)[-1].startswith("6 of 6 passed")
    assert [result.outcome for result in report.results] == ["passed"] * 6


def test_a_run_warns_of_every_evaluator_that_skipped_more_than_a_tenth() -> None:
    """With its name, how many of how many, and the most frequent reason."""
    expected = f"toxicity skipped 5 of 6 results; most frequent reason: {NOT_ENGLISH}"
    for options in ({}, {"skipped": "ignore"}):
        report = run([same, toxicity], **options)
        assert report.metadata is not None
        assert list(report.metadata.warnings) == [expected]


def test_a_tenth_may_be_skipped_without_a_warning() -> None:
    """One of ten is not more than a tenth."""
    dataset = [{"id": str(at), "input": "fine", "expected": str(at)} for at in range(9)] + [{"id": "9", "input": "gut"}]
    report = evaluate(echo, dataset, toxicity, history=False, progress=False)
    assert report.metadata is not None
    assert report.metadata.warnings == ()


def test_a_run_warns_of_an_evaluator_that_failed_on_more_than_a_tenth() -> None:
    """A judge that answers one sample of six has not judged the run."""

    def judge(output: str) -> bool:
        if output == "gut":
            raise ConnectionError("no route")
        return True

    report = run(judge)
    assert report.metadata is not None
    [warning] = report.metadata.warnings
    assert warning.startswith("judge failed on 5 of 6 results; most frequent reason: Connection")


@pytest.mark.parametrize("metric", ["strict_pass_rate", "pass_rate", "toxicity.pass_rate"])
def test_a_threshold_on_a_metric_of_skipped_results_is_inconclusive(
    metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 4, with the reason; a threshold on what was judged, or on ignored skips, holds."""
    report = run([same, toxicity])
    assert report_outcome(report, {metric: 0.9}, {"quiet": True}) == 4
    told = " ".join(capsys.readouterr().err.split())
    assert f"{metric} is at least 0.9, but 5 of 6 samples have no value" in told
    assert NOT_ENGLISH in told
    assert report_outcome(report, {"same.pass_rate": 0.9}, {"quiet": True}) == 0
    ignored = run([same, toxicity], skipped="ignore")
    assert report_outcome(ignored, {metric: 0.9}, {"quiet": True}) == 0


def test_a_gate_on_a_metric_of_skipped_results_is_inconclusive() -> None:
    """So is `proctor gate --fail-under`, unless it allows that many to be missing."""
    report = run([same, toxicity])
    demand = GateConfig(fail_under={"strict_pass_rate": 0.9})
    [check] = decide([], demand, report=report).checks
    assert (check.verdict, check.missing) == ("inconclusive", 5)
    assert f"5 skipped, most often because: toxicity: {NOT_ENGLISH}" in check.sentence
    allowed = GateConfig(fail_under={"strict_pass_rate": 0.9}, max_missing=5)
    assert decide([], allowed, report=report).verdict == "pass"


def test_an_evaluator_of_repeats_skips_nothing_but_the_other_epochs() -> None:
    """Its score belongs to the last epoch: no warning, all results pass, a threshold holds."""
    report = evaluate(
        lambda text: {"text": text, "length": len(text)},
        DATASET,
        [{"uses": "field", "path": "output.length", "evaluators": ["consistency"]}],
        epochs=3,
        history=False,
        progress=False,
    )
    assert report.metadata is not None
    assert report.metadata.warnings == ()
    assert report.passed
    assert report_outcome(report, {"strict_pass_rate": 1.0}, {"quiet": True}) == 0


def test_the_baseline_configuration_is_not_skipped_for_want_of_a_baseline() -> None:
    """An evaluator that compares gives no score there, by design; the others decide."""

    def longer(field_context: FieldContext) -> bool | None:
        before = field_context.baseline_value
        return None if before is None else len(field_context.value) >= len(before)

    report = evaluate(
        lambda text, end: text + end,
        DATASET,
        [attach(longer), lambda output: bool(output)],
        configurations={"old": {"end": ""}, "new": {"end": "!"}},
        baseline="old",
        history=False,
        progress=False,
    )
    assert report.metadata is not None
    assert (report.counts.passed, report.counts.skipped) == (12, 0)
    assert report.metadata.warnings == ()
    assert report.passed


def test_old_exports_whose_verdicts_ignored_skips_are_still_read() -> None:
    """Their end says 6 of 6 where today's rule counts 1; both counts agree with the file."""
    report = run([same, toxicity], skipped="ignore")
    assert report.metadata is not None
    older = [msgspec.structs.replace(result, skipped="skip") for result in report.results]
    tally = Tally(report.metadata)
    for result in older:
        tally.add(result)
    assert tally.find_mismatch(EndPart("r", 6, report.metrics)) == ""


def test_runs_that_treat_skips_differently_are_not_compared_as_a_whole() -> None:
    """Their pass rates are two measures; the score of one check is the same in both."""
    strict, lenient = (run([same, toxicity], skipped=rule) for rule in ("skip", "ignore"))
    sides = [make_side(name, one.results, one.metadata) for name, one in
             (("strict", strict), ("lenient", lenient))]  # fmt: skip
    found = compare(*sides)
    assert [sentence for sentence in found.evaluator_differences if "skipped is skip in strict" in sentence]
    assert found.metrics["pass_rate"].verdict == "not comparable"


def test_a_resumed_run_keeps_its_rule_for_skipped_checks(tmp_path: Path) -> None:
    """Results before and after would be judged by two rules: it is refused."""
    history = SQLiteHistory(tmp_path / "h.db")

    def stops(text: str) -> str:
        if text == "gut":
            raise RuntimeError("not now")
        return text

    with pytest.raises(Exception, match="not now"):
        evaluate(stops, DATASET, [same], history=history, progress=False, on_error="raise", concurrency=1)
    with pytest.raises(ResumeRefused, match="cannot be resumed") as refused:
        evaluate(stops, DATASET, [same], history=history, progress=False, resume=True, skipped="ignore")
    assert "skipped" in [problem.where for problem in refused.value.problems]
    history.close()
