"""The history on a server: tests in addition to the contract (`test_contract.py`)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.errors import HistoryError, MissingExtra
from proctor.history.database import migrations
from proctor.history.postgres import PostgresDatabase, PostgresHistory
from proctor.history.sqlite import SQLiteHistory
from proctor.wiring.open_history import open_history
from tests.records.examples import run_of, scored
from tests.servers import PostgresServer
from tests.support import run_command


@pytest.fixture
def history(url: str) -> Iterator[PostgresHistory]:
    made = PostgresHistory(url)
    yield made
    made.close()


def password(url: str) -> str:
    return url.split(":")[2].split("@")[0]


def refusal(url: str) -> HistoryError:
    with pytest.raises(HistoryError) as caught:
        PostgresHistory(url).runs()
    assert caught.value.what.startswith("the history cannot be opened: ")
    assert caught.value.fix
    return caught.value


def test_an_address_of_a_server_opens_a_server(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given, or by the variable of the environment; anything else is a file."""
    opened = open_history(url)
    assert isinstance(opened, PostgresHistory)
    opened.begin(run_of("r"))
    opened.close()
    for scheme in ("postgresql://", "postgres://"):
        monkeypatch.setenv("PROCTOR_HISTORY", scheme + url.partition("://")[2])
        found = open_history()
        assert [run.run_id for run in found.runs()] == ["r"]
        found.close()
    assert isinstance(open_history(tmp_path / "postgresql"), SQLiteHistory)


def test_the_command_line_takes_an_address(url: str, tmp_path: Path) -> None:
    """A run is stored and listed on the server, and no local file is written."""
    (tmp_path / "data.jsonl").write_text('{"id": "a", "input": "x", "expected": "X"}\n')
    (tmp_path / "app.py").write_text("def shout(text):\n    return text.upper()\n")
    done = run_command(
        "run", "--dataset", "data.jsonl", "--target", "app.py:shout", "-e", "exact_match",
        "--name", "shout", "--history", url, "-q", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed = run_command("runs", "--json", cwd=tmp_path, PROCTOR_HISTORY=url)
    assert '"shout"' in listed.stdout
    assert password(url) not in done.stdout + done.stderr + listed.stdout + listed.stderr
    assert not (tmp_path / ".proctor").exists()


def test_reading_creates_no_schema(url: str) -> None:
    """Reading needs no write permission, and creates nothing."""
    history = PostgresHistory(url)
    assert list(history.runs()) == []
    assert history.is_claimed("r") is False
    history.close()
    database = PostgresDatabase(url)
    connection = database._connect()
    found = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'proctor'")
    assert found.fetchone() == (0,)
    connection.close()


def test_the_tables_lie_in_a_schema_of_their_own(postgres: PostgresServer) -> None:
    """A database may be shared: whatever else is in it is neither seen nor touched."""
    history = PostgresHistory(postgres.database())
    connection = history._database.connect()
    connection.execute("CREATE TABLE public.runs (name TEXT)")
    history.begin(run_of("r"))
    assert connection.execute("SELECT count(*) FROM public.runs").fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM proctor.runs").fetchone() == (1,)
    connection.close()
    history.close()


def test_many_may_open_a_new_database_at_once(url: str) -> None:
    """The first process creates the tables, and no process fails."""
    opened: list[int] = []

    def work() -> None:
        connection = PostgresDatabase(url).connect()
        opened.append(connection.execute("SELECT version FROM schema_version").fetchone()[0])
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [migrations("postgres")[-1][0]] * 8


def test_both_databases_have_the_same_version() -> None:
    """One schema, whichever database it lies in."""
    assert migrations("postgres")[-1][0] == migrations("sqlite")[-1][0]


def test_a_newer_schema_is_refused(history: PostgresHistory) -> None:
    """An older Proctor does not write into what it does not know."""
    history.begin(run_of("r"))
    history._connection.execute("UPDATE schema_version SET version = 99")
    history.close()
    with pytest.raises(HistoryError, match="schema version 99; this version of Proctor supports up to"):
        history.begin(run_of("r2"))


def test_conflicting_objects_are_reported(url: str) -> None:
    """A schema of that name from another program is not changed."""
    connection = PostgresDatabase(url)._connect()
    connection.execute("CREATE SCHEMA proctor")
    connection.execute("CREATE TABLE proctor.tags (mine TEXT)")
    with pytest.raises(HistoryError, match='relation "tags" already exists'):
        PostgresHistory(url).begin(run_of("r"))
    found = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'proctor'")
    assert found.fetchone() == (1,)
    connection.close()


def test_a_password_is_never_shown(url: str, history: PostgresHistory) -> None:
    """Not by the history, not by its errors, however the address is wrong."""
    secret = password(url)
    wrong = [
        url.replace(secret, "hunter2-wrong"),
        url.replace("127.0.0.1", "no-such-host.invalid").replace(secret, "hunter2-host"),
        "postgresql://ann:hunter2/5@127.0.0.1:1/x",
        "postgresql://ann:hunter2@x@127.0.0.1:1/x",
        "postgresql://ann:hunter2#@127.0.0.1:1/x",
        "postgresql://ann:hunter2@127.0.0.1:port/x",
        "postgresql://ann:hunter2@[127.0.0.1/x",
        "postgresql://ann@127.0.0.1:1/x?password=hunter2",
        "postgresql://ann:hunter2@127.0.0.1:1/x?nonsense=hunter2",
        "postgresql://ann:%zzhunter2@127.0.0.1:1/x",
    ]
    for address in wrong:
        error = refusal(address)
        told = f"{error} {error!r} {error.where} {error.__cause__}"
        assert "hunter2" not in told, address
        assert "hunter2" not in repr(PostgresHistory(address))
    assert secret not in repr(history)
    history.begin(run_of("r"))
    with pytest.raises(HistoryError) as caught:
        history.begin(run_of("r"))
    assert secret not in str(caught.value)
    assert caught.value.where == url.replace(f":{secret}", "")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core works without it, and the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"a PostgreSQL history needs the package 'psycopg'"):
        open_history("postgresql://127.0.0.1/x")


