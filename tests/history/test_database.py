"""Opening a history file: made, brought up to date, or refused with a reason."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from proctor.errors import HistoryError
from proctor.history import sqlite as database
from proctor.history.database import migrations
from proctor.history.sqlite import SQLiteHistory, open_database
from tests.records.examples import run_of


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def refusal(path: Path) -> HistoryError:
    with pytest.raises(HistoryError) as caught:
        open_database(path)
    assert caught.value.where == str(path)
    assert caught.value.fix
    return caught.value


def test_a_new_file_has_the_newest_schema_and_our_settings(tmp_path: Path) -> None:
    """Folders are made; readers go on while one writes; every commit is synced."""
    connection = open_database(tmp_path / "a" / "b" / "h.db")
    assert version(connection) == migrations("sqlite")[-1][0]
    settings = ("journal_mode", "synchronous", "foreign_keys")
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings]
    assert found == ["wal", 2, 1]
    connection.close()


def test_an_empty_file_becomes_a_history(tmp_path: Path) -> None:
    """A file without content is a database without tables."""
    path = tmp_path / "h.db"
    path.touch()
    history = SQLiteHistory(path)
    assert history.runs() == []
    history.begin(run_of("r"))
    assert [run.run_id for run in history.runs()] == ["r"]
    history.close()


def test_a_file_that_is_not_a_database_is_refused_and_unchanged(tmp_path: Path) -> None:
    """A file of another kind is not touched."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be looked at by SQLite " * 20)
    before = path.read_bytes()
    assert refusal(path).what == "the history cannot be opened: file is not a database"
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["notes.txt"]


def test_the_database_of_another_program_is_refused_and_unchanged(tmp_path: Path) -> None:
    """Neither tables nor the journal mode of another program's database are changed."""
    path = tmp_path / "app.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()
    before = path.read_bytes()
    assert refusal(path).what == "this is a database, but not a Proctor history"
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """An older Proctor does not write into what it does not know."""
    path = tmp_path / "h.db"
    connection = open_database(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    error = refusal(path)
    assert "schema version 99; this version of Proctor supports up to" in error.what
    assert "newer Proctor" in error.fix


def test_a_folder_or_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    """A history is a file in a folder."""
    (tmp_path / "file").touch()
    assert refusal(tmp_path).what == "this is a folder, not a file"
    assert "the history cannot be opened" in refusal(tmp_path / "file" / "h.db").what


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:  # pragma: no cover - not as root
    """A missing permission is the reason in the error."""
    tmp_path.chmod(0o500)
    assert "the history cannot be opened" in refusal(tmp_path / "h.db").what
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("kind", ["EXCLUSIVE", "IMMEDIATE"])
def test_a_file_that_others_lock_for_too_long_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening waits for others, but not for ever."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    path = tmp_path / "h.db"
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute(f"BEGIN {kind}")
    assert refusal(path).what == "the history cannot be opened: database is locked"
    blocker.close()


@pytest.mark.parametrize("kind", ["EXCLUSIVE", "IMMEDIATE"])
def test_opening_waits_for_others(kind: str, tmp_path: Path) -> None:
    """A new file that another process is just setting up is opened when that is done."""
    path = tmp_path / "h.db"
    blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    blocker.execute(f"BEGIN {kind}")
    events: list[str] = []

    def release_file() -> None:
        events.append("released")
        blocker.close()

    release = threading.Timer(0.1, release_file)
    release.start()
    opened = open_database(path)
    events.append("opened")
    assert events == ["released", "opened"]
    assert opened.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    opened.close()
    release.join()


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    """The first process creates the tables, and no process fails."""
    versions: list[int] = []

    def work() -> None:
        for number in range(5):
            connection = open_database(tmp_path / f"{number}.db")
            versions.append(version(connection))
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert versions == [migrations("sqlite")[-1][0]] * 20


def test_a_migration_is_applied_completely_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema step that fails leaves the version before it; the next try goes on from there."""
    path = tmp_path / "h.db"
    first = migrations("sqlite")[:1]
    broken = [*first, (2, "CREATE TABLE extra (a INTEGER);\nCREATE TABLE runs (id INTEGER);\n")]
    monkeypatch.setattr(database, "migrations", lambda kind: broken)
    assert "table runs already exists" in refusal(path).what
    monkeypatch.setattr(database, "migrations", lambda kind: first)
    connection = open_database(path)
    assert version(connection) == 1
    connection.close()
    better = [*first, (2, "-- a comment; with a semicolon\nCREATE TABLE extra (a INTEGER);\n")]
    monkeypatch.setattr(database, "migrations", lambda kind: better)
    connection = open_database(path)
    assert version(connection) == 2
    assert connection.execute("SELECT count(*) FROM extra").fetchone() == (0,)
    connection.close()


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    """What fails inside is undone, whatever it is, and the connection goes on."""
    connection = open_database(tmp_path / "h.db")

    def insert(error: BaseException | None) -> None:
        with connection.transaction():
            connection.execute("INSERT INTO outputs VALUES ('k', 'now', x'00')")
            if error is not None:
                raise error

    for error in (ValueError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            insert(error)
        assert not connection.in_transaction
    insert(None)
    assert connection.execute("SELECT count(*) FROM outputs").fetchone() == (1,)
    connection.close()
