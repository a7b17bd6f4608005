"""Recorded outputs, found by configuration, epoch and sample id: in memory or in a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from proctor import codec
from proctor.errors import CallFailed, Problem, TargetError
from proctor.records.session import Session, Usage

EntryT = TypeVar("EntryT")

_BOM = b"\xef\xbb\xbf"
_LOOKED_AT = 4096


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a target once gave for a sample: an output, or the error it ended with.

    Without a `configuration` it stands for every configuration.
    """

    id: str | int
    output: Any = msgspec.UNSET
    configuration: str | None = None
    epoch: Annotated[int, msgspec.Meta(ge=0)] = 0
    usage: Usage | None = None
    session: Session | None = None
    latency_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None
    error: str | None = None


class Place(NamedTuple):
    """What recordings are for: a configuration (None: every one) and an epoch."""

    configuration: str | None
    epoch: int


class Recordings(Protocol):
    """Recordings that can be looked up."""

    @property
    def digest(self) -> str:
        """What tells their content from another."""
        ...

    @property
    def places(self) -> frozenset[Place]:
        """Every configuration and epoch that has recordings."""
        ...

    def find(self, place: Place, sample_id: str) -> Recording | None: ...


class HeldRecordings:
    """Recordings in memory, from a list of mappings or from a mapping of id to output.

    >>> held = HeldRecordings({"1": "Paris"})
    >>> held.find(Place(None, 0), "1").output
    'Paris'
    """

    def __init__(
        self, given: Mapping[str, Any] | Iterable[Mapping[str, Any]], source: str = "the recordings"
    ) -> None:
        rows: Iterable[Any] = given
        if isinstance(given, Mapping):
            rows = ({"id": key, "output": output} for key, output in given.items())
        index = _Index[Recording](source)
        for number, row in enumerate(rows, start=1):
            where = f"recording {number}"
            try:
                recording = msgspec.convert(row, Recording)
            except msgspec.ValidationError as error:
                index.problems.append(Problem(where, str(error)))
            else:
                index.add(where, recording, recording)
        self._found = index.checked()
        self.places = frozenset(self._found)
        self.digest = codec.digest([[*table.values()] for table in self._found.values()])

    def find(self, place: Place, sample_id: str) -> Recording | None:
        return self._found.get(place, {}).get(sample_id)


class FiledRecordings:
    """Recordings in a JSONL file: only the place of each line is kept, however long the outputs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # What is opened: a target may change the current folder meanwhile.
        self._file = path.absolute()
        state = hashlib.sha256()
        index = _Index[int](str(path))
        try:
            with path.open("rb") as file:
                self._stamp = _stamp(file)
                for number, start, line in _lines(file):
                    state.update(line)
                    _take(index, f"{path}:{number}", start, line)
        except OSError as error:
            raise TargetError(
                f"the recordings cannot be read: {error.strerror}", where=str(path)
            ) from None
        self._starts = index.checked()
        self.places = frozenset(self._starts)
        self.digest = state.hexdigest()[:32]

    def find(self, place: Place, sample_id: str) -> Recording | None:
        start = self._starts.get(place, {}).get(sample_id)
        return None if start is None else msgspec.json.decode(self._line(start), type=Recording)

    def _line(self, start: int) -> bytes:
        try:
            with self._file.open("rb") as file:
                if _stamp(file) != self._stamp:
                    raise CallFailed(f"{self._path} has changed since its recordings were read")
                file.seek(start)
                return file.readline()
        except OSError as error:
            what = f"the recordings in {self._path} cannot be read any more"
            raise CallFailed(f"{what}: {error.strerror}") from None


def read_recordings(path: Path) -> Recordings:
    """The recordings of a file: JSON Lines, or a JSON list."""
    try:
        with path.open("rb") as file:
            start = file.read(_LOOKED_AT).removeprefix(_BOM).lstrip()
            if not start.startswith(b"["):
                return FiledRecordings(path)
            file.seek(0)
            text = file.read().removeprefix(_BOM)
    except OSError as error:
        raise TargetError(
            f"the recordings cannot be read: {error.strerror}", where=str(path)
        ) from None
    try:
        return HeldRecordings(msgspec.json.decode(text, type=list[Any]), str(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TargetError(
            f"the recordings are not a JSON list: {error}",
            where=str(path),
            fix='write [{"id": …, "output": …}], or one such object on each line',
        ) from None


class _Index(Generic[EntryT]):
    """Entries by place and sample id, and everything found wrong on the way."""

    def __init__(self, source: str) -> None:
        self.problems: list[Problem] = []
        self._source = source
        self._entries: dict[Place, dict[str, EntryT]] = {}

    def add(self, where: str, recording: Recording, entry: EntryT) -> None:
        """Keep an entry for a recording, or note what is wrong with the recording."""
        sample_id = str(recording.id)
        table = self._entries.setdefault(Place(recording.configuration, recording.epoch), {})
        if recording.output is msgspec.UNSET and recording.error is None:
            self.problems.append(Problem(where, "there is neither an output nor an error"))
        elif sample_id in table:
            self.problems.append(Problem(where, f"the id {sample_id!r} is recorded already"))
        else:
            table[sample_id] = entry

    def checked(self) -> dict[Place, dict[str, EntryT]]:
        """The entries, if there are any and nothing is wrong."""
        if self.problems:
            raise TargetError(
                "some recordings cannot be used",
                where=self._source,
                fix='write each as {"id": …, "output": …}, once for a configuration and epoch',
                problems=self.problems,
            )
        if not self._entries:
            raise TargetError("there are no recordings", where=self._source)
        return self._entries


def _lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Every line that is not blank: its number, where it starts, and its bytes."""
    start = 0
    for number, line in enumerate(file, start=1):
        mark = len(_BOM) if number == 1 and line.startswith(_BOM) else 0
        if line[mark:].strip():
            yield number, start + mark, line[mark:]
        start += len(line)


def _take(index: _Index[int], where: str, start: int, line: bytes) -> None:
    try:
        recording = msgspec.json.decode(line, type=Recording)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        index.problems.append(Problem(where, str(error)))
    else:
        index.add(where, recording, start)


def _stamp(file: BinaryIO) -> tuple[int, ...]:
    """What changes when a file is written to or replaced."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
