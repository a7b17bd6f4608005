"""Into a history: runs out of a file, each as a whole or not at all.

They come in as they are in the file: secrets were taken out when they ran, or were not. To take
them out here would make another run of the same id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import msgspec

from proctor.errors import UsageError
from proctor.history.exchange import jsonl, parquet, table_csv
from proctor.history.exchange.parts import (
    VERSION,
    Damaged,
    EndPart,
    Format,
    Part,
    Placed,
    ResultPart,
    RunPart,
    damaged,
    format_of,
)
from proctor.ports import History
from proctor.records import codec
from proctor.records.lossless import restore_result, tag_result
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

# The evaluator of a field is called so, and the metrics of its score have a name of their own.
FIELD = "field"
TOLERANCE = 1e-6

Table = dict[str, list[float]]


class Tally:
    """Counts results as they are read: verdicts and mean scores, by configuration and evaluator.

    Only these are held against the end; other metrics may be anybody's own. Earlier versions
    ignored skipped scores in the verdict of a result: a file may agree with that count instead.
    """

    def __init__(self, run: RunMetadata) -> None:
        self._named = {
            spec.name: (f"{FIELD}.{spec.name}.pass_rate", f"{FIELD}.{spec.name}.score")
            if spec.uses == FIELD
            else (f"{spec.name}.pass_rate", f"{spec.name}.mean")
            for spec in run.evaluators
        }
        names = [configuration.name for configuration in run.configurations]
        self._found: dict[str, Table] = {name: {} for name in names}
        self._ignoring: dict[str, Table] = {name: {} for name in names}

    def add(self, result: EvalResult) -> None:
        """Count a result, of one of the run's configurations."""
        self._add(self._found, result)
        self._add(self._ignoring, msgspec.structs.replace(result, skipped="ignore"))

    def _add(self, tables: dict[str, Table], result: EvalResult) -> None:
        table = tables[result.trial.configuration]
        outcome, value = result.verdict()
        if outcome in ("passed", "failed") and value is not None:
            _count(table, "pass_rate", float(outcome == "passed"))
            _count(table, "mean_score", value)
        if result.trial.error is not None:
            return
        for name, (rate, mean) in self._named.items():
            score = result.scores.get(name)
            if score is not None and score.value is not None:
                _count(table, rate, float(bool(score.passed)))
                _count(table, mean, score.value)

    def fault(self, end: EndPart) -> str:
        """What the end tells that the results do not amount to, in words; empty if all fits."""
        fault = self._fault(self._found, end)
        return fault if fault and self._fault(self._ignoring, end) else ""

    def _fault(self, tables_found: dict[str, Table], end: EndPart) -> str:
        whole: Table = {}
        for table in tables_found.values():
            for name, (n, total) in table.items():
                kept = whole.setdefault(name, [0, 0.0])
                kept[0] += n
                kept[1] += total
        tables = [("", end.metrics, whole)]
        tables += [
            (f" of {name}", told, tables_found.get(name, {})) for name, told in end.by_configuration.items()
        ]
        names = ["pass_rate", "mean_score", *chain.from_iterable(self._named.values())]
        for of, told, found in tables:
            for name in names:
                if name in told and (said := _differs(told[name], found.get(name, [0, 0.0]))):
                    return f"its end tells of {name}{of} {said}"
        return ""


def _count(table: dict[str, list[float]], name: str, value: float) -> None:
    kept = table.setdefault(name, [0, 0.0])
    kept[0] += 1
    kept[1] += value


def _differs(told: MetricValue, found: list[float]) -> str:
    n, total = found
    mean = total / n if n else None
    same = (told.value is None) == (mean is None) and told.n == n
    if same and (mean is None or abs(mean - (told.value or 0.0)) <= TOLERANCE):
        return ""
    return f"{_shown(told.value)} over {told.n}, its results come to {_shown(mean)} over {n}"


def _shown(value: float | None) -> str:
    return "no value" if value is None else f"{value:.4g}"


READERS: dict[Format, Callable[[Path], Iterator[Placed]]] = {
    "jsonl": jsonl.read,
    "csv": table_csv.read,
    "parquet": parquet.read,
}
# An id is a part of file names, and must not be taken for another word of a reference.
RUN_ID = re.compile(r"(?!latest$)[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
# Where the results of a run lie is looked up in a list as long as the last of their places.
MOST_PLACES, MOST_EPOCHS = 100_000_000, 2**32


class Imported(msgspec.Struct, frozen=True):
    """A run out of a file: `new` if it was not there already.

    `baselines` are the names it has now as it had them there; `taken` those that another run has;
    `moved` those that another run had, by the name.
    """

    run_id: str
    name: str
    results: int
    new: bool
    baselines: list[str] = []
    taken: list[str] = []
    moved: dict[str, str] = {}


def imported(
    history: History, path: Path, as_: Format | None = None, *, move_baselines: bool = False
) -> Iterator[Imported]:
    """Take the runs of a file in, one by one; a run that is there already must be the same.

    A file that is damaged is refused at the place where that shows; the runs before are in. With
    `move_baselines`, names of baselines that another run has here move to the one in the file.
    """
    count = 0
    try:
        for one in _imported(history, path, as_, move_baselines):
            count += 1
            yield one
    except Damaged as error:
        if not count:
            raise
        before = "the run" if count == 1 else f"the {count} runs"
        fix = f"export the run again; {before} before this place can stay"
        raise Damaged(error.what, where=error.where, fix=fix) from None


def _imported(history: History, path: Path, as_: Format | None, move_baselines: bool) -> Iterator[Imported]:
    parts = READERS[format_of(path, as_)](_there(path))
    found = False
    for where, part in parts:
        found = True
        if not isinstance(part, RunPart):
            raise damaged("this belongs to no run", where)
        _check(part, where)
        run = part.metadata
        new = run.run_id not in history.metrics_of([run.run_id])
        count = _take(history, run, parts, where) if new else _compare(history, run, parts, where)
        yield Imported(run.run_id, run.name, count, new, *_name(history, part, move_baselines))
    if not found:
        raise damaged("it is empty", str(path))


def _there(path: Path) -> Path:
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path), fix="check the path")
    return path


