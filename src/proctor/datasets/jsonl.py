"""JSONL: one JSON object on each line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from proctor.datasets.duplicate_keys import find_repeated_keys, may_repeat_keys
from proctor.datasets.faults import Fault, Refuse, Unfit, found
from proctor.datasets.files import MAX_LINE_BYTES, decoded, numbered_lines, open_data, too_long
from proctor.datasets.iterator import FileStream
from proctor.datasets.mapping import MappedKeys
from proctor.datasets.record import RecordReader, Rules
from proctor.records.run import DatasetInfo
from proctor.records.sample import CLUSTER, LABELS, TAGS, Sample, metadata_faults

CHECKED_KEYS = frozenset((LABELS, TAGS, CLUSTER))
ONE_ON_A_LINE = "write one whole JSON object on each line"
NUMBER_OUT_OF_RANGE = Fault("", "a number is out of range", "write it as a string")


class JSONLDataset:
    """Samples from a JSONL file, read line by line each time; the file is never held in memory.

    A record has `id`, `input` and, as they are known, `expected` and `metadata`; further keys
    become metadata. `mapping` gives keys of other names their place, and `generate_ids` makes an
    id from the input where there is none.

    >>> from pathlib import Path
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
        rules = Rules(
            input_type=input_type, expected_type=expected_type, mapping=mapping, generate_ids=generate_ids
        )
        self._reader = RecordReader(rules)
        self._max_line_bytes = max_line_bytes
        self.stream = FileStream(Path(path), self._rows, self._reader)

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return self.stream.samples()

    def __len__(self) -> int:
        return self.inspect().length or 0

    def __repr__(self) -> str:
        return f"JSONLDataset({str(self.stream.path)!r})"

    def inspect(self) -> DatasetInfo:
        """Read the whole file once: every problem in one error, or what the dataset is."""
        return self.stream.inspect()

    @property
    def info(self) -> DatasetInfo:
        """What `inspect` gives."""
        return self.inspect()

    def _rows(self, refuse: Refuse) -> Iterator[tuple[int, Sample[Any, Any]]]:
        quick, keys = self._quick(), MappedKeys(self._reader.paths)
        empty = True
        with open_data(self.stream.file) as file:
            for number, line in numbered_lines(file, self._max_line_bytes):
                if line is None:
                    empty = False
                    refuse(number, [too_long(self._max_line_bytes)])
                    continue
                sample = quick(line)
                if sample is None:
                    if not line.strip():
                        continue
                    try:
                        record = read_record(line)
                        keys.see(number, record)
                        sample = self._reader.sample(record)
                    except Unfit as unfit:
                        empty = False
                        refuse(number, unfit.faults)
                        continue
                empty = False
                yield number, sample
        if empty:
            refuse(0, [Fault("", "no samples: the file is empty", "check that it is the right file")])
        for number, faults in keys.faults(whole=0):
            refuse(number, faults)

    def _quick(self) -> Callable[[bytes], Sample[Any, Any] | None]:
        """Decodes, in one step, a line that is a sample as it stands; None for any other line."""
        if self._reader.paths:
            return lambda _: None
        decode = msgspec.json.Decoder(Sample[Any, Any]).decode
        nothing_to_check = CHECKED_KEYS.isdisjoint

        def quick(line: bytes) -> Sample[Any, Any] | None:
            try:
                sample = decode(line)
            except (ValueError, RecursionError):
                return None
            if sample.input is None or not sample.id.strip():
                return None
            # Values that a sample leaves out, such as null, are in the plain object.
            if may_repeat_keys(line, sample) and may_repeat_keys(line, msgspec.json.decode(line)):
                return None
            return sample if nothing_to_check(sample.metadata) else _checked(sample)

        return quick


def _checked(sample: Sample[Any, Any]) -> Sample[Any, Any] | None:
    """The sample if its metadata is as it should be."""
    return None if metadata_faults(sample.metadata) else sample


def read_record(line: bytes, fix: str = ONE_ON_A_LINE) -> Mapping[str, Any]:
    """The object on a line, or everything that keeps it from being one."""
    try:
        record = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        raise Unfit([_bad_json(line)]) from None
    if not isinstance(record, dict):
        what = f"expected a mapping (a JSON object), found {found(record)}"
        raise Unfit([Fault("", what, fix)])
    if may_repeat_keys(line, record) and (faults := _repeated_keys(line)):
        raise Unfit(faults)
    return record


def _repeated_keys(line: bytes) -> list[Fault]:
    """The repeated keys of a line that could be decoded."""
    try:
        return find_repeated_keys(line.decode())
    except (ValueError, RecursionError):
        # Python reads fewer levels and digits than msgspec does; what it cannot read stays.
        return []


def _bad_json(line: bytes) -> Fault:
    """Why a line is not JSON. The standard library tells the place best, so it is asked here."""
    text = decoded(line)
    if isinstance(text, Fault):
        return text
    text = text.rstrip(" \t\r\n")
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        if error.pos >= len(text) or error.msg.startswith("Unterminated"):
            return Fault("", "the line ends before its JSON does", ONE_ON_A_LINE)
        what = f"not JSON: {error.msg.lower()}, at character {error.pos + 1} of the line"
        return Fault("", what, ONE_ON_A_LINE)
    except RecursionError:
        return Fault("", "the JSON is nested too deep")
    except NotANumber as error:
        return Fault("", f"not JSON: {error} is not a number", "write null, or leave the key out")
    except ValueError:
        return NUMBER_OUT_OF_RANGE
    return _beyond_text(value)


def _beyond_text(value: Any) -> Fault:
    """Why JSON that looks right cannot be kept: half a character, or a number without bounds."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        what = f"{half} is half of a surrogate pair and no character"
        return Fault("", what, "write the whole pair, or the character itself")
    return NUMBER_OUT_OF_RANGE


class NotANumber(Exception):
    """NaN or Infinity, which Python takes in JSON and the standard does not."""


def refuse_constant(name: str) -> NoReturn:
    """Called by the standard library's decoder for NaN and Infinity."""
    raise NotANumber(name)
