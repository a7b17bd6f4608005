"""The history in an SQLite file: one writer at a time, any number of readers."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

from proctor.core.resources import describe_os_error
from proctor.errors import HistoryError
from proctor.history.database import Connection, Query, claimed_error, migrate, migrations
from proctor.history.stored_runs import StoredRuns

BUSY_SECONDS = 30.0
OTHER_FILE = "choose another file with PROCTOR_HISTORY or --history"
_READ_ONLY_ERRORS = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR)


class SQLiteConnection(sqlite3.Connection):
    """A connection whose transactions lock the database at their start, so that they cannot conflict."""

    usable = True

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the block, or roll it back on an error."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction already.
            if self.in_transaction:
                self.execute("ROLLBACK")
            raise


def may_be_read_only(error: BaseException, path: Path) -> bool:
    """Return whether a file that could not be opened normally may be readable."""
    can_check = os.access in os.supports_effective_ids
    if not path.is_file() or not os.access(path, os.R_OK, effective_ids=can_check):
        return False
    if isinstance(error, OSError):
        return True
    # The low byte is the primary error code.
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in _READ_ONLY_ERRORS


def open_read_only(path: Path) -> SQLiteConnection:
    """Open a read-only connection.

    SQLite needs files next to the database for its write-ahead log. If it cannot create them, a database
    without a log is read directly, and a database with a log or an older schema is read as a copy.
    """
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    for options in ("mode=ro",) if has_log else ("mode=ro", "mode=ro&immutable=1"):
        connection = _try_open(path, options)
        if connection is not None:
            return connection
    return _open_copy(path, log if has_log else None)


def _try_open(path: Path, options: str) -> SQLiteConnection | None:
    with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
        connection = _open(f"file:{quote(str(path.absolute()))}?{options}", uri=True)
        try:
            connection.execute("SELECT count(*) FROM runs").fetchone()
            if _version(connection) == migrations("sqlite")[-1][0]:
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
    return None


def _open(path: Path | str, *, uri: bool = False) -> SQLiteConnection:
    connection: SQLiteConnection = sqlite3.connect(
        path, uri=uri, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=SQLiteConnection
    )
    return connection


def shown_path(path: Path) -> str:
    """Return a path relative to the working directory if it is inside, else the absolute path."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        # The path is elsewhere, or the working directory was deleted.
        return str(path)


