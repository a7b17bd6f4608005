"""A run that is exported and imported is the same, in every format."""

from __future__ import annotations

import csv
import io
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proctor.errors import HistoryError, MissingExtra, UsageError
from proctor.history.block import split_lines
from proctor.history.exchange import tables
from proctor.history.exchange.parts import FORMATS, Format, detect_format
from proctor.history.exchange.write import export_runs
from proctor.history.sqlite import SQLiteHistory
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial
from tests.exchange.examples import ODD, RUN, everything, filled, take, write
from tests.history.history_contract import make_result, make_run, store_run


def lines(history: SQLiteHistory) -> list[bytes]:
    """The results as they lie in the file, byte for byte."""
    rows = history._query("SELECT results FROM blocks ORDER BY run, id")
    return sorted(line for (stored,) in rows for line in split_lines(stored))


@pytest.mark.parametrize("as_", FORMATS)
def test_nothing_is_lost(tmp_path: Path, as_: Format) -> None:
    """Metadata, results, sessions, errors, metrics, reports, places, baselines; byte for byte."""
    history = filled(tmp_path / "h.db")
    other = SQLiteHistory(tmp_path / "other.db")
    file = write(history, tmp_path / f"runs.{as_}", as_)
    imports = take(other, file)
    assert [(item.run_id, item.results, item.new) for item in imports] == [
        (RUN.run_id, 4, True), ("gaps", 3, True), ("killed", 2, True), ("begun", 0, True),
    ]  # fmt: skip
    assert imports[0].baselines == ["größer", "main"]
    assert everything(other) == everything(history)
    assert lines(other) == lines(history)
    again = write(other, tmp_path / f"again.{as_}", as_)
    if as_ != "parquet":
        assert again.read_bytes() == file.read_bytes()
    assert write(other, tmp_path / "a", "jsonl").read_bytes() == write(history, tmp_path / "b", "jsonl").read_bytes()


@pytest.mark.parametrize("as_", FORMATS)
def test_existing_runs_are_skipped(tmp_path: Path, as_: Format) -> None:
    """Equal runs are reported and unchanged, so an interrupted import can be repeated."""
    history = filled(tmp_path / "h.db")
    before = everything(history)
    imports = take(history, write(history, tmp_path / f"runs.{as_}", as_))
    assert [(item.new, item.results) for item in imports] == [
        (False, 4), (False, 3), (False, 2), (False, 0),
    ]  # fmt: skip
    assert everything(history) == before


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(), values, values, st.floats(0, 1), st.text(), values), max_size=4))
@example([("\r", None, None, 0.0, "", None)])
def test_every_result_is_read_back(tmp_path: Path, given: list[Any]) -> None:
    """Any text, number and nesting, in all three formats."""
    folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    history = SQLiteHistory(folder / "h.db")
    store_run(
        history,
        make_run("r1"),
        [
            EvalResult(Trial(Sample(name, asked, wanted), message), {"exact": Score(value, True, why)})
            for name, asked, message, value, why, wanted in given
        ],
    )
    for as_ in FORMATS:
        with_file = SQLiteHistory(folder / f"{as_}.db")
        take(with_file, write(history, folder / f"runs.{as_}", as_))
        assert lines(with_file) == lines(history)
        with_file.close()
    history.close()


def test_json_lines_contain_a_run_its_results_and_its_metrics(tmp_path: Path) -> None:
    """A line each, each telling which part it is."""
    history = filled(tmp_path / "h.db")
    text = b"".join(export_runs(history, [history.find(RUN.run_id)], "jsonl")).decode()
    starts = [line[:22] for line in text.split("\n")]
    assert starts == ['{"part":"run","proctor', *['{"part":"result","posi'] * 4, '{"part":"end","run_id"', ""]


def test_a_table_has_the_expected_columns(tmp_path: Path) -> None:
    """A row for each result, numbers as numbers, and a column for each evaluator's score."""
    history = filled(tmp_path / "h.db")
    text = b"".join(export_runs(history, [history.find(RUN.run_id)], "csv")).decode()
    result = list(csv.DictReader(io.StringIO(text, newline="")))
    assert list(result[0]) == [
        "run_id", "run_name", "run_began", "configuration", "sample_id", "epoch", "outcome",
        "value", "latency_ms", "tokens", "cost", "error", "input", "expected", "output",
        "score.exact", "score.judge", "record", "run_record",
    ]  # fmt: skip
    first, second, third, fourth = result
    assert (first["run_name"], first["run_began"]) == ("exam ü", "2026-03-01T08:30:15.123456+00:00")
    assert (first["sample_id"], first["outcome"], first["tokens"]) == ("a", "failed", "15")
    assert (float(first["latency_ms"]), float(first["cost"])) == (1 / 3, 0.1 + 0.2)
    assert (first["score.exact"], first["score.judge"]) == ("1.0", "0.1")
    assert first["input"] == ODD
    assert (second["outcome"], second["value"], second["score.judge"]) == ("failed", "0.3333333333333333", "")
    assert (third["error"].startswith("TimeoutError: "), third["epoch"]) == (True, "1")
    assert (fourth["output"], fourth["configuration"]) == ("", "large")
    assert [bool(row["run_record"]) for row in result] == [True, False, False, False]


