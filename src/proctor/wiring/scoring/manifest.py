"""Manifests of sessions with known scores, and the evaluation that scores sessions with rubrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.core.names import UniqueNames
from proctor.core.resources import describe_conversion, describe_decode_error, describe_json_error, describe_os_error
from proctor.core.yaml_text import InvalidYAML, load_yaml, read_lines
from proctor.datasets.sessions import SessionDataset
from proctor.errors import ConfigError, Problem, UsageError, suggest_name
from proctor.evaluators.rubrics import rubric_evaluators
from proctor.records.numbers import is_number
from proctor.records.rubric import RUBRICS_VERSION, Columns, RubricSet, read_columns
from proctor.records.run import Redact
from proctor.records.sample import Sample
from proctor.targets.recorded import RecordedTarget
from proctor.wiring.prepare import Evaluation

ENTRY_KEYS = ("path", "score", "id", "recorded", "format")
DUPLICATE_FIX = "keep one entry for each session, for example with the mean score"


class ScoredSession(NamedTuple):
    """A session with its known score."""

    sample: Sample[Any, Any]
    score: float


def read_manifest(path: Path) -> list[ScoredSession]:
    """Read the sessions of a manifest, with their scores; one error reports all problems.

    A manifest is a list, or {sessions: […]}, of entries {path, score} (with `id` if a file holds
    several sessions), or {path, recorded: NAME} for all sessions of a file with a recorded score
    of that name. Paths are relative to the manifest's folder. Damaged parts of files become
    warnings. Two entries for the same session are an error, even if they use different paths.
    """
    entries, keys = _read_entries(path)
    sessions: list[tuple[ScoredSession, int]] = []
    problems: list[tuple[int, str]] = []
    files = _SessionFiles(path.parent)
    for index, entry in enumerate(entries):
        entry_problems = [(index, problem) for problem in _find_problems(entry)]
        problems += entry_problems
        if not entry_problems:
            try:
                sessions += [(session, index) for session in _load_sessions(entry, files)]
            except UsageError as error:
                problems.append((index, str(error)))
    duplicates = _find_duplicates(sessions, files)
    if problems or duplicates:
        lines = read_lines(path.read_text(encoding="utf-8-sig"))
        places = [lines.describe((*keys, index), str(path)) for index in range(len(entries))]
        located_problems = [Problem(places[index], problem) for index, problem in problems]
        located_problems += [
            Problem(places[second], f"{subject} at {places[first]}") for first, second, subject in duplicates
        ]
        fix = DUPLICATE_FIX if duplicates and not problems else "write {path: chat.jsonl, score: 4} for each session"
        raise ConfigError("the manifest has problems", where=str(path), problems=located_problems, fix=fix)
    # Sessions of two files may have the same id.
    names = UniqueNames("~")
    return [
        ScoredSession(msgspec.structs.replace(scored.sample, id=names.make_unique(scored.sample.id)), scored.score)
        for scored, _ in sessions
    ]


def _read_entries(path: Path) -> tuple[list[Any], tuple[str, ...]]:
    """Return the entries of a manifest, and the keys that lead to them."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        data = json.loads(text) if path.suffix.lower() == ".json" else load_yaml(text)
    except OSError as error:
        raise ConfigError(
            describe_os_error(error, "the manifest cannot be read"), where=str(path), fix="check the path"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            describe_decode_error(error), where=str(path), fix=describe_conversion(file=str(path))
        ) from None
    except InvalidYAML as error:
        what = f"not valid YAML: {error.what}"
        raise ConfigError(what, where=error.where(path), fix=error.fix) from None
    except (ValueError, RecursionError) as error:
        reason = describe_json_error(error) if isinstance(error, json.JSONDecodeError) else str(error)
        raise ConfigError(f"not valid JSON: {reason}", where=str(path), fix="correct the file") from None
    keys = ("sessions",) if isinstance(data, Mapping) else ()
    entries = data.get("sessions") if isinstance(data, Mapping) else data
    if not isinstance(entries, list) or not entries:
        raise ConfigError(
            "a manifest is a list of sessions with their scores",
            where=str(path),
            fix='write [{"path": "chat.jsonl", "score": 4}, …] or {"sessions": […]}',
        )
    return entries, keys


def _find_problems(entry: Any) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield f"must be {{path, score}}, got {str(entry)[:80]!r}"
        return
    for key in entry:
        if key not in ENTRY_KEYS:
            yield f"unknown key {key!r}; {suggest_name(str(key), ENTRY_KEYS)}"
    if not isinstance(entry.get("path"), str):
        yield "add 'path', the session file"
    if ("score" in entry) == ("recorded" in entry):
        yield "add either 'score' (a number) or 'recorded' (the name of a score in the file)"
    elif "score" in entry and not is_number(entry["score"]):
        yield f"a score must be a finite number, got {entry['score']!r}"


