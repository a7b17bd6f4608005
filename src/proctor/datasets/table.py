"""CSV and TSV files: a header with column names, then one sample per row."""

from __future__ import annotations

import csv
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from proctor.datasets.files import (
    MAX_LINE_BYTES,
    FileDataset,
    decode_line,
    long_line_problem,
    open_data,
    read_numbered_lines,
)
from proctor.datasets.jsonl import EMPTY_FILE
from proctor.datasets.mapping import EVALUATORS, FIELDS, FieldPath, find_missing_keys, missing_key_problem
from proctor.datasets.problems import InvalidRecord, ReportProblems, describe_value, shorten
from proctor.datasets.record import ID_FIX, Rules
from proctor.datasets.type_readers import Reader, field_type, make_reader
from proctor.errors import DatasetError, Problem
from proctor.records.sample import LABELS, TAGS, Sample

MAX_COLUMNS = 10_000
MAX_HEADER_BYTES = 64 * 1024

CellReader = Callable[[str], Any]


def make_cell_reader(path: FieldPath, rules: Rules) -> CellReader | None:
    """Return a function that converts a cell to a plain value, or None if the value is the text of the cell.

    Cells of a declared type other than a string hold JSON: 42, true, ["a", "b"]. Cells of the fields metadata and
    labels are JSON mappings; tags and evaluators are a JSON list, or words separated by commas.
    """
    if path in (("metadata",), ("metadata", LABELS)):
        return _json_mapping_reader(".".join(path))
    if path in (("metadata", TAGS), (EVALUATORS,)):
        return _parse_list
    if path[0] not in ("input", "expected"):
        return None
    declared = rules.input_type if path[0] == "input" else rules.expected_type
    read = make_reader(field_type(declared, path[1]) if len(path) > 1 else declared, path[0])
    return None if read is None else _typed_cell_reader(read)


def _typed_cell_reader(read: Reader) -> CellReader:
    def read_cell(text: str) -> Any:
        try:
            read(text)
        except InvalidRecord:
            return _parse_json_or_text(text)
        return text

    return read_cell


def _parse_json_or_text(text: str) -> Any:
    # Text that is not JSON stays unchanged; the conversion to the type then explains the problem.
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


def _json_mapping_reader(field: str) -> CellReader:
    def read_cell(text: str) -> Any:
        value = _parse_json_or_text(text)
        if isinstance(value, dict):
            return value
        fix = 'write it as JSON: {"key": "value"}'
        raise InvalidRecord([Problem(field, f"must be a JSON mapping, got {describe_value(text)}", fix)])

    return read_cell


def _parse_list(text: str) -> Any:
    if text.lstrip().startswith(("[", "{")):
        return _parse_json_or_text(text)
    return [word.strip() for word in text.split(",") if word.strip()]


