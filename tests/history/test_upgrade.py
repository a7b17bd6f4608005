"""After an upgrade, every command shows the runs that the version before wrote."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from proctor.cli.main import run_cli

FILE = Path(__file__).parent / "files" / "version_before_history.db.gz"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the history of the version before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    Path(".proctor").mkdir()
    Path(".proctor", "history.db").write_bytes(gzip.decompress(FILE.read_bytes()))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["runs"], "capitals"),
        (["show", "capitals"], "2 failed, 4 errors"),
        (["show", "capitals", "--sample", "fr"], "Capital of France?"),
        (["compare", "loud", "plain", "--run", "marks"], "loud"),
        (["history", "trend", "pass_rate", "--name", "capitals"], "pass_rate"),
    ],
)
def test_old_runs_are_shown(
    command: list[str], expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command succeeds and prints the old run."""
    code = run_cli(command)
    output = capsys.readouterr()
    assert (code, expected in output.out) == (0, True), f"{output.out}\n{output.err}"


def test_old_runs_are_reported_and_exported(folder: Path) -> None:
    """An HTML report and an export contain the old run."""
    assert run_cli(["report", "capitals", "--output", "report.html"]) == 0
    assert "<title>capitals" in Path("report.html").read_text(encoding="utf-8")
    assert run_cli(["history", "export", "run.jsonl", "capitals"]) == 0
    first = json.loads(Path("run.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert "capitals" in json.dumps(first)
