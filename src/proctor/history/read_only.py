"""A history file that may be read but not written: on a read-only disk, or of somebody else."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from proctor.errors import HistoryError
from proctor.history.database import migrations

BUSY_SECONDS = 30.0
OTHER_FILE = "choose another file with PROCTOR_HISTORY or --history, or move this one away"
_REFUSED = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
)


class SQLiteConnection(sqlite3.Connection):
    """A connection whose transactions are taken at their beginning, so that they cannot clash."""

    usable = True

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing."""
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
    """True if a file could not be opened as usual, and may be read all the same."""
    if not path.is_file() or not os.access(path, os.R_OK, effective_ids=_effective()):
        return False
    if isinstance(error, OSError):
        return True
    # The low byte is the kind of an error, the others say more.
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in _REFUSED


def open_read_only(
    path: Path, open_normally: Callable[[Path], SQLiteConnection]
) -> SQLiteConnection:
    """A connection that only reads; every attempt to write is refused by SQLite.

    SQLite reads a file beside its write-ahead log. Where it cannot make the files for that, a file
    without a log is read as it is; one with a log, or with an older schema, as a copy.
    """
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    for options in ("mode=ro",) if has_log else ("mode=ro", "mode=ro&immutable=1"):
        connection = _opened(path, options)
        if connection is not None:
            return connection
    return _copied(path, log if has_log else None, open_normally)


def _opened(path: Path, options: str) -> SQLiteConnection | None:
    connection: Any = None
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?{options}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=SQLiteConnection,
        )
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute("SELECT count(*) FROM runs").fetchone()
        if version == migrations("sqlite")[-1][0]:
            return connection  # type: ignore[no-any-return]
    except (sqlite3.Error, UnicodeDecodeError):
        pass
    if connection is not None:
        connection.close()
    return None


def shown_path(path: Path) -> str:
    """A path as people know it: from the current folder if it lies below it, else the whole."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        # Elsewhere, or the current folder is gone.
        return str(path)


def _copied(
    path: Path, log: Path | None, open_normally: Callable[[Path], SQLiteConnection]
) -> SQLiteConnection:
    """Open a copy in a temporary folder, which is deleted when the connection is closed."""
    folder = tempfile.mkdtemp(prefix="proctor-")
    try:
        copy = Path(folder) / "history.db"
        for source, name in ((path, copy.name), (log, f"{copy.name}-wal")):
            if source is not None:
                shutil.copyfile(source, Path(folder) / name)
        connection = open_normally(copy)
        connection.execute("PRAGMA query_only = ON")
    except (OSError, sqlite3.Error, HistoryError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        said = error.what if isinstance(error, HistoryError) else str(error)
        raise HistoryError(
            f"the history is on a read-only disk and cannot be copied for reading: {said}",
            where=shown_path(path),
            fix="copy it to a folder that you may write to, and name the copy: --history FILE",
        ) from error
    weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    return connection


def _effective() -> bool:
    return os.access in os.supports_effective_ids
