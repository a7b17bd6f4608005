"""A manifest: sessions with scores that people gave them, as rubrics are learned from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.core.names import NamesApart
from proctor.core.resources import describe_error, how_to_convert
from proctor.core.yaml_text import describe_yaml_error, load_yaml
from proctor.datasets.sessions import SessionDataset
from proctor.errors import ConfigError, Problem, UsageError, nearest
from proctor.evaluators.rubric_files import Lines
from proctor.evaluators.rubrics import rubric_evaluators
from proctor.records.numbers import is_number
from proctor.records.rubric import RUBRICS_VERSION, Columns, RubricSet, columns_of
from proctor.records.run import Redact
from proctor.records.sample import Sample
from proctor.targets.recorded import RecordedTarget
from proctor.wiring.prepare import Evaluation

ENTRY_KEYS = ("path", "score", "id", "recorded", "format")
ONCE = "a session has one score, such as the mean of what people gave it"


class Known(NamedTuple):
    """A session with the score that people gave it."""

    sample: Sample[Any, Any]
    score: float


def read_manifest(path: Path) -> list[Known]:
    """The sessions that a manifest names, with their scores; every fault at once.

    A list, or {sessions: […]}, of entries {path, score} (with `id` where a file holds several),
    or {path, recorded: NAME} for all sessions of a file that have a recorded score of that name.
    Paths are seen from the manifest's folder. What could not be read of the files is warned of.
    A session is named once: two entries for one are a fault, however they name its file.
    """
    entries, under = _entries(path)
    found: list[tuple[Known, int]] = []
    problems: list[tuple[int, str]] = []
    files = _Files(path.parent)
    for place, entry in enumerate(entries):
        faults = [(place, what) for what in _faults(entry)]
        problems += faults
        if not faults:
            try:
                found += [(one, place) for one in _sessions(entry, files)]
            except UsageError as error:
                problems.append((place, str(error)))
    twice = _named_twice(found, files)
    if problems or twice:
        lines = Lines(path.read_text(encoding="utf-8-sig"))
        places = [lines.place((*under, at), str(path)) for at in range(len(entries))]
        told = [Problem(places[at], what) for at, what in problems]
        told += [
            Problem(places[again], f"{which} named before, at {places[first]}; {ONCE}")
            for first, again, which in twice
        ]
        raise ConfigError("the manifest has faults", where=str(path), problems=told)
    return _named_apart([one for one, _ in found])


def _entries(path: Path) -> tuple[list[Any], tuple[str, ...]]:
    """The entries of a manifest, and under which key they stand."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8-sig")
        data = json.loads(text) if path.suffix.lower() == ".json" else load_yaml(text)
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            describe_error(error), where=str(path), fix=how_to_convert(file=str(path))
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        described = describe_yaml_error(error)
        raise ConfigError(
            f"it cannot be read as YAML: {described.what}",
            where=f"{path}:{mark.line + 1}" if mark else str(path),
            fix=described.fix,
        ) from None
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise ConfigError(f"it cannot be read: {what}", where=str(path)) from None
    under = ("sessions",) if isinstance(data, Mapping) else ()
    entries = data.get("sessions") if isinstance(data, Mapping) else data
    if not isinstance(entries, list) or not entries:
        raise ConfigError(
            "a manifest is a list of sessions with their scores",
            where=str(path),
            fix='write [{"path": "chat.jsonl", "score": 4}, …] or {"sessions": […]}',
        )
    return entries, under


def _faults(entry: Any) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield f"expected {{path, score}}, got {str(entry)[:80]!r}"
        return
    for key in entry:
        if key not in ENTRY_KEYS:
            yield f"the key {key!r} means nothing; {nearest(str(key), ENTRY_KEYS)}"
    if not isinstance(entry.get("path"), str):
        yield "'path' is missing: the file of the session"
    if ("score" in entry) == ("recorded" in entry):
        yield "it needs either 'score', a number, or 'recorded', the name of a recorded score"
    elif "score" in entry and not is_number(entry["score"]):
        yield f"a score is a finite number, got {entry['score']!r}"


