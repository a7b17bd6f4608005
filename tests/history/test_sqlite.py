"""Runs in a history: begun, found, listed, finished, deleted."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from inline_snapshot import snapshot

from proctor.errors import HistoryError, RunNotFound, UsageError
from proctor.history.sqlite import SQLiteHistory
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata, RunOptions
from tests.records.examples import failed, run_of, scored, skipped
from tests.surroundings import ManualClock


@pytest.fixture
def history(tmp_path: Path) -> Iterator[SQLiteHistory]:
    made = SQLiteHistory(tmp_path / "folder" / "h.db")
    yield made
    made.close()


def ids(runs: Any) -> list[str]:
    return [run.run_id for run in runs]


def test_a_run_is_begun_and_found_as_it_was(history: SQLiteHistory) -> None:
    """Everything about a run comes back; it goes on until it is finished."""
    run = run_of("r1", tags={"model": "small"}, configurations=("a", "b"))
    history.begin(run)
    assert history.find("r1") == run
    assert history.report("r1").metadata == run
    assert history.report("r1").metrics == {}


def test_a_finished_run_has_its_metrics(history: SQLiteHistory) -> None:
    """Metrics over all and by configuration are stored with how it ended."""
    run = run_of("r1")
    history.begin(run)
    done = msgspec.structs.replace(
        run, status="completed", finished_at=run.started_at + timedelta(seconds=3)
    )
    metrics = {"pass_rate": MetricValue(0.5, 4, errors=1, interval=(0.1, 0.9), kind="rate")}
    history.finish(done, metrics, {"default": metrics})
    report = history.report("r1")
    assert report.metadata == done
    assert report.metrics == metrics
    assert report.by_configuration == {"default": metrics}


def test_a_run_that_goes_on_again_has_no_metrics_yet(history: SQLiteHistory) -> None:
    """Old numbers do not stand over new results."""
    run = run_of("r1")
    history.begin(run)
    history.finish(run, {"n": MetricValue(1.0, 1)}, {})
    history.update(run)
    assert history.report("r1").metrics == {}


def test_runs_are_found_by_id_beginning_name_or_as_the_latest(history: SQLiteHistory) -> None:
    """The whole id, a beginning that is unique, a name (the newest), or "latest"."""
    for run_id, name in (("abc1", "exam"), ("abd2", "quiz"), ("xyz3", "exam"), ("xyw4", "last")):
        history.begin(run_of(run_id, name=name))
    found = {word: history.find(word).run_id for word in ("abc1", "abd", "exam", "quiz", "latest")}
    assert found == {
        "abc1": "abc1",
        "abd": "abd2",
        "exam": "xyz3",
        "quiz": "abd2",
        "latest": "xyw4",
    }


def test_an_id_goes_before_a_name_and_a_name_before_a_beginning(history: SQLiteHistory) -> None:
    """Runs that are named like other runs' ids do not hide them."""
    history.begin(run_of("abc"))
    for number in range(60):
        history.begin(run_of(f"abcd{number}", name="abc"))
    history.begin(run_of("zz", name="abcd"))
    assert history.find("abc").run_id == "abc"
    assert history.find("abcd").run_id == "zz"


def test_a_beginning_that_fits_several_runs_is_refused(history: SQLiteHistory) -> None:
    """The error shows how the ids go on."""
    for run_id in ("abc1", "abc2", "x_1", "x%1"):
        history.begin(run_of(run_id))
    with pytest.raises(RunNotFound) as caught:
        history.find("abc")
    assert str(caught.value) == snapshot("""\
'abc' could be any of 2 runs
To mend it: give more of the id: abc2, abc1\
""")
    assert history.find("x_").run_id == "x_1"


@pytest.mark.parametrize("reference", ["abX", "", "%", "ABC1"])
def test_a_run_that_is_not_there_comes_with_the_nearest(
    history: SQLiteHistory, reference: str
) -> None:
    """A misspelt id is met with the one that was probably meant, nothing is matched by chance."""
    history.begin(run_of("abc1"))
    with pytest.raises(RunNotFound) as caught:
        history.find(reference)
    assert caught.value.what == f"there is no run {reference!r}"
    assert "abc1" in caught.value.fix


def test_an_empty_history_says_so(history: SQLiteHistory) -> None:
    """With no file, and with a file without runs."""
    for _ in range(2):
        for reference in ("latest", "abc"):
            with pytest.raises(RunNotFound, match=f"no run '{reference}': the history is empty"):
                history.find(reference)
        history.begin(run_of("r"))
        history.delete("r")


def test_looking_creates_nothing(history: SQLiteHistory) -> None:
    """Whatever is asked of a history that is not there, no file and no folder appears."""
    assert history.runs() == []
    assert history.runs(tags={"a": "b"}) == []
    assert history.is_held("r") is False
    assert history.cached("key") is None
    looks: list[Any] = [history.find, history.report, history.results, history.delete]
    looks += [lambda run: list(history.done(run)), lambda run: history.writer(run).__enter__()]
    for look in looks:
        with pytest.raises(RunNotFound):
            look("r")
    history.close()
    assert not history.path.parent.exists()


def test_runs_are_listed_the_newest_first(history: SQLiteHistory) -> None:
    """Up to a limit; newest is what began last, whatever its clock said."""
    for number in range(5):
        history.begin(run_of(f"r{number}"))
    assert ids(history.runs()) == ["r4", "r3", "r2", "r1", "r0"]
    assert ids(history.runs(limit=2)) == ["r4", "r3"]
    assert ids(history.runs(limit=0)) == []


