"""What a history needs of a database, and the way forward from older schemas.

SQL is written once, with `?` where a value goes, in what SQLite and PostgreSQL both understand.
Where they differ there are files of SQL for each (`migrations/`), or a method here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol

from proctor.core import resources
from proctor.errors import HistoryError

# Asks for rows and has all of them at once, so that nothing stays open between two questions.
Ask = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


class Rows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """A connection that one thread uses at a time; every statement is its own transaction."""

    @property
    def usable(self) -> bool:
        """False once the other side has gone away."""
        ...

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object: ...

    def transaction(self) -> AbstractContextManager[None]:
        """All of the block or nothing."""
        ...

    def close(self) -> None: ...


class Database(Protocol):
    """Where the tables lie: a file, or a server."""

    @property
    def where(self) -> str:
        """The place as it may be shown, without passwords."""
        ...

    @property
    def errors(self) -> type[Exception]:
        """What the database raises when something is wrong with it."""
        ...

    @property
    def fix(self) -> str:
        """What to look after when it cannot be written."""
        ...

    @property
    def reading_fix(self) -> str:
        """What to do when it cannot be read."""
        ...

    @property
    def locking(self) -> str:
        """What a question ends with whose rows nobody may change or refer to until one is done."""
        ...

    def exists(self) -> bool:
        """False while there is no history yet; looking makes none."""
        ...

    def connect(self) -> Connection:
        """A new connection; the history is made and brought up to date if need be."""
        ...

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Claim a run until the block ends or the process dies."""
        ...

    def assure_hold(self, run_id: str) -> None:
        """Raise if a claim of ours on the run has been lost meanwhile."""
        ...

    def is_held(self, run_id: str, ask: Ask) -> bool:
        """True if a living process has claimed the run."""
        ...

    def measured(self, ask: Ask) -> tuple[int, int]:
        """How many bytes it takes, and the version of its schema."""
        ...

    def scrub(self, connection: Connection) -> None:
        """After a deletion: what was deleted is not left lying about, as far as one can."""
        ...


@cache
def migrations(kind: str) -> tuple[tuple[int, str], ...]:
    """The schema's steps for a kind of database: version and SQL, oldest first."""
    files = sorted(resources.path("history", "migrations", kind).glob("*.sql"))
    return tuple((int(file.name.partition("_")[0]), file.read_text(encoding="utf-8")) for file in files)


def bring_forward(
    connection: Connection,
    steps: Sequence[tuple[int, str]],
    version: Callable[[], int],
    note: Callable[[int], object],
    *,
    alone: AbstractContextManager[object],
    where: str,
) -> None:
    """Take the steps that are missing, all or none, while nobody else does (`alone`)."""
    newest = steps[-1][0]
    if version() == newest:
        return
    with alone:
        found = version()
        if found > newest:
            raise HistoryError(
                f"the history has schema version {found}; this Proctor knows up to {newest}",
                where=where,
                fix="use the newer Proctor that wrote it, or choose another history",
            )
        for number, sql in steps:
            if number > found:
                for statement in _statements(sql):
                    connection.execute(statement)
                note(number)


def first_line(error: BaseException) -> str:
    """What an error says, without the lines that only its database understands."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _statements(sql: str) -> Iterator[str]:
    """Single statements: running them as one script would commit what they belong to."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
