"""Tables as text: values between commas, or between tabs."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator

from proctor.errors import EvaluatorError
from proctor.evaluators.formats.fault import Fault
from proctor.evaluators.formats.terms import Terms


def comma_separated(text: str, terms: Terms) -> Fault | None:
    """A table by RFC 4180: every row has as many values, quotation marks are closed.

    Empty lines are passed over. With `header` the first row names the columns, each once.
    """
    return _table(_csv_rows(text, terms.delimiter), terms)


def tab_separated(text: str, terms: Terms) -> Fault | None:
    """A table with tabs between the values, which therefore hold none, and no quotation marks."""
    return _table(_tsv_rows(text), terms)


def _csv_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]] | Fault]:
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    start = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if "limit" in str(error):
                raise EvaluatorError(f"a value is too long to be read: {error}") from None
            yield Fault(str(error), start)
            break
        if row:
            yield start, row
        start = reader.line_num + 1


def _tsv_rows(text: str) -> Iterator[tuple[int, list[str]] | Fault]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line:
            yield number, line.split("\t")


def _table(rows: Iterator[tuple[int, list[str]] | Fault], terms: Terms) -> Fault | None:
    width = None
    for row in rows:
        if isinstance(row, Fault):
            return row
        number, values = row
        if width is None:
            width = len(values)
            if fault := _first_row(number, values, terms):
                return fault
        elif len(values) != width:
            unit = "value" if len(values) == 1 else "values"
            return Fault(f"the row has {len(values)} {unit}, the first one has {width}", number)
    return Fault("there is no row") if width is None else None


def _first_row(line: int, values: list[str], terms: Terms) -> Fault | None:
    wanted = terms.columns
    if wanted is None and len(values) == 1:
        return Fault("there is a single column, as in any text (columns=1 allows it)", line)
    if isinstance(wanted, int) and wanted != len(values):
        unit = "column" if len(values) == 1 else "columns"
        return Fault(f"it has {len(values)} {unit}, not {wanted}", line)
    if isinstance(wanted, tuple) and list(wanted) != values:
        return Fault(f"the columns are {', '.join(values)}, not {', '.join(wanted)}", line)
    if not terms.header:
        return None
    names = [name.strip() for name in values]
    if "" in names:
        return Fault(f"column {names.index('') + 1} has no name", line)
    name, count = Counter(names).most_common(1)[0]
    return Fault(f"{count} columns are called {name!r}", line) if count > 1 else None
