"""A result as a row of a table: the columns people want, and beside them the whole of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from proctor.history.exchange.parts import EndPart, Frame, Placed, ResultPart, WholeRun, read_part
from proctor.records import codec
from proctor.records.lossless import restore_result
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

# What stands in each column, as a type of Parquet's.
COLUMNS = {
    "run_id": "string",
    "run_name": "string",
    "run_began": "timestamp",
    "configuration": "string",
    "sample_id": "string",
    "epoch": "int64",
    "outcome": "string",
    "value": "double",
    "latency_ms": "double",
    "tokens": "int64",
    "cost": "double",
    "error": "string",
    "input": "string",
    "expected": "string",
    "output": "string",
}
SCORE = "score."
RECORD, RUN_RECORD = "record", "run_record"
LARGEST = 2**63 - 1

Row = dict[str, Any]


def columns(runs: Iterable[RunMetadata]) -> dict[str, str]:
    """The columns of a table of these runs, with their types; one for each evaluator's score."""
    names = dict.fromkeys(SCORE + spec.name for run in runs for spec in run.evaluators)
    return {**COLUMNS, **dict.fromkeys(names, "double"), RECORD: "string", RUN_RECORD: "string"}


def rows(run: WholeRun) -> Iterator[Row]:
    """A row for each result; the first holds the run too, and stands without results."""
    frame, results = run
    metadata = frame.run.metadata
    about = {"run_id": metadata.run_id, "run_name": metadata.name, "run_began": metadata.started_at}
    whole: str | None = codec.encode(frame).decode()
    for part in results:
        row = about | _readable(restore_result(part.result))
        yield {**row, RECORD: codec.encode(part).decode(), RUN_RECORD: whole}
        whole = None
    if whole is not None:
        yield {**about, RUN_RECORD: whole}


def parts(found: Iterable[tuple[str, str | None, str | None]]) -> Iterator[Placed]:
    """The parts of every run, from where each row stands, its record, and that of the run."""
    end: EndPart | None = None
    where = ""
    for where, record, run_record in found:
        if run_record:
            frame: Frame = read_part(run_record, Frame, where)
            if end is not None:
                yield Placed(where, end)
            yield Placed(where, frame.run)
            end = frame.end
        if record:
            yield Placed(where, read_part(record, ResultPart, where))
    if end is not None:
        yield Placed(where, end)


def _readable(result: EvalResult) -> Row:
    trial = result.trial
    usage = trial.usage
    tokens = None if usage is None else usage.total_tokens
    outcome, value = result.verdict()
    return {
        "configuration": trial.configuration,
        "sample_id": result.sample_id,
        "epoch": trial.epoch,
        "outcome": outcome,
        "value": value,
        "latency_ms": trial.latency_ms,
        "tokens": None if tokens is None or abs(tokens) > LARGEST else tokens,
        "cost": None if usage is None else usage.cost,
        "error": result.error,
        "input": _text(trial.sample.input),
        "expected": _text(trial.sample.expected),
        "output": _text(trial.output) if result.success else None,
        **{SCORE + name: score.value for name, score in result.scores.items()},
    }


def _text(value: Any) -> str | None:
    """A text as it is, anything else as JSON; nothing where there is nothing."""
    if value is None or isinstance(value, str):
        return value
    return codec.encode(value).decode()


def in_order(row: Row, names: Sequence[str]) -> list[Any]:
    """A row's cells, in the order of the columns."""
    return [row.get(name) for name in names]
