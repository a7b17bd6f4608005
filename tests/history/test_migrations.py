"""Files that an older Proctor wrote are brought forward, whichever version they have."""

from __future__ import annotations

import hashlib
import sqlite3
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest

from proctor.history import block
from proctor.history import stored_runs as run_rows
from proctor.history.database import migrations
from proctor.history.run_finder import to_microseconds
from proctor.history.sqlite import SQLiteHistory
from proctor.records import codec
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.trial import Configuration, EvalResult
from tests.records.examples import failed, run_of, scored

NEWEST = migrations("sqlite")[-1][0]
# A step that was released is never changed: files that took it would differ from those that will.
RELEASED = {
    1: "ac98610bfcbffb503a0c48148e39a8e3fb240236dfc6675874fd73fb2dc2bf4a",
    2: "8e30c0b090368d11dadeed9b8a83f38fa11e537897ea36800a52ff7840e26be7",
}
LAST = datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC)
EAST = datetime(2026, 3, 1, 9, 0, 0, 5, tzinfo=timezone(timedelta(hours=9)))


def results() -> list[EvalResult]:
    return [scored("a", 1.0, 0.25), failed("b"), scored("c", 0.0)]


def runs() -> list[RunMetadata]:
    """Runs with all defaults left out, and with none; dates that lose something when rounded."""
    return [
        run_of("r0", tags={"branch": "main"}),
        msgspec.structs.replace(
            run_of("r1", name="quiz", configurations=("small", "default")),
            started_at=LAST,
            evaluators=(EvaluatorSpec("right", "exact_match"),),
        ),
        msgspec.structs.replace(run_of("r2"), started_at=EAST, configurations=(Configuration(),)),
        msgspec.structs.replace(run_of("r3"), started_at=LAST - timedelta(days=1), evaluators=()),
    ]


def written_by(version: int, path: Path) -> None:
    """A file as a Proctor of that version left it."""
    database = sqlite3.connect(path, isolation_level=None)
    for number, sql in migrations("sqlite"):
        if number <= version:
            database.executescript(sql)
    database.execute(f"PRAGMA user_version = {version}")
    for key, run in enumerate(runs(), start=1):
        if version >= 3:
            database.execute(
                "INSERT INTO runs (run_id, name, status, began, metadata) VALUES (?, ?, ?, ?, ?)",
                (run.run_id, run.name, run.status, to_microseconds(run.started_at), codec.encode(run)),
            )
            run_rows.store_properties(database, key, run)  # type: ignore[arg-type]
            continue
        database.execute(
            "INSERT INTO runs (run_id, name, status, started_at, metadata) VALUES (?, ?, ?, ?, ?)",
            (run.run_id, run.name, run.status, run.started_at.isoformat(), codec.encode(run)),
        )
        database.executemany("INSERT INTO tags VALUES (?, ?, ?)", [(key, *tag) for tag in run.tags.items()])
    pack = block.ResultPacker(runs()[0]).pack
    packed = [pack(place, made, made.verdict()) for place, made in enumerate(results())]
    (row,) = block.make_rows(1, packed)
    stored = dict(zip(block.COLUMNS.split(", "), row, strict=True))
    if version < 2:
        del stored["spent"]
    if version < 4:
        stored["results"] = b"\n".join(block.split_lines(stored["results"]))
        assert stored["results"].startswith(b"{")
        del stored["checksums"]
    database.execute(
        f"INSERT INTO blocks ({', '.join(stored)}) VALUES ({', '.join('?' * len(stored))})", list(stored.values())
    )
    database.execute("INSERT INTO outputs VALUES ('key', 'now', x'7b7d')")
    database.close()


def test_released_migrations_are_unchanged() -> None:
    """The way forward is only ever made longer."""
    steps = dict(migrations("sqlite"))
    found = {number: hashlib.sha256(steps[number].encode()).hexdigest() for number in RELEASED}
    assert found == RELEASED
    assert sorted(steps) == list(range(1, NEWEST + 1))


@pytest.mark.parametrize("version", range(1, NEWEST))
def test_a_file_of_every_older_version_is_opened(version: int, tmp_path: Path) -> None:
    """Runs, tags, results and outputs are all there, and new results can be added."""
    path = tmp_path / "h.db"
    written_by(version, path)
    history = SQLiteHistory(path)
    assert [history.find(run.run_id) for run in runs()] == runs()
    assert list(history.results("r0")) == results()
    assert history.results("r0").column("judge").values.tolist() == [0.25]
    assert history.get_cached_output("key") == b"{}"
    history.delete_errors("r0")
    with history.writer("r0") as writer:
        for place in range(3, 400):
            writer.add(place, scored(f"s{place}", 0.5))
    assert [result.sample_id for result in history.results("r0")] == [
        "a", "c", *(f"s{place}" for place in range(3, 400)),
    ]  # fmt: skip
    history.set_baseline("main", "r0")
    history.close()
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA user_version").fetchone() == (NEWEST,)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()


@pytest.mark.parametrize("version", range(1, NEWEST))
def test_old_runs_are_found_by_newer_filters(version: int, tmp_path: Path) -> None:
    """Dates to the microsecond, evaluators, configurations: also of runs from before."""
    path = tmp_path / "h.db"
    written_by(version, path)
    history = SQLiteHistory(path)

    def found(**asked: object) -> list[str]:
        return [run.run_id for run in history.runs(**asked)]  # type: ignore[arg-type]

    assert found() == ["r1", "r2", "r3", "r0"]
    assert found(since=LAST, until=LAST) == ["r1"]
    assert found(since=EAST, until=EAST) == ["r2"]
    assert found(since=LAST - timedelta(days=1), until=EAST) == ["r2", "r3"]
    assert found(evaluator="exact_match") == found(evaluator="right") == ["r1"]
    assert found(evaluator="judge") == ["r2", "r0"]
    assert found(configuration="small") == ["r1"]
    assert found(configuration="default") == ["r1", "r2", "r3", "r0"]
    assert found(tags={"branch": "main"}) == ["r0"]
    history.close()
