"""Runs as Parquet, for data frames and warehouses: one row per result. Needs an extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.core import optional as extras
from proctor.history.exchange import rows
from proctor.history.exchange.parts import LocatedPart, WholeRun, damaged_file
from proctor.history.exchange.rows import RECORD, RUN_RECORD, Row, StoredRow

# One group of rows is in memory at a time, for writing and for reading.
ROWS_PER_GROUP, CHARACTERS_PER_GROUP = 5_000, 8_000_000


class _ChunkBuffer:
    """A writable file that holds its content until `take` returns it."""

    closed = False

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, data: Any) -> int:
        chunk = bytes(data)
        self._chunks.append(chunk)
        return len(chunk)

    def take(self) -> bytes:
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)


def encode_runs(runs: Iterable[WholeRun], columns: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the content of the file in chunks."""
    arrow, parquet = _import_arrow()
    types = {
        "string": arrow.string(),
        "double": arrow.float64(),
        "int64": arrow.int64(),
        "timestamp": arrow.timestamp("us", tz="UTC"),
    }
    schema = arrow.schema([(name, types[kind]) for name, kind in columns.items()])
    buffer = _ChunkBuffer()
    with parquet.ParquetWriter(buffer, schema, compression="zstd") as writer:
        for group in _group_rows(runs):
            cells = {name: [row.get(name) for row in group] for name in columns}
            writer.write_table(arrow.table(cells, schema=schema))
            yield buffer.take()
    yield buffer.take()


def read_parts(path: Path) -> Iterator[LocatedPart]:
    """Yield the parts of every run in a file, in order."""
    return rows.parse_rows(_read_rows(path))


def _read_rows(path: Path) -> Iterator[StoredRow]:
    arrow, parquet = _import_arrow()
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for name in (RECORD, RUN_RECORD):
                if name not in file.schema_arrow.names:
                    raise damaged_file(f"there is no column {name!r}", str(path))
            for batch in file.iter_batches(ROWS_PER_GROUP, columns=[RECORD, RUN_RECORD]):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row[RECORD], row[RUN_RECORD]
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise damaged_file(reason, f"{path}, row {number + 1}") from None


def _group_rows(runs: Iterable[WholeRun]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for run in runs:
        for row in rows.run_rows(run):
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
