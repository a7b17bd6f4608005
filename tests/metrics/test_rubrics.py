"""The total of rubrics over a run: on its scale, with failed and skipped sessions counted separately."""

from __future__ import annotations

from proctor.metrics.builtin import RubricTotalMetric
from proctor.records.results import ResultList
from proctor.records.rubric import read_columns
from proctor.records.run import EvaluatorSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Failure, Trial

RUBRIC = {"id": "it", "name": "It", "description": "Is it?", "scoring_criteria": "1: no, 5: yes"}
COLUMNS = read_columns([EvaluatorSpec("it", "rubric", {"rubric": RUBRIC})], "1")


def result(name: str, score: Score | None) -> EvalResult:
    """A session and what the rubric said; nothing where it could not be run."""
    sample: Sample[str, str] = Sample(name, "?")
    if score is None:
        return EvalResult(Trial(sample, error=Failure("ValueError", "no")))
    return EvalResult(Trial(sample, "!"), {"it": score})


def test_no_interval_reaches_beyond_the_scale() -> None:
    """Of 1, 5 and 5 Student's interval would reach from -2.07 to 9.4."""
    scores = [Score(value, True) for value in (0.0, 1.0, 1.0)]
    actual = RubricTotalMetric(COLUMNS).compute(ResultList(result(str(at), score) for at, score in enumerate(scores)))
    assert actual.interval == (1.0, 5.0)


def test_what_failed_is_missing_and_what_was_skipped_is_not() -> None:
    """One judge that failed and one target that did; a session without anything to judge."""
    scores = [Score(0.5, True), Score.error("out"), None, Score.skipped("it is empty")]
    actual = RubricTotalMetric(COLUMNS).compute(ResultList(result(str(at), score) for at, score in enumerate(scores)))
    assert (actual.value, actual.n, actual.errors, actual.skipped) == (3.0, 1, 2, 1)


def test_a_total_that_lacks_a_rubric_is_partial() -> None:
    """It is averaged all the same, whether the rubric failed or was skipped."""
    other = {**RUBRIC, "id": "that", "name": "That"}
    specs = [EvaluatorSpec(item["id"], "rubric", {"rubric": item}) for item in (RUBRIC, other)]
    failed, skipped, full = Score.error("out"), Score.skipped("no tools"), Score(1.0, True)
    actual = RubricTotalMetric(read_columns(specs, "1")).compute(
        ResultList(
            EvalResult(Trial(Sample(str(at), "?"), "!"), {"it": item, "that": two})
            for at, (item, two) in enumerate(
                [(full, full), (full, failed), (full, skipped), (failed, failed),
                 (skipped, failed), (skipped, skipped)]
            )
        )
    )  # fmt: skip
    assert (actual.value, actual.n, actual.partial, actual.errors, actual.skipped) == (5.0, 3, 2, 2, 1)
