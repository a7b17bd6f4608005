"""Convert records (mappings, rows, objects) to samples, and report all problems."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from proctor.core.identity import compute_identity, get_callable_name
from proctor.datasets.mapping import EVALUATORS, FIELDS, MappedKeys, find_missing_keys, guess_field, read_mapping
from proctor.datasets.problems import (
    WHOLE_DATASET,
    InvalidRecord,
    Locate,
    ReportProblems,
    Rows,
    describe_value,
    sample_error,
)
from proctor.datasets.type_readers import Reader, accepts_null, make_reader
from proctor.errors import Problem
from proctor.records import codec
from proctor.records.sample import Sample, find_metadata_problems

AUTO_ID_DIGITS = 12


class Fingerprint:
    """A SHA-256 over samples in their order; the same content from any source has the same fingerprint.

    It covers the content as written, before conversion to declared types.
    """

    def __init__(self) -> None:
        self._state = hashlib.sha256()
        self._stable = True

    def add(self, sample: Sample[Any, Any]) -> None:
        """Add the next sample."""
        expected, has_more = sample.expected, sample.metadata or sample.evaluators
        content = {"id": sample.id, "input": sample.input}
        if expected is not None:
            content = {"expected": expected, **content}
        if not has_more and type(sample.input) is str and (expected is None or type(expected) is str):
            # These keys are in order, so strings need no sorting, and they are always stable.
            self._state.update(canonical_json(content, codec.encode) + b"\n")
            return
        if sample.metadata:
            content["metadata"] = sample.metadata
        if sample.evaluators:
            content[EVALUATORS] = [_describe_check(entry) for entry in sample.evaluators]
        text = canonical_json(content)
        if _is_unstable(text):
            self._stable = False
        self._state.update(text + b"\n")

    def hexdigest(self) -> str | None:
        """Return the fingerprint, or None if a sample holds an object without stable content."""
        return self._state.hexdigest() if self._stable else None


def _describe_check(entry: Any) -> Any:
    """Return an evaluator of a sample as JSON: an entry itself, an object by its name and the identity of its code."""
    if isinstance(entry, str | Mapping | msgspec.Struct):
        return entry
    spec = getattr(entry, "spec", None)
    return spec or {"uses": get_callable_name(entry), "identity": compute_identity([entry])[0]}


def generate_id(value: Any) -> str:
    """Make an id from an input; it does not depend on the position, and equal inputs have equal ids."""
    text = canonical_json(value)
    if _is_unstable(text):
        what = f"{type(value).__name__} has no content from which an id can be made"
        raise InvalidRecord([Problem("input", what, "give the sample an id")])
    return "auto-" + hashlib.sha256(text).hexdigest()[:AUTO_ID_DIGITS]


def canonical_json(value: Any, encode: Callable[[Any], bytes] = codec.encode_canonical) -> bytes:
    """Return a value as canonical JSON; raise `InvalidRecord` if JSON cannot hold it."""
    try:
        return encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidRecord([Problem("", f"the sample cannot be written as JSON: {error}")]) from None


def _is_unstable(text: bytes) -> bool:
    """Return True if the text contains a memory address, which differs between processes."""
    return b'"$repr"' in text and b" at 0x" in text


ID_FIX = "give every sample an id, or generate ids: generate_ids=True (--generate-ids)"
INPUT_FIX = "give every sample an input, or map a key to it"
SAMPLE_FIX = 'write each sample as {"id": "1", "input": "2 + 2", "expected": "4"}'
EVALUATORS_FIX = (
    'write a list of names, or of names with parameters: ["exact_match", {"contains": {"case_sensitive": false}}]'
)
# Keys of chats and traces, which can be read as recorded sessions.
LOG_KEYS = frozenset(("messages", "message", "role", "payload", "traj", "sessionId", "resourceSpans", "events"))


class Rules(msgspec.Struct, frozen=True):
    """How records are read: the types of input and expected, the mapping, and whether to generate ids.

    `null_input` accepts null as an input without a declared type; an optional type accepts it too.
    """

    input_type: Any = Any
    expected_type: Any = Any
    mapping: Any = None
    generate_ids: bool = False
    null_input: bool = False


class RecordReader:
    """Converts records to samples."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.paths = read_mapping(rules.mapping)
        self._mapped_fields = {path[0] for path in self.paths.values()} - {"metadata"}
        self._input: Reader | None = make_reader(rules.input_type, "input")
        self._expected: Reader | None = make_reader(rules.expected_type, "expected")
        self.null_input = rules.null_input or (self._input is not None and accepts_null(self._input))
        self._null_expected = accepts_null(self._expected)

    @property
    def has_types(self) -> bool:
        """True if `convert_types` converts anything."""
        return self._input is not None or self._expected is not None

    def record(self, item: Any) -> Sample[Any, Any] | Mapping[str, Any]:
        """Return a sample unchanged, or the fields of a mapping or object; may raise `InvalidRecord`."""
        if isinstance(item, Sample):
            if problems := check_sample(item, null_input=self.null_input):
                raise InvalidRecord(problems)
            return item
        return item if isinstance(item, Mapping) else _object_fields(item)

    def sample(self, record: Mapping[str, Any]) -> Sample[Any, Any]:
        """Convert a record to a sample without converting its values; may raise `InvalidRecord`."""
        problems: list[Problem] = []
        fields = self._arrange(record, problems)
        value, expected = fields.get("input"), fields.get("expected")
        has_input = value is not None or ("input" in fields and self.null_input)
        sample_id = self._read_id(fields.get("id"), value, has_input, problems)
        if not has_input:
            problems += self._missing_input(record, "input" in fields)
        metadata = _merge_metadata(fields, problems)
        evaluators = fields.get(EVALUATORS)
        problems += check_evaluators(evaluators)
        if problems:
            # Conversion has no sample to work on later, so its problems are reported now.
            self._convert_values(value, expected, problems, has_input)
            raise InvalidRecord(problems)
        return Sample(sample_id, value, expected, metadata, tuple(evaluators or ()))

    def convert_types(self, sample: Sample[Any, Any]) -> Sample[Any, Any]:
        """Convert input and expected to the declared types; may raise `InvalidRecord`."""
        problems: list[Problem] = []
        value, expected = self._convert_values(sample.input, sample.expected, problems)
        if problems:
            raise InvalidRecord(problems)
        return Sample(sample.id, value, expected, sample.metadata, sample.evaluators)

    def _convert_values(
        self, value: Any, expected: Any, problems: list[Problem], has_input: bool = True
    ) -> tuple[Any, Any]:
        if self._input is not None and has_input:
            value = _convert(self._input, value, problems)
        if self._expected is None or (expected is None and self._null_expected):
            return value, expected
        if expected is None:
            problems.append(_missing_expected(self._expected))
            return value, None
        return value, _convert(self._expected, expected, problems)

    def _arrange(self, record: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
        """Return the values of a record by field; "extras" are single keys of metadata."""
        fields: dict[str, Any] = {}
        for key, value in record.items():
            path = self.paths.get(key)
            if path is None:
                if key_problems := self.find_key_problems(key, record):
                    problems += key_problems
                    continue
                path = (key,) if key in FIELDS else ("metadata", key)
            if len(path) > 1 and path[0] == "metadata":
                path = ("extras", *path[1:])
            target = fields
            for step in path[:-1]:
                target = target.setdefault(step, {})
            target[path[-1]] = value
        return fields

    def find_key_problems(self, key: Any, keys: Container[str]) -> list[Problem]:
        """Return the problems with a key that is not mapped.

        Most unknown keys are metadata; a key that is similar to a missing field is a typo.
        """
        if key in self._mapped_fields:
            return [Problem(key, "is given both by this key and by the mapping")]
        if key in FIELDS:
            return []
        if not isinstance(key, str):
            return [Problem("", f"keys must be strings, got {describe_value(key)}")]
        field = guess_field(key)
        if field is None or field in keys or field in self._mapped_fields:
            return []
        fix = f"rename it, or map it: {key} to {field}"
        return [Problem(key, f"is not a known name; did you mean {field!r}?", fix)]

    def _missing_input(self, record: Mapping[str, Any], is_null: bool) -> list[Problem]:
        if not is_null:
            return [self._absent_input(record)]
        if self._input is None:
            return [Problem("input", "must not be null")]
        problems: list[Problem] = []
        _convert(self._input, None, problems)
        return problems

    def _absent_input(self, record: Mapping[str, Any]) -> Problem:
        for key, suggestion in find_missing_keys(self.paths, [str(key) for key in record]):
            if self.paths[key][0] == "input":
                return Problem("input", f"is missing: there is no {key!r}, which is mapped to it", suggestion)
        fix = INPUT_FIX
        if not LOG_KEYS.isdisjoint(record):
            fix += "; for recorded sessions, add --dataset-format auto (in Python: SessionDataset)"
        return Problem("input", "is missing", fix)

    def _read_id(self, sample_id: Any, value: Any, has_input: bool, problems: list[Problem]) -> str:
        if sample_id is None:
            if not self.rules.generate_ids:
                problems.append(Problem("id", "is missing", ID_FIX))
            elif has_input:
                return generate_id(value)
        elif not isinstance(sample_id, int) or isinstance(sample_id, bool):
            problems += check_id(sample_id)
        return str(sample_id)


def read_items(items: Iterable[Any], reader: RecordReader) -> Rows:
    """Return a function that reads items in memory, with their index from 0."""

    def rows(report: ReportProblems) -> Iterator[tuple[int, Sample[Any, Any]]]:
        keys = MappedKeys(reader.paths)
        for index, item in enumerate(items):
            try:
                record = reader.record(item)
                if isinstance(record, Sample):
                    sample = record
                else:
                    keys.add(index, record)
                    sample = reader.sample(record)
            except InvalidRecord as invalid:
                report(index, invalid.problems)
                continue
            yield index, sample
        for index, problems in keys.problems(dataset_position=WHOLE_DATASET):
            report(index, problems)

    return rows


def read_typed(rows: Rows, reader: RecordReader, locate: Locate) -> Iterator[tuple[int, Sample[Any, Any]]]:
    """Yield converted samples with their positions; the first invalid one raises an error."""

    def report(position: int, problems: Sequence[Problem]) -> NoReturn:
        raise sample_error(locate(position), problems) from None

    if not reader.has_types:
        yield from rows(report)
        return
    for position, sample in rows(report):
        try:
            converted = reader.convert_types(sample)
        except InvalidRecord as invalid:
            report(position, invalid.problems)
        yield position, converted


def check_sample(sample: Sample[Any, Any], *, null_input: bool = False) -> list[Problem]:
    """Return the problems with a sample that was made in code."""
    problems = check_id(sample.id)
    metadata: Any = sample.metadata
    if sample.input is None and not null_input:
        problems.append(Problem("input", "must not be null"))
    if not isinstance(metadata, Mapping):
        problems.append(Problem("metadata", f"must be a mapping, got {describe_value(metadata)}"))
    else:
        problems += [Problem(*problem) for problem in find_metadata_problems(metadata)]
    return problems + check_evaluators(sample.evaluators)


def check_evaluators(evaluators: Any) -> list[Problem]:
    """Return the problems with the shape of a sample's own evaluators; the registry checks their names later."""
    if evaluators is not None and not isinstance(evaluators, list | tuple):
        return [Problem(EVALUATORS, f"must be a list, got {describe_value(evaluators)}", EVALUATORS_FIX)]
    return [
        Problem(f"{EVALUATORS}[{index}]", f"must be an evaluator, got {describe_value(entry)}", EVALUATORS_FIX)
        for index, entry in enumerate(evaluators or ())
        if not isinstance(entry, str | Mapping | msgspec.Struct) and not callable(entry)
    ]


def check_id(sample_id: Any) -> list[Problem]:
    """Return the problems with an id."""
    if not isinstance(sample_id, str):
        return [Problem("id", f"must be a string, got {describe_value(sample_id)}")]
    return [] if sample_id.strip() else [Problem("id", "must not be empty")]


def _merge_metadata(fields: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Merge the metadata of a record with its other keys."""
    own_metadata, extras = fields.get("metadata"), fields.get("extras", {})
    if own_metadata is not None and not isinstance(own_metadata, Mapping):
        problems.append(Problem("metadata", f"must be a mapping, got {describe_value(own_metadata)}"))
        return {}
    metadata = {**(own_metadata or {}), **extras}
    if not metadata:
        return metadata
    problems += [Problem(f"metadata.{key}", "is given twice") for key in extras if key in (own_metadata or {})]
    problems += [Problem(*problem) for problem in find_metadata_problems(metadata)]
    return metadata


def _missing_expected(read: Reader) -> Problem:
    problems: list[Problem] = []
    _convert(read, None, problems)
    requirement = problems[0].what.removesuffix(", got null") if problems else "must not be null"
    fix = "give every sample an expected value, or declare its type as optional, such as str | None"
    return Problem("expected", f"{requirement}, but it is missing or null", fix)


def _convert(read: Reader, value: Any, problems: list[Problem]) -> Any:
    try:
        return read(value)
    except InvalidRecord as invalid:
        problems += invalid.problems
        return None


def _object_fields(item: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, struct, pydantic model or other object as a record."""
    record = {name: getattr(item, name) for name in _field_names(item) if hasattr(item, name)}
    if not record:
        description = "a tuple" if isinstance(item, tuple) else describe_value(item)
        what = f"must be a mapping, a Sample or an object with an input, got {description}"
        raise InvalidRecord([Problem("", what, SAMPLE_FIX)])
    return {name: value for name, value in record.items() if value is not None}


def _field_names(item: Any) -> Iterable[str]:
    if isinstance(item, type):
        return ()
    if dataclasses.is_dataclass(item):
        return [field.name for field in dataclasses.fields(item)]
    if isinstance(item, msgspec.Struct):
        return item.__struct_fields__
    # A pydantic model lists its fields; other objects have only the fields of a sample.
    names: Iterable[str] = getattr(type(item), "model_fields", FIELDS)
    return names