class _Files:
    """The sessions of files, each of which is read only once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[tuple[str, Any], dict[str, Sample[Any, Any]]] = {}
        self._recordings: dict[int, str] = {}

    def of(self, entry: Mapping[str, Any]) -> dict[str, Sample[Any, Any]]:
        key = entry["path"], entry.get("format")
        if key not in self._read:
            dataset = SessionDataset(self.place(entry), entry.get("format"))
            self._read[key] = {sample.id: sample for sample in dataset}
            recordings = NamesApart()
            for sample in self._read[key].values():
                about = sample.metadata
                file = Path(about["source"]).resolve()
                self._recordings[id(sample)] = recordings.of(f"{file} {about['session_id']}")
        return self._read[key]

    def recording(self, sample: Sample[Any, Any]) -> str:
        """Which recording a sample is, by whatever path and id it was found."""
        return self._recordings[id(sample)]

    def place(self, entry: Mapping[str, Any]) -> Path:
        return self._folder / str(entry["path"])


def _sessions(entry: Mapping[str, Any], files: _Files) -> list[Known]:
    samples, where = files.of(entry), str(files.place(entry))
    if "id" in entry:
        wanted = str(entry["id"])
        if wanted not in samples:
            raise ConfigError(f"there is no session {wanted!r}", where=where, fix=nearest(wanted, samples))
        samples = {wanted: samples[wanted]}
    if "recorded" in entry:
        name = entry["recorded"]
        scored: list[tuple[Any, Any]] = [(one, one.metadata.get(name)) for one in samples.values()]
        found = [Known(one, float(score)) for one, score in scored if is_number(score)]
        if not found:
            raise ConfigError(f"no session has a recorded number {name!r}", where=where)
        return found
    if len(samples) != 1:
        raise ConfigError(f"it holds {len(samples)} sessions", where=where, fix="name one with 'id'")
    return [Known(one, float(entry["score"])) for one in samples.values()]


def _named_twice(found: Sequence[tuple[Known, int]], files: _Files) -> list[tuple[int, int, str]]:
    """Entries that name sessions of an earlier one: the earlier, the later, and which sessions."""
    first: dict[str, int] = {}
    shared: dict[tuple[int, int], list[str]] = {}
    for one, place in found:
        before = first.setdefault(files.recording(one.sample), place)
        if before != place:
            shared.setdefault((before, place), []).append(one.sample.id)
    return [
        (*places, f"session {ids[0]!r} is" if len(ids) == 1 else f"{len(ids)} sessions are")
        for places, ids in shared.items()
    ]


def _named_apart(known: list[Known]) -> list[Known]:
    """The sessions under ids of their own: those of two files may be called alike."""
    names = NamesApart("~")
    return [
        Known(msgspec.structs.replace(one.sample, id=names.of(one.sample.id)), one.score) for one in known
    ]


PARALLEL, MAX_CONCURRENT, TIMEOUT = 5, 10, 60.0


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """How sessions are scored.

    `parallel` sessions are in hand at a time, `max_concurrent` calls under way over all of them.
    `judged` are options of the evaluator `rubric`; its time-out begins when a call has its place.
    With `cache`, what a judge has answered is not asked again, in this run or another. `redact`
    says what is taken out before anything is stored; judges see it all. With `canary`, the judge
    is shown a planted bad answer on about one of so many sessions.
    """

    parallel: int = PARALLEL
    max_concurrent: int = MAX_CONCURRENT
    cache: bool = True
    budget: Any = None
    limit: int | None = None
    judged: dict[str, Any] = {}
    redact: Redact = "secrets"
    canary: int | None = None


class ToldSessions(SessionDataset):
    """Sessions of a folder; `told` hears the id of each, in order, before it is scored."""

    def __init__(self, *given: Any, told: Callable[[str], object], **options: Any) -> None:
        super().__init__(*given, **options)
        self._told = told

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        for sample in super().__iter__():
            self._told(sample.id)
            yield sample


def scoring_of(
    sessions: Any,
    rubrics: RubricSet,
    judge: Any,
    scoring: Scoring,
    *,
    name: str = "sessions",
    tags: Mapping[str, str] | None = None,
) -> Evaluation:
    """The evaluation that scores a dataset of recorded sessions by rubrics."""
    judged = {"timeout": TIMEOUT, **scoring.judged}
    evaluators = rubric_evaluators(judge, rubrics, at_once=scoring.max_concurrent, **judged)
    options = {
        "concurrency": scoring.parallel,
        # The rubrics watch their own time, which begins later than the engine could know.
        "evaluator_timeout": None,
        "cache": scoring.cache,
        "budget": scoring.budget,
        "limit": scoring.limit,
        "redact": scoring.redact,
    }
    # Files of sessions are looked at without a target; other samples hold theirs as recordings do.
    from_files = isinstance(sessions, SessionDataset)
    return Evaluation(
        None if from_files else RecordedTarget(name=name),
        sessions,
        evaluators,
        name=name,
        tags={RUBRICS_VERSION: rubrics.version, **(tags or {})},
        options=options,
        canary=scoring.canary,
    )


def columns_for(evaluation: Evaluation) -> Columns:
    """The rubrics that an evaluation scores by."""
    specs = [one.spec for one in evaluation.evaluators]
    return columns_of(specs, evaluation.tags[RUBRICS_VERSION])