def _check(part: RunPart, where: str) -> None:
    if part.proctor_run != VERSION:
        raise UsageError(
            f"the file has version {part.proctor_run}; this Proctor reads {VERSION}",
            where=where,
            fix="update Proctor to the version that wrote it",
        )
    if not RUN_ID.fullmatch(part.metadata.run_id):
        raise damaged(f"{part.metadata.run_id!r} cannot be the id of a run", where)
    if part.metadata.started_at.tzinfo is None or not part.metadata.configurations:
        raise damaged("the run has no configuration, or began in no time zone", where)


def _take(history: History, run: RunMetadata, parts: Iterator[Placed], where: str) -> int:
    """Store a run with what follows in the file; if that is damaged, nothing of it is stored."""
    with history.restoring(run) as restored:
        count = 0
        for part in _of(run, parts, where):
            if isinstance(part, ResultPart):
                restored.add(part.position, restore_result(part.result))
                count += 1
            elif isinstance(part, EndPart) and (part.metrics or part.by_configuration):
                restored.finish(part.metrics, part.by_configuration)
    return count


def _compare(history: History, run: RunMetadata, parts: Iterator[Placed], where: str) -> int:
    """Hold a run in the file against the one that is stored under its id."""
    stored = history.report(run.run_id)
    differs = "what is known of it" if codec.encode(stored.metadata) != codec.encode(run) else ""
    places = sorted(place for place, *_ in history.done(run.run_id))
    results = zip(places, history.results(run.run_id), strict=False)
    count = 0
    for part in _of(run, parts, where):
        if isinstance(part, ResultPart):
            count += 1
            here = next(results, None)
            known = None if here is None else (here[0], tag_result(here[1]))
            if codec.encode(known) != codec.encode((part.position, part.result)):
                differs = differs or f"its result at place {part.position}"
        elif isinstance(part, EndPart):
            tables = [part.metrics, part.by_configuration]
            if codec.encode(tables) != codec.encode([stored.metrics, stored.by_configuration]):
                differs = differs or "its metrics"
    if differs or count != len(places):
        raise UsageError(
            f"run {run.run_id} is in the history already, and not the same: "
            f"{differs or 'how many results it has'}",
            where=where,
            fix=f"if the file is right, `proctor delete {run.run_id}` and import again",
        )
    return count


def _of(run: RunMetadata, parts: Iterator[Placed], where: str) -> Iterator[Part]:
    """What follows a run's beginning up to its end, sound and complete."""
    names = {configuration.name for configuration in run.configurations}
    before, count, tally = -1, 0, Tally(run)
    for where, part in parts:
        if isinstance(part, EndPart):
            if (part.run_id, part.results) != (run.run_id, count):
                raise damaged(
                    f"run {run.run_id} has {count} results here, and its end tells of "
                    f"{part.results} of run {part.run_id}",
                    where,
                )
            if fault := tally.fault(part):
                raise damaged(fault, where)
            yield part
            return
        if isinstance(part, RunPart):
            raise damaged(f"run {run.run_id} has no end", where)
        if fault := _fault(part, before, names):
            raise damaged(fault, where)
        before, count = part.position, count + 1
        tally.add(part.result)
        yield part
    raise damaged(f"it ends in the middle of run {run.run_id}", where)


def _fault(part: ResultPart, before: int, configurations: set[str]) -> str:
    trial = part.result.trial
    if not before < part.position < MOST_PLACES:
        return f"the result at place {part.position} is not where it belongs"
    if trial.configuration not in configurations:
        return f"the run has no configuration {trial.configuration!r}"
    return "" if 0 <= trial.epoch < MOST_EPOCHS else f"{trial.epoch} is no epoch"


def _name(history: History, part: RunPart, move: bool) -> tuple[list[str], list[str], dict[str, str]]:
    """Give a run the baselines it had, where no other run has them or they may move."""
    known = history.baselines()
    others = {
        name: known[name].run_id
        for name in part.baselines
        if name in known and known[name].run_id != part.metadata.run_id
    }
    given = [name for name in part.baselines if move or name not in others]
    for name in given:
        history.set_baseline(name, part.metadata.run_id)
    return (given, [], others) if move else (given, list(others), {})
