"""A damaged history is reported with a `ProctorError`, whatever bytes are wrong."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proctor import Reply, SQLiteHistory, Usage, compare, evaluate, exact_match
from proctor.errors import HistoryError, ProctorError
from proctor.wiring.open_history import load_report

RUNS = 2


def target(text: str, *, style: str = "upper") -> Reply:
    if text == "word 3":
        raise ValueError("broken")
    return Reply(getattr(text, style)() + "!" * 200, usage=Usage(5, 3, cost=0.1))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of two runs with errors, clusters, costs, configurations and metrics."""
    path = tmp_path_factory.mktemp("whole") / "history.db"
    history = SQLiteHistory(path)
    dataset = [
        {
            "id": f"s{n}", "input": f"word {n}", "expected": f"WORD {n}",
            "metadata": {"cluster": f"c{n % 3}"},
        }
        for n in range(12)
    ]  # fmt: skip
    for number in range(RUNS):
        evaluate(
            target, dataset, [exact_match, "contains"], history=history, name=f"run {number}",
            configurations={"a": {}, "b": {"style": "lower"}}, tags={"k": "v"}, progress=False,
        )  # fmt: skip
    history.set_baseline("main", history.runs()[0].run_id)
    history.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


def readings(history: SQLiteHistory) -> Iterator[Callable[[], object]]:
    """Everything that one reads out of a history."""
    yield history.runs
    yield history.baselines
    yield history.describe
    yield lambda: history.find("latest")
    yield lambda: history.find("run 0")
    for name in ("run 0", "run 1"):
        yield partial(metrics, history, name)
        for read in (
            len, list, lambda r: r[0], lambda r: r[-1], lambda r: r.counts(), lambda r: r.column(),
            lambda r: r.column("contains"), lambda r: r.latencies(), lambda r: r.tokens(),
            lambda r: r.model_usage(), lambda r: r.figures(), lambda r: list(r.samples()),
            lambda r: r.error_kinds(), lambda r: r.page(outcome="failed"),
            lambda r: r.for_sample("s3"), lambda r: list(r.finished_trials()), lambda r: list(r.for_configuration("b")),
            lambda r: r.clusters(), lambda r: r.outcomes(),
        ):  # fmt: skip
            yield partial(results, history, name, read)
    yield lambda: compare("run 0", "run 1", history=history, configuration="a")
    yield lambda: history.get_cached_output("0" * 64)


def metrics(history: SQLiteHistory, name: str) -> object:
    return load_report(history, name).metrics


def results(history: SQLiteHistory, name: str, read: Callable[[Any], object]) -> object:
    return read(history.report(name).results)


def check(path: Path) -> int:
    """How many readings are refused; none may end in anything but an error of Proctor's."""
    history = SQLiteHistory(path)
    refused = 0
    for read in readings(history):
        error = refusal(read)
        refused += error is not None
        if isinstance(error, HistoryError):
            assert error.what
            assert error.fix
    history.close()
    return refused


def refusal(read: Callable[[], object]) -> ProctorError | None:
    try:
        read()
    except ProctorError as error:
        return error
    return None


def test_an_intact_history_is_read(whole: Path, tmp_path: Path) -> None:
    """Without damage nothing is refused."""
    assert check(Path(shutil.copy(whole, tmp_path / "h.db"))) == 0


@given(st.integers(0, 2**32 - 1))
@example(316)  # SQLite's own message quotes half a character
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wrong_bytes_anywhere_in_the_file(whole: Path, tmp_path: Path, seed: int) -> None:
    """Flipped bytes, zeros, noise or a missing end are read or reported."""
    chance = random.Random(seed)
    data = bytearray(whole.read_bytes())
    start = chance.randrange(len(data))
    length = chance.choice([1, 4, 100, 4096])
    how = chance.choice(["flip", "zeros", "noise", "cut"])
    if how == "cut":
        del data[start:]
    elif how == "flip":
        data[start] ^= 1 << chance.randrange(8)
    else:
        part = data[start : start + length]
        data[start : start + length] = bytes(len(part)) if how == "zeros" else chance.randbytes(len(part))
    path = tmp_path / "h.db"
    for file in tmp_path.iterdir():
        file.unlink() if file.is_file() else shutil.rmtree(file)
    path.write_bytes(data)
    check(path)


COLUMNS = ("figures", "sample_ids", "clusters", "error_kinds", "spent", "results")


