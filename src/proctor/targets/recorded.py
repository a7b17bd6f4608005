"""Recorded outputs as a target: nothing is called, what was once given is scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import CallFailed, TargetError, nearest
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Usage
from proctor.records.trial import Configuration, Reply
from proctor.targets.recordings import (
    HeldRecordings,
    Place,
    Recording,
    Recordings,
    read_recordings,
)

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

    async def call(
        self, sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int = 0
    ) -> Reply:
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
        return [
            f"there are no recordings of configuration {wanted!r}: {nearest(str(wanted), named)}"
        ]


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
