"""The recipe for a report format works to the end: the package that it describes, installed, offers its format."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from proctor.cli.main import run_cli
from tests.docs.blocks import ROOT, blocks_of
from tests.docs.performance import Performance
from tests.plugins import install_package

PAGE = ROOT / "docs" / "contributing" / "add-a-report-format.md"


def test_the_package_of_the_recipe_offers_its_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its pyproject.toml is read as pip reads it; `proctor show --format tsv` then prints the run of the page."""
    performance = Performance(PAGE.name, tmp_path, monkeypatch)
    for block in blocks_of(PAGE.read_text(encoding="utf-8")):
        if block.language != "python" or block.title:
            performance.perform(block)
    groups = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"[{group}]\n{name} = {value}\n" for group, points in groups.items() for name, value in points.items()]
    install_package(tmp_path / "packages", "tsv_report", (tmp_path / "tsv_report.py").read_text(), "".join(lines))
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert run_cli(["show", "latest", "--format", "tsv"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["fr\tdefault\t0\tpassed\t1.0", "it\tdefault\t0\tfailed\t0.0"]


def test_the_recipe_edits_at_most_three_files() -> None:
    """Apart from the example's own data, two: the function and the entry point."""
    titles = {block.title for block in blocks_of(PAGE.read_text(encoding="utf-8")) if block.title}
    assert titles - {"qa.jsonl", "app.py"} == {"tsv_report.py", "pyproject.toml"}
