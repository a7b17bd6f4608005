"""The history of a team: PostgreSQL, any number of writers and readers on any machine."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from proctor.core import optional as extras
from proctor.errors import HistoryError
from proctor.history.claim import refused
from proctor.history.database import Ask, Connection, Rows, bring_forward, first_line, migrations
from proctor.history.stored_runs import StoredRuns

SCHEMA = "proctor"
CONNECT_SECONDS = 10
FIX = "see that the server answers, and that the user may create and write the schema `proctor`"
# A process whose machine is gone must not hold its runs for the two hours of the system's default.
KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
# The lock under which the schema is brought forward; those of runs are digests of their ids.
SCHEMA_LOCK = 0x70726F63746F72

HELD = (
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND classid::bigint = ? AND objid::bigint = ?"
)
SIZE = (
    "SELECT CAST(coalesce(sum(pg_total_relation_size(pg_class.oid)), 0) AS BIGINT) FROM pg_class "
    "JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    f"WHERE relkind = 'r' AND nspname = '{SCHEMA}'"
)
VERSION_TABLE = f"SELECT to_regclass('{SCHEMA}.schema_version') IS NOT NULL"
MAKE_VERSION_TABLE = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"CREATE TABLE IF NOT EXISTS {SCHEMA}.schema_version (version INTEGER NOT NULL)",
)


class PostgresConnection:
    """A connection of psycopg that takes `?` for values and gives bytes as they are."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def usable(self) -> bool:
        return not self._inner.closed

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        rows: Rows = self._inner.execute(_marked(sql), values or None, binary=True)
        return rows

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        with self._inner.cursor() as cursor:
            cursor.executemany(_marked(sql), rows)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        with self._inner.transaction():
            yield

    def close(self) -> None:
        self._inner.close()


class PostgresDatabase:
    """A database on a server, by its URL; runs are claimed by locks that die with a connection."""

    locking = " FOR UPDATE"
    fix = FIX
    reading_fix = FIX

    def __init__(self, url: str) -> None:
        self._psycopg = extras.require("psycopg", extra="postgres", why="a history on PostgreSQL")
        self._given = _understood(self._psycopg, url)
        self._seen = False
        self._holds: dict[str, PostgresConnection] = {}

    @property
    def where(self) -> str:
        return shown(self._given)

    @property
    def errors(self) -> type[Exception]:
        found: type[Exception] = self._psycopg.Error
        return found

    def exists(self) -> bool:
        if not self._seen:
            connection = self._connect()
            try:
                self._seen = connection.execute(VERSION_TABLE).fetchone()[0]
            finally:
                connection.close()
        return self._seen

    def connect(self) -> PostgresConnection:
        connection = self._connect()
        try:
            bring_forward(
                connection,
                migrations("postgres"),
                lambda: _version(connection),
                lambda number: _note(connection, number),
                alone=_alone(connection),
                where=self.where,
            )
        except BaseException as error:
            connection.close()
            if isinstance(error, self.errors):
                raise self._refusal(first_line(error)) from error
            raise
        self._seen = True
        return connection

    @contextlib.contextmanager
    def hold(self, run_id: str) -> Iterator[None]:
        connection = self._connect()
        key = lock_of(run_id)
        try:
            if not connection.execute("SELECT pg_try_advisory_lock(?)", (key,)).fetchone()[0]:
                raise refused(run_id)
            self._holds[run_id] = connection
            try:
                yield
            finally:
                del self._holds[run_id]
        finally:
            # The server frees it with the connection, but takes a moment to notice.
            with contextlib.suppress(self.errors):
                connection.execute("SELECT pg_advisory_unlock(?)", (key,))
            connection.close()

    def assure_hold(self, run_id: str) -> None:
        """The lock is gone with its connection, and another process may have the run by now."""
        connection = self._holds.get(run_id)
        if connection is None:
            return
        try:
            connection.execute("SELECT 1")
        except self.errors as error:
            raise HistoryError(f"the claim on run {run_id} is lost: {first_line(error)}") from error

    def is_held(self, run_id: str, ask: Ask) -> bool:
        key = lock_of(run_id) % 2**64
        halves = (key >> 32, key % 2**32)
        if self.exists():
            return bool(ask(HELD, halves))
        # A run is claimed before it begins, and so before there are any tables to ask.
        connection = self._connect()
        try:
            return connection.execute(HELD, halves).fetchone() is not None
        finally:
            connection.close()

    def measured(self, ask: Ask) -> tuple[int, int]:
        version = ask("SELECT coalesce(max(version), 0) FROM schema_version", ())
        return int(ask(SIZE, ())[0][0]), int(version[0][0])

    def scrub(self, connection: Connection) -> None:
        """What was deleted no query sees; when its space is used anew is the server's business."""

    def _connect(self) -> PostgresConnection:
        psycopg, given = self._psycopg, self._given
        if given is None:
            # The reason is not told: it quotes what may be a piece of the password.
            raise self._refusal("its address cannot be read; in a password, @ is %40 and / is %2F")
        options = {"connect_timeout": CONNECT_SECONDS, **KEEPALIVES, **given}
        try:
            inner = psycopg.connect(**options, autocommit=True, application_name="proctor")
            inner.execute(f"SET search_path TO {SCHEMA}")
        except psycopg.Error as error:
            raise self._refusal(first_line(error)) from None
        return PostgresConnection(inner)

    def _refusal(self, what: str) -> HistoryError:
        return HistoryError(f"the history cannot be opened: {what}", where=self.where, fix=FIX)


def shown(given: Mapping[str, Any] | None) -> str:
    """Where a server is, in words that may be read by anyone.

    >>> shown({"user": "ann", "password": "secret", "host": "db", "port": "5433", "dbname": "x"})
    'postgresql://ann@db:5433/x'
    >>> shown({}), shown(None)
    ('postgresql://', 'postgresql://…')
    """
    if given is None:
        return "postgresql://…"
    user = f"{given['user']}@" if "user" in given else ""
    port = f":{given['port']}" if "port" in given else ""
    database = f"/{given['dbname']}" if "dbname" in given else ""
    return f"postgresql://{user}{given.get('host', '')}{port}{database}"


def _understood(psycopg: Any, url: str) -> dict[str, Any] | None:
    """The parts of an address, or None if it cannot be read.

    What is no host, port or name of a database may be the end of a password in which a mark was
    not written as %40 or %2F; nobody should see it in an error.
    """
    try:
        given: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return None
    if any("@" in str(given.get(part, "")) for part in ("user", "host", "dbname")):
        return None
    return given if str(given.get("port", "0")).replace(",", "").isdigit() else None


def lock_of(run_id: str) -> int:
    """The number under which a run is locked: 64 bits with a sign, as the server has them."""
    digest = hashlib.blake2b(f"proctor run {run_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@cache
def _marked(sql: str) -> str:
    """The same with psycopg's marks; no text of ours holds either mark otherwise."""
    return sql.replace("?", "%s")


@contextlib.contextmanager
def _alone(connection: PostgresConnection) -> Iterator[None]:
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")
        for statement in MAKE_VERSION_TABLE:
            connection.execute(statement)
        yield


def _version(connection: PostgresConnection) -> int:
    if not connection.execute(VERSION_TABLE).fetchone()[0]:
        return 0
    found = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    return int(found[0])


def _note(connection: PostgresConnection, number: int) -> None:
    connection.execute("DELETE FROM schema_version")
    connection.execute("INSERT INTO schema_version VALUES (?)", (number,))


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
