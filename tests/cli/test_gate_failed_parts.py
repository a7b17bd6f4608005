"""Thresholds and gates on numbers that leave out a part of a combination, because the part failed."""

from __future__ import annotations

import pytest

from tests.cli.project import Project

APP = """
from proctor import Score

def answer(text):
    return text.removeprefix("word ")

def good(output):
    return Score(0.9, True)

def flaky(output):
    if int(output) % 2:
        raise RuntimeError("the judge is down")
    return Score(0.1, False)

def best(scores):
    return max(score.value or 0.0 for score in scores.values())
"""
EVAL = """
name: exam
dataset: data.jsonl
target: app.py:answer
evaluators:
  - panel: {judges: ["app.py:good", "app.py:good", "app.py:flaky"]}
  - any_of: {evaluators: ["app.py:good", "app.py:flaky"]}
  - "app.py:good"
fields:
  text: {path: output, evaluators: ["app.py:good", "app.py:flaky"], combine: "or"}
  own: {path: output, evaluators: ["app.py:good", "app.py:flaky"], combine: "app.py:best"}
"""
# flaky fails on 2 of the 5 samples: numbers with it are incomplete, or have no value.
INCOMPLETE = (
    "mean_score",
    "panel.mean",
    "panel.p50",
    "any_of.mean",
    "field.text.score",
    "field.text.p50",
    "field.text.flaky",
    "field.own.pass_rate",
)
# A verdict that the failed part could not change, and numbers of other evaluators.
COMPLETE = ("panel.pass_rate", "any_of.pass_rate", "field.text.pass_rate", "field.text.good", "good.mean")


@pytest.fixture
def exam(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    project.write("app.py", APP)
    project.write("eval.yaml", EVAL)
    project.make_baseline()
    return project


def test_a_threshold_is_inconclusive_if_a_part_of_its_numbers_failed(exam: Project) -> None:
    """The option and the file: each such metric is named with 2 of 5 samples, and no other metric is."""
    options = [f"--fail-under={metric}=0.05" for metric in (*INCOMPLETE, *COMPLETE)]
    result = exam.proctor("run", "eval.yaml", "-q", *options)
    assert result.code == 4, result.err
    reasons = {line.split()[1]: line for line in result.err.splitlines() if line.startswith("inconclusive: ")}
    assert tuple(reasons) == INCOMPLETE
    assert all("2 of 5 samples have no value in this run" in reason for reason in reasons.values())
    exam.write("eval.yaml", f"{EVAL}fail_under: {{panel.mean: 0.05}}\n")
    assert exam.proctor("run", "eval.yaml", "-q").code == 4
    exam.write("eval.yaml", f"{EVAL}fail_under: {{panel.pass_rate: 0.05}}\n")
    assert exam.proctor("run", "eval.yaml", "-q").code == 0


def test_a_gate_says_the_same_about_thresholds_and_margins(exam: Project) -> None:
    """--max-missing accepts the two samples."""
    for metric in INCOMPLETE:
        assert exam.proctor("gate", "latest", "--fail-under", f"{metric}=0.05").code == 4, metric
    assert exam.proctor("gate", "latest", "--fail-under", "panel.mean=0.05", "--max-missing", "2").code == 0
    assert exam.proctor("run", "eval.yaml", "-q").code == 0
    for metric in ("mean_score", "panel", "any_of", "text.score", "text.flaky"):
        result = exam.proctor("gate", "latest", "--baseline", "main", "--metric", f"{metric}=0.9", "--json")
        assert result.code == 4, result.out
        [check] = result.json["checks"]
        assert (check["verdict"], check["missing"], check["baseline_missing"]) == ("inconclusive", 2, 2), metric
