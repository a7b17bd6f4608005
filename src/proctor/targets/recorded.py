"""Recorded outputs as a target: nothing is called, what was once given is scored."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from proctor.errors import CallFailed, Problem, TargetError, nearest
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Session, Usage
from proctor.records.trial import Configuration, Reply

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
            raise TargetError(f"the recordings cannot be read: {error.strerror}", where=str(path)) from None
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
        raise TargetError(f"the recordings cannot be read: {error.strerror}", where=str(path)) from None
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


CONFIGURATION, OUTPUT, RECORDED = "configuration", "output", "recorded"


class RecordedTarget:
    """Outputs that are there already: in a JSONL file, in memory, or in the samples themselves.

    `outputs` is the path of a file with one `{"id", "output"}` on each line or a JSON list of
    them, a list of such mappings, or a mapping of id to output; without it every sample's own
    metadata is the recording, or what its `recorded` holds for the configuration. A recording
    may also have `configuration`, `epoch`, `usage`, `session`, `latency_ms`, and `error` instead of
    an output. With `each_apart` a sample that was recorded once does not stand for every
    configuration.

    Where recordings name several configurations, the option `configuration` says whose are
    wanted (those that name none stand for all). The epochs of a run are those of the recordings.

    >>> import asyncio
    >>> target = RecordedTarget({"1": "Paris"})
    >>> asyncio.run(target.call(Sample("1", "capital of France?"), {})).output
    'Paris'
    """

    blocking = False

    def __init__(
        self,
        outputs: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]] | None = None,
        *,
        name: str | None = None,
        each_apart: bool = False,
    ) -> None:
        self._each_apart = each_apart
        self._recordings = _read(outputs)
        places = self._recordings.places if self._recordings else frozenset()
        self._configurations = frozenset(place.configuration for place in places)
        named = self._configurations - {None}
        self._default = next(iter(named)) if len(named) == 1 else None
        stem = Path(outputs).stem if isinstance(outputs, str | Path) else "recorded"
        digest = self._recordings.digest[:16] if self._recordings else "metadata"
        self.spec = TargetSpec(name or stem, "recorded", digest)

    def __repr__(self) -> str:
        return f"RecordedTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        """Only `configuration` has a meaning; samples may say more of how theirs were made."""
        if self._recordings is None:
            return []
        faults = [
            f"there is no option {name!r} for recordings: {nearest(name, [CONFIGURATION])}"
            for name in options
            if name != CONFIGURATION
        ]
        return faults + self._configuration_faults(options)

    async def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int = 0) -> Reply:
        """What was recorded for one sample."""
        if self._recordings is None:
            return _own(sample, options.get(CONFIGURATION), self._each_apart)
        configuration = options.get(CONFIGURATION, self._default)
        recording = self._find(self._recordings, sample.id, configuration, epoch)
        if recording.error is not None:
            raise CallFailed(recording.error)
        return Reply(recording.output, recording.usage, recording.session, recording.latency_ms)

    async def close(self) -> None:
        """Nothing is held open."""

    def _find(
        self, recordings: Recordings, sample_id: str, configuration: str | None, epoch: int
    ) -> Recording:
        for name in dict.fromkeys((configuration, None)):
            found = recordings.find(Place(name, epoch), sample_id)
            if found is not None:
                return found
        scope = f" in configuration {configuration!r}" if configuration is not None else ""
        scope += f" in epoch {epoch}" if epoch else ""
        raise CallFailed(f"there is no recording for sample {sample_id!r}{scope}")

    def _configuration_faults(self, options: Mapping[str, Any]) -> list[str]:
        if None in self._configurations or not self._configurations:
            return []
        named = [name for name in self._configurations if name is not None]
        wanted = options.get(CONFIGURATION, self._default)
        if wanted in named:
            return []
        if CONFIGURATION not in options:
            known = ", ".join(sorted(named))
            return [f"the option {CONFIGURATION!r} is needed to choose recordings: {known}"]
        return [f"there are no recordings of configuration {wanted!r}: {nearest(str(wanted), named)}"]


def chosen_by_name(configuration: Configuration) -> Configuration:
    """A configuration whose name also tells which recordings are meant."""
    options = {CONFIGURATION: configuration.name, **configuration.options}
    return Configuration(configuration.name, options)


def _own(sample: Sample[Any, Any], configuration: str | None, each_apart: bool) -> Reply:
    """What a sample itself records, of one configuration if it records several."""
    recorded: Mapping[str, Any] = sample.metadata
    several = sample.metadata.get(RECORDED)
    if isinstance(several, Mapping):
        if configuration is None and several:
            names = ", ".join(f'"{name}"' for name in several)
            raise CallFailed(
                f"sample {sample.id!r} records results by configuration, and none was named: "
                f"pass configurations=[{names}]"
            )
        if configuration not in several:
            raise CallFailed(
                f"sample {sample.id!r} has nothing recorded for configuration {configuration!r}: "
                + nearest(str(configuration), map(str, several))
            )
        recorded = several[configuration]
        if not isinstance(recorded, Mapping):
            raise CallFailed(
                f"what sample {sample.id!r} records for configuration {configuration!r} is a "
                f"{type(recorded).__name__}, not a mapping with an output"
            )
    elif each_apart:
        raise CallFailed(
            f"sample {sample.id!r} was recorded once, not for configuration {configuration!r}: "
            "give it {'recorded': {configuration: result}}, or run a target"
        )
    if recorded.get("error") is not None and OUTPUT not in recorded:
        raise CallFailed(str(recorded["error"]))
    if OUTPUT not in recorded:
        raise CallFailed(f"sample {sample.id!r} has no output recorded in its metadata")
    told = {key: recorded[key] for key in ("usage", "session", "latency_ms") if key in recorded}
    usage = _usage(told.pop("usage", None))
    try:
        found = msgspec.convert({"id": sample.id, **told}, Recording)
    except msgspec.ValidationError:
        # What does not fit our records is still there for whoever asks for the field.
        return Reply(recorded[OUTPUT], usage)
    return Reply(recorded[OUTPUT], usage, found.session, found.latency_ms)


def _usage(told: Any) -> Usage | None:
    """The tokens and the cost in a usage of any make, as far as they bear our names."""
    if not isinstance(told, Mapping):
        return None
    names = Usage.__struct_fields__
    try:
        usage = msgspec.convert({name: told[name] for name in names if name in told}, Usage)
    except msgspec.ValidationError:
        return None
    return None if usage == Usage() else usage


def _read(outputs: Any) -> Recordings | None:
    if outputs is None:
        return None
    if isinstance(outputs, str | Path):
        return read_recordings(Path(outputs))
    if isinstance(outputs, Iterable) and not isinstance(outputs, bytes):
        return HeldRecordings(outputs)
    raise TargetError(
        f"{type(outputs).__name__} is not something that holds recordings",
        fix="give the path of a JSONL file, a list of recordings or a mapping of id to output",
    )