def test_values_that_the_server_cannot_store_are_refused(history: PostgresHistory) -> None:
    """PostgreSQL has no text with a zero byte: such a tag is an error, and nothing is stored."""
    with pytest.raises(HistoryError, match="the history cannot be written: "):
        history.begin(run_of("r", tags={"key": "a\x00b"}))
    assert list(history.runs()) == []


LOCKS = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def test_a_run_that_has_lost_its_claim_writes_no_more(history: PostgresHistory) -> None:
    """The server ends the connection of the lock: another may have the run, so this one stops."""

    def write() -> None:
        with history.claim("r"), history.writer("r") as writer:
            writer.add(0, scored("a", 1.0))
            writer.flush()
            assert history._query(LOCKS)
            writer.add(1, scored("b", 1.0))

    history.begin(run_of("r"))
    with pytest.raises(HistoryError, match="the claim on run r is lost"):
        write()
    assert [result.sample_id for result in history.results("r")] == ["a"]
    with history.claim("r"), history.writer("r") as writer:
        writer.add(1, scored("b", 1.0))
    assert len(history.results("r")) == 2


def test_a_restarted_server_is_used_again() -> None:
    """Later queries work; a run that was writing ends with the advice to resume it."""
    pytest.importorskip("psycopg")
    with PostgresServer() as server:
        history = PostgresHistory(server.database())
        history.begin(run_of("r"))
        server.restart()
        assert [run.run_id for run in history.runs()] == ["r"]
        server.restart(hard=True)
        history.begin(run_of("r2"))

        def write() -> None:
            with history.writer("r") as writer:
                writer.add(0, scored("kept", 1.0))
                writer.flush()
                server.restart()
                writer.add(1, scored("lost", 1.0))
                writer.flush()

        with pytest.raises(HistoryError, match="results can no longer be written: ") as caught:
            write()
        assert "resume the run" in caught.value.fix
        assert [result.sample_id for result in history.results("r")] == ["kept"]
        server.stop()
        with pytest.raises(HistoryError, match="the history cannot be opened: "):
            history.runs()
        history.close()
