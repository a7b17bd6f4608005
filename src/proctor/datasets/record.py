"""From a record (a mapping, a row, an object) to a sample, with everything that is wrong told."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from proctor.datasets.faults import WHOLE, Fault, Refuse, Rows, Unfit, found
from proctor.datasets.mapping import FIELDS, MappedKeys, absent_keys, near_field, read_mapping
from proctor.datasets.typed import Read, accepts_null, reader_of
from proctor.records import codec
from proctor.records.sample import Sample, kind_of, metadata_faults

AUTO_ID_DIGITS = 12


class Fingerprint:
    """A sha256 over samples in their order: the same content gives the same, from any source.

    It is taken of the content as it was written, before it is read into declared types.

    >>> one, two = Fingerprint(), Fingerprint()
    >>> one.add(Sample("1", {"a": 1, "b": 2}))
    >>> two.add(Sample("1", {"b": 2, "a": 1}))
    >>> one.hexdigest() == two.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._state = hashlib.sha256()
        self._stable = True

    def add(self, sample: Sample[Any, Any]) -> None:
        """Take in the next sample."""
        text = written(_told(sample))
        if _is_unstable(text):
            self._stable = False
        self._state.update(text)
        self._state.update(b"\n")

    def hexdigest(self) -> str | None:
        """The fingerprint, or None if a sample holds an object that is known by address only."""
        return self._state.hexdigest() if self._stable else None


def generated_id(value: Any) -> str:
    """An id made from an input: it stays when samples move, and equal inputs give equal ids.

    >>> generated_id("What is 2 + 2?")
    'auto-fb3eb78712d6'
    """
    text = written(value)
    if _is_unstable(text):
        what = f"{type(value).__name__} has no content that an id could be made from"
        raise Unfit([Fault("input", what, "give the sample an id")])
    return "auto-" + hashlib.sha256(text).hexdigest()[:AUTO_ID_DIGITS]


