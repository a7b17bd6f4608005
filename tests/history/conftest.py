"""A PostgreSQL server for the tests of histories, started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="a PostgreSQL history needs the extra postgres")
    with PostgresServer() as server:
        yield server


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    """The address of a database without a history, the same for all tests: new ones take time."""
    with postgres.client() as client:
        client.execute("DROP SCHEMA IF EXISTS proctor CASCADE")
    return postgres.url
