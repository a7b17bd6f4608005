"""Deleted content is removed from the tables and from the bytes of the file."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.history import sqlite as sqlite_database
from proctor.history.sqlite import SQLiteHistory
from proctor.records.run import Retention
from tests.records.examples import run_of, scored
from tests.support import ManualClock

PIECE = 12


@pytest.fixture
def history(tmp_path: Path) -> Iterator[SQLiteHistory]:
    made = SQLiteHistory(tmp_path / "h.db")
    yield made
    made.close()


def raw(history: SQLiteHistory) -> bytes:
    """Return all bytes of the file, of its log and of other files next to it."""
    files = sorted(history.path.parent.glob(history.path.name + "*"))
    return b"".join(file.read_bytes() for file in files if file.is_file())


def store(history: SQLiteHistory, run_id: str, count: int = 600) -> list[bytes]:
    """A run with texts that nothing else holds; what of it lies in the file, piece by piece."""
    chance = random.Random(run_id)
    history.begin(run_of(run_id, name=f"name-of-{run_id}", tags={"secret": f"tag-of-{run_id}"}))
    with history.writer(run_id) as writer:
        for place in range(count):
            writer.add(place, scored(f"{run_id}-{place}-{chance.random()}", 1.0))
    history.set_baseline(f"baseline-of-{run_id}", run_id)
    database = sqlite3.connect(history.path)
    rows = database.execute(
        "SELECT figures, sample_ids, results, metadata FROM blocks JOIN runs ON runs.id = run WHERE run_id = ?",
        (run_id,),
    ).fetchall()
    database.close()
    assert rows
    whole = [bytes(part) for row in rows for part in row]
    words = [f"{word}-of-{run_id}".encode() for word in ("name", "tag", "baseline")]
    middles = [part[at : at + PIECE] for part in whole for at in range(300, len(part), 400)]
    return [*words, *(piece for piece in middles if len(piece) == PIECE and len(set(piece)) > 6)]


def test_a_deleted_run_leaves_no_byte_in_the_file(history: SQLiteHistory) -> None:
    """Neither results nor names, neither in the file nor in its log; other runs are intact."""
    gone, stays = store(history, "gone"), store(history, "stays")
    before = raw(history)
    assert sum(piece in before for piece in gone) > 50
    history.delete("gone")
    after = raw(history)
    assert [piece for piece in gone if piece in after] == []
    # Not all: a piece may cross the border of two pages.
    assert sum(piece in after for piece in stays) > 50
    assert len(list(history.results("stays"))) == 600


def test_pruned_runs_leave_no_byte_in_the_file(history: SQLiteHistory) -> None:
    """Pruning is deleting."""
    pieces = [piece for run_id in ("one", "two") for piece in store(history, run_id)]
    for run_id in ("one", "two"):
        history.drop_baseline(f"baseline-of-{run_id}")
    store(history, "three")
    assert len(history.prune(Retention(count=1), now=ManualClock().now(), name="name-of-one").deleted) == 0
    assert len(history.prune(Retention(days=-1), now=ManualClock().now()).deleted) == 2
    after = raw(history)
    assert [piece for piece in pieces if piece in after] == []


def test_a_run_claimed_or_named_during_pruning_stays(history: SQLiteHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the selection and the deletion; the reason is the same as before it."""
    for run_id in ("busy", "named", "gone"):
        store(history, run_id, 1)
        history.drop_baseline(f"baseline-of-{run_id}")
    look = history.is_claimed

    def late(run_id: str) -> bool:
        is_claimed = look(run_id)
        if run_id == "named":
            SQLiteHistory(history.path).set_baseline("main", "named")
        return is_claimed and run_id != "busy"

    monkeypatch.setattr(history, "is_claimed", late)
    with history.claim("busy"):
        found = history.prune(Retention(days=-1), now=ManualClock().now())
    assert [run.run_id for run in found.deleted] == ["gone"]
    assert found.exempt == {"busy": "a process is working on it", "named": "the baseline main"}
    assert history.baseline("main").run_id == "named"


def test_a_reader_delays_the_log_but_not_the_deletion(history: SQLiteHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deletion returns during a read; the next one removes the remaining bytes."""
    monkeypatch.setattr(sqlite_database, "SCRUB_SECONDS", 0.1)
    pieces = store(history, "gone")
    store(history, "next", 1)
    reader = sqlite3.connect(history.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM runs").fetchone()
    statements: list[str] = []
    history._connection.set_trace_callback(statements.append)  # type: ignore[attr-defined]
    history.delete("gone")
    # The deletion waits for the reader only this long.
    assert "PRAGMA busy_timeout = 100" in statements
    assert [run.run_id for run in history.runs()] == ["next"]
    reader.close()
    history.delete("next")
    after = raw(history)
    assert [piece for piece in pieces if piece in after] == []
