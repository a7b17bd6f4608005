"""`proctor report`: a stored run as a file."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tests.cli.project import Project


@pytest.fixture
def stored(project: Project) -> Project:
    assert project.proctor("run", "eval.yaml", "-q").code == 0
    return project


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("run.md", "# Proctor Evaluation Report\n"),
        ("run.json", '{\n  "proctor_report": 1'),
        ("new/run.csv", "sample_id,configuration,epoch,outcome,"),
        ("run.xml", "<?xml version='1.0' encoding='utf-8'?>\n<testsuites name=\"proctor run exam\" tests=\"5\""),
        ("run.txt", "4 of 4 judged passed"),
    ],
)
def test_the_ending_names_the_format(stored: Project, name: str, start: str) -> None:
    """Without --format; an own file is replaced, if its format can be recognized."""
    result = stored.proctor("report", "--output", name)
    created = "created the folder new\n" if "/" in name else ""
    assert (result.code, result.out) == (0, f"{created}wrote {name}\n")
    assert (stored.folder / name).read_text().startswith(start)
    assert stored.proctor("report", "latest", "--output", name).code == (2 if name.endswith(".txt") else 0)


def test_a_folder_gets_every_format(stored: Project) -> None:
    """Under the name of each format; one configuration can be selected."""
    result = stored.proctor("report", "exam@default", "--format", "junit", "--format", "csv", "--output", "out")
    assert result.out == "created the folder out\nwrote out/report.xml\nwrote out/report.csv\n"
    suites = ET.parse(stored.folder / "out/report.xml").getroot()
    assert [suite.get("name") for suite in suites] == ["exam/default"]


def test_a_dash_prints(stored: Project) -> None:
    """The same as `proctor show --format`."""
    printed = stored.proctor("report", "--format", "csv", "--output", "-")
    assert printed.out == stored.proctor("show", "--format", "csv").out
    assert stored.proctor("show", "--format", "text").out == stored.proctor("show").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "csv", "--format", "json", "--output", "x.csv"), "2 formats do not fit into one file"),
        (("--format", "csv", "--format", "json", "--output", "-"), "2 formats do not fit into one file"),
        (("--format", "cvs"), "unknown report format 'cvs'"),
        (("--json",), "Fix: write --format json"),
        (("--output", "app.py"), "the file exists and is a Python file, not a report"),
        (("exam@slow", "--output", "x.md"), "slow"),
        (("nothing", "--output", "x.md"), "nothing"),
    ],
)
def test_what_cannot_be_written_is_refused(stored: Project, arguments: tuple[str, ...], message: str) -> None:
    """With exit code 2, and nothing is written."""
    files = stored.files()
    result = stored.proctor("report", *arguments)
    assert (result.code, message in result.err) == (2, True)
    assert stored.files() == files


def test_run_writes_junit_and_csv(project: Project) -> None:
    """`--format` of run; the error of the target is an error."""
    result = project.proctor("run", "eval.yaml", "--output", "out", "--format", "junit", "--format", "csv")
    assert "wrote out/report.xml\nwrote out/report.csv\n" in result.out
    suites = ET.parse(project.folder / "out/report.xml").getroot()
    [error] = suites.iter("error")
    assert error.get("message") == "ValueError: no threes"
    assert len((project.folder / "out/report.csv").read_text().splitlines()) == 6
