"""JSON documents: a list of records, an object with such a list, or a sequence of records."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.core.resources import describe_json_error
from proctor.datasets.files import FileDataset, encoding_problem, open_data
from proctor.datasets.jsonl import EMPTY_FILE, explain_decode_error, read_record, reject_constant
from proctor.datasets.mapping import FIELDS, MappedKeys
from proctor.datasets.problems import InvalidRecord, ReportProblems, SharedLine, shorten
from proctor.errors import MAX_ITEMS, Problem, suggest_name
from proctor.records.sample import Sample

# The keys under which an object may hold its list of records.
RECORD_KEYS = ("samples", "examples", "data", "rows")
MAX_DOCUMENT_BYTES = 512 * 1024 * 1024
LIST_FORMAT, SEQUENCE_FORMAT = "a JSON list", "a sequence of JSON objects"
_BLANK = " \t\r\n"
_WHITESPACE = re.compile(f"[{_BLANK}]*")
_DECODER = json.JSONDecoder(parse_constant=reject_constant)


class JSONDataset(FileDataset):
    """Samples from a JSON document, which is read completely on each pass.

    The document is a list of objects, an object with such a list under `samples`, `examples`, `data` or
    `rows`, or a sequence of objects. The parameters are the same as for `JSONLDataset`. Use JSON Lines for files
    that are larger than memory.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> path = Path(folder.name, "qa.json")
    >>> _ = path.write_text('[{"id": "1", "input": "2 + 2", "expected": "4"}]')
    >>> [sample.expected for sample in JSONDataset(path)]
    ['4']
    >>> folder.cleanup()
    """

    def _rows(self, report: ReportProblems) -> Iterator[tuple[int, Sample[Any, Any]]]:
        keys = MappedKeys(self._reader.paths)
        for line, text in self._records(report):
            try:
                data = text.encode("utf-8", "surrogatepass")
                record = read_record(data, "write every sample as a JSON object")
                keys.add(line, record)
                sample = self._reader.sample(record)
            except InvalidRecord as invalid:
                report(line, invalid.problems)
                continue
            yield line, sample
        for line, problems in keys.problems(dataset_position=0):
            report(line, problems)

    def _records(self, report: ReportProblems) -> Iterator[tuple[int, str]]:
        """Yield the text of each record with its first line."""
        try:
            yield from self._find_records(_Document(self._read_text()))
        except _InvalidDocument as invalid:
            report(invalid.line, [invalid.problem])

    def _find_records(self, document: _Document) -> Iterator[tuple[int, str]]:
        start = document.skip_blank(0)
        if document.text.startswith("[", start):
            self.details = {"format": "json", "recognised": LIST_FORMAT}
            end = yield from document.items(start)
            document.require_end(end)
            return
        value, end = document.value(start)
        if document.skip_blank(end) < len(document.text) or self._is_record(value):
            self.details = {"format": "json", "recognised": SEQUENCE_FORMAT}
            yield from document.sequence(start)
            return
        name = _find_list_key(value)
        if name is None:
            raise _InvalidDocument(0, _missing_list_problem(value, self.path))
        if others := _similar_lists(value, name):
            raise _InvalidDocument(0, _several_lists_problem(value, [name, *others], self.path))
        recognized = f"a JSON object with a list under {name!r}"
        if others := [str(key) for key in value if key != name]:
            recognized += f"; other keys are ignored: {_join_names(others)}"
        self.details = {"format": "json", "recognised": recognized}
        yield from document.items(document.find_value_start(name, start))

    def _is_record(self, value: Any) -> bool:
        fields = {*FIELDS, *self._reader.paths}
        return isinstance(value, dict) and not fields.isdisjoint(value) and _find_list_key(value) is None

    def _read_text(self) -> str:
        with open_data(self._file) as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
        if len(data) > MAX_DOCUMENT_BYTES:
            what = f"the document is larger than {MAX_DOCUMENT_BYTES:,} bytes"
            fix = "write JSON Lines, which is read line by line: .jsonl"
            raise _InvalidDocument(0, Problem("", what, fix))
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            start = data.rfind(b"\n", 0, error.start) + 1
            line = data.count(b"\n", 0, error.start) + 1
            problem = encoding_problem(data, error.start, error.start - start)
            raise _InvalidDocument(line, problem) from None
        if not text.strip(_BLANK):
            raise _InvalidDocument(0, EMPTY_FILE)
        return text


class _InvalidDocument(Exception):
    """Raised where a document cannot be read further; `line` 0 means the whole file."""

    def __init__(self, line: int, problem: Problem) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem


class _Document:
    """The text of a JSON document, in which it finds the start and end of values."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._length = len(text.rstrip(_BLANK))
        self._last_position, self._last_line = 0, 1
        self._samples, self._last_sample_line = 0, 0

    def skip_blank(self, position: int) -> int:
        match = _WHITESPACE.match(self.text, position)
        return match.end() if match else position

    def line(self, position: int) -> int:
        """Return the line of a position; ascending positions are fast."""
        if position < self._last_position:
            self._last_position, self._last_line = 0, 1
        self._last_line += self.text.count("\n", self._last_position, position)
        self._last_position = position
        return self._last_line

    def sample(self, start: int, end: int, following: int | None) -> tuple[int, str]:
        """Return the line and text of the next sample; a sample that shares its line also gets its number on the
        line."""
        self._samples += 1
        line = self.line(start)
        ends_line = following is None or self.text.find("\n", start, following) >= 0
        is_shared = line == self._last_sample_line or not ends_line
        self._last_sample_line = line
        return SharedLine(line, self._samples) if is_shared else line, self.text[start:end]

    def value(self, position: int) -> tuple[Any, int]:
        """Return the value that starts at a position, and its end."""
        try:
            return _DECODER.raw_decode(self.text, position)
        except json.JSONDecodeError as error:
            raise self._explain(error) from None
        except (ValueError, RecursionError) as error:
            raise _InvalidDocument(self.line(position), explain_decode_error(error)) from None

    def items(self, start: int) -> Generator[tuple[int, str], None, int]:
        """Yield the line and text of each item of the list at a position; return the end of the list."""
        position = self.skip_blank(start + 1)
        if self.text.startswith("]", position):
            raise _InvalidDocument(0, Problem("", "no samples: the list is empty"))
        while True:
            _, end = self.value(position)
            comma = self.skip_blank(end)
            following = self.skip_blank(comma + 1) if self.text.startswith(",", comma) else None
            yield self.sample(position, end, following)
            if self.text.startswith("]", comma):
                return comma + 1
            if following is None:
                raise self._explain(json.JSONDecodeError("Expecting ',' delimiter", self.text, comma))
            position = following

    def sequence(self, position: int) -> Iterator[tuple[int, str]]:
        """Yield the line and text of each value in a sequence."""
        while position < len(self.text):
            _, end = self.value(position)
            following = self.skip_blank(end)
            yield self.sample(position, end, following if following < len(self.text) else None)
            position = following

    def find_value_start(self, name: str, position: int) -> int:
        """Return the start of a key's value in the object that starts at a position."""
        position = self.skip_blank(position + 1)
        start: int | None = None
        while True:
            key, end = self.value(position)
            key_line = self.line(position)
            position = self.skip_blank(self.skip_blank(end) + 1)
            if key == name:
                if start is not None:
                    what = f"the key {name!r} is repeated"
                    raise _InvalidDocument(key_line, Problem("", what, "keep all samples in one list"))
                start = position
            _, end = self.value(position)
            position = self.skip_blank(end)
            if not self.text.startswith(",", position):
                assert start is not None
                return start
            position = self.skip_blank(position + 1)

    def require_end(self, position: int) -> None:
        """Raise an error if text follows the end of the document."""
        position = self.skip_blank(position)
        if position < len(self.text):
            rest = shorten(repr(self.text[position : position + 80]))
            what = f"not JSON: there is more text after the end of the list: {rest}"
            raise _InvalidDocument(self.line(position), Problem("", what, "keep all samples in one list"))

    def _explain(self, error: json.JSONDecodeError) -> _InvalidDocument:
        if error.pos >= self._length or error.msg.startswith("Unterminated"):
            problem = Problem("", "the file ends before its JSON does", "check that the file is complete")
        else:
            what = f"not JSON: {describe_json_error(error)}, at character {error.colno} of the line"
            problem = Problem("", what, "correct the JSON at this position")
        return _InvalidDocument(error.lineno, problem)


