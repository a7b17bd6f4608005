"""Lists for the terminal: what is truncated when space is short, and what never is."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import click
import pytest
from rich.cells import cell_len

from proctor import EvalReport, evaluate, exact_match
from proctor.records.run import RunMetadata
from proctor.reports.listing import align_columns, show_baselines, show_runs

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
LONG = "a name that is much longer than any terminal is wide " * 3


def run(number: int, name: str, **tags: str) -> tuple[RunMetadata, EvalReport]:
    result = RunMetadata(f"20260101-120000-00000{number}", name, WHEN, tags=tags)
    return result, EvalReport([], result)


def listed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return click.unstyle(capsys.readouterr().out).splitlines()


@pytest.mark.parametrize("width", [20, 80, 120])
def test_ids_are_never_cut(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """However long the name of one run is; a name that does not fit is whole on the next line, to be copied."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_runs([run(1, LONG, branch="main"), run(2, "b")])
    lines = listed(capsys)
    assert [line.split()[0] for line in (*lines[:2], lines[4])] == [
        "run", "20260101-120000-000001", "20260101-120000-000002",
    ]  # fmt: skip
    assert "…" in lines[1]
    assert lines[2:4] == [f"  {LONG.rstrip()}", "  branch=main"]
    assert width < 80 or max(map(len, (*lines[:2], lines[4]))) <= width
    show_baselines([("main", *run(1, LONG)), ("a baseline of some length", *run(2, "b"))])
    lines = listed(capsys)
    assert "20260101-120000-000001" in lines[1]
    assert "a baseline of some length  20260101-120000-000002" in lines[3]


@pytest.mark.parametrize("variables", [{"COLUMNS": "20"}, {"COLUMNS": "80", "FORCE_COLOR": "1"}])
def test_names_are_never_cut_without_a_terminal(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe gets the whole name in its row, whatever width and colors the environment asks for."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    show_runs([run(1, LONG), run(2, "b")])
    show_baselines([("main", *run(1, LONG))])
    lines = listed(capsys)
    assert [LONG in line for line in lines] == [False, True, False, False, True]
    assert not any("…" in line for line in lines)


def test_many_configurations_name_n_and_where_the_intervals_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Eight rates do not fit on a line: the lowest and the highest are shown, with n and the command for the rest."""
    data = [{"id": name, "input": name} for name in "ab"]
    names = {f"c{number}": {"number": number} for number in range(8)}
    report = evaluate(lambda text, *, number: number, data, [lambda output: output > 3], configurations=names)
    assert report.metadata is not None
    show_runs([(report.metadata, report)])
    text = " ".join(capsys.readouterr().out.split())
    assert "0.0% … 100.0%" in text
    assert (
        f"8 configurations of n = 2, the lowest and the highest rate; intervals: proctor show {report.run_id}" in text
    )


def test_tags_are_in_a_column_or_below(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole in either case."""
    runs = [run(1, "a", rubrics_version="1.0", branch="main"), run(2, "b")]
    monkeypatch.setenv("COLUMNS", "80")
    show_runs(runs, {"best": "20260101-120000-000001"})
    lines = listed(capsys)
    assert lines[2] == "  baseline:best, rubrics_version=1.0, branch=main"
    assert "tags" not in lines[0]
    monkeypatch.setenv("COLUMNS", "140")
    show_runs(runs)
    lines = listed(capsys)
    assert lines[0].endswith("errors  tags")
    assert lines[1].endswith("rubrics_version=1.0, branch=main")
    assert len(lines) == 3


def test_columns_are_counted_as_the_terminal_shows_them() -> None:
    """Wide letters take two places; what yields is cut with a mark, the widest first."""
    rows = [("id", "one", "two"), ("x" * 30, "漢字" * 10, "b" * 12)]
    lines = align_columns(rows, 60, shrinkable=(1, 2))
    assert lines[1].startswith("x" * 30 + "  漢字")
    assert lines[1].count("…") == 1
    assert all(cell_len(line) <= 60 for line in lines)
    lines = align_columns(rows, 10, right=(0,), shrinkable=(1, 2))
    assert lines[0].startswith(" " * 28 + "id")
    assert lines[1].count("…") == 2


def test_the_pass_rates_of_configurations_are_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    """The lowest and the highest are apart, and each configuration is named with its own interval."""
    data = [{"id": str(n), "input": str(n), "expected": "0"} for n in range(2)]
    report = evaluate(
        lambda sample, right=False: "0" if right else sample, data, [exact_match],
        configurations={"half": {"right": False}, "full": {"right": True}},
    )  # fmt: skip
    assert report.metadata is not None
    show_runs([(report.metadata, report)])
    text = capsys.readouterr().out
    assert "  50.0% … 100.0%  " in text
    assert "half 50.0% (95% interval 9.5–90.5%, n = 2), full 100.0% (95% interval 34.2–100.0%, n = 2)" in text
    show_baselines([("main", report.metadata, report)])
    assert "50.0% … 100.0% (2 configurations)" in capsys.readouterr().out
