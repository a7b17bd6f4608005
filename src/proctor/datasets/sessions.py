"""Recorded sessions as a dataset: what is in logs and traces is scored without running anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.names import NamesApart
from proctor.datasets.census import Census
from proctor.datasets.faults import Refuse
from proctor.datasets.record import RecordReader, Rules
from proctor.errors import ConfigError, Problem, nearest
from proctor.records.run import DatasetInfo
from proctor.records.sample import CLUSTER, Sample, metadata_faults
from proctor.sessions import current as sessions
from proctor.sessions.importers.reading import SessionFiles
from proctor.sessions.importers.shapes import Imported

PROBLEMS_SHOWN = 20
# A warning tells of so many files why they could not be read, and of so many more their names.
REASONS_WARNED = 3
FILES_WARNED = 50
IDS_SHOWN = 20
# What a sample's metadata says of the recording itself; what else was recorded stands beside it.
_OWN = ("output", "session", "usage", "format", "source", "session_id", "passed_over")
# `recorded` would be results by configuration, and the others are what a result has anyway.
_OF_RESULTS = (
    "recorded", "error", "configuration", "epoch", "id", "input", "expected", "metadata",
)  # fmt: skip
# What sessions that belong together have in common, the first that is there: trials of a task,
# traces of a conversation, sub-agents of a session.
TASK = "task_id"
_TOGETHER = (TASK, "conversation_id", "session_id", "thread_id", "sub_agent_of")


class SessionDataset:
    """Samples made of recorded sessions: the input, and in the metadata what was left behind.

    That is `output`, `session` and `usage`, where a run without a target looks for them, and what
    else was recorded (scores, model, title, times). The path is a file or a folder, compressed or
    not; `format` forces one, else each file's content tells. Ids that come twice get a number;
    `only` leaves the one session of an id.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> chat = '[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]'
    >>> _ = Path(folder.name, "a.json").write_text(chat)
    >>> logs = SessionDataset(folder.name)
    >>> [(sample.id, sample.input, sample.metadata["output"]) for sample in logs]
    [('a', 'Hello', 'Hi')]
    >>> logs.problems
    []
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | Path,
        format: str | None = None,  # noqa: A002 - the word people use
        *,
        pattern: str | None = None,
        only: str | None = None,
    ) -> None:
        self._files = SessionFiles(path, format, pattern=pattern)
        self.format = format
        self._only = only
        self._info: DatasetInfo | None = None
        self._formats: Counter[str] = Counter()
        self._passed_over: Counter[str] = Counter()

    @staticmethod
    def one(
        path: str | Path,
        session_id: str | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
    ) -> SessionDataset:
        """The dataset of one session: of an id, or the only one there is."""
        name, _ = chosen(SessionFiles(path, format), session_id)
        return SessionDataset(path, format, only=name)

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        if self._info is not None:
            # Whoever reads only a part of it is told what the whole lacks.
            _warn(self._info.details)
        return self._pass()

    def _pass(self) -> Iterator[Sample[Any, Any]]:
        yield from self._samples()
        _warn(self._details())

    def __repr__(self) -> str:
        return f"SessionDataset({str(self._files.path)!r})"

    def reads(self, file: Path) -> bool:
        """True if a file, there or not yet, is one of those in the folder that are read."""
        return self._files.reads(file)

    @property
    def problems(self) -> list[Problem]:
        """What the last pass could not read, with its place; at most the first thousand."""
        return list(self._files.problems)

    @property
    def warnings(self) -> list[str]:
        """What a run says about the last pass: what could not be read, or was not understood."""
        return list(_warnings(self._details()))

    def inspect(self) -> DatasetInfo:
        """Read everything once and describe it: formats, damaged lines, what is not understood."""
        path = self._files.path
        census = Census(self._rows, RecordReader(Rules()))
        info = census.take(DatasetInfo(path.name or str(path), source=str(path)), _place)
        self._info = msgspec.structs.replace(info, details=self._details())
        return self._info

    @property
    def info(self) -> DatasetInfo:
        """What `inspect` gives."""
        return self.inspect()

    def _details(self) -> dict[str, Any]:
        files = self._files
        details: dict[str, Any] = {"files": files.files, "formats": dict(self._formats)}
        if self._passed_over:
            details["passed_over"] = dict(self._passed_over)
        if files.damaged:
            damage = files.damage
            details["damaged"] = damage.count
            details["problems"] = [str(problem) for problem in damage.by_file[:PROBLEMS_SHOWN]]
            details["damaged_files"] = damage.files
            details["unread"] = damage.names(files.path)[:FILES_WARNED]
        return details

    def _rows(self, refuse: Refuse) -> Iterator[tuple[int, Sample[Any, Any]]]:  # noqa: ARG002
        yield from enumerate(self._samples())

    def _samples(self) -> Iterator[Sample[Any, Any]]:
        self._formats, self._passed_over = Counter(), Counter()
        for name, found in named_apart(self._files):
            if self._only in (None, name):
                self._passed_over.update(found.passed_over)
                self._formats[found.format] += 1
                yield sample_of(found, name)