def _find_list_key(value: Any) -> str | None:
    """Return the key under which an object holds its list of records."""
    if not isinstance(value, dict) or "input" in value:
        return None
    return next((key for key in RECORD_KEYS if isinstance(value.get(key), list)), None)


def _record_lists(value: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {
        str(key): item for key, item in value.items() if isinstance(item, list) and item and isinstance(item[0], dict)
    }


def _similar_lists(value: Mapping[str, Any], name: str) -> list[str]:
    """Return the other keys whose lists could be the samples: their objects share keys."""
    lists = _record_lists(value)
    if name not in lists:
        return []
    keys = lists[name][0].keys()
    return [key for key, item in lists.items() if key != name and keys & item[0].keys()]


def _several_lists_problem(value: Mapping[str, Any], names: Sequence[str], path: Path) -> Problem:
    lists = _record_lists(value)
    counts = _join_names(f"{name!r} ({len(lists[name]):,})" for name in names)
    what = f"several lists of the object could be the samples: {counts}"
    return Problem("", what, _extraction_command(names[0], path))


def _join_names(names: Iterable[str]) -> str:
    short_names = [shorten(name) for name in names]
    more = f", … and {len(short_names) - MAX_ITEMS} more" if len(short_names) > MAX_ITEMS else ""
    return ", ".join(short_names[:MAX_ITEMS]) + more


def _extraction_command(name: str, path: Path) -> str:
    new = f"{path.name.removesuffix('.gz').removesuffix('.json')}-{name}.json"
    opener = "__import__('gzip').open" if path.name.endswith(".gz") else "open"
    return (
        f"write one of the lists to a separate file, for example: python -c "
        f'"import json; json.dump(json.load({opener}({str(path)!r}))[{name!r}], '
        f"open({new!r}, 'w'))\""
    )


def _missing_list_problem(value: Any, path: Path) -> Problem:
    if not isinstance(value, dict):
        return Problem("", "no samples: the document is neither a list nor an object")
    keys = _join_names(map(str, value)) or "none"
    suggestion = next((hint for key in value if "did you" in (hint := suggest_name(key, RECORD_KEYS))), "")
    fix = f"put the samples into a list, at the top level or under {', '.join(RECORD_KEYS)}"
    what = f"no samples: the object has no list of samples; its keys are: {keys}"
    if lists := _record_lists(value):
        counts = _join_names(f"{key!r} ({len(item):,})" for key, item in lists.items())
        what = (
            f"no samples: the keys {', '.join(RECORD_KEYS)} are missing; the keys are: {keys}; "
            f"lists of objects are under: {counts}"
        )
        command = _extraction_command(next(iter(lists)), path)
        fix = f"{command}; if the file holds chats or traces, name their format: --dataset-format NAME"
    return Problem("", what, f"{suggestion} {fix}".strip())