def written(value: Any) -> bytes:
    """A value as canonical JSON, or a fault if JSON cannot hold it."""
    try:
        return codec.canonical(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unfit([Fault("", f"it cannot be written as JSON: {error}")]) from None


def _told(sample: Sample[Any, Any]) -> dict[str, Any]:
    """What a sample says: no expected value and empty metadata are nothing, however written."""
    told = {"id": sample.id, "input": sample.input}
    if sample.expected is not None:
        told["expected"] = sample.expected
    if sample.metadata:
        told["metadata"] = sample.metadata
    return told


def _is_unstable(text: bytes) -> bool:
    """True if an object is written by its address in memory, which is another in each process."""
    return b'"$repr"' in text and b" at 0x" in text


GIVE_IDS = "give every sample an id, or have them made: generate_ids (--generate-ids)"
# Keys of chats and traces, which are no samples, but can be read as recorded sessions.
OF_LOGS = frozenset(
    ("messages", "message", "role", "payload", "traj", "sessionId", "resourceSpans", "events")
)
RECORDED_SESSIONS = (
    "give every sample an input, or map a key to it; if these are recorded sessions, say so: "
    "--format auto (in Python SessionDataset)"
)


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How records are read: the types of input and expected, the mapping, and who gives ids.

    `null_input` accepts null as an input where no type is declared; an optional type does it too.
    """

    input_type: Any = Any
    expected_type: Any = Any
    mapping: Any = None
    generate_ids: bool = False
    null_input: bool = False


class RecordReader:
    """Reads records into samples by given rules.

    >>> RecordReader(Rules()).sample({"id": 7, "input": "2 + 2", "expected": "4", "topic": "sums"})
    Sample(id='7', input='2 + 2', expected='4', metadata={'topic': 'sums'})
    """

    def __init__(self, rules: Rules) -> None:
        self.paths = read_mapping(rules.mapping)
        self._claimed = {path[0] for path in self.paths.values()} - {"metadata"}
        self._generate_ids = rules.generate_ids
        self._input: Read | None = reader_of(rules.input_type, "input")
        self._expected: Read | None = reader_of(rules.expected_type, "expected")
        self.null_input = rules.null_input or (self._input is not None and accepts_null(self._input))
        self._null_expected = accepts_null(self._expected)

    @property
    def types_declared(self) -> bool:
        """True if `typed` has anything to do."""
        return self._input is not None or self._expected is not None

    def record(self, item: Any) -> Sample[Any, Any] | Mapping[str, Any]:
        """A sample as it is, or the fields of a mapping or an object; raises `Unfit`."""
        if isinstance(item, Sample):
            faults = sample_faults(item, null_input=self.null_input)
            if faults:
                raise Unfit(faults)
            return item
        return item if isinstance(item, Mapping) else _fields_of(item)

    def sample(self, record: Mapping[str, Any]) -> Sample[Any, Any]:
        """A sample from a record, its values as they are written; raises `Unfit`."""
        faults: list[Fault] = []
        fields = self._arranged(record, faults)
        value, expected = fields.get("input"), fields.get("expected")
        has_input = value is not None or ("input" in fields and self.null_input)
        name = self._id(fields.get("id"), value, has_input, faults)
        if not has_input:
            faults += self._missing_input(record, "input" in fields)
        metadata = _metadata(fields, faults)
        if faults:
            # There will be no sample to read into types, so what is wrong there is told here.
            self._read_values(value, expected, faults, has_input)
            raise Unfit(faults)
        return Sample(name, value, expected, metadata)

    def typed(self, sample: Sample[Any, Any]) -> Sample[Any, Any]:
        """The same sample with input and expected read into the declared types; raises `Unfit`."""
        faults: list[Fault] = []
        value, expected = self._read_values(sample.input, sample.expected, faults)
        if faults:
            raise Unfit(faults)
        return Sample(sample.id, value, expected, sample.metadata)

    def _read_values(
        self, value: Any, expected: Any, faults: list[Fault], has_input: bool = True
    ) -> tuple[Any, Any]:
        if self._input is not None and has_input:
            value = _read(self._input, value, faults)
        if self._expected is None or (expected is None and self._null_expected):
            return value, expected
        if expected is None:
            faults.append(_missing_expected(self._expected))
            return value, None
        return value, _read(self._expected, expected, faults)

    def _arranged(self, record: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
        """The values of a record at their places in a sample.

        Single keys of metadata are "extras", beside whatever metadata the record has itself.
        """
        fields: dict[str, Any] = {}
        for key, value in record.items():
            path = self.paths.get(key)
            if path is None:
                slips = self.key_faults(key, record)
                if slips:
                    faults += slips
                    continue
                path = (key,) if key in FIELDS else ("metadata", key)
            if len(path) == 1:
                fields[path[0]] = value
            else:
                _put(fields, path if path[0] != "metadata" else ("extras", *path[1:]), value)
        return fields

    def key_faults(self, key: Any, keys: Container[str]) -> list[Fault]:
        """What is wrong with a key that the mapping does not name, beside the other keys.

        Most unknown keys are metadata; one that looks like a field which is not there is a slip.
        """
        if key in self._claimed:
            return [Fault(key, "is given by this key and by the mapping, too")]
        if key in FIELDS:
            return []
        if not isinstance(key, str):
            return [Fault("", f"keys are strings, found {found(key)}")]
        field = near_field(key)
        if field is None or field in keys or field in self._claimed:
            return []
        fix = f"rename it, or map it: {key} to {field}"
        return [Fault(key, f"is not a known name; did you mean {field!r}?", fix)]

    def _missing_input(self, record: Mapping[str, Any], null: bool) -> list[Fault]:
        if not null:
            return [self._no_input(record)]
        if self._input is None:
            return [Fault("input", "expected a value, found null")]
        faults: list[Fault] = []
        _read(self._input, None, faults)
        return faults

    def _no_input(self, record: Mapping[str, Any]) -> Fault:
        for key, likely in absent_keys(self.paths, [str(key) for key in record]):
            if self.paths[key][0] == "input":
                return Fault("input", f"is missing: there is no {key!r}, which is mapped to it", likely)
        if not OF_LOGS.isdisjoint(record):
            return Fault("input", "is missing", RECORDED_SESSIONS)
        return Fault("input", "is missing", "give every sample an input, or map a key to it")

    def _id(self, name: Any, value: Any, has_input: bool, faults: list[Fault]) -> str:
        if name is None:
            if not self._generate_ids:
                faults.append(Fault("id", "is missing", GIVE_IDS))
            elif has_input:
                return generated_id(value)
        elif isinstance(name, int) and not isinstance(name, bool):
            return str(name)
        else:
            faults += id_faults(name)
        return str(name)


def item_rows(items: Iterable[Any], reader: RecordReader) -> Rows:
    """Passes over items in memory, each read by the reader, with their index from 0."""

    def rows(refuse: Refuse) -> Iterator[tuple[int, Sample[Any, Any]]]:
        keys = MappedKeys(reader.paths)
        for index, item in enumerate(items):
            try:
                record = reader.record(item)
                if isinstance(record, Sample):
                    sample = record
                else:
                    keys.see(index, record)
                    sample = reader.sample(record)
            except Unfit as unfit:
                refuse(index, unfit.faults)
                continue
            yield index, sample
        for index, faults in keys.faults(whole=WHOLE):
            refuse(index, faults)

    return rows


def sample_faults(sample: Sample[Any, Any], *, null_input: bool = False) -> list[Fault]:
    """What is wrong with a sample that was made in code.

    >>> [str(fault) for fault in sample_faults(Sample("", None))]
    ['id: must not be empty', 'input: expected a value, found null']
    """
    faults = id_faults(sample.id)
    metadata: Any = sample.metadata
    if sample.input is None and not null_input:
        faults.append(Fault("input", "expected a value, found null"))
    if not isinstance(metadata, Mapping):
        faults.append(Fault("metadata", f"expected a mapping, found {found(metadata)}"))
    else:
        faults += [Fault(*fault) for fault in metadata_faults(metadata)]
    return faults


def id_faults(name: Any) -> list[Fault]:
    """What is wrong with an id."""
    if not isinstance(name, str):
        return [Fault("id", f"expected a string, found {found(name)}")]
    return [] if name.strip() else [Fault("id", "must not be empty")]


def _metadata(fields: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
    """The metadata of a record: its own, and the keys that have no other place."""
    own, extras = fields.get("metadata"), fields.get("extras", {})
    if own is not None and not isinstance(own, Mapping):
        faults.append(Fault("metadata", f"expected a mapping, found {found(own)}"))
        return {}
    metadata = {**(own or {}), **extras}
    if not metadata:
        return metadata
    twice = [key for key in extras if key in (own or {})]
    faults += [Fault(f"metadata.{key}", "is given twice") for key in twice]
    faults += [Fault(*fault) for fault in metadata_faults(metadata)]
    return metadata


def _missing_expected(read: Read) -> Fault:
    """The fault of a sample without the expected value that its type demands."""
    try:
        read(None)
    except Unfit as unfit:
        wanted = unfit.faults[0].what.removesuffix(", found null")
    else:
        wanted = "expected a value"
    fix = "give every sample an expected value, or declare its type as optional, such as str | None"
    return Fault("expected", f"{wanted}, but it is missing or null", fix)


def _read(read: Read, value: Any, faults: list[Fault]) -> Any:
    try:
        return read(value)
    except Unfit as unfit:
        faults += unfit.faults
        return None


def _put(spot: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        spot = spot.setdefault(step, {})
    spot[path[-1]] = value


def _fields_of(item: Any) -> dict[str, Any]:
    """The fields of a dataclass, struct, pydantic model or other object, as a record."""
    record = {name: getattr(item, name) for name in _field_names(item) if hasattr(item, name)}
    if not record:
        what = f"expected a mapping, a Sample or an object with an input, found {kind_of(item)}"
        raise Unfit([Fault("", what)])
    return {name: value for name, value in record.items() if value is not None}


def _field_names(item: Any) -> Iterable[str]:
    if isinstance(item, type):
        return ()
    if dataclasses.is_dataclass(item):
        return [field.name for field in dataclasses.fields(item)]
    if isinstance(item, msgspec.Struct):
        return item.__struct_fields__
    # A pydantic model names its fields itself; of other objects only the known ones are asked for.
    names: Iterable[str] = getattr(type(item), "model_fields", FIELDS)
    return names
