"""`proctor gate` and `compare` where an evaluator judged the baseline and no longer judges."""

from __future__ import annotations

import json

import pytest

from tests.cli.project import Project

APP = """
from pathlib import Path

from proctor import Score

def answer(text):
    return f"{Path('language.txt').read_text()} A{text}"

def polite(output):
    if output.startswith("de"):
        return Score.skipped("cannot read German")
    return Score(0.6, True)
"""
EVAL = """
name: exam
dataset: data.jsonl
target: app.py:answer
evaluators: [contains, "app.py:polite"]
run: {concurrency: 1, skipped: ignore}
"""


@pytest.fixture
def exam(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """60 English answers in the baseline, all judged by both; the next run answers in German."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    project.write("app.py", APP)
    project.write("eval.yaml", EVAL)
    project.write("language.txt", "en")
    rows = [{"id": f"q{i}", "input": str(i), "expected": f"A{i}"} for i in range(60)]
    project.write("data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    project.make_baseline()
    project.write("language.txt", "de")
    return project


@pytest.mark.parametrize(
    "options",
    [
        ("--margin", "10%"),
        ("--metric", "pass_rate=10%"),
        ("--metric", "mean_score=10%"),
        ("--metric", "contains=10%", "--max-flips", "0"),
        ("--until-decided", "--margin", "30%"),
    ],
)
def test_a_gate_over_all_evaluators_is_inconclusive_if_one_fell_silent(exam: Project, options: tuple[str, ...]) -> None:
    """Exit 4 with the evaluator and both counts, although the run ignores skips."""
    result = exam.proctor("gate", "eval.yaml", "--baseline", "main", *options)
    message = " ".join(result.out.split())
    assert result.code == 4, message
    assert "polite judged 0 of " in message


def test_the_reason_names_the_counts_and_can_be_allowed(exam: Project) -> None:
    """60 of 60 verdicts are missing; --max-missing 60 allows as many."""
    assert exam.proctor("run", "eval.yaml", "-q").code == 0
    gate = ("gate", "latest", "--baseline", "main", "--margin", "10%")
    message = " ".join(exam.proctor(*gate).out.split())
    assert "but polite judged 0 of 60 samples in this run, and 60 of 60 in main" in message
    assert exam.proctor(*gate, "--max-missing", "60").code == 0
    assert exam.proctor(*gate, "--max-missing", "59").code == 4


def test_a_gate_by_an_evaluator_that_judged_both_is_not_concerned(exam: Project) -> None:
    """contains judged 60 of 60 on both sides."""
    gate = ("gate", "eval.yaml", "--baseline", "main", "--metric", "contains=10%")
    assert exam.proctor(*gate).code == 0


def test_what_all_evaluators_say_together_is_not_called_better(exam: Project) -> None:
    """mean_score goes from 0.8 to 1.0 only because the 0.6 of polite is no longer in it."""
    assert exam.proctor("run", "eval.yaml", "-q").code == 0
    [result] = exam.proctor("compare", "latest", "main", "--json").json["comparisons"]
    assert result["metrics"]["mean_score"]["verdict"] == "not comparable"
    assert "polite judged 0 of 60 samples in latest, and 60 of 60 in main" in result["answer"]
    assert "etter" not in result["answer"]


@pytest.mark.parametrize("command", ["run", "gate"])
def test_a_threshold_is_inconclusive_if_an_evaluator_judged_nothing(exam: Project, command: str) -> None:
    """A pass rate of 100% of the other evaluators is not enough, even if skips are ignored."""
    result = exam.proctor(command, "eval.yaml", "--fail-under", "0.9")
    assert result.code == 4
    message = " ".join((result.out + result.err).split())
    assert "polite judged 0 of 60 samples in this run" in message
    assert "cannot read German" in message


def test_a_baseline_with_a_silent_evaluator_is_announced(exam: Project) -> None:
    """Who sets it hears that one evaluator judged nothing in it."""
    assert exam.proctor("run", "eval.yaml", "-q").code == 0
    result = exam.proctor("baseline", "set", "main", "latest")
    assert "warning: polite judged 0 of 60 samples in this run" in result.out
