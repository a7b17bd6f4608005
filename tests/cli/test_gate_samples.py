"""`proctor gate` where run and baseline have not the same samples, or not all of their scores."""

from __future__ import annotations

import json

import pytest

from tests.cli.project import Project

APP = """
from pathlib import Path

def answer(text):
    return "no" if int(text) < int(Path("lost.txt").read_text()) else f"A{text}"

def graded(output):
    if int(output[1:]) < 60:
        raise RuntimeError("the judge is out")
    return 0.9
"""
EVAL = """
name: exam
dataset: data.jsonl
target: app.py:answer
evaluators: [exact_match]
run: {concurrency: 1}
"""
GATE = ("gate", "eval.yaml", "--baseline", "main", "--margin", "5%")


@pytest.fixture
def exam(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """200 samples, all right in the baseline `main`."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    project.write("app.py", APP)
    project.write("eval.yaml", EVAL)
    project.write("lost.txt", "0")
    samples(project, "q", range(200))
    project.make_baseline()
    return project


def samples(project: Project, prefix: str, numbers: range, more: int = 0) -> None:
    """Samples by number; with `more`, the question of each differs from its id."""
    rows = [{"id": f"{prefix}{i}", "input": str(i + more), "expected": f"A{i + more}"} for i in numbers]
    project.write("data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def test_other_samples_are_compared_as_two_groups_if_asked_for(exam: Project) -> None:
    """New chats each night have no partner in the last; a wrong dataset has none either, so --unpaired is needed."""
    samples(exam, "other", range(200))
    result = exam.proctor(*GATE)
    message = " ".join(result.out.split())
    assert result.code == 4
    assert "they have no sample in common: run the same dataset; to compare them as two independent groups" in message
    assert "add --unpaired" in message
    assert "two groups of" not in message
    assert "have no sample in common, so the gate will be inconclusive" in " ".join(result.err.split())
    assert exam.proctor("gate", "latest", *GATE[2:], "--accept-changes").code == 4
    result = exam.proctor(*GATE, "--unpaired")
    message = " ".join(result.out.split())
    assert result.code == 0
    assert "two groups of 200 and 200 samples" in message
    assert "all samples of both are compared, as two independent groups" in message
    exam.write("lost.txt", "60")
    assert exam.proctor(*GATE, "--unpaired").code == 1


def test_a_folder_that_grew_is_not_green_by_its_old_samples(exam: Project) -> None:
    """The new half is all wrong, and the pairs say nothing of it."""
    samples(exam, "q", range(-200, 200))
    result = exam.proctor(*GATE)
    message = " ".join(result.out.split())
    assert result.code == 4
    assert "but 200 of 400 samples of" in message
    assert "add --unpaired to compare all samples of both as two groups" in message
    stored = ("gate", "latest", *GATE[2:])
    assert exam.proctor(*stored, "--accept-changes").code == 0
    grouped = exam.proctor(*stored, "--unpaired")
    assert grouped.code == 1
    assert "two groups of 400 and 200 samples" in " ".join(grouped.out.split())
    # A tenth is allowed, and mentioned.
    samples(exam, "q", range(-22, 200))
    few = exam.proctor(*GATE)
    assert few.code == 0
    assert "22 samples of" in few.out


def test_a_run_that_may_stop_early_is_not_green_by_its_old_samples_either(exam: Project) -> None:
    """Samples that the baseline lacks are left out of what decides it."""
    samples(exam, "q", range(-200, 200))
    early = ("--until-decided", "--margin", "20%")
    assert exam.proctor(*GATE, *early).code == 4
    assert exam.proctor("gate", "latest", *GATE[2:], "--margin", "20%").code == 4
    assert exam.proctor(*GATE, *early, "--accept-changes").code == 0


def test_samples_with_one_id_and_different_contents_are_not_paired(exam: Project) -> None:
    """Ids that number the lines name different samples in another file."""
    samples(exam, "q", range(200), more=1000)
    result = exam.proctor(*GATE)
    message = " ".join(result.out.split())
    assert result.code == 4
    assert "they have no sample with the same content in common: run the same dataset" in message
    assert "two groups of" not in message
    assert "200 samples have different contents under the same id and cannot be paired: q0, q1, q10, …" in message
    early = exam.proctor(*GATE, "--until-decided")
    assert early.code == 2
    assert "sample 'q0' has other content in main, under the same id" in early.err
    lost = exam.proctor("gate", "latest", *GATE[2:], "--max-flips", "3")
    assert lost.code == 2
    assert "lost samples can be counted only if the samples are paired" in lost.err


def test_missing_scores_are_reported_and_too_many_are_inconclusive(exam: Project) -> None:
    """A judge that failed on part of the run leaves the rest looking better than it was."""
    exam.write("eval.yaml", EVAL.replace("exact_match", "app.py:graded"))
    assert exam.proctor("run", "eval.yaml", "-q").code in (0, 3)
    gate = ("gate", "latest", "--fail-under", "mean_score=0.8")
    result = exam.proctor(*gate, "--json")
    assert result.code == 4
    [check] = result.json["checks"]
    assert (check["n"], check["missing"], check["verdict"]) == (140, 60, "inconclusive")
    assert "mean_score is 0.9, at least 0.8 (n = 140, 60 missing, no interval)" in check["sentence"]
    assert exam.proctor(*gate, "--max-missing", "30%").code == 0
    assert exam.proctor(*gate, "--max-missing", "60").code == 0
    assert exam.proctor(*gate, "--max-missing", "59").code == 4
    assert exam.proctor(*gate, "--max-missing", "0.29").code == 4
    # What failed to be scored counts against the strict pass rate: nothing is missing from it.
    strict = exam.proctor("gate", "latest", "--fail-under", "0.9", "--json")
    assert (strict.code, strict.json["checks"][0].get("missing", 0)) == (1, 0)
    for wrong in ("some", "1.5", "-1", "150%"):
        assert exam.proctor(*gate, "--max-missing", wrong).code == 2


def test_a_folder_that_shrank_is_not_green_by_what_is_left(exam: Project) -> None:
    """Whoever drops the hard samples has no better system; a limit is no such thing."""
    samples(exam, "q", range(100))
    result = exam.proctor(*GATE)
    message = " ".join(result.out.split())
    assert result.code == 4
    assert "but 100 of 200 samples of main are not in" in message
    stored = ("gate", "latest", *GATE[2:])
    assert exam.proctor(*stored, "--accept-changes").code == 0
    assert exam.proctor(*stored, "--unpaired").code == 0
    early = ("--until-decided", "--margin", "20%")
    assert exam.proctor(*GATE, *early).code == 4
    samples(exam, "q", range(200))
    assert exam.proctor(*GATE, *early).code == 0
    exam.write("eval.yaml", EVAL.replace("{concurrency: 1}", "{concurrency: 1, limit: 100}"))
    assert exam.proctor(*GATE).code == 0
    assert exam.proctor(*stored).code == 0


def test_a_gate_warns_before_the_run_that_the_baseline_has_more_samples(exam: Project) -> None:
    """Twenty of two hundred samples cannot pass; the same twenty by a limit, or with --accept-changes, may."""
    samples(exam, "q", range(20))
    result = exam.proctor(*GATE)
    warning, answer = " ".join(result.err.split()), " ".join(result.out.split())
    assert result.code == 4
    assert "180 of 200 samples of main are not in the dataset, so the gate cannot pass: add them, or add" in warning
    assert "but it cannot pass, because 180 of 200 samples of main are not in exam" in answer
    assert "too few for a margin" not in warning + answer
    assert "would decide it" not in answer
    accepted = exam.proctor(*GATE, "--accept-changes")
    assert "about 34 more samples would decide it" in " ".join(accepted.out.split())
    assert accepted.out.rstrip().endswith("more samples")
    assert "not in the dataset" not in accepted.err
