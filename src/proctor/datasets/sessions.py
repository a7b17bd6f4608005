"""Recorded sessions as a dataset: score logs and traces without running a target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.core.names import UniqueNames
from proctor.datasets.inspection import DatasetInspection
from proctor.datasets.problems import ReportProblems
from proctor.datasets.record import RecordReader, Rules
from proctor.errors import ConfigError, Problem, suggest_name
from proctor.records.run import DatasetInfo
from proctor.records.sample import CLUSTER, Sample, find_metadata_problems
from proctor.sessions import current as sessions

# Most runs read samples, so the readers of sessions are imported only for a path with sessions.
if TYPE_CHECKING:
    from proctor.sessions.importers.imported_session import ImportedSession
    from proctor.sessions.importers.session_files import SessionFiles

MAX_PROBLEMS = 20
# A warning gives the reasons for the first unreadable files, and only the names of the others.
MAX_REASONS = 3
MAX_FILES = 50
MAX_IDS = 20
# Reserved metadata keys; recorded values with these names get a prefix.
_RESERVED_KEYS = (
    "output", "session", "usage", "format", "source", "session_id", "passed_over",
    "recorded", "error", "configuration", "epoch", "id", "input", "expected", "metadata",
)  # fmt: skip
# The first of these keys names the cluster: trials of a task, traces of a conversation, sub-agents.
TASK = "task_id"
_CLUSTER_KEYS = (TASK, "conversation_id", "session_id", "thread_id", "sub_agent_of")


class SessionDataset:
    """Samples from recorded sessions, with the recorded results in their metadata.

    The metadata has `output` (or `error`, if the session ended with one), `session` and `usage`, which a run without a
    target uses, and other recorded values (scores, model, title, times). The path is a file or a folder, compressed or
    not. The format is detected for each file, unless `format` names it. Duplicate ids get a numeric suffix;
    `session_id` selects one session.

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
        format: str | None = None,  # noqa: A002 - public name
        *,
        pattern: str | None = None,
        session_id: str | None = None,
    ) -> None:
        from proctor.sessions.importers.session_files import SessionFiles

        self._files = SessionFiles(path, format, pattern=pattern)
        self.format = format
        self._session_id = session_id
        self._info: DatasetInfo | None = None
        self._formats: Counter[str] = Counter()
        self._unknown_parts: Counter[str] = Counter()

    @staticmethod
    def for_session(
        path: str | Path,
        session_id: str | None = None,
        format: str | None = None,  # noqa: A002 - public name
    ) -> SessionDataset:
        """Make a dataset of one session: the session with an id, or the only session."""
        from proctor.sessions.importers.session_files import SessionFiles

        name, _ = select_session(SessionFiles(path, format), session_id)
        return SessionDataset(path, format, session_id=name)

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        if self._info is not None:
            # A partial pass also warns about everything that could not be read.
            _warn(self._info.details)
        return self._read_and_warn()

    def _read_and_warn(self) -> Iterator[Sample[Any, Any]]:
        yield from self._samples()
        _warn(self._details())

    def __repr__(self) -> str:
        return f"SessionDataset({str(self._files.path)!r})"

    def reads(self, file: Path) -> bool:
        """Return True if the dataset reads this file, even if the file does not exist yet."""
        return self._files.reads(file)

    @property
    def problems(self) -> list[Problem]:
        """The lines and files that the last pass could not read; at most a thousand."""
        return list(self._files.problems)

    @property
    def warnings(self) -> list[str]:
        """The warnings of the last pass about unreadable files and unknown content."""
        return list(_warnings(self._details()))

    def inspect(self) -> DatasetInfo:
        """Read all sessions and describe them: formats, damaged lines, unknown content."""
        path = self._files.path
        inspection = DatasetInspection(self._rows, RecordReader(Rules()))
        info = inspection.run(
            DatasetInfo(path.name or str(path), source=str(path)), lambda index: f"session {index + 1}"
        )
        self._info = msgspec.structs.replace(info, details=self._details())
        return self._info

    @property
    def info(self) -> DatasetInfo:
        return self.inspect()

    def _details(self) -> dict[str, Any]:
        files = self._files
        details: dict[str, Any] = {"files": files.files, "formats": dict(self._formats)}
        if self._unknown_parts:
            details["passed_over"] = dict(self._unknown_parts)
        if files.problem_count:
            damage = files.read_problems
            details["damaged"] = damage.count
            details["problems"] = [str(problem) for problem in damage.by_file[:MAX_PROBLEMS]]
            details["damaged_files"] = damage.files
            details["unread"] = damage.names(files.path)[:MAX_FILES]
        return details

    def _rows(self, _report: ReportProblems) -> Iterator[tuple[int, Sample[Any, Any]]]:
        yield from enumerate(self._samples())

    def _samples(self) -> Iterator[Sample[Any, Any]]:
        self._formats, self._unknown_parts = Counter(), Counter()
        for name, imported in name_sessions_uniquely(self._files):
            if self._session_id in (None, name):
                self._unknown_parts.update(imported.unknown_parts)
                self._formats[imported.format] += 1
                yield make_sample(imported, name)