def named_apart(found: Iterable[Imported]) -> Iterator[tuple[str, Imported]]:
    """Recorded sessions, each under an id of its own: what comes twice gets a number."""
    names = NamesApart()
    for imported in found:
        yield names.of(imported.id.strip() or "session"), imported


def chosen(files: SessionFiles, wanted: str | None) -> tuple[str, Imported]:
    """The session that is meant, by its id; if it is not clear which, an error that names some.

    Everything is read, so that `files.problems` tells all that could not be.
    """
    ids: list[str] = []
    meant: tuple[str, Imported] | None = None
    for name, found in named_apart(files):
        if wanted in (None, name):
            meant = meant or (name, found)
        ids.append(name)
        if wanted is None and len(ids) > IDS_SHOWN:
            break
    if meant is None:
        raise ConfigError(
            f"there is no session {wanted!r}", where=str(files.path), fix=nearest(wanted or "", ids)
        )
    if wanted is None and len(ids) > 1:
        some = ", ".join(ids[:IDS_SHOWN]) + (", …" if len(ids) > IDS_SHOWN else "")
        raise ConfigError(
            "there are several sessions in it", where=str(files.path), fix=f"name one with --id: {some}"
        )
    return meant


def sample_of(imported: Imported, name: str) -> Sample[Any, Any]:
    """A recorded session as a sample of a name.

    >>> from proctor.records.session import Session
    >>> found = Imported("s1", Session(), "openai", "a.json", "Hello", "Hi", {"reward": 1.0})
    >>> sample_of(found, "s1").metadata["reward"]
    1.0
    """
    metadata: dict[str, Any] = {
        "output": imported.output,
        "session": imported.session,
        "format": imported.format,
        "source": imported.source,
        "session_id": imported.id,
    }
    usage = imported.session.known_usage()
    if usage is not None:
        metadata["usage"] = {key: n for key, n in msgspec.structs.asdict(usage).items() if n is not None}
    if imported.passed_over:
        metadata["passed_over"] = dict(imported.passed_over)
    metadata |= _beside(imported.recorded)
    if CLUSTER not in metadata and (cluster := _cluster(imported.recorded, name)):
        metadata[CLUSTER] = cluster
    return Sample(name, "" if imported.input is None else imported.input, metadata=metadata)


def _beside(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """What was recorded, under names that nothing else has."""
    taken = {
        name
        for name, value in recorded.items()
        if name in (*_OWN, *_OF_RESULTS) or metadata_faults({name: value})
    }
    names = NamesApart("_")
    # Those that keep their names have them first.
    kept = {name: names.of(name) for name in recorded if name not in taken}
    given = kept | {name: names.of(f"recorded_{name}") for name in recorded if name in taken}
    return {given[name]: value for name, value in recorded.items()}


def _cluster(recorded: Mapping[str, Any], name: str) -> str:
    """What a session belongs to; nothing if that is itself."""
    for key in _TOGETHER:
        found = recorded.get(key)
        if isinstance(found, str | int) and not isinstance(found, bool) and str(found).strip():
            return "" if key != TASK and str(found) == name else str(found)
    return ""


def _warn(details: Mapping[str, Any]) -> None:
    for warning in _warnings(details):
        sessions.warn(warning)


def _warnings(details: Mapping[str, Any]) -> Iterator[str]:
    if damaged := details.get("damaged"):
        files = details["damaged_files"]
        within = f", in {files:,} files" if files > 1 else ""
        what = f"{damaged:,} of the dataset's lines or files could not be read as they are{within}"
        yield f"{what}: {_unread(details)}"
    if over := details.get("passed_over"):
        listed = ", ".join(f"{kind} ({n})" for kind, n in sorted(over.items())[:10])
        are = "part of the sessions is" if (n := sum(over.values())) == 1 else "parts of the sessions are"
        yield f"{n} {are} not understood, but kept: {listed}"


def _unread(details: Mapping[str, Any]) -> str:
    """Why the first files could not be read, and the names of the others."""
    told = "; ".join(details["problems"][:REASONS_WARNED])
    if others := details["unread"][REASONS_WARNED:]:
        told += f"; and {', '.join(others)}"
    more = details["damaged_files"] - len(details["unread"])
    return told + (f" and {more:,} more" if more > 0 else "")


def _place(position: int) -> str:
    return f"session {position + 1}"
