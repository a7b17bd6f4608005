"""The project that the command-line tests work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return Project(tmp_path, capsys)