class _SessionFiles:
    """Reads the sessions of files, each file once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[tuple[str, Any], dict[str, Sample[Any, Any]]] = {}
        self._recordings: dict[int, str] = {}

    def read(self, entry: Mapping[str, Any]) -> dict[str, Sample[Any, Any]]:
        key = entry["path"], entry.get("format")
        if key not in self._read:
            dataset = SessionDataset(self.path(entry), entry.get("format"))
            self._read[key] = {sample.id: sample for sample in dataset}
            recordings = UniqueNames()
            for sample in self._read[key].values():
                file = Path(sample.metadata["source"]).resolve()
                recording = recordings.make_unique(f"{file} {sample.metadata['session_id']}")
                self._recordings[id(sample)] = recording
        return self._read[key]

    def recording(self, sample: Sample[Any, Any]) -> str:
        """Return the recording of a sample, the same for every path and id that leads to it."""
        return self._recordings[id(sample)]

    def path(self, entry: Mapping[str, Any]) -> Path:
        return self._folder / str(entry["path"])


def _load_sessions(entry: Mapping[str, Any], files: _SessionFiles) -> list[ScoredSession]:
    samples, where = files.read(entry), str(files.path(entry))
    if "id" in entry:
        session_id = str(entry["id"])
        if session_id not in samples:
            fix = suggest_name(session_id, samples)
            raise ConfigError(f"no session has the id {session_id!r}", where=where, fix=fix)
        samples = {session_id: samples[session_id]}
    if "recorded" in entry:
        name = entry["recorded"]
        scores: list[tuple[Any, Any]] = [(candidate, candidate.metadata.get(name)) for candidate in samples.values()]
        scored_sessions = [ScoredSession(sample, float(score)) for sample, score in scores if is_number(score)]
        if not scored_sessions:
            numbers = sorted(
                {key for candidate in samples.values() for key, value in candidate.metadata.items() if is_number(value)}
            )
            fix = suggest_name(str(name), numbers) if numbers else "write 'score' instead of 'recorded'"
            raise ConfigError(f"no session has a recorded number {name!r}", where=where, fix=fix)
        return scored_sessions
    if len(samples) != 1:
        raise ConfigError(f"the file holds {len(samples)} sessions", where=where, fix="add 'id' to select one")
    return [ScoredSession(sample, float(entry["score"])) for sample in samples.values()]


def _find_duplicates(sessions: Sequence[tuple[ScoredSession, int]], files: _SessionFiles) -> list[tuple[int, int, str]]:
    """Return pairs of entries with the same sessions, and a description of the sessions."""
    first: dict[str, int] = {}
    shared: dict[tuple[int, int], list[str]] = {}
    for session, index in sessions:
        earlier = first.setdefault(files.recording(session.sample), index)
        if earlier != index:
            shared.setdefault((earlier, index), []).append(session.sample.id)
    return [
        (
            *indexes,
            f"session {ids[0]!r} is a duplicate of the one"
            if len(ids) == 1
            else f"{len(ids)} sessions are duplicates of those",
        )
        for indexes, ids in shared.items()
    ]


CONCURRENCY, MAX_CONCURRENT, TIMEOUT = 5, 10, 60.0


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """Options for scoring sessions.

    Up to `concurrency` sessions are scored concurrently, with up to `max_concurrent` calls in total. `judge_options`
    are options of the evaluator `rubric`; its timeout starts when the call starts. With `cache`, answers of the judge
    are reused, including answers from earlier runs. `redact` removes data before anything is stored; judges see all
    data. With `canary`, the judge sees a planted bad answer on about one of N sessions.
    """

    concurrency: int = CONCURRENCY
    max_concurrent: int = MAX_CONCURRENT
    cache: bool = True
    budget: Any = None
    limit: int | None = None
    judge_options: dict[str, Any] = {}
    redact: Redact = "secrets"
    canary: int | None = None


class ObservedSessions(SessionDataset):
    """Sessions of a folder; `on_session` is called with each id, in order, before it is scored."""

    def __init__(self, *args: Any, on_session: Callable[[str], object], **options: Any) -> None:
        super().__init__(*args, **options)
        self._on_session = on_session

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        for sample in super().__iter__():
            self._on_session(sample.id)
            yield sample


def build_scoring(
    sessions: Any,
    rubrics: RubricSet,
    judge: Any,
    scoring: Scoring,
    *,
    name: str = "sessions",
    tags: Mapping[str, str] | None = None,
) -> Evaluation:
    """Build the evaluation that scores recorded sessions with rubrics."""
    judge_options = {"timeout": TIMEOUT, **scoring.judge_options}
    evaluators = rubric_evaluators(judge, rubrics, concurrency=scoring.max_concurrent, **judge_options)
    options = {
        "concurrency": scoring.concurrency,
        # Each rubric has a separate timeout, which starts when its call starts.
        "evaluator_timeout": None,
        "cache": scoring.cache,
        "budget": scoring.budget,
        "limit": scoring.limit,
        "redact": scoring.redact,
    }
    # A session dataset needs no target; other samples hold their session as a recording.
    return Evaluation(
        None if isinstance(sessions, SessionDataset) else RecordedTarget(name=name),
        sessions,
        evaluators,
        name=name,
        tags={RUBRICS_VERSION: rubrics.version, **(tags or {})},
        options=options,
        canary=scoring.canary,
    )


def rubric_columns(evaluation: Evaluation) -> Columns:
    """Return the rubrics of an evaluation."""
    specs = [evaluator.spec for evaluator in evaluation.evaluators]
    return read_columns(specs, evaluation.tags[RUBRICS_VERSION])
