"""Results on disk answer every question as results in memory do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.errors import HistoryError
from proctor.history import block, stored_results
from proctor.history import stored_results as reading
from proctor.history.postgres import PostgresHistory
from proctor.history.sqlite import SQLiteHistory
from proctor.history.stored_runs import StoredRuns
from proctor.records.results import ResultList, Results
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES, EvalResult
from tests.records.examples import EVALUATORS, any_runs, failed, run_of, scored

Made = tuple[RunMetadata, list[EvalResult]]

ends = st.none() | st.integers(-25, 25)
steps = st.none() | st.integers(-4, 4).filter(bool)


@pytest.fixture(scope="module", params=["file", "server"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredRuns]:
    """One history for all examples of a property; each is a run of its own."""
    history: StoredRuns
    if request.param == "file":
        history = SQLiteHistory(tmp_path_factory.mktemp("history") / "h.db")
    else:
        history = PostgresHistory(request.getfixturevalue("postgres").database())
    yield history
    history.close()


def stored(history: StoredRuns, made: Made, *, status: str = "completed") -> Results:
    """The results, written to a history and read from it."""
    run = msgspec.structs.replace(made[0], run_id=f"run-{len(history.runs(limit=10_000))}")
    history.begin(run)
    with history.writer(run.run_id) as writer:
        for position, result in enumerate(made[1]):
            writer.add(position, result)
    history.update(msgspec.structs.replace(run, status=status))
    return history.results(run.run_id)


def assert_same_answers(one: Results, other: Results) -> None:
    """Every question that takes no argument but an evaluator has one answer, asked twice."""
    for _ in range(2):
        assert list(one) == list(other)
        assert len(one) == len(other)
        assert one.counts() == other.counts()
        assert one.outcomes() == other.outcomes()
        assert one.clusters() == other.clusters()
        assert one.latencies() == other.latencies()
        assert one.tokens() == other.tokens()
        assert one.model_usage() == other.model_usage()
        assert list(one.error_kinds().items()) == list(other.error_kinds().items())
        for evaluator in (None, *EVALUATORS, "unknown"):
            assert one.column(evaluator) == other.column(evaluator)


@settings(max_examples=15)
@given(any_runs(), st.sampled_from(["running", "completed"]))
def test_columns_and_counts_are_the_same(shared: StoredRuns, made: Made, status: str) -> None:
    """Of all results and of one configuration, while the run goes on and after."""
    disk, memory = stored(shared, made, status=status), ResultList(made[1])
    assert_same_answers(disk, memory)
    for name in (*(c.name for c in made[0].configurations), "no such"):
        assert_same_answers(disk.for_configuration(name), memory.for_configuration(name))


@settings(max_examples=12)
@given(any_runs(), st.data())
def test_pages_and_slices_are_the_same(shared: StoredRuns, made: Made, data: st.DataObject) -> None:
    """Whatever outcome, evaluator, offset and limit is asked for, and any index or slice."""
    disk: Results = stored(shared, made)
    memory: Results = ResultList(made[1])
    if data.draw(st.booleans()):
        name = made[0].configurations[0].name
        disk, memory = disk.for_configuration(name), memory.for_configuration(name)
    for outcome in (None, *OUTCOMES):
        for evaluator in (None, *EVALUATORS, "unknown"):
            offset, limit = data.draw(st.integers(-1, 6)), data.draw(st.integers(-1, 8))
            assert list(disk.page(outcome=outcome, evaluator=evaluator, offset=offset, limit=limit)) == list(
                memory.page(outcome=outcome, evaluator=evaluator, offset=offset, limit=limit)
            )
    for _ in range(8):
        part = slice(data.draw(ends), data.draw(ends), data.draw(steps))
        assert list(disk[part]) == list(memory[part])
    for number in range(6):
        assert list(disk.for_sample(f"s{number}")) == list(memory.for_sample(f"s{number}"))
    for index in range(-len(memory), len(memory)):
        assert disk[index] == memory[index]
    for index in (len(memory), -len(memory) - 1, 2**70):
        with pytest.raises(IndexError):
            disk[index]


def test_many_results_lie_in_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost or doubled at the seams of blocks, whether the last one is full or not."""
    monkeypatch.setattr(block, "RESULTS_PER_BLOCK", 3)
    monkeypatch.setattr(reading, "MAX_CACHED_BLOCKS", 1)
    monkeypatch.setattr(stored_results, "BLOCKS_PER_QUERY", 2)
    history = SQLiteHistory(tmp_path / "h.db")
    for count in (5, 6, 7):
        results = [scored(f"s{i}", i / 10, 0.5) for i in range(count)]
        disk = stored(history, (run_of(), results))
        assert list(disk) == results
        assert disk.column("exact") == ResultList(results).column("exact")
    history.close()


def shuffled(history: StoredRuns, count: int) -> Results:
    """Make a run whose results finished in random order."""
    order = Random(1).sample(range(count), count)
    history.begin(run_of("mixed"))
    with history.writer("mixed") as writer:
        for position in order:
            writer.add(position, scored(f"s{position}", 0.5))
    history.update(msgspec.structs.replace(run_of("mixed"), status="completed"))
    return history.results("mixed")


