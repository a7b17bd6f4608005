"""The report as CSV, one row for each trial, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.comparison.rows import SESSION_COLUMN, list_columns
from proctor.records import codec
from proctor.reports import files

FIRST_COLUMNS = ("sample_id", "configuration", "epoch", "outcome")
# Spreadsheets read cells with these first characters as formulas; some read the full-width forms too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# The csv writer quotes cells that contain a character of its line terminator; readers end a row at either character.
TERMINATOR = "\r\n"
ROWS_PER_CHUNK = 500


class CSVReporter:
    """Write a report as CSV: input, output, scores with their reasons, metadata, latency, tokens and cost of a trial.

    Texts that a spreadsheet would run as a formula start with an apostrophe. Lists and mappings are JSON texts.

    >>> CSVReporter().generate(EvalReport([]))
    'sample_id,configuration,epoch,outcome\\r\\n'
    """

    extension = "csv"
    signature = "sample_id,configuration,epoch,outcome"

    def generate(self, report: EvalReport) -> str:
        """Return the report as text."""
        return "".join(_chunks(report))

    def save(self, report: EvalReport, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, some rows at a time."""
        files.write_file(path, (chunk.encode(errors="backslashreplace") for chunk in _chunks(report)))


def _chunks(report: EvalReport) -> Iterator[str]:
    columns = [name for name in list_columns(report.iter_rows()) or FIRST_COLUMNS if name != SESSION_COLUMN]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator=TERMINATOR)
    writer.writerow(map(format_cell, columns))
    for number, row in enumerate(report.iter_rows(), start=1):
        # People count epochs from 1.
        row = {**row, "epoch": row["epoch"] + 1}
        writer.writerow([format_cell(row.get(name)) for name in columns])
        if number % ROWS_PER_CHUNK == 0:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def format_cell(value: Any) -> str:
    """Return a value as a cell that no spreadsheet runs as a formula; numbers stay numbers.

    >>> [format_cell(value) for value in (None, True, -0.5, "=1+1", "-1", ["a"])]
    ['', 'true', '-0.5', "'=1+1", "'-1", '["a"]']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = value if isinstance(value, str) else codec.to_text(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
