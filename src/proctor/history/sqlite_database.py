"""A history file: opened with our settings, brought up to date, or refused with a reason."""

from __future__ import annotations

import sqlite3
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from proctor.errors import HistoryError
from proctor.history.claim import claim, is_claimed
from proctor.history.database import Ask, Connection, bring_forward, migrations
from proctor.history.read_only import (
    BUSY_SECONDS,
    OTHER_FILE,
    SQLiteConnection,
    may_be_read_only,
    open_read_only,
    shown_path,
)

AGAIN_SECONDS = 0.01
# A deletion does not wait longer than this for readers, before it leaves the log to be emptied by
# a later one or by the last process that closes the file.
SCRUB_SECONDS = 2.0


class SQLiteDatabase:
    """One file, any number of processes; runs are claimed by locks on files beside it."""

    errors: type[Exception] = sqlite3.Error
    # A transaction that writes has the whole file to itself.
    locking = ""
    fix = "see that the disk has room and the file may be written"
    reading_fix = (
        "restore the file from a backup, or use another one with PROCTOR_HISTORY or --history"
    )

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def where(self) -> str:
        return shown_path(self.path)

    def exists(self) -> bool:
        return self.path.exists()

    def connect(self) -> SQLiteConnection:
        return open_database(self.path)

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        return claim(self._locks, run_id)

    def assure_hold(self, run_id: str) -> None:
        """A lock on a file lasts as long as its process."""

    def is_held(self, run_id: str, ask: Ask) -> bool:  # noqa: ARG002 - files tell it here
        return is_claimed(self._locks, run_id)

    def measured(self, ask: Ask) -> tuple[int, int]:
        log = self.path.with_name(f"{self.path.name}-wal")
        size = sum(file.stat().st_size for file in (self.path, log) if file.exists())
        return size, int(ask("PRAGMA user_version", ())[0][0])

    def scrub(self, connection: Connection) -> None:
        """Deleted pages are overwritten already; the log still holds what they were."""
        connection.execute(f"PRAGMA busy_timeout = {SCRUB_SECONDS * 1000:.0f}")
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")

    @property
    def _locks(self) -> Path:
        return self.path.with_name(self.path.name + ".locks")


def open_database(path: Path) -> SQLiteConnection:
    """Open a history file, made and brought up to date if need be.

    Write-ahead logging lets readers go on while a run writes; every commit is synced to the disk,
    so that what was committed survives a power cut too.
    """
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connect(path)
        try:
            bring_forward(
                connection,
                migrations("sqlite"),
                lambda: _version(connection),
                lambda number: connection.execute(f"PRAGMA user_version = {number}"),
                alone=connection.transaction(),
                where=shown_path(path),
            )
        except BaseException:
            connection.close()
            raise
    # What SQLite says of a damaged file may quote bytes of it that are no text.
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        if may_be_read_only(error, path):
            return open_read_only(path, open_database)
        raise HistoryError(
            f"the history cannot be opened: {error}", where=shown_path(path), fix=OTHER_FILE
        ) from error
    return connection


def _connect(path: Path) -> SQLiteConnection:
    """A connection with our settings; the caller keeps threads from using it at once."""
    connection: Any = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=SQLiteConnection,
    )
    try:
        _refuse_foreign(connection, path)
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # What is deleted is overwritten with zeros, not only taken off the list.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    found: SQLiteConnection = connection
    return found


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
            "this is a database, but not a history of Proctor's",
            where=shown_path(path),
            fix=OTHER_FILE,
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
