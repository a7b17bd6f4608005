"""A percentage can be written wherever a share can, in files, options and Python."""

from __future__ import annotations

import pytest

from proctor.comparison.gates.thresholds import Percentage, read_threshold, read_thresholds
from proctor.errors import ConfigError
from tests.cli.project import Project
from tests.tables import each_row


@pytest.mark.parametrize(
    ("text", "share"), [("80%", 0.8), ("80 %", 0.8), (" 12.5% ", 0.125), ("100%", 1.0), ("0.5", 0.5)]
)
def test_a_share_is_a_number_or_a_percentage(text: str, share: float) -> None:
    """80% is 0.8; spaces do not matter."""
    assert read_threshold(text, "fail_under") == share
    assert isinstance(read_threshold(text, "fail_under"), Percentage) == ("%" in text)


@each_row("value", ["", "%", "high", "80%%", "nan", "inf%", True, None, [1]])
def test_what_is_neither_is_refused(value: object) -> None:
    """The error names the option and shows both ways to write it."""
    with pytest.raises(ConfigError, match=r"0\.8 or 80%"):
        read_threshold(value, "fail_under")


def test_all_thresholds_that_cannot_be_read_are_named() -> None:
    """Two wrong thresholds are two problems of one error."""
    with pytest.raises(ConfigError) as caught:
        read_thresholds({"a": "x", "b": "80%", "c": "y%"}, "fail_under")
    assert [problem.where for problem in caught.value.problems] == ["fail_under.a", "fail_under.c"]


@pytest.mark.parametrize("written", ["90%", "{strict_pass_rate: 90%}", "0.9"])
def test_an_eval_file_takes_a_percentage(project: Project, written: str) -> None:
    """`fail_under: 90%` is the gate of 0.9: 4 of 5 passed, so the command exits with 1."""
    text = (project.folder / "eval.yaml").read_text() + f"fail_under: {written}\n"
    project.write("own.yaml", text)
    result = project.proctor("run", "own.yaml")
    assert (result.code, "strict_pass_rate is 0.8, below 0.9" in result.err + result.out) == (1, True)


def test_a_python_file_takes_a_percentage(project: Project) -> None:
    """A module writes it as a text."""
    text = "from app import shout as target\ndataset='data.jsonl'\nevaluators=['exact_match']\n"
    project.write("exam.py", text + "fail_under = '80%'\n")
    assert project.proctor("run", "exam.py").code == 0
    project.write("exam.py", text + "fail_under = {'strict_pass_rate': '81%'}\n")
    assert project.proctor("run", "exam.py").code == 1


def test_a_percentage_that_cannot_be_read_is_a_fault_of_its_line(project: Project) -> None:
    """A wrong threshold in a file is reported with the file and the line."""
    project.write("own.yaml", (project.folder / "eval.yaml").read_text() + "fail_under: 80percent\n")
    result = project.proctor("run", "own.yaml")
    assert result.code == 2
    assert "own.yaml:8" in result.err
    assert "0.8 or 80%" in result.err


@pytest.mark.parametrize("written", ["threshold: 60%", "threshold: 0.6"])
def test_the_threshold_of_an_evaluator_takes_a_percentage(project: Project, written: str) -> None:
    """Two of three references found is 0.667, which passes 60 % and fails 70 %."""
    project.write("data.jsonl", '{"id": "a", "input": "x y", "expected": ["X", "Y", "Z"]}\n')
    head = "dataset: data.jsonl\ntarget: app.py:shout\nevaluators:\n  - contains: "
    project.write("own.yaml", head + "{" + written + "}\n")
    assert project.proctor("run", "own.yaml", "--fail-under", "100%").code in (0, 1)
    result = project.proctor("run", "own.yaml", "--json")
    assert result.json["metadata"]["evaluators"][0]["parameters"]["threshold"] == 0.6
    result = project.proctor("run", "own.yaml", "--json", "--set", "contains.threshold=70%")
    assert result.json["metadata"]["evaluators"][0]["parameters"]["threshold"] == 0.7


def test_a_percentage_outside_0_to_100_is_refused(project: Project) -> None:
    """No share is above 100 %."""
    result = project.proctor("run", "eval.yaml", "--fail-under", "120%", "--fail-under", "x=5%")
    assert result.code == 2
    assert "from 0 to 1" in result.err
