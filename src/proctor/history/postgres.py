"""The history in a PostgreSQL database: any number of writers and readers on any machine."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from proctor.core import optional as extras
from proctor.errors import HistoryError
from proctor.history.database import Connection, Query, Rows, claimed_error, first_line, migrate, migrations
from proctor.history.stored_runs import StoredRuns

SCHEMA = "proctor"
CONNECT_SECONDS = 10
FIX = "check that the server is reachable and that the user may create and write the schema `proctor`"
# If a machine disappears, its locks are released after about a minute, not after the default of two hours.
KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
# The lock for migrations; the lock of a run is a digest of its id.
SCHEMA_LOCK = 0x70726F63746F72

LOCK_QUERY = (
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND classid::bigint = ? AND objid::bigint = ?"
)
SIZE_QUERY = (
    "SELECT CAST(coalesce(sum(pg_total_relation_size(pg_class.oid)), 0) AS BIGINT) FROM pg_class "
    "JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    f"WHERE relkind = 'r' AND nspname = '{SCHEMA}'"
)
HAS_VERSION_TABLE = f"SELECT to_regclass('{SCHEMA}.schema_version') IS NOT NULL"
CREATE_VERSION_TABLE = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"CREATE TABLE IF NOT EXISTS {SCHEMA}.schema_version (version INTEGER NOT NULL)",
)


class PostgresConnection:
    """A psycopg connection that accepts `?` as placeholder and returns binary values as bytes."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def usable(self) -> bool:
        return not self._inner.closed

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        rows: Rows = self._inner.execute(_convert_placeholders(sql), values or None, binary=True)
        return rows

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        with self._inner.cursor() as cursor:
            cursor.executemany(_convert_placeholders(sql), rows)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        with self._inner.transaction():
            yield

    def close(self) -> None:
        self._inner.close()


class PostgresDatabase:
    """A database on a server, by its URL; a run is claimed with a lock that ends with its connection."""

    locking = " FOR UPDATE"
    fix = FIX
    reading_fix = FIX

    def __init__(self, url: str) -> None:
        self._psycopg = extras.require("psycopg", extra="postgres", why="a PostgreSQL history")
        self._parameters = _parse_url(self._psycopg, url)
        self._exists = False
        self._claims: dict[str, PostgresConnection] = {}

    @property
    def where(self) -> str:
        return display_url(self._parameters)

    @property
    def errors(self) -> type[Exception]:
        base_class: type[Exception] = self._psycopg.Error
        return base_class

    def exists(self) -> bool:
        if not self._exists:
            connection = self._connect()
            try:
                self._exists = connection.execute(HAS_VERSION_TABLE).fetchone()[0]
            finally:
                connection.close()
        return self._exists

    def connect(self) -> PostgresConnection:
        connection = self._connect()
        try:
            migrate(
                connection,
                migrations("postgres"),
                lambda: _read_version(connection),
                lambda number: _store_version(connection, number),
                exclusive=_lock_schema(connection),
                where=self.where,
            )
        except BaseException as error:
            connection.close()
            if isinstance(error, self.errors):
                raise self._open_error(first_line(error)) from error
            raise
        self._exists = True
        return connection

    @contextlib.contextmanager
    def claim(self, run_id: str) -> Iterator[None]:
        connection = self._connect()
        key = lock_key(run_id)
        try:
            if not connection.execute("SELECT pg_try_advisory_lock(?)", (key,)).fetchone()[0]:
                raise claimed_error(run_id)
            self._claims[run_id] = connection
            try:
                yield
            finally:
                del self._claims[run_id]
        finally:
            # The server also frees the lock when the connection closes, but with a delay.
            with contextlib.suppress(self.errors):
                connection.execute("SELECT pg_advisory_unlock(?)", (key,))
            connection.close()

    def check_claim(self, run_id: str) -> None:
        """Raise an error if the connection of the lock is lost; another process may have claimed the run."""
        connection = self._claims.get(run_id)
        if connection is None:
            return
        try:
            connection.execute("SELECT 1")
        except self.errors as error:
            raise HistoryError(f"the claim on run {run_id} is lost: {first_line(error)}", fix=FIX) from error

    def is_claimed(self, run_id: str, query: Query) -> bool:
        key = lock_key(run_id) % 2**64
        halves = (key >> 32, key % 2**32)
        if self.exists():
            return bool(query(LOCK_QUERY, halves))
        # The first run is claimed before the tables exist.
        connection = self._connect()
        try:
            return connection.execute(LOCK_QUERY, halves).fetchone() is not None
        finally:
            connection.close()

    def measure(self, query: Query) -> tuple[int, int]:
        version = query("SELECT coalesce(max(version), 0) FROM schema_version", ())
        return int(query(SIZE_QUERY, ())[0][0]), int(version[0][0])

    def scrub(self, connection: Connection) -> None:
        """Do nothing: the server reuses the space of deleted rows."""

    def _connect(self) -> PostgresConnection:
        psycopg, parameters = self._psycopg, self._parameters
        if parameters is None:
            # The parser's message is omitted, because it may quote a part of the password.
            raise self._open_error("its URL is not valid; in a password, write %40 for @ and %2F for /")
        options = {"connect_timeout": CONNECT_SECONDS, **KEEPALIVES, **parameters}
        try:
            inner = psycopg.connect(**options, autocommit=True, application_name="proctor")
            inner.execute(f"SET search_path TO {SCHEMA}")
        except psycopg.Error as error:
            raise self._open_error(first_line(error)) from None
        return PostgresConnection(inner)

    def _open_error(self, reason: str) -> HistoryError:
        return HistoryError(f"the history cannot be opened: {reason}", where=self.where, fix=FIX)


