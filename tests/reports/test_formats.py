"""Report formats: built-in ones and plugins by the same entry points, written to a folder by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proctor import evaluate, exact_match
from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError, ProctorError
from proctor.reports import MarkdownReporter, write_reports
from proctor.reports.formats import find_format, select_formats
from tests.plugins import install_package
from tests.reports.examples import mixed_report

CODE = """
def to_csv(report):
    return "sample_id,outcome\\n" + "".join(f"{r['sample_id']},{r['outcome']}\\n" for r in report.rows())

to_csv.extension = "table"
to_csv.signature = "sample_id,outcome"

def note(report, verdict=""):
    return f"{report.total} results. {verdict}"

class Badge:
    extension = "svg"
    def generate(self, report):
        return f"<svg>{report.total}</svg>"
    def save(self, report, path):
        path.write_text(self.generate(report) + " saved")

def broken(report):
    return 1 / 0

number = 3
"""
POINTS = """[proctor.reporters]
table = our_reports:to_csv
note = our_reports:note
badge = our_reports:Badge
broken = our_reports:broken
markdown = our_reports:Badge
gone = our_reports:gone
number = our_reports:number
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_package(tmp_path / "packages", "our_reports", CODE, POINTS)
    monkeypatch.syspath_prepend(tmp_path / "packages")


def test_markdown_and_json_are_written_by_default(tmp_path: Path) -> None:
    """`write_reports` creates the folder and returns the files."""
    paths = write_reports(mixed_report(), tmp_path / "new" / "out")
    assert [path.name for path in paths] == ["report.md", "report.json"]
    assert paths[0].read_text() == MarkdownReporter().generate(mixed_report())


@pytest.mark.usefixtures("plugin")
def test_plugins_are_written_by_name(tmp_path: Path) -> None:
    """A function, a function that takes the verdict, and a class with its own `save`; the name is the extension."""
    report = evaluate(str.upper, [{"id": "a", "input": "x", "expected": "X"}], exact_match, history=False)
    paths = write_reports(report, tmp_path, ["table", "note", "badge"], verdict="**Passed.**")
    assert {path.name: path.read_text() for path in paths} == {
        "report.table": "sample_id,outcome\na,passed\n",
        "report.note": "1 results. **Passed.**",
        "report.svg": "<svg>1</svg> saved",
    }


@pytest.mark.usefixtures("plugin")
def test_a_plugin_cannot_take_the_name_of_a_built_in_format() -> None:
    """Proctor's own formats come first."""
    assert find_format("markdown").plugin is MarkdownReporter


def test_the_verdict_stands_below_the_title_of_markdown(tmp_path: Path) -> None:
    """The built-in format receives it in the same way as a plugin."""
    [path] = write_reports(EvalReport([]), tmp_path, ["markdown"], verdict="**Gate: passed.**")
    assert path.read_text().startswith("# Proctor Evaluation Report\n\n**Gate: passed.**\n\n## Run Summary\n")


@pytest.mark.usefixtures("plugin")
def test_a_format_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    """The error names the format and what to type; the other files are there."""
    with pytest.raises(ProctorError) as raised:
        write_reports(mixed_report(), tmp_path, ["broken", "csv"])
    assert raised.value.what == "the report format 'broken' failed: ZeroDivisionError: division by zero"
    assert raised.value.fix.endswith("--format broken")
    assert (tmp_path / "report.csv").exists()


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("name", "what", "fix"),
    [
        ("cvs", "unknown report format 'cvs'", "did you mean 'csv'"),
        ("gone", "the report format 'gone' cannot be loaded: AttributeError", "uninstall the plugin"),
        ("number", "'number' is not a report format", "a function of the report"),
    ],
)
def test_a_wrong_format_is_explained(name: str, what: str, fix: str) -> None:
    """What is wrong, and what to type."""
    with pytest.raises(ConfigError, match=re.escape(what)) as raised:
        find_format(name)
    assert fix in raised.value.fix


@pytest.mark.usefixtures("plugin")
def test_all_wrong_formats_are_reported_at_once() -> None:
    """One error, two problems."""
    with pytest.raises(ConfigError) as raised:
        select_formats(["cvs", "markdown", "number"])
    assert [problem.what.partition(":")[0] for problem in raised.value.problems] == [
        "unknown report format 'cvs'",
        "'number' is not a report format",
    ]


def test_two_formats_cannot_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second would replace the first."""
    code = "def md(report): return ''"
    install_package(tmp_path, "other_reports", code, "[proctor.reporters]\nmd = other_reports:md\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=re.escape("markdown and md would both be written to report.md")):
        select_formats(["markdown", "md"])


def test_a_function_of_a_file_is_a_format_too(tmp_path: Path) -> None:
    """By its address, without a package; the name of the function is the extension."""
    (tmp_path / "mine.py").write_text("def tally(report): return str(report.total)")
    [path] = write_reports(mixed_report(), tmp_path, [f"{tmp_path / 'mine.py'}:tally"])
    assert (path.name, path.read_text()) == ("report.tally", str(mixed_report().total))