@given(st.integers(0, 2**32 - 1))
@example(15)  # a column is empty, which has the checksum of one that is not there
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wrong_bytes_in_stored_columns(whole: Path, tmp_path: Path, seed: int) -> None:
    """The file is sound for SQLite, and the blocks in it are not.

    A change in a block is never read as a number: its checksum is wrong.
    """
    chance = random.Random(seed)
    path = tmp_path / "h.db"
    for file in tmp_path.iterdir():
        file.unlink() if file.is_file() else shutil.rmtree(file)
    shutil.copy(whole, path)
    table, column = chance.choice([*(("blocks", each) for each in COLUMNS), ("runs", "metadata"), ("runs", "metrics")])
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        key, value = chance.choice(rows)
        data = bytearray(value or b"[]")
        place = chance.randrange(len(data))
        how = chance.choice(["flip", "cut", "noise", "empty", "swap", "list"])
        if how == "flip":
            data[place] ^= 1 << chance.randrange(8)
        elif how == "cut":
            del data[place:]
        elif how == "noise":
            data[place : place + 50] = chance.randbytes(50)
        elif how == "empty":
            data = bytearray()
        elif how == "list":
            data = bytearray(b"[1, null, {}]")
        else:
            data = bytearray(chance.choice(rows)[1] or b"{}")[::-1]
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (bytes(data), key))
    connection.close()
    refused = check(path)
    if table == "blocks" and bytes(data) != (value or b"[]"):
        assert refused


def test_a_wrong_digit_is_not_taken_for_a_number(whole: Path, tmp_path: Path) -> None:
    """One bit of one score: figures, columns and metrics of the run are refused."""
    path = tmp_path / "h.db"
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT rowid, figures FROM blocks").fetchall()
        for key, figures in rows:
            changed = bytearray(figures)
            changed[-2] ^= 1
            connection.execute("UPDATE blocks SET figures = ? WHERE rowid = ?", (changed, key))
    connection.close()
    results = SQLiteHistory(path).report("run 0").results
    with pytest.raises(HistoryError, match="the checksum of its figures is wrong"):
        results.column("contains")


def test_a_completed_run_without_results_is_damaged(whole: Path, tmp_path: Path) -> None:
    """A damaged index can hide all rows of a run; the run is not reported as empty."""
    path = Path(shutil.copy(whole, tmp_path / "h.db"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM blocks WHERE run = (SELECT id FROM runs WHERE name = 'run 0')")
    history = SQLiteHistory(path)
    with pytest.raises(HistoryError, match="all 24 results are missing"):
        history.report("run 0")
    assert len(history.report("run 1").results) == 24
    history.close()


def test_blocks_of_older_versions_are_read_without_checksums(whole: Path, tmp_path: Path) -> None:
    """They have none; what they hold is looked at as far as it can be."""
    path = tmp_path / "h.db"
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE blocks SET checksums = NULL")
    connection.close()
    assert check(path) == 0


@pytest.mark.parametrize(
    ("column", "data", "said"),
    [
        ("figures", b"abc", "the figures are truncated"),
        ("figures", b"\xff" * 4096, ""),
        ("results", b"x\x9c damaged", "the results"),
        ("results", b"{}\n{}", ""),
        ("sample_ids", b"[", "sample_ids"),
        ("sample_ids", b'["a"]', "sample_ids has 1 entries"),
        ("clusters", b"[1]", "the wrong type"),
    ],
)
def test_a_damaged_column_is_named(whole: Path, tmp_path: Path, column: str, data: bytes, said: str) -> None:
    """Which run, which part of it, and what to do."""
    path = tmp_path / "h.db"
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE blocks SET {column} = ?, checksums = NULL", (data,))
    connection.close()
    history = SQLiteHistory(path)
    report = history.report("run 0")
    with pytest.raises(HistoryError, match="the history is damaged") as caught:
        list(report.results), report.results.figures(), list(report.results.samples())
    assert report.run_id in str(caught.value)
    assert said in str(caught.value)
    assert f"proctor delete {report.run_id}" in caught.value.fix


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 90])
def test_a_file_without_a_history_is_refused(content: bytes, tmp_path: Path) -> None:
    """With the reason and another file to take."""
    path = tmp_path / "h.db"
    path.write_bytes(content)
    with pytest.raises(HistoryError, match="cannot be opened") as caught:
        SQLiteHistory(path).runs()
    assert "--history" in caught.value.fix


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    """It is left as it is."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE theirs (id)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="not a Proctor history"):
        SQLiteHistory(path).runs()
    assert path.read_bytes() == before


def test_an_empty_file_is_an_empty_history(tmp_path: Path) -> None:
    """A file that was only touched holds no runs."""
    path = tmp_path / "h.db"
    path.touch()
    assert list(SQLiteHistory(path).runs()) == []
