"""A history that cannot be written can be read: a read-only disk, folder or file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proctor import SQLiteHistory, compare, evaluate, exact_match
from proctor.cli.main import main
from proctor.errors import HistoryError
from tests.support import samples

NOBODY = 65534
STATES = ("closed", "with a log", "without write-ahead log")


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Permissions do not apply to root, so the tests switch to another user."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder that anybody may enter; those of pytest are closed to everybody else."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-disk-"))
    folder.chmod(0o755)
    yield folder
    # Other users need the permission again to remove the content.
    for each in (folder, *(found for found in folder.rglob("*") if found.is_dir())):
        each.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture(params=STATES)
def stored(request: pytest.FixtureRequest, disk: Path) -> Path:
    """A history of two runs in a folder that is about to become read-only."""
    folder, path = disk, disk / "history.db"
    history = SQLiteHistory(path)
    for name in ("old", "new"):
        evaluate(str.upper, samples(4), exact_match, history=history, name=name, progress=False)
    if request.param == "with a log":
        # As a killed run leaves it: what was written last is in the log alone.
        copy = folder / "copy"
        copy.mkdir()
        for file in folder.glob("history.db*"):
            if file.is_file():
                shutil.copy(file, copy / file.name)
        history.close()
        (copy / "history.db-shm").unlink(missing_ok=True)
        return copy / "history.db"
    history.close()
    if request.param == "without write-ahead log":
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
    return path


def lock(path: Path, *, folder: bool) -> None:
    for file in path.parent.iterdir():
        file.chmod(0o444 if file.is_file() else 0o555)
    path.parent.chmod(0o555 if folder else 0o777)


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "file"])
def test_runs_are_listed_shown_and_compared(stored: Path, folder: bool) -> None:
    """Everything that only reads works, and leaves nothing behind."""
    lock(stored, folder=folder)
    before = {file.name for file in stored.parent.iterdir()}
    with as_somebody_else():
        history = SQLiteHistory(stored)
        assert [run.name for run in history.runs()] == ["new", "old"]
        report = history.report("latest")
        assert (len(list(report.results)), report.pass_rate) == (4, 1.0)
        assert history.describe().runs == 2
        assert history.is_claimed(report.run_id) is False
        assert compare("new", "old", history=history).samples == 4
        history.close()
    if folder:
        assert {file.name for file in stored.parent.iterdir()} == before


def said(command: str, stored: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--history", str(stored)])
    return int(ended.value.code or 0), capsys.readouterr().out


@pytest.mark.parametrize("command", ["runs", "show latest", "compare new old"])
def test_the_command_line_reads_it(command: str, stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`runs`, `show` and `compare` print what they print of a history that can be written."""
    usual = said(command, stored, capsys)
    lock(stored, folder=True)
    with as_somebody_else():
        assert said(command, stored, capsys) == usual


def test_nothing_is_written_to_it(stored: Path) -> None:
    """A run that cannot be stored is refused, not stored in a temporary copy."""
    lock(stored, folder=True)
    with as_somebody_else():
        history = SQLiteHistory(stored)
        run = history.runs()[0]
        with pytest.raises(HistoryError, match="cannot be written"):
            history.update(run)
        with pytest.raises(HistoryError, match="cannot be written"):
            history.set_baseline("main", run.run_id)
        history.close()


def test_a_history_that_cannot_be_read_is_refused(stored: Path) -> None:
    """Without the right to read it there is nothing to show."""
    stored.chmod(0)
    with as_somebody_else(), pytest.raises(HistoryError, match="cannot be opened"):
        SQLiteHistory(stored).runs()
