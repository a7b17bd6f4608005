"""The rubric spec: many sessions, their result files and the summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spec.chats import CLARITY, EFFICIENCY, Chats, crowd, prompts
from tests.spec.clauses import clause, not_applicable


def batch(folder: Path, *totals: float | None, **more: Any) -> Chats:
    """A folder with a rubric and one session for each score, `s000` and so on."""
    chats = Chats(folder, EFFICIENCY, **more)
    for number, score in enumerate(totals):
        chats.add(f"s{number:03}", score)
    return chats


def summary(folder: Path, *totals: float | None, **more: Any) -> Any:
    """The part `batch_summary` for sessions with these totals."""
    return batch(folder, *totals, **more).evaluate_batch()["batch_summary"]


@clause("004.BATCH.1", "Batch Evaluation")
def test_the_command_of_the_specification_scores_a_folder(tmp_path: Path) -> None:
    """`evaluate-batch` takes --rubrics, --sessions-dir, --output-dir and --parallel."""
    chats = batch(tmp_path, 4, 2, 3)
    result = chats.evaluate_batch("--parallel", "5")
    assert result["batch_summary"]["total_sessions"] == 3


@clause("004.BATCH.2", "Batch Evaluation")
def test_a_batch_writes_a_summary_and_a_result_for_each_session(tmp_path: Path) -> None:
    """The output folder has `summary.json` and `ID_result.json` for each session, no more."""
    chats = Chats(tmp_path)
    for number in (1, 2, 3):
        chats.add(f"session_00{number}", 4, 5)
    chats.evaluate_batch()
    assert sorted(path.name for path in chats.results.iterdir()) == [
        "session_001_result.json",
        "session_002_result.json",
        "session_003_result.json",
        "summary.json",
    ]


@clause("004.BATCH.3", "Batch Evaluation")
@pytest.mark.parametrize("parallel", [1, 3])
def test_as_many_sessions_are_scored_at_a_time_as_the_user_says(tmp_path: Path, parallel: int) -> None:
    """`--parallel N` scores N sessions at the same time, and not more."""
    chats = batch(tmp_path, 1, 2, 3, 4, 5)
    crowd.expect(parallel)
    judge = ("--judge", "tests.spec.chats:crowd", "--timeout", "20")
    result = chats.evaluate_batch(*judge, "--parallel", str(parallel))
    assert crowd.most == parallel
    assert result["batch_summary"]["average_score"] == 3.0


@clause("004.BATCH.4", "4. Evaluation Orchestrator")
def test_a_batch_gives_the_results_of_the_single_sessions(tmp_path: Path) -> None:
    """A session has the same scores and summary in a batch as when it is scored separately."""
    chats = Chats(tmp_path)
    chats.add("a", 4, 5)
    chats.add("b", 2, None)
    chats.evaluate_batch()
    for name in ("a", "b"):
        alone, together = chats.evaluate(name, "--fresh"), chats.read(f"{name}_result.json")
        assert alone["summary"] == together["summary"]
        scores = [
            [(entry["rubric_id"], entry["score"]) for entry in item["rubric_scores"]] for item in (alone, together)
        ]
        assert scores[0] == scores[1]


@clause("004.BATCH.5", "4. Evaluation Orchestrator", ruling="a bad trial is data")
def test_a_session_that_cannot_be_scored_does_not_stop_the_batch(tmp_path: Path) -> None:
    """Sessions without a verdict and files that are not logs do not change the other results."""
    chats = batch(tmp_path, 4, None, 2)
    (tmp_path / "sessions" / "broken.json").write_text('{"role": "user", "con')
    result = chats.evaluate_batch()
    assert result["batch_summary"]["average_score"] == 3.0
    assert chats.read("s001_result.json")["summary"]["total_score"] is None
    assert any("broken.json" in warning for warning in result["details"]["warnings"])


@clause("004.BATCH.6", "4. Evaluation Orchestrator", ruling="it has resume and history")
def test_a_batch_that_was_stopped_is_resumed(tmp_path: Path) -> None:
    """`--resume` scores only the missing sessions; no session is sent to the judge twice."""
    chats = batch(tmp_path, 1, 2, 3, 4)
    folders = ("--sessions-dir", f"{tmp_path}/sessions", "--output-dir", str(chats.results))
    count = len(prompts)
    budget = ("--parallel", "1", "--budget")
    assert chats.run("evaluate-batch", *folders, *budget, "calls=2") != 0
    assert not (chats.results / "summary.json").exists()
    result = chats.evaluate_batch(*budget, "calls=9", "--resume")
    assert result["batch_summary"]["total_sessions"] == 4
    assert len(prompts) - count == 4


def add_sessions(chats: Chats, *ids: str) -> None:
    """Write one log with sessions of these ids, each with the score 4."""
    answer = f"{EFFICIENCY.name} deserves 4."
    events = [{"type": "message", "role": "user", "content": answer}]
    rows = [json.dumps({"id": item, "session": {"events": events}}) for item in ids]
    (chats.folder / "sessions" / "log.jsonl").write_text("\n".join(rows))


@clause("004.FILES.1", "Batch Evaluation", ruling="nothing is written outside the output folder")
def test_nothing_is_written_outside_the_output_folder(tmp_path: Path) -> None:
    """Session ids such as `../../evil` and `/etc/passwd` become safe names in the output folder."""
    chats = Chats(tmp_path, EFFICIENCY)
    add_sessions(chats, "../../evil", "con:aux?", "/etc/passwd")

    def others() -> set[Path]:
        return {path for path in tmp_path.parent.rglob("*") if chats.results not in path.parents}

    before = others()
    chats.evaluate_batch()
    new = {path.name for path in others() - before if not path.name.startswith("history.db")}
    assert new == {"results"}
    assert {path.name for path in chats.results.iterdir()} == {
        "evil_result.json",
        "con_aux_result.json",
        "etc_passwd_result.json",
        "summary.json",
    }


@clause("004.FILES.2", "Batch Evaluation", ruling="clashes get a suffix")
def test_file_names_that_would_be_equal_get_a_suffix(tmp_path: Path) -> None:
    """Sessions whose safe names are equal have files of their own, which the summary lists."""
    chats = Chats(tmp_path, EFFICIENCY)
    add_sessions(chats, "a b", "a/b", "A_B")
    listed = chats.evaluate_batch()["details"]["file_names"]
    assert len(set(listed.values())) == 3
    assert {chats.read(name)["session_id"] for name in listed.values()} == {"a b", "a/b", "A_B"}
    assert len({name.casefold() for name in listed.values()}) == 3


@clause("004.SUMMARY.1", "Metrics and Reporting")
def test_a_summary_has_the_keys_of_the_specification_in_order(tmp_path: Path) -> None:
    """`summary.json` has the keys of the specification in their order, then `details`."""
    result = batch(tmp_path, 4, 2).evaluate_batch()
    assert list(result) == ["batch_summary", "per_rubric_summary", "details"]
    assert list(result["batch_summary"]) == [
        "total_sessions",
        "average_score",
        "median_score",
        "std_deviation",
        "score_distribution",
    ]


@clause("004.SUMMARY.2", "Metrics and Reporting")
def test_a_summary_counts_all_sessions(tmp_path: Path) -> None:
    """`total_sessions` counts all sessions, those without a score included."""
    assert summary(tmp_path, 4, None, 2)["total_sessions"] == 3


@clause("004.SUMMARY.3", "Metrics and Reporting")
def test_the_average_is_the_mean_of_the_totals(tmp_path: Path) -> None:
    """`average_score` is the mean of the sessions' totals: 1, 2, 4 and 5 have the average 3.0."""
    assert summary(tmp_path, 1, 2, 4, 5)["average_score"] == 3.0


