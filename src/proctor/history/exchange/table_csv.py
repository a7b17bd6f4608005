"""Runs as CSV, for spreadsheets: a row for each result, and no cell that would be run there."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from proctor.history.exchange import rows
from proctor.history.exchange.parts import Placed, WholeRun, damaged
from proctor.history.exchange.rows import RECORD, RUN_RECORD

ROWS_AT_ONCE = 100
# What a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
# A record may be long; without this a cell could not have more than 131,072 characters.
LONGEST_CELL = 2**31 - 1
# Cells are put into quotes that hold any of this, for each would end a row where it is read.
END = "\r\n"


class _Lines:
    """A file that keeps lines until somebody takes them."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def write(self, line: str) -> None:
        self._lines.append(f"{line.removesuffix(END)}\n")

    def taken(self) -> bytes:
        lines, self._lines = self._lines, []
        return "".join(lines).encode()


def written(runs: Iterable[WholeRun], columns: Iterable[str]) -> Iterator[bytes]:
    """The file, in pieces."""
    names = list(columns)
    lines = _Lines()
    writer = csv.writer(lines, lineterminator=END)
    writer.writerow(names)
    number = 0
    for run in runs:
        for row in rows.rows(run):
            writer.writerow([harmless(cell) for cell in rows.in_order(row, names)])
            number += 1
            if number % ROWS_AT_ONCE == 0:
                yield lines.taken()
    yield lines.taken()


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet runs: such a text gets an apostrophe in front, as they do it.

    The record beside it has the text as it is.

    >>> harmless("=1+1"), harmless("two"), harmless(-1.5)
    ("'=1+1", 'two', -1.5)
    """
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, str) and cell.startswith(FORMULA):
        return f"'{cell}"
    return cell


def read(path: Path) -> Iterator[Placed]:
    """The parts of every run in a file, in order."""
    return rows.parts(_records(path))


def _records(path: Path) -> Iterator[tuple[str, str | None, str | None]]:
    csv.field_size_limit(LONGEST_CELL)
    line = 1
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.reader(file, strict=True)
        try:
            header = next(table, [])
            wanted = [_place(header, name, path) for name in (RECORD, RUN_RECORD)]
            for cells in table:
                first, line = line + 1, table.line_num
                if len(cells) != len(header):
                    what = f"this row has {len(cells)} cells, the header has {len(header)}"
                    raise damaged(what, f"{path}:{first}")
                record, run_record = (cells[place] for place in wanted)
                yield f"{path}:{first}", record, run_record
        except (csv.Error, UnicodeDecodeError) as error:
            raise damaged(str(error), f"{path}:{line + 1}") from None


def _place(header: list[str], name: str, path: Path) -> int:
    if name not in header:
        raise damaged(f"there is no column {name!r}", f"{path}:1")
    return header.index(name)
