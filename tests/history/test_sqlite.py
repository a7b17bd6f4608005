"""The history in a file: tests in addition to the contract (`test_contract.py`)."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from inline_snapshot import snapshot

from proctor.errors import HistoryError, RunNotFound, UsageError
from proctor.history.sqlite import SQLiteHistory
from proctor.records.run import RunMetadata, RunOptions
from tests.records.examples import run_of, scored
from tests.support import ManualClock


@pytest.fixture
def history(tmp_path: Path) -> Iterator[SQLiteHistory]:
    made = SQLiteHistory(tmp_path / "folder" / "h.db")
    yield made
    made.close()


def ids(runs: Any) -> list[str]:
    return [run.run_id for run in runs]


def test_an_ambiguous_prefix_is_refused(history: SQLiteHistory) -> None:
    """The error shows how the ids go on."""
    for run_id in ("abc1", "abc2", "x_1", "x%1"):
        history.begin(run_of(run_id))
    with pytest.raises(RunNotFound) as caught:
        history.find("abc")
    assert str(caught.value) == snapshot("""\
'abc' matches 2 runs
Fix: use a longer prefix: abc2, abc1\
""")
    assert history.find("x_").run_id == "x_1"


@pytest.mark.parametrize(
    ("reference", "fix"),
    [
        ("abc12", "did you mean 'abc1'?"),
        ("exan", "did you mean 'exam'?"),
        ("mian", "did you mean 'main'?"),
        ("zz", "choose one of: exam, latest, main"),
        ("", "choose one of: exam, latest, main"),
        ("%", "choose one of: exam, latest, main"),
    ],
)
def test_an_unknown_run_is_reported_with_a_suggestion(history: SQLiteHistory, reference: str, fix: str) -> None:
    """What was probably meant: a name, a baseline, an id; else all names; nothing by chance."""
    history.begin(run_of("abc1"))
    history.set_baseline("main", "abc1")
    with pytest.raises(RunNotFound) as caught:
        history.find(reference)
    assert caught.value.what == f"unknown run {reference!r}"
    assert caught.value.fix == fix


@pytest.mark.parametrize(
    ("reference", "is_meant"),
    [
        ("20261118-010254-ed5c79", True),
        ("20261118-010245-ed5c78", True),
        ("20261118-010254-ed578", True),
        ("20261118-010254-aa0b19", False),
        ("20261118-010257-141463", False),
        ("20261117-235959-ed5c11", False),
    ],
)
def test_a_deleted_run_suggests_no_other_run(history: SQLiteHistory, reference: str, is_meant: bool) -> None:
    """The ids of one day are alike: only a mistyped character is a mistake."""
    history.begin(run_of("20261118-010254-ed5c78"))
    with pytest.raises(RunNotFound) as caught:
        history.find(reference)
    assert (caught.value.fix == "did you mean '20261118-010254-ed5c78'?") is is_meant
    assert caught.value.what.endswith(": it may be mistyped, deleted, or in another history") is not is_meant


@pytest.mark.parametrize("run", ["exam", "latest", "main", "abc1", "ab"])
def test_a_configuration_is_no_run(history: SQLiteHistory, run: str) -> None:
    """Commands for whole runs, such as `proctor baseline set`, say so; anything else with an @ is unknown."""
    history.begin(run_of("abc1"))
    history.set_baseline("main", "abc1")
    with pytest.raises(RunNotFound, match=f"'{run}@fast' is a configuration of a run, and a whole run is required"):
        history.find(f"{run}@fast")
    with pytest.raises(RunNotFound, match="unknown run 'other@fast'"):
        history.find("other@fast")
    with pytest.raises(RunNotFound, match="unknown run '@main'"):
        history.find("@main")


def test_an_empty_history_says_so(history: SQLiteHistory) -> None:
    """With no file, and with a file without runs."""
    for _ in range(2):
        for reference in ("latest", "abc"):
            with pytest.raises(RunNotFound, match=f"unknown run '{reference}': the history is empty"):
                history.find(reference)
        history.begin(run_of("r"))
        history.delete("r")


def test_reading_creates_nothing(history: SQLiteHistory) -> None:
    """Whatever is asked of a history that is not there, no file and no folder appears."""
    assert history.runs() == []
    assert history.runs(tags={"a": "b"}) == []
    assert history.is_claimed("r") is False
    assert history.get_cached_output("key") is None
    looks: list[Any] = [history.find, history.report, history.results, history.delete]
    looks += [lambda run: list(history.finished_trials(run)), lambda run: history.writer(run).__enter__()]
    for look in looks:
        with pytest.raises(RunNotFound):
            look("r")
    history.close()
    assert not history.path.parent.exists()


def test_deleting_a_run_deletes_all_its_data(history: SQLiteHistory) -> None:
    """Results and tags are deleted too; other runs and cached outputs stay."""
    for run_id in ("r1", "r2"):
        history.begin(run_of(run_id, tags={"t": "1"}))
        with history.writer(run_id) as writer:
            writer.add(0, scored("a", 1.0))
            writer.cache_output("key", "now", b"{}")
    history.delete("r1")
    assert ids(history.runs(tags={"t": "1"})) == ["r2"]
    assert len(history.results("r2")) == 1
    assert history.get_cached_output("key") == b"{}"
    database = sqlite3.connect(history.path)
    counts = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("runs", "tags", "blocks")]
    database.close()
    assert counts == [1, 1, 1]
    for gone in (history.delete, history.report, history.results):
        with pytest.raises(RunNotFound):
            gone("r1")


def test_one_id_cannot_be_begun_twice(history: SQLiteHistory) -> None:
    """The first run stays as it is."""
    history.begin(run_of("r", name="first"))
    with pytest.raises(HistoryError, match="the history cannot be written: UNIQUE"):
        history.begin(run_of("r", name="second"))
    assert history.find("r").name == "first"


@pytest.mark.parametrize(
    "wrong", [{"tags": {"n": 1}}, {"options": RunOptions(concurrency=0)}, {"status": "lost"}, {"name": None}]
)
def test_a_run_that_could_not_be_read_back_is_refused(history: SQLiteHistory, wrong: dict[str, Any]) -> None:
    """A run that cannot be decoded would hide the others, so it is refused before it is stored."""
    good = run_of("good")
    history.begin(good)
    bad = msgspec.structs.replace(good, run_id="bad", **wrong)
    with pytest.raises(UsageError, match="bad: not a valid RunMetadata"):
        history.begin(bad)
    with pytest.raises(UsageError):
        history.update(msgspec.structs.replace(good, **wrong))
    assert ids(history.runs()) == ["good"]


def test_a_failed_change_changes_nothing(history: SQLiteHistory) -> None:
    """A full disk is an error of the history, and the transaction is rolled back."""
    history.begin(run_of("r1"))
    pages = history._connection.execute("PRAGMA page_count").fetchone()[0]
    history._connection.execute(f"PRAGMA max_page_count = {pages}")
    huge = run_of("r2", tags={f"key {i}": "x" * 500 for i in range(200)})
    with pytest.raises(HistoryError) as caught:
        history.begin(huge)
    assert caught.value.what == "the history cannot be written: database or disk is full"
    assert caught.value.where == str(history.path)
    assert ids(history.runs()) == ["r1"]
    history._connection.execute("PRAGMA max_page_count = 1000000")
    history.begin(huge)
    assert ids(history.runs()) == ["r2", "r1"]


def test_a_temporary_history_goes_away_with_its_last_user() -> None:
    """The folder is deleted with the last reference to the history and its results."""
    history = SQLiteHistory.temporary()
    folder = history.path.parent
    history.begin(run_of("r"))
    with history.writer("r") as writer:
        writer.add(0, scored("a", 1.0))
    report = history.report("r")
    del history, writer
    gc.collect()
    assert len(report.results.for_configuration("default")) == 1
    del report
    gc.collect()
    assert not folder.exists()


def test_times_are_stored_as_they_are(history: SQLiteHistory) -> None:
    """Ruling 8: aware UTC goes in and comes out."""
    history.begin(RunMetadata("r", "exam", ManualClock().now()))
    assert history.find("r").started_at.isoformat() == "2026-01-01T12:00:00+00:00"


def test_a_damaged_file_is_reported_when_it_is_read(history: SQLiteHistory) -> None:
    """What SQLite finds out while reading is an error of the history, with the file's name."""
    history.begin(run_of("r", tags={f"key {i}": "x" * 500 for i in range(200)}))
    history.close()
    data = bytearray(history.path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    history.path.write_bytes(data)
    with pytest.raises(HistoryError, match=r"the history cannot be read: .*malformed") as caught:
        history.runs()
    assert caught.value.where == str(history.path)
