"""The database interface of a history, and schema migrations.

The SQL uses `?` for values and works on SQLite and PostgreSQL; separate SQL files (`migrations/`) or methods cover the
differences.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol

from proctor.core import resources
from proctor.errors import HistoryError, ResumeRefused

# Runs a query and returns all rows, so that no cursor stays open.
Query = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """A connection for one thread at a time; every statement is a separate transaction."""

    @property
    def usable(self) -> bool:
        """False after the connection was lost."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows: ...
    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object: ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit the block, or roll it back on an error."""

    def close(self) -> None: ...


class Database(Protocol):
    """A file or a server that holds the tables."""

    @property
    def where(self) -> str:
        """The location, without passwords."""

    @property
    def errors(self) -> type[Exception]:
        """The base class of the database's errors."""

    @property
    def fix(self) -> str:
        """How to fix a database that cannot be written."""

    @property
    def reading_fix(self) -> str:
        """How to fix a database that cannot be read."""

    @property
    def locking(self) -> str:
        """The SQL suffix that locks the selected rows until the transaction ends."""

    def exists(self) -> bool:
        """Return whether the history exists, without creating it."""

    def connect(self) -> Connection:
        """Open a new connection; create or migrate the history if necessary."""

    def claim(self, run_id: str) -> AbstractContextManager[None]:
        """Claim a run until the block ends or the process dies."""

    def check_claim(self, run_id: str) -> None:
        """Raise an error if this process has lost its claim on the run."""

    def is_claimed(self, run_id: str, query: Query) -> bool:
        """Return whether a process has claimed the run."""

    def measure(self, query: Query) -> tuple[int, int]:
        """Return the size in bytes and the schema version."""

    def scrub(self, connection: Connection) -> None:
        """Remove deleted content from the storage, as far as possible."""


@cache
def migrations(kind: str) -> tuple[tuple[int, str], ...]:
    """Return the migrations for a type of database: version and SQL, oldest first."""
    files = sorted(resources.path("history", "migrations", kind).glob("*.sql"))
    return tuple((int(file.name.partition("_")[0]), file.read_text(encoding="utf-8")) for file in files)


def migrate(
    connection: Connection,
    steps: Sequence[tuple[int, str]],
    read_version: Callable[[], int],
    store_version: Callable[[int], object],
    *,
    exclusive: AbstractContextManager[object],
    where: str,
) -> None:
    """Apply the missing migrations in one transaction, inside the lock `exclusive`."""
    newest = steps[-1][0]
    if read_version() == newest:
        return
    with exclusive:
        current = read_version()
        if current > newest:
            raise HistoryError(
                f"the history has schema version {current}; this version of Proctor supports up to {newest}",
                where=where,
                fix="use the newer Proctor that wrote it, or choose another history",
            )
        for number, sql in steps:
            if number > current:
                for statement in _statements(sql):
                    connection.execute(statement)
                store_version(number)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _statements(sql: str) -> Iterator[str]:
    """Split a script into statements, because running a script would commit the transaction."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def claimed_error(run_id: str) -> ResumeRefused:
    """Return the error for a run that another process has claimed."""
    return ResumeRefused(
        f"run {run_id} is being worked on by another process", fix="wait for it to end, or stop that process first"
    )
