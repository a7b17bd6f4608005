"""Runs as tables, one row per result: CSV for spreadsheets, Parquet for data frames and warehouses.

A row has readable columns, and columns with the complete records.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from proctor.core import optional as extras
from proctor.history.exchange.parts import EndPart, ExportedRun, Frame, LocatedPart, ResultPart, damaged_file, read_part
from proctor.records import codec
from proctor.records.lossless import restore_result
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

# The readable columns and their Parquet types.
COLUMNS = {
    "run_id": "string",
    "run_name": "string",
    "run_began": "timestamp",
    "configuration": "string",
    "sample_id": "string",
    "epoch": "int64",
    "outcome": "string",
    "value": "double",
    "latency_ms": "double",
    "tokens": "int64",
    "cost": "double",
    "error": "string",
    "input": "string",
    "expected": "string",
    "output": "string",
}
SCORE = "score."
RECORD, RUN_RECORD = "record", "run_record"
MAX_INT = 2**63 - 1

Row = dict[str, Any]
# The location of a row in a file, its record, and the run's record if it is the first of a run.
StoredRow = tuple[str, str | None, str | None]


def table_columns(runs: Iterable[RunMetadata]) -> dict[str, str]:
    """Return the columns of a table of these runs and their types, with one column per evaluator."""
    names = dict.fromkeys(SCORE + spec.name for run in runs for spec in run.evaluators)
    return {**COLUMNS, **dict.fromkeys(names, "double"), RECORD: "string", RUN_RECORD: "string"}


def run_rows(run: ExportedRun) -> Iterator[Row]:
    """Yield a row for each result; the first row also has the run's record, even without a result."""
    frame, results = run
    metadata = frame.run.metadata
    run_cells = {"run_id": metadata.run_id, "run_name": metadata.name, "run_began": metadata.started_at}
    run_record: str | None = codec.encode(frame).decode()
    for part in results:
        row = run_cells | _result_cells(restore_result(part.result))
        yield {**row, RECORD: codec.encode(part).decode(), RUN_RECORD: run_record}
        run_record = None
    if run_record is not None:
        yield {**run_cells, RUN_RECORD: run_record}


def parse_rows(stored_rows: Iterable[StoredRow]) -> Iterator[LocatedPart]:
    """Yield the parts of every run in the rows of a file."""
    end: EndPart | None = None
    where = ""
    for where, record, run_record in stored_rows:
        if run_record:
            frame: Frame = read_part(run_record, Frame, where)
            if end is not None:
                yield LocatedPart(where, end)
            yield LocatedPart(where, frame.run)
            end = frame.end
        if record:
            yield LocatedPart(where, read_part(record, ResultPart, where))
    if end is not None:
        yield LocatedPart(where, end)


def _result_cells(result: EvalResult) -> Row:
    trial = result.trial
    usage = trial.usage
    tokens = None if usage is None else usage.total_tokens
    outcome, value = result.verdict()
    return {
        "configuration": trial.configuration,
        "sample_id": result.sample_id,
        "epoch": trial.epoch,
        "outcome": outcome,
        "value": value,
        "latency_ms": trial.latency_ms,
        "tokens": None if tokens is None or abs(tokens) > MAX_INT else tokens,
        "cost": None if usage is None else usage.cost,
        "error": _text(result.error),
        "input": _text(trial.sample.input),
        "expected": _text(trial.sample.expected),
        "output": _text(trial.output) if result.success else None,
        **{SCORE + name: score.value for name, score in result.scores.items()},
    }


def _text(value: Any) -> str | None:
    """Return a string, with lone surrogates as escapes, and any other value as JSON; None stays None."""
    if value is None or isinstance(value, str):
        return value if value is None or value.isascii() else codec.escape_surrogates(value)
    return codec.encode_any_text(value).decode()


ROWS_PER_CHUNK = 100
# Spreadsheets treat a cell that starts with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# Records can be longer than the default limit of 131,072 characters.
MAX_CELL_LENGTH = 2**31 - 1
# The csv writer quotes cells that contain a character of its line terminator; readers end a row at either character.
TERMINATOR = "\r\n"


