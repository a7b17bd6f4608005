"""`proctor gate`, `run` and `compare` on totals of rubrics, where judges fail on part of a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from proctor.wiring.open_history import open_history
from tests.cli.project import Project
from tests.rubrics.batches import write_sessions

JUDGE = """
import os
from pathlib import Path
from proctor import ModelRequest, ModelResponse

async def mine(request: ModelRequest) -> ModelResponse:
    text = request.messages[-1].content
    number = int(text.partition("session number ")[2].partition(".")[0])
    about_solved = "## Rubric: Solved" in text
    mood, score = Path("mood.tmp").read_text(), 5
    if about_solved and number < 18 and mood == "fails":
        raise RuntimeError("overloaded")
    if about_solved and number < 18 and mood == "strict":
        score = 1
    line = text.rpartition("\\n")[2].partition("<")[0]
    return ModelResponse(f"Turn 1 shows it.\\n{line}{score}", "judge")
"""
RUBRICS = {
    "version": "1.0",
    "rubrics": [
        {
            "id": name.lower(),
            "name": name,
            "description": f"{name}?",
            "scoring_criteria": "5: yes; 1: no",
            "weight": weight,
        }
        for name, weight in (("Solved", 2.0), ("Polite", 1.0))
    ],
}
EVAL = """\
name: week
dataset: logs/
evaluators:
  - rubric: {adapter: "gate_judge:mine", rubrics: mine.json}
