"""The rubric spec: weighted totals and the result file of a session."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import Rubric
from tests.spec.chats import CLARITY, EFFICIENCY, Chats
from tests.spec.clauses import clause, not_applicable

WEIGHTED = tuple(
    Rubric(f"r{number}", f"R{number}", "Is it good?", "1: no 5: yes", weight)
    for number, weight in enumerate((1.0, 1.5, 1.0))
)


def result_of(folder: Path, *scores: float | None, rubrics: Any = (), **more: Any) -> Any:
    """The result file of a session that deserves these scores."""
    chats = Chats(folder, *rubrics, **more)
    chats.add("0fb7d8cd", *scores)
    return chats.evaluate("0fb7d8cd")


@clause("004.TOTAL.1", "3. Result Aggregator")
def test_the_total_is_the_weighted_mean(tmp_path: Path) -> None:
    """Scores 4, 5 and 3 with weights 1, 1.5 and 1 have the total 14.5 / 3.5 = 4.14."""
    assert result_of(tmp_path, 4, 5, 3, rubrics=WEIGHTED)["summary"]["total_score"] == 4.14


@clause("004.TOTAL.2", "3. Result Aggregator", ruling="nothing is hard-wired to 5")
def test_the_greatest_score_comes_from_the_scale(tmp_path: Path) -> None:
    """`max_score` is the upper end of the scale, of each rubric and of the total."""
    result = result_of(tmp_path, 6, 9, scale=[0, 10])
    assert result["summary"]["max_score"] == 10.0
    assert [entry["max_score"] for entry in result["rubric_scores"]] == [10.0, 10.0]
    assert (result["summary"]["total_score"], result["summary"]["percentage"]) == (7.5, 75.0)


@clause("004.TOTAL.3", "3. Result Aggregator", ruling="percentage = total/max")
def test_the_percentage_is_the_share_of_the_greatest_score(tmp_path: Path) -> None:
    """A total of 4.142857 of 5 has the percentage 82.86, computed before rounding."""
    assert result_of(tmp_path, 4, 5, 3, rubrics=WEIGHTED)["summary"]["percentage"] == 82.86


@clause("004.TOTAL.4", "3. Result Aggregator", ruling="normalized = (score−min)/(max−min)")
def test_the_normalized_total_is_given_too(tmp_path: Path) -> None:
    """A total of 4.142857 from 1 to 5 is normalized to 3.142857 / 4 = 0.7857."""
    assert result_of(tmp_path, 4, 5, 3, rubrics=WEIGHTED)["details"]["normalized"] == 0.7857


@clause("004.TOTAL.5", "3. Result Aggregator", ruling="totals leave it out and count it")
def test_a_rubric_that_failed_is_left_out_of_the_total(tmp_path: Path) -> None:
    """A rubric without a verdict counts neither in the sum nor in the weights, and is counted."""
    heavy = msgspec.structs.replace(CLARITY, weight=9.0)
    summary = result_of(tmp_path, 2, None, rubrics=(EFFICIENCY, heavy))["summary"]
    assert (summary["total_score"], summary["percentage"]) == (2.0, 40.0)
    assert (summary["rubrics_evaluated"], summary["rubrics_failed"]) == (1, 1)


@clause("004.TOTAL.6", "3. Result Aggregator", ruling="a total over nothing is never 0")
def test_without_any_score_there_is_no_total(tmp_path: Path) -> None:
    """Where all rubrics failed, total and percentage are null, and the rubrics are counted."""
    summary = result_of(tmp_path, None, None)["summary"]
    assert (summary["total_score"], summary["percentage"]) == (None, None)
    assert (summary["rubrics_evaluated"], summary["rubrics_failed"]) == (0, 2)


@clause("004.TOTAL.7", "3. Result Aggregator", ruling="scale carried through")
def test_rubrics_with_scales_of_their_own_are_brought_onto_the_scale_of_the_set(tmp_path: Path) -> None:
    """3 of 1 to 5 and 10 of 0 to 10 are 0.5 and 1.0, together 0.75, which is 4.0 of 1 to 5."""
    chats = Chats(tmp_path)
    data = json.loads((tmp_path / "rubrics.json").read_text())
    data["rubrics"][1]["scale"] = [0, 10]
    (tmp_path / "rubrics.json").write_text(json.dumps(data))
    chats.add("a", 3, 10)
    report = chats.evaluate("a")
    assert [entry["max_score"] for entry in report["rubric_scores"]] == [5.0, 10.0]
    assert (report["summary"]["total_score"], report["summary"]["max_score"]) == (4.0, 5.0)


@clause("004.RESULT.1", "Evaluation Result")
def test_a_result_has_the_keys_of_the_specification_in_order(tmp_path: Path) -> None:
    """The result file has the keys of the specification in their order, then `details`."""
    assert list(result_of(tmp_path, 4, 5)) == [
        "version",
        "session_id",
        "evaluated_at",
        "rubrics_version",
        "rubric_scores",
        "summary",
        "details",
    ]


@clause("004.RESULT.2", "Evaluation Result")
def test_a_result_names_the_versions_of_its_format_and_of_the_rubrics(tmp_path: Path) -> None:
    """`version` is "1.0", and `rubrics_version` the version of the rubric file."""
    result = result_of(tmp_path, 4, 5, version="3.2")
    assert (result["version"], result["rubrics_version"]) == ("1.0", "3.2")


@clause("004.RESULT.3", "Evaluation Result")
def test_a_result_names_its_session(tmp_path: Path) -> None:
    """`session_id` is the id of the session."""
    assert result_of(tmp_path, 4, 5)["session_id"] == "0fb7d8cd"


@clause("004.RESULT.4", "Evaluation Result", ruling="time is aware UTC")
def test_a_result_tells_when_it_was_evaluated(tmp_path: Path) -> None:
    """`evaluated_at` is the moment of the evaluation in UTC, as in 2025-11-21T10:30:00Z."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    answer = result_of(tmp_path, 4, 5)["evaluated_at"]
    moment = datetime.strptime(answer, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert before <= moment <= datetime.now(UTC)


@clause("004.RESULT.5", "Evaluation Result")
def test_a_result_has_one_entry_for_each_rubric(tmp_path: Path) -> None:
    """`rubric_scores` has id, name, score, max_score and reasoning of each rubric, in order."""
    assert result_of(tmp_path, 4, 5)["rubric_scores"] == [
        {
            "rubric_id": "rubric_001",
            "rubric_name": "Task Completion Efficiency",
            "score": 4.0,
            "max_score": 5.0,
            "reasoning": "Turn 1 shows it.",
        },
        {
            "rubric_id": "rubric_002",
            "rubric_name": "Clear Communication",
            "score": 5.0,
            "max_score": 5.0,
            "reasoning": "Turn 1 shows it.",
        },
    ]


@clause("004.RESULT.6", "Evaluation Result")
def test_the_summary_of_a_result_is_that_of_the_example(tmp_path: Path) -> None:
    """Scores 4 and 5 have the total 4.5 of 5.0, which is 90.0 percent, over 2 rubrics."""
    assert result_of(tmp_path, 4, 5)["summary"] == {
        "total_score": 4.5,
        "max_score": 5.0,
        "percentage": 90.0,
        "rubrics_evaluated": 2,
    }


@clause("004.RESULT.7", "Error Handling")
def test_a_rubric_that_failed_is_marked_in_the_result(tmp_path: Path) -> None:
    """The entry of a rubric without a verdict has `evaluation_failed`, no score, and the reason."""
    entry = result_of(tmp_path, 2, None)["rubric_scores"][1]
    assert (entry["rubric_id"], entry["score"], entry["status"]) == ("rubric_002", None, "evaluation_failed")
    assert "I cannot say." in entry["reasoning"]


@clause("004.RESULT.8", "4. Evaluation Orchestrator")
def test_a_result_is_saved_where_the_user_says(tmp_path: Path) -> None:
    """`--output PATH` writes the result as indented UTF-8 JSON that people can read."""
    result_of(tmp_path, 4, 5)
    text = (tmp_path / "result.json").read_bytes().decode("utf-8")
    assert text.startswith('{\n  "version": "1.0",\n  "session_id": "0fb7d8cd",\n')


@clause("004.RESULT.9", "Evaluation Result", ruling="rounding is half up")
@pytest.mark.parametrize(("scores", "total"), [((4.33, 4.34), 4.34), ((1.0, 1.25), 1.13)])
def test_totals_are_rounded_half_up(tmp_path: Path, scores: tuple[float, float], total: float) -> None:
    """Numbers are rounded to two decimals, half up: 4.335 is 4.34, and 1.125 is 1.13."""
    assert result_of(tmp_path, *scores)["summary"]["total_score"] == total


not_applicable(
    "004.TOTAL.8",
    "3. Result Aggregator",
    "A class `ResultAggregator` makes the result.",
    reason="totals are a metric of the run; the guide for other tools maps the name.",
)
not_applicable(
    "004.RUN.3",
    "4. Evaluation Orchestrator",
    "A class `Evaluator` connects prompt generator, scorer and aggregator.",
    reason="a run does that; `Evaluator` is one check, as in the other specifications.",
)
