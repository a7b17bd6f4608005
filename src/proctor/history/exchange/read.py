"""Import runs from a file into a history, each completely or not at all.

Runs are not redacted again, because that would store a different run under the same id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import msgspec

from proctor.errors import UsageError
from proctor.history.exchange import tables
from proctor.history.exchange.parts import (
    VERSION,
    DamagedFile,
    EndPart,
    Format,
    LocatedPart,
    Part,
    ResultPart,
    RunPart,
    damaged_file,
    detect_format,
    read_jsonl,
)
from proctor.ports import History
from proctor.records import codec
from proctor.records.formatting import format_count
from proctor.records.label import HumanLabel
from proctor.records.lossless import restore_result, tag_result
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

# The evaluator that scores fields; its metrics have names of the form `field.NAME.score`.
FIELD = "field"
TOLERANCE = 1e-6

# The count and the sum of the values of each metric.
Totals = dict[str, list[float]]


class Tally:
    """Counts results as they are read: verdicts and mean scores, by configuration and evaluator.

    Only these metrics are compared with the stored metrics; a run may have any other metrics too. Earlier
    versions ignored skipped scores in the verdict of a result, so a file may match that count instead.
    """

    def __init__(self, run: RunMetadata) -> None:
        self._metric_names = {
            spec.name: (f"{FIELD}.{spec.name}.pass_rate", f"{FIELD}.{spec.name}.score")
            if spec.uses == FIELD
            else (f"{spec.name}.pass_rate", f"{spec.name}.mean")
            for spec in run.evaluators
        }
        names = [configuration.name for configuration in run.configurations]
        self._totals: dict[str, Totals] = {name: {} for name in names}
        self._totals_ignoring_skipped: dict[str, Totals] = {name: {} for name in names}

    def add(self, result: EvalResult) -> None:
        """Count a result of one of the run's configurations."""
        self._add(self._totals, result)
        self._add(self._totals_ignoring_skipped, msgspec.structs.replace(result, skipped="ignore"))

    def _add(self, by_configuration: dict[str, Totals], result: EvalResult) -> None:
        totals = by_configuration[result.trial.configuration]
        outcome, value = result.verdict()
        if outcome in ("passed", "failed") and value is not None:
            _count(totals, "pass_rate", float(outcome == "passed"))
            _count(totals, "mean_score", value)
        if result.trial.error is not None:
            return
        for name, (rate, mean) in self._metric_names.items():
            score = result.scores.get(name)
            if score is not None and score.value is not None:
                _count(totals, rate, float(bool(score.passed)))
                _count(totals, mean, score.value)

    def find_mismatch(self, end: EndPart) -> str:
        """Describe the first stored metric that does not match the results; empty if all match."""
        mismatch = self._find_mismatch(self._totals, end)
        return mismatch if mismatch and self._find_mismatch(self._totals_ignoring_skipped, end) else ""

    def _find_mismatch(self, by_configuration: dict[str, Totals], end: EndPart) -> str:
        overall: Totals = {}
        for totals in by_configuration.values():
            for name, (n, total) in totals.items():
                entry = overall.setdefault(name, [0, 0.0])
                entry[0] += n
                entry[1] += total
        tables = [("", end.metrics, overall)]
        tables += [
            (f" of {name}", stored, by_configuration.get(name, {})) for name, stored in end.by_configuration.items()
        ]
        names = ["pass_rate", "mean_score", *chain.from_iterable(self._metric_names.values())]
        for suffix, stored, totals in tables:
            for name in names:
                if name in stored and (difference := _difference(stored[name], totals.get(name, [0, 0.0]))):
                    return f"the stored {name}{suffix} is {difference}"
        return ""


def _count(totals: Totals, name: str, value: float) -> None:
    entry = totals.setdefault(name, [0, 0.0])
    entry[0] += 1
    entry[1] += value