@clause("004.SUMMARY.4", "Metrics and Reporting")
def test_the_median_is_that_of_the_totals(tmp_path: Path) -> None:
    """`median_score` of 1, 2, 5 and 5 is 3.5, the mean of the two in the middle."""
    assert summary(tmp_path, 1, 2, 5, 5)["median_score"] == 3.5


@clause("004.SUMMARY.5", "Metrics and Reporting", ruling="the standard deviation of a sample")
def test_the_standard_deviation_is_that_of_a_sample(tmp_path: Path) -> None:
    """`std_deviation` of 1, 2, 4 and 5 is the root of 10 / 3, which is 1.83."""
    assert summary(tmp_path, 1, 2, 4, 5)["std_deviation"] == 1.83


@clause("004.SUMMARY.6", "Metrics and Reporting", ruling="rounding is half up")
def test_the_distribution_counts_totals_rounded_half_up(tmp_path: Path) -> None:
    """Every score of the scale has its count; 2.5 counts as 3, 3.5 as 4, and 4.4 as 4."""
    result = summary(tmp_path, 2.5, 3.5, 4.4, 5)
    assert result["score_distribution"] == {"1": 0, "2": 0, "3": 1, "4": 2, "5": 1}


@clause("004.SUMMARY.7", "Metrics and Reporting", ruling="the distribution adds up")
def test_the_distribution_adds_up_to_the_number_of_sessions(tmp_path: Path) -> None:
    """Sessions without a score are counted in the distribution too, as `evaluation_failed`."""
    result = summary(tmp_path, 4, None, 2, None)
    assert result["score_distribution"] == {"1": 0, "2": 1, "3": 0, "4": 1, "5": 0, "evaluation_failed": 2}
    assert sum(result["score_distribution"].values()) == result["total_sessions"]


