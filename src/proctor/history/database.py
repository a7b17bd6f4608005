"""Opening a history file: settings, schema version, and the way forward from older ones."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from proctor import resources
from proctor.errors import HistoryError

BUSY_SECONDS, AGAIN_SECONDS = 30.0, 0.01
OTHER_FILE = "choose another file with PROCTOR_HISTORY or --history, or move this one away"


def open_database(path: Path) -> sqlite3.Connection:
    """Open a history file, made and brought up to date if need be.

    Write-ahead logging lets readers go on while a run writes; every commit is synced to the disk,
    so that what was committed survives a power cut too.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = connect(path)
        try:
            _migrate(connection, path)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise HistoryError(
            f"the history cannot be opened: {error}", where=str(path), fix=OTHER_FILE
        ) from error
    return connection


def connect(path: Path) -> sqlite3.Connection:
    """A connection with our settings; the caller keeps threads from using it at once."""
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _refuse_foreign(connection, path)
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for others here, as it does elsewhere, so we do."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(AGAIN_SECONDS)
        else:
            return


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Another program's database is left as it is, its journal mode too."""
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and not _version(connection):
        raise HistoryError(
            "this is a database, but not a history of Proctor's", where=str(path), fix=OTHER_FILE
        )


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk may have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def migrations() -> list[tuple[int, str]]:
    """The schema's steps: version and SQL, oldest first."""
    files = sorted(resources.path("history", "migrations").glob("*.sql"))
    return [(int(file.name.partition("_")[0]), file.read_text(encoding="utf-8")) for file in files]


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    steps = migrations()
    newest = steps[-1][0]
    if _version(connection) == newest:
        return
    with transaction(connection):
        version = _version(connection)
        if version > newest:
            raise HistoryError(
                f"the history has schema version {version}; this Proctor knows up to {newest}",
                where=str(path),
                fix="use the newer Proctor that wrote it, or choose another history file",
            )
        for number, sql in steps:
            if number > version:
                for statement in _statements(sql):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(sql: str) -> Iterator[str]:
    """Single statements: `executescript` would commit the transaction they belong to."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