def name_sessions_uniquely(sessions: Iterable[ImportedSession]) -> Iterator[tuple[str, ImportedSession]]:
    """Yield recorded sessions with unique ids; duplicate ids get a numeric suffix."""
    names = UniqueNames()
    for imported in sessions:
        yield names.make_unique(imported.id.strip() or "session"), imported


def select_session(files: SessionFiles, session_id: str | None) -> tuple[str, ImportedSession]:
    """Return the session with an id, or the only session; if it is ambiguous, raise an error that lists the ids.

    With an id all files are read, so that `files.problems` is complete.
    """
    ids: list[str] = []
    match: tuple[str, ImportedSession] | None = None
    for name, imported in name_sessions_uniquely(files):
        if session_id in (None, name):
            match = match or (name, imported)
        ids.append(name)
        if session_id is None and len(ids) > MAX_IDS:
            break
    if match is None:
        raise ConfigError(
            f"no session has the id {session_id!r}", where=str(files.path), fix=suggest_name(session_id or "", ids)
        )
    if session_id is None and len(ids) > 1:
        examples = ", ".join(ids[:MAX_IDS]) + (", …" if len(ids) > MAX_IDS else "")
        raise ConfigError(
            "there are several sessions in it", where=str(files.path), fix=f"name one with --id: {examples}"
        )
    return match


def make_sample(imported: ImportedSession, name: str) -> Sample[Any, Any]:
    """Make a sample with an id from a recorded session."""
    metadata: dict[str, Any] = {
        "output": imported.output,
        "session": imported.session,
        "format": imported.format,
        "source": imported.source,
        "session_id": imported.id,
    }
    if imported.error is not None:
        # A recording has an output or an error; the session has the last answer.
        metadata["error"] = f"the recorded session ended with an error: {imported.error}"
        del metadata["output"]
    usage = imported.session.known_usage()
    if usage is not None:
        metadata["usage"] = {key: n for key, n in msgspec.structs.asdict(usage).items() if n is not None}
    if imported.unknown_parts:
        metadata["passed_over"] = dict(imported.unknown_parts)
    metadata |= _rename_reserved(imported.recorded)
    if CLUSTER not in metadata and (cluster := _find_cluster(imported.recorded, name)):
        metadata[CLUSTER] = cluster
    return Sample(name, "" if imported.input is None else imported.input, metadata=metadata)


def _rename_reserved(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Give recorded values with reserved or invalid names a prefix, and make all names unique."""
    reserved = {
        name for name, value in recorded.items() if name in _RESERVED_KEYS or find_metadata_problems({name: value})
    }
    names = UniqueNames("_")
    # Unchanged names come first, so that they stay unchanged.
    unchanged = {name: names.make_unique(name) for name in recorded if name not in reserved}
    new_names = unchanged | {name: names.make_unique(f"recorded_{name}") for name in recorded if name in reserved}
    return {new_names[name]: value for name, value in recorded.items()}


def _find_cluster(recorded: Mapping[str, Any], name: str) -> str:
    """Return the cluster of a session; empty if it would be the session itself."""
    for key in _CLUSTER_KEYS:
        value = recorded.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return "" if key != TASK and str(value) == name else str(value)
    return ""


def _warn(details: Mapping[str, Any]) -> None:
    for warning in _warnings(details):
        sessions.warn(warning)


def _warnings(details: Mapping[str, Any]) -> Iterator[str]:
    if damaged_count := details.get("damaged"):
        files = details["damaged_files"]
        where = f", in {files:,} files" if files > 1 else ""
        noun = "line or file" if damaged_count == 1 else "lines or files"
        yield f"{damaged_count:,} {noun} of the dataset could not be read{where}: {_list_unread(details)}"
    if ignored := details.get("passed_over"):
        total = sum(ignored.values())
        types = ", ".join(f"{name} ({number})" for name, number in sorted(ignored.items())[:10])
        noun = "part of the sessions is" if total == 1 else "parts of the sessions are"
        yield f"{total} {noun} of an unknown type; they are stored unchanged: {types}"


def _list_unread(details: Mapping[str, Any]) -> str:
    """Give the reasons for the first unreadable files, and the names of the others."""
    text = "; ".join(details["problems"][:MAX_REASONS])
    if others := details["unread"][MAX_REASONS:]:
        text += f"; and {', '.join(others)}"
    more = details["damaged_files"] - len(details["unread"])
    return text + (f" and {more:,} more" if more > 0 else "")