def test_runs_are_chosen_by_all_their_tags(history: SQLiteHistory) -> None:
    """Every given tag must match, to the letter."""
    history.begin(run_of("r1", tags={"model": "small", "branch": "main"}))
    history.begin(run_of("r2", tags={"model": "large", "branch": "main"}))
    history.begin(run_of("r3", tags={"model": "small"}))
    assert ids(history.runs(tags={"branch": "main"})) == ["r2", "r1"]
    assert ids(history.runs(tags={"model": "small", "branch": "main"})) == ["r1"]
    assert ids(history.runs(tags={"model": "main"})) == []
    assert ids(history.runs(tags={"model": "small"}, limit=1)) == ["r3"]
    assert ids(history.runs(tags={"it's": "'; DROP TABLE runs; --"})) == []
    assert ids(history.runs(tags={})) == ["r3", "r2", "r1"]


def test_deleting_a_run_takes_all_that_belongs_to_it(history: SQLiteHistory) -> None:
    """Results and tags go too; other runs and kept outputs stay."""
    for run_id in ("r1", "r2"):
        history.begin(run_of(run_id, tags={"t": "1"}))
        with history.writer(run_id) as writer:
            writer.add(0, scored("a", 1.0))
            writer.keep("key", "now", b"{}")
    history.delete("r1")
    assert ids(history.runs(tags={"t": "1"})) == ["r2"]
    assert len(history.results("r2")) == 1
    assert history.cached("key") == b"{}"
    database = sqlite3.connect(history.path)
    counts = [
        database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("runs", "tags", "blocks")
    ]
    database.close()
    assert counts == [1, 1, 1]
    for gone in (history.delete, history.report, history.results):
        with pytest.raises(RunNotFound):
            gone("r1")


def test_a_deleted_runs_place_is_not_given_to_the_next(history: SQLiteHistory) -> None:
    """Results that somebody still holds of a deleted run are empty, not another run's."""
    history.begin(run_of("old"))
    held = history.results("old")
    history.delete("old")
    history.begin(run_of("new"))
    with history.writer("new") as writer:
        writer.add(0, scored("a", 1.0))
    assert len(held) == 0


def test_what_is_finished_is_told_for_a_resume(history: SQLiteHistory) -> None:
    """Position, sample, configuration and epoch; failed ones can be forgotten, to be run again."""
    history.begin(run_of("r", configurations=("small", "large")))
    made = [scored("a", 1.0), failed("b"), scored("c", None), skipped("d"), scored("e", 0.0)]
    with history.writer("r") as writer:
        for position, result in enumerate(made):
            trial = msgspec.structs.replace(result.trial, configuration="large", epoch=position)
            writer.add(position * 10, msgspec.structs.replace(result, trial=trial))
    everything = [(i * 10, s, "large", i) for i, s in enumerate("abcde")]
    assert list(history.done("r")) == everything
    before = {result.sample_id: result for result in history.results("r")}
    history.forget_errors("r")
    assert list(history.done("r")) == [everything[i] for i in (0, 3, 4)]
    assert [*history.results("r")] == [before[name] for name in "ade"]
    assert history.results("r").counts().total == 3
    history.forget_errors("r")
    assert len(history.results("r")) == 3


def test_one_id_cannot_be_begun_twice(history: SQLiteHistory) -> None:
    """The first run stays as it is."""
    history.begin(run_of("r", name="first"))
    with pytest.raises(HistoryError, match="the history cannot be written: UNIQUE"):
        history.begin(run_of("r", name="second"))
    assert history.find("r").name == "first"


def test_a_run_that_was_deleted_meanwhile_cannot_be_finished(history: SQLiteHistory) -> None:
    """What would be lost in silence is said."""
    run = run_of("r")
    history.begin(run)
    history.delete("r")
    for store in (history.update, lambda run: history.finish(run, {}, {})):
        with pytest.raises(RunNotFound, match="it was deleted meanwhile"):
            store(run)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tags": {"n": 1}},
        {"options": RunOptions(concurrency=0)},
        {"status": "lost"},
        {"name": None},
    ],
)
def test_a_run_that_could_not_be_read_back_is_refused(
    history: SQLiteHistory, wrong: dict[str, Any]
) -> None:
    """One bad value must not hide the whole history, so it is refused before it is stored."""
    good = run_of("good")
    history.begin(good)
    bad = msgspec.structs.replace(good, run_id="bad", **wrong)
    with pytest.raises(UsageError, match="bad: not a valid RunMetadata"):
        history.begin(bad)
    with pytest.raises(UsageError):
        history.update(msgspec.structs.replace(good, **wrong))
    assert ids(history.runs()) == ["good"]


def test_a_failed_change_changes_nothing(history: SQLiteHistory) -> None:
    """A full disk is an error of the history, and the transaction is undone as a whole."""
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


def test_a_closed_history_opens_again(history: SQLiteHistory) -> None:
    """Closing gives the file back; using it takes it again."""
    history.close()
    history.begin(run_of("r"))
    history.close()
    history.close()
    assert ids(history.runs()) == ["r"]


def test_a_temporary_history_goes_away_with_its_last_user() -> None:
    """The folder is removed when neither the history nor its results are held any more."""
    history = SQLiteHistory.temporary()
    folder = history.path.parent
    history.begin(run_of("r"))
    with history.writer("r") as writer:
        writer.add(0, scored("a", 1.0))
    report = history.report("r")
    del history, writer
    gc.collect()
    assert len(report.results.only("default")) == 1
    del report
    gc.collect()
    assert not folder.exists()


def test_times_are_stored_as_they_are(history: SQLiteHistory) -> None:
    """Ruling 8: aware UTC goes in and comes out."""
    history.begin(RunMetadata("r", "exam", ManualClock().now()))
    assert history.find("r").started_at.isoformat() == "2026-01-01T12:00:00+00:00"