@clause("004.SUMMARY.8", "Metrics and Reporting")
def test_every_rubric_has_a_summary(tmp_path: Path) -> None:
    """`per_rubric_summary` has name, average and median of each rubric that was scored, by id."""
    chats = Chats(tmp_path, EFFICIENCY, CLARITY)
    for name, scores in {"a": (4, 5), "b": (2, None), "c": (5, 4), "d": (4, 4)}.items():
        chats.add(name, *scores)
    assert chats.evaluate_batch()["per_rubric_summary"] == {
        "rubric_001": {"name": "Task Completion Efficiency", "average": 3.75, "median": 4.0},
        "rubric_002": {"name": "Clear Communication", "average": 4.33, "median": 4.0},
    }


@clause("004.SUMMARY.9", "Metrics and Reporting", ruling="rounding is half up")
def test_averages_are_rounded_half_up(tmp_path: Path) -> None:
    """Eight totals with the sum 21 have the average 2.625, which is 2.63."""
    assert summary(tmp_path, 3, 3, 3, 3, 3, 2, 2, 2)["average_score"] == 2.63


@clause("004.SUMMARY.10", "Metrics and Reporting")
def test_the_distribution_of_the_example_comes_out(tmp_path: Path) -> None:
    """Fifty sessions with 2, 5, 12, 20 and 11 times 1 to 5 have that distribution and average."""
    counts = {1: 2, 2: 5, 3: 12, 4: 20, 5: 11}
    totals = [score for score, count in counts.items() for _ in range(count)]
    assert summary(tmp_path, *totals) == {
        "total_sessions": 50,
        "average_score": 3.66,
        "median_score": 4.0,
        "std_deviation": 1.06,
        "score_distribution": {"1": 2, "2": 5, "3": 12, "4": 20, "5": 11},
    }


@clause("004.SUMMARY.11", "Metrics and Reporting", ruling="scale carried through")
def test_the_distribution_has_the_scores_of_the_scale(tmp_path: Path) -> None:
    """With a scale from 0 to 3 the distribution has the scores 0, 1, 2 and 3."""
    result = summary(tmp_path, 0, 3, 3, scale=[0, 3])
    assert result["score_distribution"] == {"0": 1, "1": 0, "2": 0, "3": 2}


@clause("004.SUMMARY.12", "Metrics and Reporting", ruling="a metric over nothing is never 0")
def test_a_batch_without_any_score_has_no_average(tmp_path: Path) -> None:
    """Where no session was scored, average, median and deviation are null."""
    chats = batch(tmp_path, None)
    folders = ("--sessions-dir", f"{tmp_path}/sessions", "--output-dir", str(chats.results))
    chats.run("evaluate-batch", *folders)
    batch_summary = chats.read("summary.json")["batch_summary"]
    assert batch_summary == {
        "total_sessions": 1,
        "average_score": None,
        "median_score": None,
        "std_deviation": None,
        "score_distribution": {"1": 0, "2": 0, "3": 0, "4": 0, "5": 0, "evaluation_failed": 1},
    }


@clause("004.RUN.2", "4. Evaluation Orchestrator", ruling="a run has history and reports")
def test_a_batch_is_kept_in_the_history(tmp_path: Path) -> None:
    """A batch is a run: the judge's answers are in the history and are not requested again."""
    chats = batch(tmp_path, 4, 2)
    first = chats.evaluate_batch()
    count = len(prompts)
    second = chats.evaluate_batch()
    assert len(prompts) == count
    assert second["batch_summary"] == first["batch_summary"]
    assert second["details"]["judging"]["from_history"] == 2


not_applicable(
    "004.BATCH.7",
    "Batch Evaluation",
    "The command is `uv run retrochat-eval evaluate-batch`.",
    reason="the program is Proctor: `proctor sessions evaluate-batch` has the same options.",
)
