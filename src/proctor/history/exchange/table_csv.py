"""Runs as CSV, for spreadsheets: one row per result, without cells that run as formulas."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from proctor.history.exchange import rows
from proctor.history.exchange.parts import LocatedPart, WholeRun, damaged_file
from proctor.history.exchange.rows import RECORD, RUN_RECORD, StoredRow

ROWS_PER_CHUNK = 100
# Spreadsheets treat a cell that starts with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# Records can be longer than the default limit of 131,072 characters.
MAX_CELL_LENGTH = 2**31 - 1
# The csv writer quotes cells that contain any character of its line terminator; both end a row for readers.
TERMINATOR = "\r\n"


class _LineBuffer:
    """A writable file that holds its lines until `take` returns them."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def write(self, line: str) -> None:
        self._lines.append(f"{line.removesuffix(TERMINATOR)}\n")

    def take(self) -> bytes:
        lines, self._lines = self._lines, []
        return "".join(lines).encode()


def encode_runs(runs: Iterable[WholeRun], columns: Iterable[str]) -> Iterator[bytes]:
    """Yield the content of the file in chunks."""
    names = list(columns)
    buffer = _LineBuffer()
    writer = csv.writer(buffer, lineterminator=TERMINATOR)
    writer.writerow(names)
    number = 0
    for run in runs:
        for row in rows.run_rows(run):
            writer.writerow([escape_formula(cell) for cell in rows.ordered_cells(row, names)])
            number += 1
            if number % ROWS_PER_CHUNK == 0:
                yield buffer.take()
    yield buffer.take()


def escape_formula(cell: Any) -> Any:
    """Return a cell that no spreadsheet runs: a text like a formula gets a leading apostrophe.

    The record in the same row has the original text.
    """
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, str) and cell.startswith(FORMULA_STARTS):
        return f"'{cell}"
    return cell


def read_parts(path: Path) -> Iterator[LocatedPart]:
    """Yield the parts of every run in a file, in order."""
    return rows.parse_rows(_read_rows(path))


def _read_rows(path: Path) -> Iterator[StoredRow]:
    csv.field_size_limit(MAX_CELL_LENGTH)
    line = 1
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.reader(file, strict=True)
        try:
            header = next(table, [])
            indexes = [_column_index(header, name, path) for name in (RECORD, RUN_RECORD)]
            for cells in table:
                first, line = line + 1, table.line_num
                if len(cells) != len(header):
                    reason = f"this row has {len(cells)} cells; the header has {len(header)}"
                    raise damaged_file(reason, f"{path}:{first}")
                record, run_record = (cells[index] for index in indexes)
                yield f"{path}:{first}", record, run_record
        except (csv.Error, UnicodeDecodeError) as error:
            raise damaged_file(str(error), f"{path}:{line + 1}") from None


def _column_index(header: list[str], name: str, path: Path) -> int:
    if name not in header:
        raise damaged_file(f"there is no column {name!r}", f"{path}:1")
    return header.index(name)
