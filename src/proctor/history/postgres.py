"""The history of a team: PostgreSQL, any number of writers and readers on any machine."""

from __future__ import annotations

from proctor.history.postgres_database import PostgresDatabase
from proctor.history.stored_runs import StoredRuns

SCHEMES = ("postgresql://", "postgres://")


class PostgresHistory(StoredRuns):
    """Runs and their results on a server, by its URL `postgresql://user:password@host/database`.

    The tables lie in the schema `proctor`, which is made when the first run begins. A run is
    claimed by a lock that the server frees when the connection of its process ends, so a pooler
    between them must keep sessions. Needs `pip install "proctor[postgres]"`.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(PostgresDatabase(url))

    def __repr__(self) -> str:
        return f"PostgresHistory({self._database.where!r})"
