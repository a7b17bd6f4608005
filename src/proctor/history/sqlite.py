"""The history in a file: SQLite, one writer at a time, any number of readers."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from proctor.history.sqlite_database import SQLiteDatabase
from proctor.history.stored_runs import StoredRuns


class SQLiteHistory(StoredRuns):
    """Runs and their results in one file, by default `.proctor/history.db`.

    The file is made when the first run begins; looking into a history that is not there shows
    an empty one.
    """

    def __init__(self, path: str | Path) -> None:
        # Absolute: a target may change the current folder while its run is written.
        self.path = Path(path).absolute()
        super().__init__(SQLiteDatabase(self.path))

    # False where the caller cannot reach the history after the run (`history=False`).
    is_reachable = True

    @classmethod
    def temporary(cls) -> SQLiteHistory:
        """A history that goes away when nobody uses it any more."""
        folder = tempfile.mkdtemp(prefix="proctor-")
        history = cls(Path(folder) / "history.db")
        weakref.finalize(history, shutil.rmtree, folder, ignore_errors=True)
        return history
