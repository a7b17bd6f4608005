"""Runs as Parquet, for data frames and warehouses: a row for each result; needs an extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.core import optional as extras
from proctor.history.exchange import rows
from proctor.history.exchange.parts import Placed, WholeRun, damaged
from proctor.history.exchange.rows import RECORD, RUN_RECORD, Row

# A group of rows is in memory at once, on writing and on reading.
ROWS_A_GROUP, CHARACTERS_A_GROUP = 5_000, 8_000_000


class _Drain:
    """A file that keeps what is written until somebody takes it."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        return len(piece)

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def written(runs: Iterable[WholeRun], columns: Mapping[str, str]) -> Iterator[bytes]:
    """The file, in pieces."""
    arrow, parquet = _arrow()
    types = {
        "string": arrow.string(),
        "double": arrow.float64(),
        "int64": arrow.int64(),
        "timestamp": arrow.timestamp("us", tz="UTC"),
    }
    schema = arrow.schema([(name, types[kind]) for name, kind in columns.items()])
    drain = _Drain()
    with parquet.ParquetWriter(drain, schema, compression="zstd") as writer:
        for group in _groups(runs):
            cells = {name: [row.get(name) for row in group] for name in columns}
            writer.write_table(arrow.table(cells, schema=schema))
            yield drain.taken()
    yield drain.taken()


def read(path: Path) -> Iterator[Placed]:
    """The parts of every run in a file, in order."""
    return rows.parts(_records(path))


def _records(path: Path) -> Iterator[tuple[str, str | None, str | None]]:
    arrow, parquet = _arrow()
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for name in (RECORD, RUN_RECORD):
                if name not in file.schema_arrow.names:
                    raise damaged(f"there is no column {name!r}", str(path))
            for batch in file.iter_batches(ROWS_A_GROUP, columns=[RECORD, RUN_RECORD]):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row[RECORD], row[RUN_RECORD]
    except (arrow.ArrowException, OSError) as error:
        what = str(error).partition("\n")[0]
        raise damaged(what, f"{path}, row {number + 1}") from None


def _groups(runs: Iterable[WholeRun]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for run in runs:
        for row in rows.rows(run):
            group.append(row)
            size += sum(len(cell) for cell in row.values() if isinstance(cell, str))
            if len(group) >= ROWS_A_GROUP or size >= CHARACTERS_A_GROUP:
                yield group
                group, size = [], 0
    if group:
        yield group


def _arrow() -> tuple[Any, Any]:
    return (
        extras.require("pyarrow", extra="parquet", why="Parquet"),
        extras.require("pyarrow.parquet", extra="parquet", why="Parquet"),
    )
