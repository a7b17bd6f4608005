"""The report as CSV, one row for each trial, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator

from proctor.comparison.report import EvalReport
from proctor.comparison.rows import SESSION_COLUMN, list_columns
from proctor.records.formatting import FORMULA_STARTS as FORMULA_STARTS
from proctor.records.formatting import format_cell as format_cell
from proctor.reports import files

FIRST_COLUMNS = ("sample_id", "configuration", "epoch", "outcome")
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
