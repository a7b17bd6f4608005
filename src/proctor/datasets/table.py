"""CSV and TSV: a header that names the columns, then one sample in each row."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from proctor.datasets.faults import Fault, Refuse, Unfit, found, shortened
from proctor.datasets.files import MAX_LINE_BYTES, decoded, numbered_lines, open_data, too_long
from proctor.datasets.iterator import FileStream
from proctor.datasets.mapping import Steps, absent_keys, no_such_key
from proctor.datasets.record import GIVE_IDS, RecordReader, Rules
from proctor.datasets.typed import Read, part_type, reader_of
from proctor.errors import DatasetError
from proctor.records.run import DatasetInfo
from proctor.records.sample import LABELS, TAGS, Sample

Cell = Callable[[str], Any]


def cell_reader(path: Steps, rules: Rules) -> Cell | None:
    """What makes a plain value of a cell, or None where the text itself is the value.

    A cell is text. Where another type is declared, it holds JSON: 42, true, ["a", "b"]. Whole
    metadata and labels are JSON mappings; tags are a JSON list, or words with commas between.

    >>> cell_reader(("input",), Rules(input_type=list[int]))("[1, 2]")
    [1, 2]
    >>> cell_reader(("metadata", "tags"), Rules())("easy, short")
    ['easy', 'short']
    """
    if path in (("metadata",), ("metadata", LABELS)):
        return _json_mapping(".".join(path))
    if path == ("metadata", TAGS):
        return _words
    if path[0] not in ("input", "expected"):
        return None
    kind = rules.input_type if path[0] == "input" else rules.expected_type
    read = reader_of(part_type(kind, path[1]) if len(path) > 1 else kind, path[0])
    return None if read is None else _by_type(read)


def _by_type(read: Read) -> Cell:
    """Text where the type takes text; else what the text says in JSON, if it is JSON."""

    def cell(text: str) -> Any:
        try:
            read(text)
        except Unfit:
            return _json_or_text(text)
        return text

    return cell


def _json_or_text(text: str) -> Any:
    """Text that is not JSON stays text: reading it into the type will tell what is wrong."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


def _json_mapping(field: str) -> Cell:
    def cell(text: str) -> Any:
        value = _json_or_text(text)
        if isinstance(value, dict):
            return value
        fix = 'write it as JSON: {"key": "value"}'
        raise Unfit([Fault(field, f"expected a JSON mapping in the cell, found {found(text)}", fix)])

    return cell


def _words(text: str) -> Any:
    if text.lstrip().startswith("["):
        return _json_or_text(text)
    return [word.strip() for word in text.split(",") if word.strip()]


MAX_COLUMNS = 10_000
LONGEST_HEADER = 64 * 1024