run: {cache: false}
"""
GATE = ("gate", "latest", "--baseline", "main", "--metric", "total_score", "--margin", "20%")


@pytest.fixture
def week(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Forty chats, all of them right by a judge that is well."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    project.write("gate_judge.py", JUDGE)
    project.write("mine.json", json.dumps(RUBRICS))
    project.write("eval.yaml", EVAL)
    write_sessions(Path("logs"), 40)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.delitem(sys.modules, "gate_judge", raising=False)
    return project


def judged(week: Project, mood: str, *more: str) -> int:
    """Run the week with a judge in a mood."""
    week.write("mood.tmp", mood)
    return week.proctor("run", "eval.yaml", "-q", *more).code


def test_a_total_without_a_rubric_that_failed_is_not_green(week: Project) -> None:
    """The judge fails on just the rubric that would be bad, on 18 of 40 chats."""
    assert judged(week, "well") == 0
    assert "missing" not in week.proctor("baseline", "set", "main", "latest").out
    assert judged(week, "fails") == 0
    least = ("--fail-under", "total_score=4.5")
    result = week.proctor(*GATE, *least, "--json")
    assert result.code == 4
    for check in result.json["checks"]:
        assert (check["verdict"], check["value"], check["missing"]) == ("inconclusive", 5.0, 18)
        assert "18 of 40 samples have no value in this run, or an incomplete one" in (check["sentence"])
    assert "18 of 40 totals in latest leave out a rubric that failed" in result.json["notes"]
    assert week.proctor(*GATE, *least, "--max-missing", "18").code == 0
    comparison_text = " ".join(week.proctor("compare", "latest", "main").out.split())
    assert "18 of 40 totals in latest leave out a rubric that failed" in comparison_text


def test_a_run_that_reaches_its_threshold_by_part_of_its_scores_exits_with_4(week: Project) -> None:
    """The exit code is that of a gate on the same run; a run below the threshold still exits with 1."""
    assert judged(week, "fails", "--fail-under", "total_score=4.5") == 4
    week.write("mood.tmp", "fails")
    result = week.proctor("run", "eval.yaml", "--fail-under", "total_score=4.5", "--output", "out")
    assert "18 of 40 totals leave out the score of a rubric" in " ".join(result.out.split())
    assert result.err.count("inconclusive: total_score is at least 4.5, but 18 of 40 samples") == 1
    assert "**Gate: inconclusive.**" in Path("out/report.md").read_text()
    assert judged(week, "fails", "--fail-under", "solved.mean=0.9") == 4
    assert judged(week, "fails", "--fail-under", "polite.mean=0.9") == 0
    assert judged(week, "fails", "--fail-under", "0.9") == 1
    assert judged(week, "strict", "--fail-under", "total_score=4.5") == 1


def test_holes_in_the_baseline_are_holes(week: Project) -> None:
    """Just what the baseline does not know of is bad in the run."""
    assert judged(week, "fails") == 0
    result = week.proctor("baseline", "set", "main", "latest")
    assert "18 of 40 samples have no value of" in result.out
    assert judged(week, "strict") == 0
    for metric in ("solved", "total_score"):
        gate = week.proctor(*GATE[:5], metric, "--margin", "70%", "--json")
        [check] = gate.json["checks"]
        assert (gate.code, check["verdict"]) == (4, "inconclusive"), metric
        assert (check.get("missing", 0), check["baseline_missing"]) == (0, 18)
        assert "18 of 40 samples have no value in main" in check["sentence"]


def test_holes_in_both_are_holes_in_both(week: Project) -> None:
    """A judge that fails on the same chats every week leaves them out every week."""
    assert judged(week, "fails") == 0
    assert week.proctor("baseline", "set", "main", "latest").code == 0
    assert judged(week, "fails") == 0
    [check] = week.proctor(*GATE[:5], "solved", "--margin", "20%", "--json").json["checks"]
    assert (check["verdict"], check["missing"], check["baseline_missing"]) == ("inconclusive", 18, 18)


def test_percent_of_a_total_are_a_share_of_its_scale(week: Project) -> None:
    """80% of 5 is 4, as the spec's percentage is; what the scale has not is refused before."""
    assert judged(week, "strict", "--fail-under", "total_score=80%") == 1
    result = week.proctor("gate", "latest", "--fail-under", "total_score=80%", "--json")
    [check] = result.json["checks"]
    assert check["name"] == "total_score at least 4"
    assert judged(week, "well", "--fail-under", "total_score=80%") == 0
    before = len(open_history(None).runs())
    for wrong in ("total_score=0.8", "total_score=80", "total_score=10%", "total_score=120%"):
        for command in (("run", "eval.yaml"), ("gate", "latest"), ("gate", "eval.yaml")):
            refused = week.proctor(*command, "--fail-under", wrong)
            assert (refused.code, "its scale is from 1 to 5" in refused.err) == (2, True), wrong
    for metric in ("cost.total", "judges.cost"):
        refused = week.proctor("run", "eval.yaml", "--fail-under", f"{metric}=80%")
        assert (refused.code, f"lower is better for {metric}" in refused.err) == (2, True)
    assert len(open_history(None).runs()) == before


def test_the_metric_that_was_meant_is_suggested(week: Project) -> None:
    """The total is among them, and of an evaluator the mean, which a gate understands by it."""
    for wrong, expected in (
        ("totalscore", "did you mean 'total_score'?"),
        ("total", "did you mean 'total_score'?"),
        ("solved", "did you mean 'solved.mean' or 'solved.pass_rate'?"),
    ):
        result = week.proctor("run", "eval.yaml", "--fail-under", f"{wrong}=0.5")
        assert (result.code, expected in result.err) == (2, True), result.err


def test_a_batch_that_was_interrupted_is_gone_on_with_as_a_batch(week: Project) -> None:
    """The advice names the command that takes its --resume."""
    week.write("mood.tmp", "well")
    batch = ("sessions", "evaluate-batch", "--rubrics", "mine.json", "--judge", "gate_judge:mine")
    argv, sys.argv = sys.argv, ["proctor", *batch]
    try:
        week.proctor(*batch, "--sessions-dir", "logs", "--output-dir", "o", "--budget", "calls=8")
    finally:
        sys.argv = argv
    result = week.proctor("gate", "latest", "--fail-under", "total_score=4")
    assert result.code == 3
    assert "proctor sessions evaluate-batch … --resume" in result.err
