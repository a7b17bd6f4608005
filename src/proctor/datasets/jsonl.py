"""JSON Lines: one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from proctor.core.resources import describe_json_error
from proctor.datasets.files import (
    MAX_LINE_BYTES,
    FileDataset,
    decode_line,
    long_line_problem,
    open_data,
    read_numbered_lines,
)
from proctor.datasets.mapping import MappedKeys
from proctor.datasets.problems import InvalidRecord, ReportProblems, describe_value, shorten
from proctor.datasets.record import check_evaluators
from proctor.errors import Problem
from proctor.records.sample import CLUSTER, LABELS, TAGS, Sample, find_metadata_problems

CHECKED_KEYS = frozenset((LABELS, TAGS, CLUSTER))
OBJECT_PER_LINE = "write one complete JSON object on each line"
EMPTY_FILE = Problem("", "no samples: the file is empty", "check that it is the right file")
NUMBER_OUT_OF_RANGE = Problem("", "a number is out of range", "write it as a string")
NESTED_TOO_DEEP = Problem("", "the JSON is too deeply nested")

_encode = msgspec.json.Encoder().encode


class JSONLDataset(FileDataset):
    """Samples from a JSONL file, read line by line on each pass; the file is never held in memory.

    A record has `id`, `input` and optionally `expected` and `metadata`; other keys become metadata. `mapping`
    maps keys with other names to fields, and `generate_ids` makes missing ids from the input.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> path = Path(folder.name, "qa.jsonl")
    >>> _ = path.write_text('{"id": "1", "input": "2 + 2", "expected": "4"}')
    >>> [sample.expected for sample in JSONLDataset(path)]
    ['4']
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | Path,
        input_type: Any = Any,
        expected_type: Any = Any,
        *,
        mapping: Mapping[str, str] | None = None,
        generate_ids: bool = False,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        super().__init__(path, input_type, expected_type, mapping=mapping, generate_ids=generate_ids)
        self._max_line_bytes = max_line_bytes

    def _rows(self, report: ReportProblems) -> Iterator[tuple[int, Sample[Any, Any]]]:
        decode_sample = self._sample_decoder()
        keys = MappedKeys(self._reader.paths)
        empty = True
        with open_data(self._file) as file:
            for number, line in read_numbered_lines(file, self._max_line_bytes):
                if line is None:
                    empty = False
                    report(number, [long_line_problem(self._max_line_bytes)])
                    continue
                sample = decode_sample(line)
                if sample is None:
                    if not line.strip():
                        continue
                    try:
                        record = read_record(line)
                        keys.add(number, record)
                        sample = self._reader.sample(record)
                    except InvalidRecord as invalid:
                        empty = False
                        report(number, invalid.problems)
                        continue
                empty = False
                yield number, sample
        if empty:
            report(0, [EMPTY_FILE])
        for number, problems in keys.problems(dataset_position=0):
            report(number, problems)

    def _sample_decoder(self) -> Callable[[bytes], Sample[Any, Any] | None]:
        """Return a fast decoder for lines that need no mapping or checks; it returns None for other lines."""
        if self._reader.paths:
            return lambda _: None
        decode = msgspec.json.Decoder(Sample[Any, Any]).decode
        needs_no_check = CHECKED_KEYS.isdisjoint

        def decode_sample(line: bytes) -> Sample[Any, Any] | None:
            try:
                sample = decode(line)
            except (ValueError, RecursionError):
                return None
            if sample.input is None or not sample.id.strip():
                return None
            if sample.evaluators and check_evaluators(sample.evaluators):
                return None
            # The plain object has values that a sample omits, such as null.
            if may_repeat_keys(line, sample) and may_repeat_keys(line, msgspec.json.decode(line)):
                return None
            return sample if needs_no_check(sample.metadata) or not find_metadata_problems(sample.metadata) else None

        return decode_sample


def may_repeat_keys(line: bytes, value: Any) -> bool:
    """Return True if JSON text may have keys that are missing from the value decoded from it.

    Every key has one colon, and colons in strings are also in the value. So the text has more colons than the encoded
    value if decoding dropped a key, and hardly ever otherwise.
    """
    if b"\\u003" in line:
        # An escaped colon is a colon only in the value.
        return True
    try:
        return line.count(b":") > _encode(value).count(b":")
    except (ValueError, OverflowError, RecursionError):
        return True


def find_repeated_keys(text: str) -> list[Problem]:
    """Return a problem for every duplicate key of an object in JSON text."""
    repeated: dict[str, None] = {}

    def check(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        keys: set[str] = set()
        for key, _ in pairs:
            if key in keys:
                repeated[key] = None
            keys.add(key)
        return dict(pairs)

    json.loads(text, object_pairs_hook=check)
    fix = "keep one of the values, or rename one of the keys"
    return [Problem("", f"the key {shorten(repr(key))} is repeated in one object", fix) for key in repeated]


def read_record(line: bytes, fix: str = OBJECT_PER_LINE) -> Mapping[str, Any]:
    """Return the JSON object on a line; raise `InvalidRecord` with all problems if it is not an object."""
    try:
        record = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        raise InvalidRecord([_explain_invalid_json(line)]) from None
    if not isinstance(record, dict):
        what = f"the record must be a JSON object, got {describe_value(record)}"
        raise InvalidRecord([Problem("", what, fix)])
    if may_repeat_keys(line, record):
        try:
            problems = find_repeated_keys(line.decode())
        except (ValueError, RecursionError):
            # Python reads fewer levels and digits than msgspec.
            problems = []
        if problems:
            raise InvalidRecord(problems)
    return record


def _explain_invalid_json(line: bytes) -> Problem:
    """Explain why a line is not JSON; the standard library names the position best."""
    text = decode_line(line)
    if isinstance(text, Problem):
        return text
    text = text.rstrip(" \t\r\n")
    try:
        value = json.loads(text, parse_constant=reject_constant)
    except json.JSONDecodeError as error:
        if error.pos >= len(text) or error.msg.startswith("Unterminated"):
            return Problem("", "the line ends before its JSON does", OBJECT_PER_LINE)
        what = f"not JSON: {describe_json_error(error)}, at character {error.pos + 1} of the line"
        return Problem("", what, OBJECT_PER_LINE)
    except (ValueError, RecursionError) as error:
        return explain_decode_error(error)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        what = f"\\u{ord(error.object[error.start]):04x} is a lone surrogate, not a character"
        return Problem("", what, "write the complete pair, or the character itself")
    return NUMBER_OUT_OF_RANGE


def reject_constant(name: str) -> NoReturn:
    """Reject NaN and Infinity, which Python accepts in JSON but the standard does not."""
    what, fix = f"not JSON: {name} is not a number", "write null, or leave the key out"
    raise InvalidRecord([Problem("", what, fix)])


def explain_decode_error(error: Exception) -> Problem:
    """Explain why the standard library cannot decode JSON text that has no syntax errors."""
    if isinstance(error, InvalidRecord):
        return error.problems[0]
    return NESTED_TOO_DEEP if isinstance(error, RecursionError) else NUMBER_OUT_OF_RANGE
