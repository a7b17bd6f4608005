"""Recorded outputs as a target: score existing outputs without calling anything."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import msgspec

from proctor.core.resources import describe_os_error
from proctor.errors import CallFailed, Problem, TargetError, suggest_name
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Session, Usage
from proctor.records.trial import Configuration, Reply
from proctor.records.validation import explain
from proctor.sessions import current as sessions

CONFIGURATION, OUTPUT, RECORDED = "configuration", "output", "recorded"
_BOM = b"\xef\xbb\xbf"
_SNIFF_BYTES = 4096


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The recorded output of a sample, or its error.

    Without a `configuration` it applies to every configuration.
    """

    id: str | int
    output: Any = msgspec.UNSET
    configuration: str | None = None
    epoch: Annotated[int, msgspec.Meta(ge=0)] = 0
    usage: Usage | None = None
    session: Session | None = None
    latency_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None
    error: str | None = None


class RecordingKey(NamedTuple):
    """A configuration (None for all configurations) and an epoch."""

    configuration: str | None
    epoch: int


class Recordings:
    """Recordings by configuration, epoch and sample id; for a JSONL file, only the offset of each line is in memory."""

    def __init__(self, source: str) -> None:
        self.digest = ""
        self.problems: list[Problem] = []
        self._source = source
        self._entries: dict[RecordingKey, dict[str, Recording | int]] = {}
        self._file: tuple[Path, tuple[int, ...]] | None = None

    @property
    def configurations(self) -> frozenset[str | None]:
        """The configurations with recordings; None for recordings that apply to every configuration."""
        return frozenset(key.configuration for key in self._entries)

    def find(self, key: RecordingKey, sample_id: str) -> Recording | None:
        """Return the recording of a sample, if there is one."""
        entry = self._entries.get(key, {}).get(sample_id)
        if not isinstance(entry, int):
            return entry
        assert self._file is not None  # Only files have offsets.
        path, stamp = self._file
        try:
            with path.open("rb") as file:
                if _file_stamp(file) != stamp:
                    raise CallFailed(f"{self._source} has changed since its recordings were read")
                file.seek(entry)
                return msgspec.json.decode(file.readline(), type=Recording)
        except OSError as error:
            raise CallFailed(f"the recordings in {self._source} cannot be read any more: {error.strerror}") from None

    def add(self, where: str, recording: Recording, offset: int | None = None) -> None:
        """Add a recording; with an offset, it is read again from the file when it is needed."""
        sample_id = str(recording.id)
        table = self._entries.setdefault(RecordingKey(recording.configuration, recording.epoch), {})
        if recording.output is msgspec.UNSET and recording.error is None:
            self.problems.append(Problem(where, "there is neither an output nor an error"))
        elif sample_id in table:
            self.problems.append(Problem(where, f"the id {sample_id!r} is recorded already"))
        else:
            table[sample_id] = recording if offset is None else offset

    def add_rows(self, rows: Iterable[Any]) -> Recordings:
        """Add recordings as mappings, and check them."""
        for number, row in enumerate(rows, start=1):
            where = f"recording {number}"
            try:
                self.add(where, msgspec.convert(row, Recording))
            except msgspec.ValidationError as error:
                self.problems.append(Problem(where, explain(error)))
        self._check()
        self.digest = codec.digest([[*table.values()] for table in self._entries.values()])
        return self

    def add_file(self, path: Path) -> Recordings:
        """Add the lines of a JSONL file, and check them."""
        state = hashlib.sha256()
        with path.open("rb") as file:
            # Absolute, because a target may change the working directory.
            self._file = path.absolute(), _file_stamp(file)
            for number, start, line in _read_lines(file):
                state.update(line)
                where = f"{path}:{number}"
                try:
                    self.add(where, msgspec.json.decode(line, type=Recording), start)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    self.problems.append(Problem(where, explain(error)))
        self._check()
        self.digest = state.hexdigest()[:32]
        return self

    def _check(self) -> None:
        """Raise all problems, or an error if the file has no recordings."""
        if self.problems:
            raise TargetError(
                "some recordings cannot be used",
                where=self._source,
                fix='write each as {"id": …, "output": …}, once for a configuration and epoch',
                problems=self.problems,
            )
        if not self._entries:
            raise TargetError("the file has no recordings", where=self._source, fix="check that it is the right file")