def _open_copy(path: Path, log: Path | None) -> SQLiteConnection:
    folder = tempfile.mkdtemp(prefix="proctor-")
    try:
        copy = Path(folder) / "history.db"
        for source, name in ((path, copy.name), (log, f"{copy.name}-wal")):
            if source is not None:
                shutil.copyfile(source, Path(folder) / name)
        connection = open_database(copy)
        connection.execute("PRAGMA query_only = ON")
    except (OSError, sqlite3.Error, HistoryError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = error.what if isinstance(error, HistoryError) else str(error)
        raise HistoryError(
            f"the history is on a read-only disk and cannot be copied for reading: {reason}",
            where=shown_path(path),
            fix="copy it to a writable folder and use the copy: --history FILE",
        ) from error
    weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    return connection


# Windows has no flock; runs are not locked there.
fcntl = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None

# A process that only checks a claim also takes the lock for a moment.
ATTEMPTS, ATTEMPT_SECONDS = 5, 0.02


@contextlib.contextmanager
def claim(folder: Path, run_id: str) -> Iterator[None]:
    """Claim a run for this process until the block ends or the process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HistoryError(
            describe_os_error(error, "the history cannot be written"),
            where=shown_path(folder.parent),
            fix="name a file in a writable folder: --history FILE",
        ) from None
    path = folder / f"{run_id}.lock"
    handle = _lock_file(path)
    if handle is None:
        raise claimed_error(run_id)
    try:
        yield
    finally:
        # A remaining file is harmless; only the lock counts, and it ends here.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def is_claimed(folder: Path, run_id: str) -> bool:
    """Return whether a process works on the run."""
    try:
        # Reading is enough for the check; the disk may be read-only.
        handle = os.open(folder / f"{run_id}.lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _lock(handle, shared=True)
    finally:
        os.close(handle)


def _lock_file(path: Path) -> int | None:
    """Return the locked file, or None if another process holds the lock."""
    for _ in range(ATTEMPTS):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if _lock(handle) and _still_exists(handle, path):
            return handle
        os.close(handle)
        time.sleep(ATTEMPT_SECONDS)
    return None


def _still_exists(handle: int, path: Path) -> bool:
    """Return whether the file still exists; its last owner may have removed it before the lock."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _lock(handle: int, *, shared: bool = False) -> bool:
    """Lock a file without waiting; checks use shared locks, so that they do not block each other."""
    if fcntl is None:  # pragma: no cover - only on Windows
        return True
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


RETRY_SECONDS = 0.01
# After this time a deletion stops waiting for readers; a later deletion, or the last process, truncates the log.
SCRUB_SECONDS = 2.0


class SQLiteDatabase:
    """A database file for any number of processes; lock files next to it claim runs."""

    errors: type[Exception] = sqlite3.Error
    # A writing transaction locks the whole file.
    locking = ""
    fix = "check that the disk has free space and that the file is writable"
    reading_fix = "restore the file from a backup, or use another file with PROCTOR_HISTORY or --history"

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def where(self) -> str:
        return shown_path(self.path)

    def exists(self) -> bool:
        return self.path.exists()

    def connect(self) -> SQLiteConnection:
        return open_database(self.path)

    def claim(self, run_id: str) -> AbstractContextManager[None]:
        return claim(self._locks, run_id)

    def check_claim(self, run_id: str) -> None:
        """Do nothing: a lock on a file lasts as long as its process."""

    def is_claimed(self, run_id: str, query: Query) -> bool:  # noqa: ARG002 - the lock files show it
        return is_claimed(self._locks, run_id)

    def measure(self, query: Query) -> tuple[int, int]:
        log = self.path.with_name(f"{self.path.name}-wal")
        size = sum(file.stat().st_size for file in (self.path, log) if file.exists())
        return size, int(query("PRAGMA user_version", ())[0][0])

    def scrub(self, connection: Connection) -> None:
        """Truncate the log, which still holds the deleted pages."""
        connection.execute(f"PRAGMA busy_timeout = {SCRUB_SECONDS * 1000:.0f}")
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")

    @property
    def _locks(self) -> Path:
        return self.path.with_name(self.path.name + ".locks")


def open_database(path: Path) -> SQLiteConnection:
    """Open a history file; create or migrate it if necessary.

    Write-ahead logging lets readers continue while a run writes; every commit is synced to the disk, so it
    survives a power failure.
    """
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connect(path)
        try:
            migrate(
                connection,
                migrations("sqlite"),
                lambda: _version(connection),
                lambda number: connection.execute(f"PRAGMA user_version = {number}"),
                exclusive=connection.transaction(),
                where=shown_path(path),
            )
        except BaseException:
            connection.close()
            raise
    # SQLite's message about a damaged file may quote bytes that are not text.
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        if may_be_read_only(error, path):
            return open_read_only(path)
        reason = "this is a folder, not a file" if path.is_dir() else f"the history cannot be opened: {error}"
        raise HistoryError(reason, where=shown_path(path), fix=OTHER_FILE) from error
    return connection


def _connect(path: Path) -> SQLiteConnection:
    connection = _open(path)
    try:
        _require_history(connection, path)
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # Deleted content is overwritten with zeros.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    # SQLite does not wait for other processes here.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return


def _require_history(connection: sqlite3.Connection, path: Path) -> None:
    # Another program's database must not change, not even its journal mode.
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and not _version(connection):
        raise HistoryError("this is a database, but not a Proctor history", where=shown_path(path), fix=OTHER_FILE)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


class SQLiteHistory(StoredRuns):
    """Runs and their results in one file, by default `.proctor/history.db`.

    The file is created when the first run starts; a history without a file is empty.
    """

    def __init__(self, path: str | Path) -> None:
        # Absolute, because a target may change the working directory while its run is written.
        self.path = Path(path).absolute()
        super().__init__(SQLiteDatabase(self.path))

    # False if the caller cannot access the history after the run (`history=False`).
    is_reachable = True

    @classmethod
    def temporary(cls) -> SQLiteHistory:
        """Return a history that is deleted when its last reference is gone."""
        folder = tempfile.mkdtemp(prefix="proctor-")
        history = cls(Path(folder) / "history.db")
        weakref.finalize(history, shutil.rmtree, folder, ignore_errors=True)
        return history
