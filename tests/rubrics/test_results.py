"""Results and summaries: the format of the spec, its numbers, and safe file names."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import EvalReport, EvalResult, Sample, Score, Trial, Usage
from proctor.metrics.builtin import RubricTotalMetric
from proctor.records.metric import MetricValue
from proctor.records.results import ResultList
from proctor.records.rubric import compute_total, read_run_columns
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.session import ModelCall, Session
from proctor.reports.rubric_files import BatchSummary, FileNames, ResultFiles
from proctor.reports.rubrics import describe_scores, general_warnings, round_half_up, session_result
from tests.rubrics.batches import summarize_batch

WHEN = datetime(2025, 11, 21, 10, 30, 0, 999, tzinfo=UTC)


def spec(number: int, weight: float = 1.0, **more: Any) -> EvaluatorSpec:
    rubric: dict[str, Any] = {
        "id": f"rubric_{number:03}",
        "name": f"Rubric {number}",
        "description": "…",
        "scoring_criteria": "…",
        "weight": weight,
    }
    scale = more.pop("own", None)
    if scale is not None:
        rubric["scale"] = scale
    return EvaluatorSpec(rubric["id"], "rubric", {"rubric": rubric, **more})


def run(*specs: EvaluatorSpec) -> RunMetadata:
    tags = {"rubrics_version": "1.0"}
    return RunMetadata("r1", "batch", WHEN, evaluators=specs, tags=tags)


def result(name: str, *scores: Score | float, low: float = 1, high: float = 5) -> EvalResult:
    """A session with these scores; None is a rubric that failed."""
    made = {
        f"rubric_{place:03}": one
        if isinstance(one, Score)
        else Score((one - low) / (high - low), True, f"reason {place}")
        for place, one in enumerate(scores, start=1)
    }
    used = Session([ModelCall("m", Usage(10, 5, cost=0.01))])
    return EvalResult(Trial(Sample(name, ""), started_at=WHEN), made, {"rubric_001": used})


FAILED = Score.error("garbage", {"status": "evaluation_failed"})


def test_the_weighted_total_of_4_5_3_is_4_14() -> None:
    """With weights 1, 1.5 and 1, and its percentage and normalized value."""
    metadata = run(spec(1), spec(2, 1.5), spec(3))
    found = session_result(result("s", 4, 5, 3), read_run_columns(metadata))
    assert found["summary"] == {"total_score": 4.14, "max_score": 5.0, "percentage": 82.86, "rubrics_evaluated": 3}
    assert found["details"]["normalized"] == 0.7857


def test_a_result_has_the_keys_of_the_spec_in_its_order() -> None:
    """Additional keys are under `details`."""
    found = session_result(result("0fb7", 4, 5), read_run_columns(run(spec(1), spec(2))))
    details = found.pop("details")
    assert json.dumps(found, indent=2) == json.dumps(
        {
            "version": "1.0",
            "session_id": "0fb7",
            "evaluated_at": "2025-11-21T10:30:00Z",
            "rubrics_version": "1.0",
            "rubric_scores": [
                {
                    "rubric_id": "rubric_001",
                    "rubric_name": "Rubric 1",
                    "score": 4.0,
                    "max_score": 5.0,
                    "reasoning": "reason 1",
                },
                {
                    "rubric_id": "rubric_002",
                    "rubric_name": "Rubric 2",
                    "score": 5.0,
                    "max_score": 5.0,
                    "reasoning": "reason 2",
                },
            ],
            "summary": {"total_score": 4.5, "max_score": 5.0, "percentage": 90.0, "rubrics_evaluated": 2},
        },
        indent=2,
    )
    assert details["judging"] == {
        "input_tokens": 10, "output_tokens": 5, "cost": 0.01, "answers": 1, "from_history": 0,
    }  # fmt: skip


def test_a_rubric_that_failed_is_left_out_and_counted() -> None:
    """Its score is null with a status; the total uses the other rubrics."""
    columns = read_run_columns(run(spec(1), spec(2, 1.5)))
    found = session_result(result("s", 4, FAILED), columns)
    entry = found["rubric_scores"][1]
    assert (entry["score"], entry["status"]) == (None, "evaluation_failed")
    assert found["summary"] == {
        "total_score": 4.0, "max_score": 5.0, "percentage": 80.0, "rubrics_evaluated": 1,
        "rubrics_failed": 1,
    }  # fmt: skip
    none = session_result(result("s", FAILED, Score.skipped("empty")), columns)
    assert none["summary"]["total_score"] is None
    assert none["rubric_scores"][1]["status"] == "skipped"


def test_a_trial_without_output_has_no_scores() -> None:
    """Every rubric is failed, with the reason of the trial."""
    columns = read_run_columns(run(spec(1)))
    found = session_result(EvalResult(Trial(Sample("s", ""))), columns)
    assert found["rubric_scores"][0]["status"] == "evaluation_failed"
    assert found["evaluated_at"] is None


def test_scales_carry_through() -> None:
    """Of equal scales the total has theirs; of several the one of the configuration."""
    ten = read_run_columns(run(spec(1, scale=(0, 10)), spec(2, scale=(0, 10))))
    found = session_result(result("s", 7, 8, low=0, high=10), ten)
    assert found["summary"]["total_score"] == 7.5
    assert found["summary"]["max_score"] == 10.0
    mixed = read_run_columns(run(spec(1), spec(2, own=[0, 1])))
    scores = {"rubric_001": Score(0.5, True), "rubric_002": Score(1.0, True)}
    total = compute_total(scores, mixed)
    assert total is not None
    assert (mixed.scale, total.score) == ((1.0, 5.0), 4.0)


SUMMARY_KEYS = [
    "total_sessions", "average_score", "median_score", "std_deviation", "score_distribution",
]  # fmt: skip


def report(*results: EvalResult, specs: tuple[EvaluatorSpec, ...] = (spec(1), spec(2))) -> Any:
    return EvalReport(list(results), run(*specs))


def test_skipped_sessions_did_not_fail() -> None:
    """Neither has a total, and each is counted separately; partial totals are reported."""
    nothing = Score.skipped("it is empty")
    parts = result("p", 4, FAILED)
    found = summarize_batch(
        report(result("a", 4, 4), result("s", nothing, nothing), result("f", nothing, FAILED), parts)
    )
    counted = found["batch_summary"]["score_distribution"]
    assert (counted["4"], counted["skipped"], counted["evaluation_failed"]) == (2, 1, 1)
    assert found["details"]["sessions_partly_scored"] == 1


def test_the_summary_has_the_keys_of_the_spec() -> None:
    """Totals 4.5, 3, 1: mean 2.83, median 3, deviation 1.76; 4.5 rounds up to 5."""
    found = summarize_batch(
        report(result("a", 4, 5), result("b", 3, 3), result("c", 1, 1), result("d", FAILED, FAILED))
    )
    assert list(found) == ["batch_summary", "per_rubric_summary", "details"]
    batch = found["batch_summary"]
    assert list(batch) == SUMMARY_KEYS
    assert list(batch.values())[:4] == [4, 2.83, 3.0, 1.76]
    assert batch["score_distribution"] == {
        "1": 1, "2": 0, "3": 1, "4": 0, "5": 1, "evaluation_failed": 1,
    }  # fmt: skip
    assert found["per_rubric_summary"]["rubric_002"] == {
        "name": "Rubric 2", "average": 3.0, "median": 3.0,
    }  # fmt: skip
    details = found["details"]
    assert (details["sessions_scored"], details["sessions_not_scored"]) == (3, 1)
    assert details["average_interval"] == [1.0, 5.0]
    assert details["per_rubric"]["rubric_001"]["not_scored"] == 1
    assert details["judging"]["input_tokens"] == 40


def test_one_session_has_no_spread_and_no_interval() -> None:
    """A number would be invented."""
    found = summarize_batch(report(result("a", 4, 5)))
    assert found["batch_summary"]["std_deviation"] is None
    assert found["details"]["average_interval"] is None


def test_without_scores_there_is_no_total() -> None:
    """Neither 0 nor the middle of the scale."""
    found = summarize_batch(report(result("a", FAILED, FAILED)))
    assert found["batch_summary"]["average_score"] is None
    assert found["per_rubric_summary"]["rubric_001"]["average"] is None


@given(
    st.lists(st.floats(0, 1), max_size=30),
    st.sampled_from([(1, 5), (0, 1), (0, 100), (0.5, 4.5), (-2, 2), (0, 20), (1, 22)]),
)
def test_the_distribution_adds_up(values: list[float], scale: tuple[float, float]) -> None:
    """To the number of sessions, on any scale."""
    tally = BatchSummary(read_run_columns(run(spec(1, scale=scale))))
    for number, value in enumerate(values):
        tally.add(result(str(number), Score(value, True)))
    tally.add(result("failed", FAILED))
    found = tally.summary()["batch_summary"]
    assert sum(found["score_distribution"].values()) == len(values) + 1 == found["total_sessions"]


def test_wide_scales_are_counted_in_ranges() -> None:
    """Ten of equal width; the greatest score belongs to the last."""
    tally = BatchSummary(read_run_columns(run(spec(1, scale=(0, 100)))))
    for value in (0.0, 0.1, 0.95, 1.0):
        tally.add(result("s", Score(value, True)))
    found = tally.summary()["batch_summary"]["score_distribution"]
    assert list(found)[:2] == ["0-10", "10-20"]
    assert (found["0-10"], found["10-20"], found["90-100"]) == (1, 1, 2)


def test_a_session_is_in_the_range_of_its_total() -> None:
    """The mean of three times 70 is 70, though floating point puts it a hair below."""
    tally = BatchSummary(read_run_columns(run(*(spec(number, scale=(0, 100)) for number in (1, 2, 3)))))
    tally.add(result("s", 70, 70, 70, low=0, high=100))
    found = tally.summary()["batch_summary"]
    assert found["average_score"] == 70.0
    assert found["score_distribution"]["70-80"] == 1


@pytest.mark.parametrize(
    ("number", "places", "rounded"),
    [(0.125, 2, 0.13), (2.675, 2, 2.68), (1.005, 2, 1.01), (2.5, 0, 3.0), (-2.5, 0, -2.0),
     (0.1 + 0.2, 2, 0.3), (4.4999999999999, 0, 5.0)],
)  # fmt: skip
def test_rounding_is_half_up(number: float, places: int, rounded: float) -> None:
    """Decimal rounding of the printed number, not of its binary value."""
    assert round_half_up(number, places) == rounded


def write(folder: Path, *results: EvalResult, received: int = 0) -> ResultFiles:
    """Write a batch, some of it as its sessions finish."""
    summary = report(*results)
    files = ResultFiles(folder, read_run_columns(summary.metadata))
    for one in results[:received]:
        files.add_result(one)
    files.finish(summary)
    return files


def test_files_are_written_inside_the_folder_only(tmp_path: Path) -> None:
    """Ids with "..", equal names or great length still give one file each, which the summary lists."""
    folder = tmp_path / "out"
    ids = ["../../evil", "a/b", "a_b", "A_B", "", "x" * 300, "con", "/etc/passwd", "..", "ü\n"]
    files = write(folder, *(result(one, 4, 4) for one in ids))
    assert len(files) == len(ids)
    names = [files.name(one) for one in ids]
    assert names[:4] == [
        "evil_result.json", "a_b_result.json", "a_b_2_result.json", "A_B_3_result.json",
    ]  # fmt: skip
    assert len({name.casefold() for name in names}) == len(ids)
    written = sorted(tmp_path.rglob("*"))
    assert written == sorted([folder, folder / "summary.json", *(folder / name for name in names)])
    assert [json.loads((folder / name).read_text())["session_id"] for name in names] == ids
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["batch_summary"]["total_sessions"] == len(ids)
    output = summary["details"]["file_names"]
    assert output == {one: name for one, name in zip(ids, names, strict=True) if one != "con"}


def test_existing_files_in_the_folder_are_classified(tmp_path: Path) -> None:
    """Results of another batch are named; its summary goes with the first new result."""
    write(tmp_path, result("old", 4, 4), result("same", 1, 1))
    report_summary = report(result("same", 5, 5), result("new", 4, 4))
    files = ResultFiles(tmp_path, read_run_columns(report_summary.metadata))
    files.add_result(report_summary.results[0])
    assert not (tmp_path / "summary.json").exists()
    assert json.loads((tmp_path / "same_result.json").read_text())["summary"]["total_score"] == 5
    assert files.describe_progress() == ["1 scored", "0 rubrics failed"]
    files.finish(report_summary)
    assert (tmp_path / "summary.json").exists()
    assert (tmp_path / "new_result.json").exists()
    assert files.foreign_files() == ["old_result.json"]


def test_intervals_allow_for_sessions_that_belong_together() -> None:
    """Six tasks, five equal sessions of each: as sure as six sessions, not as thirty."""
    scores = [1, 2, 3, 4, 5, 3]
    alone = [result(f"t{n}", score, score) for n, score in enumerate(scores)]
    fives = [
        EvalResult(
            msgspec.structs.replace(one.trial, sample=Sample(f"{one.sample_id}-{k}", "", metadata={"cluster": n})),
            one.scores,
        )
        for n, one in ((str(n), one) for n, one in enumerate(alone))
        for k in range(5)
    ]
    six, thirty = summarize_batch(report(*alone))["details"], summarize_batch(report(*fives))["details"]
    assert thirty["average_interval"] == six["average_interval"] == [1.52, 4.48]
    assert thirty["per_rubric"]["rubric_001"]["interval"] == [1.52, 4.48]
    assert (thirty["clusters"], "clusters" in six) == (6, False)
    metric = RubricTotalMetric(read_run_columns(run(spec(1), spec(2))))
    low, high = metric.compute(ResultList(fives)).interval or (0, 0)
    assert (round(low, 2), round(high, 2)) == (1.52, 4.48)
    few = report(*fives[:20])
    summary = summarize_batch(few)
    assert (summary["details"]["average_interval"], summary["details"]["clusters"]) == (None, 4)
    assert "form 4 clusters; there are no intervals (fewer than 5 clusters)" in describe_scores(few, summary)


def test_failed_rubrics_are_explained_with_an_example() -> None:
    """The commonest reason first, in the summary and in words; reasons that vary are one."""
    slow = {"judge": {"error": "TimeoutError"}}
    report_summary = report(
        result("a", Score.error("no verdict within 60 s", slow), FAILED),
        result("b", Score.error("no verdict within 61 s", slow), 4),
    )
    content = summarize_batch(report_summary)
    assert content["details"]["failures"] == [
        {"kind": "TimeoutError", "count": 2, "example": {
            "session_id": "a", "rubric_id": "rubric_001", "reason": "no verdict within 60 s"}},
        {"kind": "garbage", "count": 1, "example": {
            "session_id": "a", "rubric_id": "rubric_002", "reason": "garbage"}},
    ]  # fmt: skip
    answer = "not scored: TimeoutError, 2 times, such as a, rubric_001: no verdict within 60 s"
    assert answer in describe_scores(report_summary, content)
    many = report(*(result(str(n), Score.error(f"{n} is odd"), 4) for n in range(30)))
    kinds = summarize_batch(many)["details"]["failures"]
    assert (len(kinds), sum(kind["count"] for kind in kinds), kinds[0]["kind"]) == (21, 30, "other")
    assert "not scored: other reasons, 18 times" in describe_scores(many, summarize_batch(many))


def test_warnings_of_a_run_are_in_its_summary() -> None:
    """For example unreadable lines; rubrics without a verdict have separate lines."""
    metadata = msgspec.structs.replace(
        run(spec(1)), warnings=("2 lines could not be read", "rubric_001 gave no verdict on any")
    )
    output = EvalReport([result("s", FAILED)], metadata)
    details = summarize_batch(output)["details"]
    assert (details["run_id"], len(details["warnings"])) == ("r1", 2)
    assert general_warnings(output) == ["2 lines could not be read"]
    assert general_warnings(EvalReport([])) == []


def test_answers_from_the_history_are_reported() -> None:
    """They cost nothing; if there are only such answers and no failure, no call was made."""
    known = ModelCall("m", Usage(), details={"cached": True})
    asked = ModelCall("m", Usage(10, 5, cost=0.01))
    lost = ModelCall("m", details={"error": "given up"})
    part = EvalResult(result("s", 4).trial, result("s", 4).scores, {"r": Session([known, asked])})
    whole = EvalResult(part.trial, part.scores, {"r": Session([known])})
    failed = EvalResult(part.trial, part.scores, {"r": Session([known, lost])})
    none = EvalResult(part.trial, part.scores, {"r": Session([lost, lost])})
    for one, answer_text in (
        (part, "judge: 15 tokens, $0.0100, 1 of 2 answers reused"),
        (whole, "judge: 1 answer, all reused"),
        (failed, "judge: 1 of 1 answer reused, 1 call failed"),
        (none, "judge: 2 calls failed"),
    ):
        summary = report(one, specs=(spec(1),))
        assert answer_text in describe_scores(summary, summarize_batch(summary)).splitlines()


@given(st.lists(st.text(max_size=130), max_size=30, unique=True))
def test_names_are_plain_and_different(ids: list[str]) -> None:
    """Letters, digits, dot, dash and underscore; never hidden, never twice."""
    names = FileNames()
    found = [names.make_unique(one) for one in ids]
    assert len({name.casefold() for name in found}) == len(ids)
    for name in found:
        assert name.isascii()
        assert not name.startswith(".")
        assert not set(name) & set('/\\:*?"<>| \n\0')
        assert len(name) < 150


def test_in_words() -> None:
    """Rubrics, total, what failed, tokens and cost."""
    metrics = {"judges.cost": MetricValue(0.01, 1, skipped=1)}
    output = EvalReport([result("s", 4, FAILED)], run(spec(1), spec(2)), metrics)
    one = session_result(output.results[0], read_run_columns(output.metadata))
    assert describe_scores(output, one).splitlines() == [
        "Rubric 1: 4 of 5 - reason 1",
        "Rubric 2: evaluation_failed - garbage",
        "total: 4 of 5 (80%), 1 rubric without a score",
        "judge: 15 tokens, $0.0100 (plus 1 session of unknown price)",
        "run r1",
    ]
    batch = describe_scores(output, summarize_batch(output)).splitlines()
    assert batch[:4] == [
        "Rubric 1: 4 on average over 1",
        "Rubric 2: none scored, 1 without a score",
        "total: 4 on average over 1; 1 of 1 totals leave out a failed rubric",
        "sessions by score: 1: 0, 2: 0, 3: 0, 4: 1, 5: 0",
    ]