@pytest.mark.parametrize(("room", "rounds"), [(10**9, 1), (20_000, 100)])
def test_a_shuffled_run_is_read_in_order_with_few_blocks_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, rounds: int
) -> None:
    """Each once where memory allows; with little room a few times, never one for each result."""
    monkeypatch.setattr(reading, "MAX_GATHERED_BYTES", room)
    monkeypatch.setattr(reading, "WINDOW", 100)
    monkeypatch.setattr(reading, "MAX_CACHED_BLOCKS", 2)
    monkeypatch.setattr(block, "RESULTS_PER_BLOCK", 50)
    unpacked: list[bytes] = []
    real = block.split_lines

    def counted(stored: bytes) -> list[bytes]:
        unpacked.append(stored)
        return real(stored)

    monkeypatch.setattr(block, "split_lines", counted)
    history = SQLiteHistory(tmp_path / "h.db")
    results = shuffled(history, 1_000)
    assert [result.sample_id for result in results] == [f"s{number}" for number in range(1_000)]
    blocks = len(set(unpacked))
    assert 20 <= blocks <= len(unpacked) <= blocks * rounds
    assert len(unpacked) < 1_000 * 0.9
    assert [result.sample_id for result in results[999:5:-7]] == [f"s{number}" for number in range(999, 5, -7)]
    history.close()


def test_a_result_larger_than_the_memory_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least one is gathered at a time."""
    monkeypatch.setattr(reading, "MAX_GATHERED_BYTES", 1)
    monkeypatch.setattr(reading, "MAX_CACHED_BLOCKS", 1)
    monkeypatch.setattr(block, "RESULTS_PER_BLOCK", 3)
    history = SQLiteHistory(tmp_path / "h.db")
    results = shuffled(history, 20)
    assert [result.sample_id for result in results] == [f"s{number}" for number in range(20)]
    history.close()


def test_large_columns_are_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of large runs are read again each time, and are the same."""
    monkeypatch.setattr(stored_results, "MAX_CACHED_RESULTS", 1)
    history = SQLiteHistory(tmp_path / "h.db")
    results = [scored("a", 1.0), scored("b", 0.0)]
    assert_same_answers(stored(history, (run_of(), results)), ResultList(results))
    history.close()


def test_answers_agree_with_each_other_while_results_come_in(tmp_path: Path) -> None:
    """A reader of a run that goes on never sees values without their clusters or passes."""
    history = SQLiteHistory(tmp_path / "h.db")
    history.begin(run_of("r", epochs=2))
    reader = SQLiteHistory(tmp_path / "h.db")
    over = threading.Event()

    def write() -> None:
        with history.writer("r") as writer:
            for position in range(600):
                writer.add(position, scored(f"s{position}", 1.0))
        over.set()

    thread = threading.Thread(target=write)
    thread.start()
    results, seen = reader.results("r"), [0]
    while not over.is_set():
        for column in (results.column(), results.column("exact")):
            assert column.passed == len(column.values) == len(column.passes)
            assert column.clusters is None
        seen.append(len(results))
        assert seen[-1] >= seen[-2]
    thread.join()
    assert len(results) == 600
    history.close()
    reader.close()


def test_results_keep_a_temporary_history_alive() -> None:
    """The results of a history without other references can still be read."""
    results = stored(SQLiteHistory.temporary(), (run_of(), [failed("a"), scored("b", 1.0)]))
    assert [result.sample_id for result in results.for_configuration("default")] == ["a", "b"]


def test_a_reader_notices_that_results_were_dropped_meanwhile(tmp_path: Path) -> None:
    """Places that were looked up before errors are forgotten lead to no other result."""
    history = SQLiteHistory(tmp_path / "h.db")
    stored(history, (run_of(), [failed("a"), scored("b", 1.0)]), status="running")
    results = history.results(history.runs()[0].run_id)
    reader = iter(results)
    history.delete_errors(history.runs()[0].run_id)
    with pytest.raises(HistoryError, match="have changed while they were read"):
        next(reader)
    assert [result.sample_id for result in results] == ["b"]
    history.close()


def test_results_finished_out_of_order_are_read_in_the_order_of_the_plan(tmp_path: Path) -> None:
    """Whatever finishes first, sequence, pages and samples follow the plan."""
    history = SQLiteHistory(tmp_path / "h.db")
    history.begin(run_of("r"))
    order = [7, 0, 3, 9, 1]
    with history.writer("r") as writer:
        for position in order:
            writer.add(position, scored(f"s{position}", 0.5))
            writer.flush()
    results = history.results("r")
    assert [result.sample_id for result in results] == ["s0", "s1", "s3", "s7", "s9"]
    assert results[-1].sample_id == "s9"
    assert [result.sample_id for result in results.page(limit=2)] == ["s0", "s1"]
    assert [result.sample_id for result in results.page(offset=3)] == ["s7", "s9"]
    history.close()