def test_no_cell_is_a_spreadsheet_formula(tmp_path: Path) -> None:
    """What begins like a formula has an apostrophe before it; the record has it as it was."""
    history = filled(tmp_path / "h.db")
    text = b"".join(export_runs(history, [history.find(RUN.run_id)], "csv")).decode()
    second = list(csv.DictReader(io.StringIO(text, newline="")))[1]
    assert second["sample_id"] == "'=1+1"
    assert second["input"] == "'=cmd|'/c calc'!A1"
    assert (second["expected"], second["output"]) == ("'-5", "'@SUM(A1)")
    for row in csv.reader(io.StringIO(text, newline="")):
        assert not [cell for cell in row if cell.startswith(tables.FORMULA_STARTS)]


def test_other_programs_read_the_parquet_file(tmp_path: Path) -> None:
    """Typed columns: numbers, and a time with its zone."""
    parquet = pytest.importorskip("pyarrow.parquet")
    history = filled(tmp_path / "h.db")
    file = write(history, tmp_path / "runs.parquet", "parquet")
    table = parquet.read_table(file)
    assert table.num_rows == 10
    assert str(table.schema.field("run_began").type) == "timestamp[us, tz=UTC]"
    assert table.column("score.exact").to_pylist()[:2] == [1.0, 1 / 3]
    assert table.column("input").to_pylist()[1] == "=cmd|'/c calc'!A1"
    assert table.column("tokens").to_pylist()[0] == 15


def test_many_rows_are_written_in_groups(tmp_path: Path) -> None:
    """Groups are limited by rows or by size; all rows are read back."""
    parquet = pytest.importorskip("pyarrow.parquet")
    history = SQLiteHistory(tmp_path / "h.db")
    store_run(history, make_run("r1"), [make_result(f"s{n}") for n in range(5_001)])
    store_run(history, make_run("r2"), [make_result(f"s{n}", text="x" * 2_000_000) for n in range(3)])
    file = write(history, tmp_path / "runs.parquet", "parquet")
    groups = parquet.ParquetFile(file).metadata
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [5_000, 3, 1]
    other = SQLiteHistory(tmp_path / "other.db")
    assert [item.results for item in take(other, file)] == [5_001, 3]
    assert lines(other) == lines(history)


class Shrinking:
    """A history that loses a result between two looks."""

    def __init__(self, history: SQLiteHistory) -> None:
        self._history = history

    def __getattr__(self, name: str) -> Any:
        return getattr(self._history, name)

    def results(self, run_id: str) -> Any:
        return list(self._history.results(run_id))[:-1]


def test_a_run_that_changes_during_the_export_is_refused(tmp_path: Path) -> None:
    """After a resume or a deletion, the error asks to export it again."""
    history: Any = Shrinking(filled(tmp_path / "h.db"))
    with pytest.raises(HistoryError, match="have changed while they were read"):
        b"".join(export_runs(history, [history.find("gaps")], "jsonl"))


def test_a_running_run_is_not_exported(tmp_path: Path) -> None:
    """It would be half of it."""
    history = filled(tmp_path / "h.db")
    with history.claim("killed"), pytest.raises(UsageError, match="killed is still running"):
        export_runs(history, history.runs(), "jsonl")


def test_the_format_comes_from_the_option_or_the_file_name() -> None:
    """By the file extension in any case; the option takes precedence."""
    assert [detect_format(Path(name)) for name in ("a.ndjson", "b.CSV", "c.pq")] == list(FORMATS)
    assert detect_format(Path("a.csv"), "jsonl") == "jsonl"
    with pytest.raises(UsageError, match=r"unknown file extension '\.xlsx'"):
        detect_format(Path("runs.xlsx"))


def test_parquet_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to install is in the error."""
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    history = filled(tmp_path / "h.db")
    with pytest.raises(MissingExtra, match=r"proctor\[parquet\]"):
        b"".join(export_runs(history, history.runs(), "parquet"))


@pytest.mark.parametrize("as_", ["jsonl", "csv"])
def test_memory_stays_flat(tmp_path: Path, as_: Format) -> None:
    """Some results are in memory at a time, not all: 10 MB of them take less."""
    history = SQLiteHistory(tmp_path / "h.db")
    text = "an output that is long enough to be seen " * 25
    store_run(history, make_run("r1"), [make_result(f"s{n}", text=text) for n in range(9_000)])
    runs = history.runs()
    # What is loaded only once is no part of it.
    file = tmp_path / f"runs.{as_}"
    list(export_runs(history, [], as_))
    tracemalloc.start()
    try:
        with file.open("wb") as out:
            out.writelines(export_runs(history, runs, as_))
        take(SQLiteHistory(tmp_path / "other.db"), file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert file.stat().st_size > 10e6
    assert peak < 8e6


@pytest.mark.parametrize("as_", FORMATS)
def test_half_an_emoji_survives(tmp_path: Path, as_: Format) -> None:
    """The cells for people show its escape; the stored record has the output itself."""
    history, other = SQLiteHistory(tmp_path / "h.db"), SQLiteHistory(tmp_path / "other.db")
    result = EvalResult(Trial(Sample("s", "q"), "ok \ud83d"), {"same": Score(0.0, False, "no")})
    store_run(history, make_run(RUN.run_id), [result])
    take(other, write(history, tmp_path / f"runs.{as_}", as_))
    [stored] = other.results(RUN.run_id)
    assert stored.output == "ok \ud83d"
