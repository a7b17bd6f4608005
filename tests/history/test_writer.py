"""Results on their way to the disk: durable, counted once, and never silently lost."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.errors import HistoryError
from proctor.history import writer as writer_module
from proctor.history.sqlite import SQLiteHistory
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from tests.records.examples import failed, run_of, scored, skipped


@pytest.fixture
def history(tmp_path: Path) -> Iterator[SQLiteHistory]:
    made = SQLiteHistory(tmp_path / "h.db")
    made.begin(run_of("r"))
    yield made
    made.close()


def looked_at(history: SQLiteHistory) -> list[str]:
    """The samples that another connection sees in the run."""
    other = SQLiteHistory(history.path)
    try:
        return [result.sample_id for result in other.results("r")]
    finally:
        other.close()


def test_flushed_results_are_visible_to_others_during_the_run(history: SQLiteHistory) -> None:
    """After `flush` everything added so far is durable, in the order of the plan."""
    with history.writer("r") as writer:
        writer.add(1, scored("b", 1.0))
        writer.add(0, scored("a", 1.0))
        writer.flush()
        assert looked_at(history) == ["a", "b"]
        writer.add(2, scored("c", 1.0))
        writer.flush()
        assert looked_at(history) == ["a", "b", "c"]


def test_results_are_durable_soon_without_a_flush(history: SQLiteHistory) -> None:
    """Without being asked, the writer commits within a moment."""
    with history.writer("r") as writer:
        writer.add(0, scored("a", 1.0))
        limit = time.monotonic() + 60
        while looked_at(history) != ["a"]:
            assert time.monotonic() < limit
            time.sleep(0.01)


def test_when_the_block_ends_everything_is_durable(history: SQLiteHistory) -> None:
    """Results in groups of all sizes, and cached outputs."""
    count = 2 * 512 + 64 + 8 + 3
    with history.writer("r") as writer:
        for position in range(count):
            writer.add(position, scored(f"s{position}", 0.5))
        writer.cache_output("key", "2026-01-01T00:00:00+00:00", b"{}")
        writer.cache_output("key", "2026-01-02T00:00:00+00:00", b"another")
    assert looked_at(history) == [f"s{position}" for position in range(count)]
    assert history.get_cached_output("key") == b"{}"
    assert history.get_cached_output("other") is None


def test_added_results_are_durable_if_the_block_fails(history: SQLiteHistory) -> None:
    """An error in the run is passed on after everything is durable."""

    def run() -> None:
        with history.writer("r") as writer:
            writer.add(0, scored("a", 1.0))
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        run()
    assert looked_at(history) == ["a"]


def test_flushing_and_closing_without_results_returns(history: SQLiteHistory) -> None:
    """Without pending results there is nothing to wait for."""
    with history.writer("r") as writer:
        writer.flush()
        writer.flush()
        assert not writer.is_lagging()
    writer.close()


def test_several_threads_may_flush_at_once(history: SQLiteHistory) -> None:
    """Each `flush` returns when the thread's own results are durable."""
    found: list[bool] = []
    with history.writer("r") as writer:

        def work(number: int) -> None:
            for position in range(number * 50, number * 50 + 50):
                writer.add(position, scored(f"s{position}", 1.0))
            writer.flush()
            found.append(set(looked_at(history)) >= {f"s{number * 50 + i}" for i in range(50)})

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [True] * 4


def test_a_writer_that_cannot_keep_up_says_so(history: SQLiteHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer is lagging while its queue is longer than the limit."""
    monkeypatch.setattr(writer_module, "MAX_QUEUED_RESULTS", 3)
    blocker = sqlite3.connect(history.path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with history.writer("r") as writer:
        writer.add(0, scored("s0", 1.0))
        limit = time.monotonic() + 60
        while writer._pending:
            assert time.monotonic() < limit
            time.sleep(0.001)
        for position in range(1, 5):
            assert not writer.is_lagging()
            writer.add(position, scored(f"s{position}", 1.0))
        assert writer.is_lagging()
        blocker.execute("ROLLBACK")
        writer.flush()
        assert not writer.is_lagging()
    blocker.close()
    assert len(looked_at(history)) == 5


kinds = {
    "passed": scored("s", 1.0),
    "failed": scored("s", 0.0),
    "error": failed("s"),
    "unscored": scored("s", None),
    "skipped": skipped("s"),
}


@settings(max_examples=15)
@given(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=5), st.booleans())
def test_ruling_9_of_many_results_for_one_place_the_first_is_counted(words: list[str], reopened: bool) -> None:
    """Ruling 9: nothing is counted twice, whether the second comes at once or after a resume."""
    history = SQLiteHistory.temporary()
    history.begin(run_of("r"))
    with history.writer("r") as writer:
        for word in words[:1] if reopened else words:
            writer.add(0, kinds[word])
    with history.writer("r") as writer:
        for word in words:
            writer.add(0, kinds[word])
    (kept,) = history.results("r")
    assert kept.outcome == words[0]
    assert history.results("r").counts().total == 1
    history.close()


def full_disk(writer: writer_module.GroupWriter) -> None:
    """Keep the writer's file from growing."""
    pages = writer._connection.execute("PRAGMA page_count").fetchone()[0]
    writer._connection.execute(f"PRAGMA max_page_count = {pages}")


def big(number: int) -> EvalResult:
    """A result of some size."""
    return EvalResult(scored(f"s{number}").trial, {"exact": Score(1.0, True, "long" * 100)})


def test_a_full_disk_is_reported_and_committed_results_stay(history: SQLiteHistory) -> None:
    """Every method of the writer raises the error, and the run can be resumed."""

    def run() -> None:
        with history.writer("r") as writer:
            writer.add(0, scored("kept", 1.0))
            writer.flush()
            full_disk(writer)
            for position in range(1, 2_000):
                writer._pending.append(writer._packer.pack(position, big(position), ("passed", 1.0)))
            with pytest.raises(HistoryError, match="database or disk is full"):
                writer.flush()
            with pytest.raises(HistoryError):
                writer.add(2_000, scored("more", 1.0))
            with pytest.raises(HistoryError):
                writer.is_lagging()

    with pytest.raises(HistoryError) as caught:
        run()
    assert caught.value.what.startswith("results can no longer be written: ")
    assert "resume the run" in caught.value.fix
    assert looked_at(history) == ["kept"]
    with history.writer("r") as writer:
        writer.add(1, scored("later", 1.0))
    assert looked_at(history) == ["kept", "later"]


def test_a_read_only_file_is_reported(history: SQLiteHistory) -> None:
    """A database that turns read-only under a run ends it with an error, not with silence."""

    def run() -> None:
        with history.writer("r") as writer:
            writer._connection.execute("PRAGMA query_only = ON")
            writer.add(0, scored("a", 1.0))

    with pytest.raises(HistoryError, match="readonly"):
        run()
    assert looked_at(history) == []


def test_results_of_a_deleted_run_reach_no_other_run(history: SQLiteHistory) -> None:
    """A run that is deleted while it is written to ends, and the next run stays clean."""

    def run() -> None:
        with history.writer("r") as writer:
            history.delete("r")
            history.begin(run_of("next"))
            writer.add(0, scored("stray", 1.0))

    with pytest.raises(HistoryError):
        run()
    assert len(history.results("next")) == 0