class CSVDataset(FileDataset):
    """Samples from a CSV or TSV file with a header, read row by row on each pass.

    `mapping` maps columns to fields: `{"question": "input", "answer": "expected"}`. Columns with the name of a field
    need no mapping; other columns become metadata. Cells are text, or JSON if a type is declared. An empty cell is a
    missing value. The default `delimiter` is a tab for .tsv files and a comma for others; if the header does not
    contain it, semicolons, tabs and bars are tried.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> path = Path(folder.name, "qa.csv")
    >>> _ = path.write_text("id,question,answer\\n1,2 + 2,4\\n")
    >>> [s.expected for s in CSVDataset(path, {"question": "input", "answer": "expected"})]
    ['4']
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | Path,
        mapping: Mapping[str, str] | None = None,
        input_type: Any = Any,
        expected_type: Any = Any,
        *,
        generate_ids: bool = False,
        delimiter: str | None = None,
    ) -> None:
        super().__init__(path, input_type, expected_type, mapping=mapping, generate_ids=generate_ids)
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise DatasetError(
                f"the delimiter must be one character, but not a quote or a line break, got {delimiter!r}",
                where=str(path),
                fix="write --delimiter ';' (in Python: delimiter=';')",
            )
        self._delimiter = delimiter

    def _rows(self, report: ReportProblems) -> Iterator[tuple[int, Sample[Any, Any]]]:
        has_unreadable_lines = False

        def report_line(number: int, problems: Sequence[Problem]) -> None:
            nonlocal has_unreadable_lines
            has_unreadable_lines = True
            report(number, problems)

        with open_data(self._file) as file:
            delimiter = self._delimiter or self._detect_delimiter(file)
            table = _read_rows(file, delimiter, report_line)
            stripped = ((number, [name.strip() for name in row]) for number, row in table)
            line, header = next((row for row in stripped if row[1] != [""]), (0, []))
            if has_unreadable_lines:
                # The line after an unreadable header is not the header.
                return
            if problems := self._find_header_problems(header):
                report(line, problems)
                return
            cell_readers = self._cell_readers(header)
            empty = True
            for number, row in table:
                empty = False
                try:
                    sample = self._reader.sample(self._read_record(header, row, cell_readers))
                except InvalidRecord as invalid:
                    report(number, invalid.problems)
                    continue
                yield number, sample
        if empty and not has_unreadable_lines:
            report(0, [Problem("", "no samples: the file has only a header")])

    def _detect_delimiter(self, file: BinaryIO) -> str:
        """Return the delimiter for the suffix, unless the header contains only a different delimiter."""
        is_tsv = self.path.name.lower().removesuffix(".gz").endswith(".tsv")
        usual = "\t" if is_tsv else ","
        start = file.tell()
        header = file.readline(MAX_HEADER_BYTES).decode("utf-8", "replace")
        file.seek(start)
        delimiter = usual if usual in header else (_find_delimiter(header) or usual)
        self.details = {} if delimiter == usual else {"delimiter": delimiter}
        return delimiter

    def _read_record(
        self, header: Sequence[str], row: Sequence[str], cell_readers: Mapping[str, CellReader]
    ) -> Mapping[str, Any]:
        """Convert a row to a record; empty cells are omitted, except an input that may be null."""
        if len(row) != len(header):
            fix = "give every row as many cells as the header; quote cells that contain the delimiter"
            raise InvalidRecord(
                [Problem("", f"the row has {len(row)} cell{'s' * (len(row) != 1)}, the header has {len(header)}", fix)]
            )
        record: dict[str, Any] = {name: text for name, text in zip(header, row, strict=True) if text}
        problems: list[Problem] = []
        for name, read in cell_readers.items():
            if name in record:
                try:
                    record[name] = read(record[name])
                except InvalidRecord as invalid:
                    problems += invalid.problems
        if problems:
            raise InvalidRecord(problems)
        if self._reader.null_input:
            for name in header:
                if self._reader.paths.get(name, (name,)) == ("input",):
                    record.setdefault(name, None)
        return record

    def _cell_readers(self, header: Sequence[str]) -> dict[str, CellReader]:
        shorthands: dict[str, FieldPath] = {LABELS: ("metadata", LABELS), TAGS: ("metadata", TAGS)}
        readers = {}
        for name in header:
            path = self._reader.paths.get(name) or shorthands.get(name, (name,))
            if (read := make_cell_reader(path, self._reader.rules)) is not None:
                readers[name] = read
        return readers

    def _find_header_problems(self, header: Sequence[str]) -> list[Problem]:
        """Return the problems with the columns, which are reported once and not for each row."""
        if not header:
            return [EMPTY_FILE]
        if len(header) > MAX_COLUMNS:
            what = f"the header has {len(header):,} columns, at most {MAX_COLUMNS:,} are allowed"
            return [Problem("header", what, "check the delimiter and the line endings")]
        problems = [
            missing_key_problem(key, header, "column") for key, _ in find_missing_keys(self._reader.paths, header)
        ]
        counts = Counter(header)
        duplicates = [name for name, count in counts.items() if name and count > 1]
        problems += [Problem(name, "two columns have this name", "rename one") for name in duplicates]
        if "" in header:
            what = f"column {header.index('') + 1} has no name"
            problems.append(Problem("header", what, "name every column in the first row"))
        for name in header:
            if name and name not in self._reader.paths:
                problems += self._reader.find_key_problems(name, counts)
        return problems or self._missing_columns(header)

    def _missing_columns(self, header: Sequence[str]) -> list[Problem]:
        paths = self._reader.paths
        fields = {paths[name][0] if name in paths else name for name in header}
        columns = shorten(", ".join(header))
        problems = []
        if "input" not in fields:
            column = _guess_input_column(header)
            option = f"--map {shlex.quote(f'{column}=input')}"
            fix = f"map a column to it: {option} (in Python: mapping={{{column!r}: 'input'}})"
            problems.append(Problem("", f"no column for 'input'; the columns are: {columns}", fix))
        if "id" not in fields and not self._reader.rules.generate_ids:
            problems.append(Problem("", f"no column for 'id'; the columns are: {columns}", ID_FIX))
        if problems and len(header) == 1 and (delimiter := _find_delimiter(header[0])):
            fix = f"set the delimiter: --delimiter {delimiter!r} (in Python: delimiter={delimiter!r})"
            problems = [problem._replace(fix=fix) for problem in problems]
        return problems


class TSVDataset(CSVDataset):
    """Samples from a table separated by tabs, whatever the name of the file."""

    def __init__(self, path: str | Path, **options: Any) -> None:
        super().__init__(path, **{"delimiter": "\t", **options})


# Usual names of columns with the input, the most likely first.
INPUT_NAMES = ("question", "prompt", "query", "text", "instruction", "message", "user", "content", "problem", "task")


def _guess_input_column(header: Sequence[str]) -> str:
    """Return the column that most likely has the input: by its name, else the first that is not a field."""
    names = {name.strip().casefold(): name for name in reversed(header)}
    usual = next((names[name] for name in INPUT_NAMES if name in names), None)
    return usual or next((name for name in header if name not in FIELDS), header[0])


def _find_delimiter(header: str) -> str | None:
    return next((delimiter for delimiter in (";", "\t", ",", "|") if delimiter in header), None)


class _TextLines:
    """Decodes the lines of a table for the csv module, and remembers the first line of each row.

    An unreadable line invalidates only its row.
    """

    def __init__(self, file: BinaryIO, report: ReportProblems) -> None:
        self._lines = read_numbered_lines(file)
        self._report = report
        self.first_line = 0
        self.has_unreadable_line = False

    def __iter__(self) -> Iterator[str]:
        for number, line in self._lines:
            self.first_line = self.first_line or number
            text = long_line_problem() if line is None else decode_line(line)
            if isinstance(text, Problem):
                self.has_unreadable_line = True
                self._report(number, [text])
                # An empty line ends a row or is part of a quoted cell, so the next rows stay intact.
                text = "\n"
            yield text

    def begin_row(self) -> None:
        self.first_line, self.has_unreadable_line = 0, False


def _read_rows(file: BinaryIO, delimiter: str, report: ReportProblems) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table with their first lines."""
    # The csv module limits cells to 128 KB, which is too small for documents. The limit is global to the
    # process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    lines = _TextLines(file, report)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin_row()
        try:
            row = next(rows, None)
        except csv.Error as error:
            report(lines.first_line, [_explain_csv_error(error)])
            if "limit" in str(error):
                return
            continue
        if row is None:
            return
        if row and not lines.has_unreadable_line:
            yield lines.first_line, row


def _explain_csv_error(error: csv.Error) -> Problem:
    text, fix = str(error), 'write " as "" inside a quoted cell'
    if "new-line character" in text:
        return Problem("", "a cell contains a single carriage return", "end lines with \\n or \\r\\n")
    what = f"not a row of CSV: {text}"
    if "unexpected end of data" in text:
        what = "a quote is opened in this row and never closed"
    elif "limit" in text:
        what = f"a cell is longer than {csv.field_size_limit():,} characters; is a quote not closed?"
    return Problem("", what, fix)