class CSVDataset:
    """Samples from a CSV or TSV file with a header, read row by row each time.

    `mapping` says which column is what: `{"question": "input", "answer": "expected"}`; columns
    that are named like a field need no mapping, and others become metadata. Cells are text; where
    a type is declared they hold JSON. An empty cell is a value that is not there. The delimiter
    is a tab for .tsv files and a comma for others, unless it is given, or the header has none and
    is separated by semicolons, tabs or bars.

    >>> from pathlib import Path
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
        self._rules = Rules(
            input_type=input_type, expected_type=expected_type, mapping=mapping, generate_ids=generate_ids
        )
        self._reader = RecordReader(self._rules)
        self._delimiter = _checked_delimiter(Path(path), delimiter)
        self.stream = FileStream(Path(path), self._rows, self._reader)

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return self.stream.samples()

    def __len__(self) -> int:
        return self.inspect().length or 0

    def __repr__(self) -> str:
        return f"CSVDataset({str(self.stream.path)!r})"

    def inspect(self) -> DatasetInfo:
        """Read the whole file once: every problem in one error, or what the dataset is."""
        return self.stream.inspect()

    @property
    def info(self) -> DatasetInfo:
        """What `inspect` gives."""
        return self.inspect()

    def _rows(self, refuse: Refuse) -> Iterator[tuple[int, Sample[Any, Any]]]:
        unreadable: list[int] = []

        def refuse_line(number: int, faults: Sequence[Fault]) -> None:
            unreadable.append(number)
            refuse(number, faults)

        with open_data(self.stream.file) as file:
            delimiter = self._delimiter or self._recognised_delimiter(file)
            table = _rows_with_lines(file, delimiter, refuse_line)
            named = ((n, [name.strip() for name in row]) for n, row in table)
            line, header = next((row for row in named if row[1] != [""]), (0, []))
            if unreadable:
                # What follows an unreadable header is not the header.
                return
            faults = self._header_faults(header)
            if faults:
                refuse(line, faults)
                return
            cells = self._cells(header)
            empty = True
            for number, row in table:
                empty = False
                try:
                    sample = self._reader.sample(self._record(header, row, cells))
                except Unfit as unfit:
                    refuse(number, unfit.faults)
                    continue
                yield number, sample
        if empty and not unreadable:
            refuse(0, [Fault("", "no samples: there is a header and nothing below it")])

    def _recognised_delimiter(self, file: BinaryIO) -> str:
        """The delimiter of the ending, unless the header can only be read with another one."""
        is_tabs = self.stream.path.name.lower().removesuffix(".gz").endswith(".tsv")
        usual = "\t" if is_tabs else ","
        start = file.tell()
        header = file.readline(LONGEST_HEADER).decode("utf-8", "replace")
        file.seek(start)
        found = usual if usual in header else (_other_delimiter(header) or usual)
        self.stream.details = {} if found == usual else {"delimiter": found}
        return found

    def _record(
        self, header: Sequence[str], row: Sequence[str], cells: Mapping[str, Cell]
    ) -> Mapping[str, Any]:
        """A row as a record; an empty cell is left out, but for an input that may be null."""
        record = _record(header, row, cells)
        if self._reader.null_input:
            for name in header:
                if self._reader.paths.get(name, (name,)) == ("input",):
                    record.setdefault(name, None)
        return record

    def _cells(self, header: Sequence[str]) -> dict[str, Cell]:
        """What reads the cells of each column that holds more than text."""
        shorthands: dict[str, Steps] = {LABELS: ("metadata", LABELS), TAGS: ("metadata", TAGS)}
        cells = {}
        for name in header:
            path = self._reader.paths.get(name) or shorthands.get(name, (name,))
            read = cell_reader(path, self._rules)
            if read is not None:
                cells[name] = read
        return cells

    def _header_faults(self, header: Sequence[str]) -> list[Fault]:
        """All that is wrong with the columns as such, told once and not again in each row."""
        if not header:
            return [Fault("", "no samples: the file is empty", "check that it is the right file")]
        if len(header) > MAX_COLUMNS:
            what = f"the header has {len(header):,} columns, at most {MAX_COLUMNS:,} are allowed"
            return [Fault("header", what, "check the delimiter and the ends of lines")]
        faults = [no_such_key(key, header, "column") for key, _ in absent_keys(self._reader.paths, header)]
        counts = Counter(header)
        twice = [name for name, count in counts.items() if name and count > 1]
        faults += [Fault(name, "two columns have this name", "rename one") for name in twice]
        if "" in header:
            what = f"column {header.index('') + 1} has no name"
            faults.append(Fault("header", what, "name every column in the first row"))
        for name in header:
            if name and name not in self._reader.paths:
                faults += self._reader.key_faults(name, counts)
        return faults or self._missing_columns(header)

    def _missing_columns(self, header: Sequence[str]) -> list[Fault]:
        paths = self._reader.paths
        given = {paths[name][0] if name in paths else name for name in header}
        shown = shortened(", ".join(header))
        faults = []
        if "input" not in given:
            what = f"there is no column for it; the header is: {shown}"
            faults.append(Fault("input", what, "map a column to it, as in question to input"))
        if "id" not in given and not self._rules.generate_ids:
            what = f"there is no column for it; the header is: {shown}"
            faults.append(Fault("id", what, GIVE_IDS))
        if faults and len(header) == 1 and (other := _other_delimiter(header[0])):
            fix = f"if the columns are parted by {other!r}, say so: delimiter {other!r}"
            faults = [fault._replace(fix=fix) for fault in faults]
        return faults


def _checked_delimiter(path: Path, given: str | None) -> str | None:
    if given is not None and (len(given) != 1 or given in '"\r\n'):
        raise DatasetError(
            f"delimiter={given!r} cannot part columns", where=str(path), fix="give one character"
        )
    return given


def _other_delimiter(header: str) -> str | None:
    return next((mark for mark in (";", "\t", ",", "|") if mark in header), None)


def _record(header: Sequence[str], row: Sequence[str], cells: Mapping[str, Cell]) -> dict[str, Any]:
    """A row as a record; an empty cell is left out."""
    if len(row) != len(header):
        fix = "give every row as many cells as the header has; quote cells that hold the delimiter"
        raise Unfit([Fault("", f"expected {len(header)} cells, found {len(row)}", fix)])
    record: dict[str, Any] = {name: text for name, text in zip(header, row, strict=True) if text}
    faults: list[Fault] = []
    for name, read in cells.items():
        if name in record:
            try:
                record[name] = read(record[name])
            except Unfit as unfit:
                faults += unfit.faults
    if faults:
        raise Unfit(faults)
    return record


class _TextLines:
    """The lines of a table as text, for the csv module; remembers where the row in hand began.

    A line that cannot be used spoils the row it belongs to, and that row only.
    """

    def __init__(self, file: BinaryIO, refuse: Refuse) -> None:
        self._lines = numbered_lines(file)
        self._refuse = refuse
        self.first_of_row = 0
        self.spoilt = False

    def __iter__(self) -> Iterator[str]:
        for number, line in self._lines:
            self.first_of_row = self.first_of_row or number
            text = too_long() if line is None else decoded(line)
            if isinstance(text, Fault):
                self.spoilt = True
                self._refuse(number, [text])
                # A line of nothing keeps the rest in step: it ends a row, or stands inside a quote.
                text = "\n"
            yield text

    def begin_row(self) -> None:
        """Forget the row before."""
        self.first_of_row, self.spoilt = 0, False


def _rows_with_lines(file: BinaryIO, delimiter: str, refuse: Refuse) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table, each with the line of the file on which it begins."""
    # The csv module's own limit of 128 KB for a cell is too small for documents, and it is kept
    # for the whole process: so it is raised here, and never lowered.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    lines = _TextLines(file, refuse)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin_row()
        try:
            row = next(rows, None)
        except csv.Error as error:
            refuse(lines.first_of_row, [_bad_row(error)])
            if "limit" in str(error):
                return
            continue
        if row is None:
            return
        if row and not lines.spoilt:
            yield lines.first_of_row, row


def _bad_row(error: csv.Error) -> Fault:
    """What the csv module found, in words that help."""
    text = str(error)
    if "unexpected end of data" in text:
        return Fault("", "a quote is opened in this row and never closed", 'write " as "" in a cell')
    if "limit" in text:
        what = f"a cell is longer than {csv.field_size_limit():,} characters; is a quote not closed?"
        return Fault("", what, 'write " as "" inside a quoted cell')
    if "new-line character" in text:
        return Fault("", "a carriage return stands alone in a cell", "end lines with \\n or \\r\\n")
    return Fault("", f"not a row of CSV: {text}", 'write " as "" inside a quoted cell')