def read_recordings(path: Path) -> Recordings:
    """Read a file of recordings: JSON Lines, or a JSON list."""
    recordings = Recordings(str(path))
    try:
        with path.open("rb") as file:
            start = file.read(_SNIFF_BYTES).removeprefix(_BOM).lstrip()
            if not start.startswith(b"["):
                return recordings.add_file(path)
            file.seek(0)
            text = file.read().removeprefix(_BOM)
    except OSError as error:
        what = describe_os_error(error, "the recordings cannot be read")
        raise TargetError(what, where=str(path), fix="check the path") from None
    try:
        return recordings.add_rows(msgspec.json.decode(text, type=list[Any]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TargetError(
            f"the recordings are not a JSON list: {error}",
            where=str(path),
            fix='write [{"id": …, "output": …}], or one such object on each line',
        ) from None


def _read_lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number, the offset and the bytes of each line that is not blank."""
    start = 0
    for number, line in enumerate(file, start=1):
        skip = len(_BOM) if number == 1 and line.startswith(_BOM) else 0
        if line[skip:].strip():
            yield number, start + skip, line[skip:]
        start += len(line)


def _file_stamp(file: BinaryIO) -> tuple[int, ...]:
    """Return a value that changes when the file is written to or replaced."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class RecordedTarget:
    """Returns existing outputs: from a JSONL file, from memory, or from the samples.

    `outputs` is the path of a file with one `{"id", "output"}` on each line or a JSON list of them, a list of
    such mappings, or a mapping of id to output. Without it, the recording is in the metadata of each sample,
    or in its `recorded` for each configuration. A recording may also have `configuration`, `epoch`, `usage`,
    `session`, `latency_ms`, and `error` instead of an output. With `per_configuration`, a sample with one
    recording does not apply to every configuration.

    If recordings name several configurations, the option `configuration` selects one (recordings without a
    configuration apply to all). The run's epochs match the epochs of the recordings.

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
        per_configuration: bool = False,
    ) -> None:
        self._per_configuration = per_configuration
        self._recordings = _open_recordings(outputs)
        self._configurations = self._recordings.configurations if self._recordings else frozenset[str | None]()
        configuration_names = self._configurations - {None}
        self._default = next(iter(configuration_names)) if len(configuration_names) == 1 else None
        stem = Path(outputs).stem if isinstance(outputs, str | Path) else "recorded"
        digest = self._recordings.digest[:16] if self._recordings else "metadata"
        self.spec = TargetSpec(name or stem, "recorded", digest)

    def __repr__(self) -> str:
        return f"RecordedTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        """Reject options other than `configuration`; recordings in samples accept all options."""
        if self._recordings is None:
            return []
        problems = [
            f"unknown option {name!r} for recordings: {suggest_name(name, [CONFIGURATION])}"
            for name in options
            if name != CONFIGURATION
        ]
        return problems + self._check_configuration(options)

    async def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int = 0) -> Reply:
        """Return the recording of one sample."""
        if self._recordings is None:
            return _read_metadata(sample, options.get(CONFIGURATION), self._per_configuration)
        configuration = options.get(CONFIGURATION, self._default)
        for name in dict.fromkeys((configuration, None)):
            recording = self._recordings.find(RecordingKey(name, epoch), sample.id)
            if recording is not None:
                break
        else:
            scope = f" in configuration {configuration!r}" if configuration is not None else ""
            scope += f" in epoch {epoch}" if epoch else ""
            raise CallFailed(f"there is no recording for sample {sample.id!r}{scope}")
        if recording.error is not None:
            raise CallFailed(recording.error)
        return Reply(recording.output, recording.usage, recording.session, recording.latency_ms)

    async def close(self) -> None:
        """Do nothing: no file stays open."""

    def _check_configuration(self, options: Mapping[str, Any]) -> list[str]:
        if None in self._configurations or not self._configurations:
            return []
        names = sorted(name for name in self._configurations if name is not None)
        selected = options.get(CONFIGURATION, self._default)
        if selected in names:
            return []
        if CONFIGURATION not in options:
            return [f"the option {CONFIGURATION!r} is required to select recordings: {', '.join(names)}"]
        return [f"the file has no recordings of configuration {selected!r}: {suggest_name(str(selected), names)}"]


def add_configuration_option(configuration: Configuration) -> Configuration:
    """Add the option that selects the recordings with the configuration's name."""
    return Configuration(configuration.name, {CONFIGURATION: configuration.name, **configuration.options})


def _read_metadata(sample: Sample[Any, Any], configuration: str | None, per_configuration: bool) -> Reply:
    recorded = _select_metadata(sample, configuration, per_configuration)
    usage = _read_usage(recorded.get("usage"))
    if OUTPUT not in recorded:
        if recorded.get("error") is None:
            raise CallFailed(f"sample {sample.id!r} has no output recorded in its metadata")
        for event in recorded["session"] if isinstance(recorded.get("session"), Session) else ():
            sessions.record(event)
        failure = CallFailed(str(recorded["error"]))
        failure.usage = usage
        raise failure
    fields = {key: recorded[key] for key in ("session", "latency_ms") if key in recorded}
    try:
        recording = msgspec.convert({"id": sample.id, **fields}, Recording)
    except msgspec.ValidationError:
        # Fields in other formats stay available in the metadata.
        return Reply(recorded[OUTPUT], usage)
    return Reply(recorded[OUTPUT], usage, recording.session, recording.latency_ms)


def _select_metadata(sample: Sample[Any, Any], configuration: str | None, per_configuration: bool) -> Mapping[str, Any]:
    by_configuration = sample.metadata.get(RECORDED)
    if not isinstance(by_configuration, Mapping):
        if per_configuration:
            raise CallFailed(
                f"sample {sample.id!r} has one recording, not one for configuration {configuration!r}: "
                "add {'recorded': {configuration: result}}, or run a target"
            )
        return sample.metadata
    if configuration is None and by_configuration:
        names = ", ".join(f'"{name}"' for name in by_configuration)
        raise CallFailed(
            f"sample {sample.id!r} has recordings for several configurations, and none is selected: "
            f"pass configurations=[{names}]"
        )
    if configuration not in by_configuration:
        raise CallFailed(
            f"sample {sample.id!r} has no recording for configuration {configuration!r}: "
            + suggest_name(str(configuration), map(str, by_configuration))
        )
    recorded = by_configuration[configuration]
    if not isinstance(recorded, Mapping):
        raise CallFailed(
            f"the recording of sample {sample.id!r} for configuration {configuration!r} is a "
            f"{type(recorded).__name__}, not a mapping with an output"
        )
    return recorded


def _read_usage(reported: Any) -> Usage | None:
    """Read tokens and cost from a usage in any format; fields with unknown names are ignored."""
    if not isinstance(reported, Mapping):
        return None
    try:
        usage = msgspec.convert({name: reported[name] for name in Usage.__struct_fields__ if name in reported}, Usage)
    except msgspec.ValidationError:
        return None
    return None if usage == Usage() else usage


def _open_recordings(outputs: Any) -> Recordings | None:
    if outputs is None:
        return None
    if isinstance(outputs, str | Path):
        return read_recordings(Path(outputs))
    if isinstance(outputs, Mapping):
        outputs = [{"id": key, "output": output} for key, output in outputs.items()]
    if isinstance(outputs, Iterable) and not isinstance(outputs, bytes):
        return Recordings("the recordings").add_rows(outputs)
    raise TargetError(
        f"{type(outputs).__name__} cannot contain recordings",
        fix="pass the path of a JSONL file, a list of recordings or a mapping of id to output",
    )