def display_url(parameters: Mapping[str, Any] | None) -> str:
    """Return the URL of a server without its password."""
    if parameters is None:
        return "postgresql://…"
    user = f"{parameters['user']}@" if "user" in parameters else ""
    port = f":{parameters['port']}" if "port" in parameters else ""
    database = f"/{parameters['dbname']}" if "dbname" in parameters else ""
    return f"postgresql://{user}{parameters.get('host', '')}{port}{database}"


def _parse_url(psycopg: Any, url: str) -> dict[str, Any] | None:
    """Return the connection parameters in a URL, or None if it is not valid.

    An invalid user, host, port or database may be the end of a password with an unescaped @ or /, which an error
    message must not show.
    """
    try:
        parameters: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return None
    if any("@" in str(parameters.get(part, "")) for part in ("user", "host", "dbname")):
        return None
    return parameters if str(parameters.get("port", "0")).replace(",", "").isdigit() else None


def lock_key(run_id: str) -> int:
    """Return the key of a run's lock, a signed 64-bit number."""
    digest = hashlib.blake2b(f"proctor run {run_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@cache
def _convert_placeholders(sql: str) -> str:
    """Replace `?` with `%s`; our SQL uses neither for anything else."""
    return sql.replace("?", "%s")


@contextlib.contextmanager
def _lock_schema(connection: PostgresConnection) -> Iterator[None]:
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")
        for statement in CREATE_VERSION_TABLE:
            connection.execute(statement)
        yield


def _read_version(connection: PostgresConnection) -> int:
    if not connection.execute(HAS_VERSION_TABLE).fetchone()[0]:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    return int(row[0])


def _store_version(connection: PostgresConnection, number: int) -> None:
    connection.execute("DELETE FROM schema_version")
    connection.execute("INSERT INTO schema_version VALUES (?)", (number,))


class PostgresHistory(StoredRuns):
    """A history in a PostgreSQL database, by its URL `postgresql://user:password@host/database`.

    The tables are in the schema `proctor`, which the first run creates. A run is claimed with a lock that ends with the
    connection of its process, so a connection pooler must use session mode. Needs `pip install "proctor[postgres]"`.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(PostgresDatabase(url))

    def __repr__(self) -> str:
        return f"PostgresHistory({self._database.where!r})"