class _Buffer:
    """A writable file that holds its content until `take` returns it."""

    closed = False

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, data: Any) -> int:
        chunk = f"{data.removesuffix(TERMINATOR)}\n".encode() if isinstance(data, str) else bytes(data)
        self._chunks.append(chunk)
        return len(chunk)

    def take(self) -> bytes:
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)


def encode_csv(runs: Iterable[ExportedRun], columns: Iterable[str]) -> Iterator[bytes]:
    """Yield the content of the file in chunks."""
    names = list(columns)
    buffer = _Buffer()
    writer = csv.writer(buffer, lineterminator=TERMINATOR)
    writer.writerow(names)
    number = 0
    for run in runs:
        for row in run_rows(run):
            writer.writerow([escape_formula(cell) for cell in map(row.get, names)])
            number += 1
            if number % ROWS_PER_CHUNK == 0:
                yield buffer.take()
    yield buffer.take()


def escape_formula(cell: Any) -> Any:
    """Return a cell that no spreadsheet executes: text that looks like a formula gets a leading apostrophe.

    The record in the same row has the original text.
    """
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, str) and cell.startswith(FORMULA_STARTS):
        return f"'{cell}"
    return cell


def read_csv(path: Path) -> Iterator[StoredRow]:
    """Yield the rows of a CSV file."""
    csv.field_size_limit(MAX_CELL_LENGTH)
    line = 1
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.reader(file, strict=True)
        try:
            header = next(table, [])
            _require_columns(header, f"{path}:1")
            indexes = [header.index(name) for name in (RECORD, RUN_RECORD)]
            for cells in table:
                first, line = line + 1, table.line_num
                if len(cells) != len(header):
                    reason = f"this row has {len(cells)} cells; the header has {len(header)}"
                    raise damaged_file(reason, f"{path}:{first}")
                record, run_record = (cells[index] for index in indexes)
                yield f"{path}:{first}", record, run_record
        except (csv.Error, UnicodeDecodeError) as error:
            raise damaged_file(str(error), f"{path}:{line + 1}") from None


def _require_columns(names: Iterable[str], where: str) -> None:
    for name in (RECORD, RUN_RECORD):
        if name not in names:
            raise damaged_file(f"unknown column {name!r}", where)


# One group of rows is in memory at a time, for writing and for reading.
ROWS_PER_GROUP, CHARACTERS_PER_GROUP = 5_000, 8_000_000


def encode_parquet(runs: Iterable[ExportedRun], columns: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the content of the file in chunks."""
    arrow, parquet = _import_arrow()
    types = {
        "string": arrow.string(),
        "double": arrow.float64(),
        "int64": arrow.int64(),
        "timestamp": arrow.timestamp("us", tz="UTC"),
    }
    schema = arrow.schema([(name, types[kind]) for name, kind in columns.items()])
    buffer = _Buffer()
    with parquet.ParquetWriter(buffer, schema, compression="zstd") as writer:
        for group in _group_rows(runs):
            cells = {name: [row.get(name) for row in group] for name in columns}
            writer.write_table(arrow.table(cells, schema=schema))
            yield buffer.take()
    yield buffer.take()


def read_parquet(path: Path) -> Iterator[StoredRow]:
    """Yield the rows of a Parquet file."""
    arrow, parquet = _import_arrow()
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            _require_columns(file.schema_arrow.names, str(path))
            for batch in file.iter_batches(ROWS_PER_GROUP, columns=[RECORD, RUN_RECORD]):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row[RECORD], row[RUN_RECORD]
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise damaged_file(reason, f"{path}, row {number + 1}") from None


def _group_rows(runs: Iterable[ExportedRun]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for run in runs:
        for row in run_rows(run):
            group.append(row)
            size += sum(len(cell) for cell in row.values() if isinstance(cell, str))
            if len(group) >= ROWS_PER_GROUP or size >= CHARACTERS_PER_GROUP:
                yield group
                group, size = [], 0
    if group:
        yield group


def _import_arrow() -> tuple[Any, Any]:
    return (
        extras.require("pyarrow", extra="parquet", why="Parquet"),
        extras.require("pyarrow.parquet", extra="parquet", why="Parquet"),
    )
