"""A gate on outputs from the cache: the warnings of the run, and no pass if the target was never called."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.project import Project

TARGET = """
import os

def answer(text, *, style=""):
    return "no" if os.environ.get("MODE") == "broken" else f"A{text}"
"""
EVAL = """
name: exam
dataset: data.jsonl
target: app.py:answer
evaluators: [exact_match]
run: {cache: true}
"""
GATE = ("gate", "eval.yaml", "--baseline", "main", "--margin", "5%")
UNTESTED = (
    "but every output came from the cache, so the target was not called: run the evaluation again with --no-cache"
)


@pytest.fixture
def exam(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """200 samples, all right in the baseline `main`, and a target that a variable breaks."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    project.write("app.py", TARGET)
    project.write("eval.yaml", EVAL)
    write_samples(project, 200)
    assert project.proctor("run", "eval.yaml", "-q").code == 0
    assert project.proctor("baseline", "set", "main", "latest").code == 0
    monkeypatch.setenv("MODE", "broken")
    return project


def write_samples(project: Project, count: int) -> None:
    rows = [{"id": f"q{i}", "input": str(i), "expected": f"A{i}"} for i in range(count)]
    project.write("data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def test_outputs_of_an_earlier_version_do_not_pass(exam: Project, tmp_path: Path) -> None:
    """Exit code 4 with the reason and the warning, in every output; also for the stored run."""
    files = "--junit", str(tmp_path / "gate.xml"), "--markdown", str(tmp_path / "gate.md")
    result = exam.proctor(*GATE, *files)
    message = " ".join(result.out.split())
    assert result.code == 4
    assert UNTESTED in message
    assert "Warning: target 'answer' depends on the environment variable MODE" in message
    markdown = (tmp_path / "gate.md").read_text()
    assert "## Gate inconclusive" in markdown
    assert "- Warning: target 'answer' depends on" in markdown
    suite = ET.parse(tmp_path / "gate.xml").getroot()
    assert suite.get("skipped") == "1"
    assert "warning: target 'answer' depends on" in (suite.findtext("testsuite/system-out") or "")
    stored = exam.proctor("gate", "latest", *GATE[2:], "--json")
    assert (stored.code, stored.json["verdict"]) == (4, "inconclusive")
    assert any("MODE" in warning for warning in stored.json["warnings"])


def test_no_cache_calls_the_target_although_the_file_says_cache(exam: Project) -> None:
    """The gate then sees what the target answers now; so does a run."""
    assert exam.proctor(*GATE, "--no-cache").code == 1
    exam.proctor("run", "eval.yaml", "-q", "--no-cache", "--name", "fresh")
    assert exam.proctor("gate", "fresh", *GATE[2:]).code == 1
    refused = exam.proctor("gate", "fresh", *GATE[2:], "--no-cache")
    assert (refused.code, "--no-cache needs an eval file" in refused.err) == (2, True)


def test_a_threshold_and_lost_samples_do_not_pass_on_cached_outputs_either(exam: Project) -> None:
    """Each check of the gate says so."""
    result = exam.proctor(*GATE, "--max-flips", "0", "--fail-under", "0.9", "--json")
    assert [check["verdict"] for check in result.json["checks"]] == ["inconclusive"] * 3
    assert all(UNTESTED in check["sentence"] for check in result.json["checks"])


def test_a_configuration_that_was_never_called_does_not_pass(exam: Project) -> None:
    """Another configuration of the same run was called for every sample."""
    exam.write("eval.yaml", EVAL + "configurations: {default: {}, loud: {style: '!'}}\n")
    result = exam.proctor(*GATE[:3], "main", "--configuration", "default")
    assert (result.code, UNTESTED in " ".join(result.out.split())) == (4, True)


def test_new_samples_are_calls_and_a_rescored_run_is_what_its_outputs_are(
    exam: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs that were called for pass, also rescored; cached ones are not better for being rescored."""
    monkeypatch.setenv("MODE", "good")
    exam.proctor(*GATE)
    assert exam.proctor("rescore", "latest", "-e", "exact_match", "-q").code == 0
    assert exam.proctor("gate", "latest", *GATE[2:]).code == 4
    write_samples(exam, 201)
    called = exam.proctor(*GATE)
    assert (called.code, "200 of 201 outputs from the cache" in called.out) == (0, True)
    assert exam.proctor("rescore", "latest", "-e", "exact_match", "-q").code == 0
    assert exam.proctor("gate", "latest", *GATE[2:]).code == 0