def _difference(stored: MetricValue, totals: list[float]) -> str:
    n, total = totals
    mean = total / n if n else None
    same = (stored.value is None) == (mean is None) and stored.n == n
    if same and (mean is None or abs(mean - (stored.value or 0.0)) <= TOLERANCE):
        return ""
    return f"{_number(stored.value)} (n={stored.n}), but the results give {_number(mean)} (n={n})"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


READERS: dict[Format, Callable[[Path], Iterator[LocatedPart]]] = {
    "jsonl": read_jsonl,
    "csv": lambda path: tables.parse_rows(tables.read_csv(path)),
    "parquet": lambda path: tables.parse_rows(tables.read_parquet(path)),
}
# Ids are used in file names, and must not be confused with other references.
RUN_ID = re.compile(r"(?!latest$)[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
# The positions of a run's results are looked up in a list as long as the highest position.
MAX_POSITIONS, MAX_EPOCHS = 100_000_000, 2**32


class ImportedRun(msgspec.Struct, frozen=True):
    """A run from a file; `new` is False if the history already had it.

    `baselines` are the baselines that now point to the run, `conflicting_baselines` the baselines that still point to
    another run, and `moved` maps moved baselines to their earlier run.
    """

    run_id: str
    name: str
    results: int
    new: bool
    baselines: list[str] = []
    conflicting_baselines: list[str] = msgspec.field(default_factory=list, name="taken")
    moved: dict[str, str] = {}


def import_runs(
    history: History, path: Path, file_format: Format | None = None, *, move_baselines: bool = False
) -> Iterator[ImportedRun]:
    """Import the runs of a file, one by one; a run that already exists in the history must be identical.

    A damaged file raises `DamagedFile` with the line; the runs before that line stay imported. With `move_baselines`,
    existing baselines move to the run in the file.
    """
    count = 0
    try:
        for run in _import_runs(history, path, file_format, move_baselines):
            count += 1
            yield run
    except DamagedFile as error:
        if not count:
            raise
        earlier_runs = "the run before this line is" if count == 1 else f"the {count} runs before this line are"
        fix = f"export the run again; {earlier_runs} already imported"
        raise DamagedFile(error.what, where=error.where, fix=fix) from None


def _import_runs(
    history: History, path: Path, file_format: Format | None, move_baselines: bool
) -> Iterator[ImportedRun]:
    parts = READERS[detect_format(path, file_format)](_require_file(path))
    is_empty = True
    for where, part in parts:
        is_empty = False
        if not isinstance(part, RunPart):
            raise damaged_file("this line belongs to no run", where)
        _check_run(part, where)
        run = part.metadata
        new = run.run_id not in history.stored_metrics([run.run_id])
        count = _store(history, run, parts, where) if new else _compare(history, run, parts, where)
        yield ImportedRun(run.run_id, run.name, count, new, *_set_baselines(history, part, move_baselines))
    if is_empty:
        raise damaged_file("it is empty", str(path))


def _require_file(path: Path) -> Path:
    if not path.is_file():
        raise UsageError("file not found", where=str(path), fix="check the path")
    return path


def _check_run(part: RunPart, where: str) -> None:
    if part.proctor_run != VERSION:
        raise UsageError(
            f"the file has version {part.proctor_run}; this version of Proctor reads {VERSION}",
            where=where,
            fix="update Proctor: pip install --upgrade proctor",
        )
    if not RUN_ID.fullmatch(part.metadata.run_id):
        raise damaged_file(f"{part.metadata.run_id!r} is not a valid run id", where)
    if part.metadata.started_at.tzinfo is None or not part.metadata.configurations:
        raise damaged_file("the run has no configuration, or its start has no time zone", where)


def _store(history: History, run: RunMetadata, parts: Iterator[LocatedPart], where: str) -> int:
    """Store a run and its results; if one of them is damaged, nothing is stored."""
    with history.import_run(run) as importer:
        count = 0
        for part in _read_run(run, parts, where):
            if isinstance(part, ResultPart):
                importer.add(part.position, restore_result(part.result))
                count += 1
            elif isinstance(part, EndPart):
                if part.metrics or part.by_configuration:
                    importer.finish(part.metrics, part.by_configuration)
                importer.add_labels(part.labels)
    return count


def _compare(history: History, run: RunMetadata, parts: Iterator[LocatedPart], where: str) -> int:
    stored = history.report(run.run_id)
    labels: tuple[HumanLabel, ...] = ()
    difference = "its metadata" if codec.encode(stored.metadata) != codec.encode(run) else ""
    positions = sorted(position for position, *_ in history.finished_trials(run.run_id))
    results = zip(positions, history.results(run.run_id), strict=False)
    count = 0
    for part in _read_run(run, parts, where):
        if isinstance(part, ResultPart):
            count += 1
            entry = next(results, None)
            expected = None if entry is None else (entry[0], tag_result(entry[1]))
            if codec.encode(expected) != codec.encode((part.position, part.result)):
                difference = difference or f"its result at position {part.position}"
        elif isinstance(part, EndPart):
            tables, labels = [part.metrics, part.by_configuration], part.labels
            if codec.encode(tables) != codec.encode([stored.metrics, stored.by_configuration]):
                difference = difference or "its metrics"
    if difference or count != len(positions):
        raise UsageError(
            f"the history has a different run {run.run_id}; they differ in {difference or 'the number of results'}",
            where=where,
            fix=f"to replace the stored run, delete it and import again: proctor delete {run.run_id}",
        )
    history.add_labels(labels)
    return count


def _read_run(run: RunMetadata, parts: Iterator[LocatedPart], where: str) -> Iterator[Part]:
    """Yield the parts of a run after its start; raise `DamagedFile` if one is wrong or missing."""
    names = {configuration.name for configuration in run.configurations}
    last_position, count, tally = -1, 0, Tally(run)
    for where, part in parts:
        if isinstance(part, EndPart):
            if (part.run_id, part.results) != (run.run_id, count):
                raise damaged_file(
                    f"run {run.run_id} has {format_count(count, 'result')} here, but its end is for run {part.run_id} "
                    f"with {format_count(part.results, 'result')}",
                    where,
                )
            if any(label.run_id != run.run_id for label in part.labels):
                raise damaged_file(f"a label does not belong to run {run.run_id}", where)
            if problem := tally.find_mismatch(part):
                raise damaged_file(problem, where)
            yield part
            return
        if isinstance(part, RunPart):
            raise damaged_file(f"run {run.run_id} has no end", where)
        if problem := _find_problem(part, last_position, names):
            raise damaged_file(problem, where)
        last_position, count = part.position, count + 1
        tally.add(part.result)
        yield part
    raise damaged_file(f"it ends in the middle of run {run.run_id}", where)


def _find_problem(part: ResultPart, last_position: int, configurations: set[str]) -> str:
    trial = part.result.trial
    if not last_position < part.position < MAX_POSITIONS:
        return f"the result has the position {part.position}, which is repeated, out of order or too large"
    if trial.configuration not in configurations:
        return f"the run has no configuration {trial.configuration!r}"
    return "" if 0 <= trial.epoch < MAX_EPOCHS else f"the epoch {trial.epoch} is not valid"


def _set_baselines(history: History, part: RunPart, move: bool) -> tuple[list[str], list[str], dict[str, str]]:
    """Set the baselines of a run, except baselines of another run that may not move."""
    current = history.baselines()
    others = {
        name: current[name].run_id
        for name in part.baselines
        if name in current and current[name].run_id != part.metadata.run_id
    }
    names = [name for name in part.baselines if move or name not in others]
    for name in names:
        history.set_baseline(name, part.metadata.run_id)
    return (names, [], others) if move else (names, list(others), {})
