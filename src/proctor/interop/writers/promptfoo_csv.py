"""A report as the CSV table of promptfoo: a line per sample and epoch, a group of columns per configuration."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.records import codec
from proctor.records.formatting import format_cell
from proctor.records.trial import EvalResult

STATUSES = {"passed": "PASS", "failed": "FAIL"}
COLUMNS = ("Status", "Score", "Named Scores", "Grader Reason", "Comment")


class PromptfooReporter:
    """Write a report as promptfoo's CSV. An error, or a result without a verdict, has the status ERROR.

    Texts that a spreadsheet would run as a formula start with an apostrophe.

    >>> PromptfooReporter().generate(EvalReport([]))
    'Description\\r\\n'
    """

    extension = "promptfoo.csv"
    signature = "Description,"

    def generate(self, report: EvalReport) -> str:
        """Return the report as text."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\r\n")
        rows: dict[tuple[str, int], dict[str, EvalResult]] = {}
        for result in report.results:
            rows.setdefault((result.sample_id, result.trial.epoch), {})[result.trial.configuration] = result
        names = list(dict.fromkeys(key for row in rows.values() for key in _get_variables(row)))
        columns = list(dict.fromkeys(configuration for row in rows.values() for configuration in row))
        header = ["Description", *names]
        target = report.metadata.target.name if report.metadata else ""
        for name in columns:
            header += [f"[{target}] {name}", *COLUMNS]
        writer.writerow(map(format_cell, header))
        for (sample_id, _), row in rows.items():
            variables = _get_variables(row)
            cells = [sample_id, *(variables.get(name) for name in names)]
            for name in columns:
                cells += _list_cells(row[name]) if name in row else [None] * (len(COLUMNS) + 1)
            writer.writerow(map(format_cell, cells))
        return buffer.getvalue()


def _get_variables(row: Mapping[str, EvalResult]) -> Mapping[str, Any]:
    """Return the input as variables; an input that is not a mapping is the variable `input`."""
    value = next(iter(row.values())).trial.sample.input
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {"input": value}


def _list_cells(result: EvalResult) -> Iterator[Any]:
    outcome, value = result.verdict()
    score = result.score
    yield result.error if result.error is not None else result.output
    yield STATUSES.get(outcome, "ERROR")
    yield "0.00" if value is None else f"{value:.2f}"
    named = {name: part.value for name, part in result.scores.items() if part.value is not None}
    yield codec.encode(named).decode() if named else ""
    yield score.reason
    yield ""
