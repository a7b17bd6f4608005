"""A result as a row of a table: readable columns, and columns with the complete records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from proctor.history.exchange.parts import EndPart, Frame, LocatedPart, ResultPart, WholeRun, read_part
from proctor.records import codec
from proctor.records.lossless import restore_result
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

# The readable columns and their Parquet types.
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
LARGEST_INT = 2**63 - 1

Row = dict[str, Any]
# The location of a row in a file, its record, and the run's record if it is the first of a run.
StoredRow = tuple[str, str | None, str | None]


def table_columns(runs: Iterable[RunMetadata]) -> dict[str, str]:
    """Return the columns of a table of these runs and their types, with one column per evaluator."""
    names = dict.fromkeys(SCORE + spec.name for run in runs for spec in run.evaluators)
    return {**COLUMNS, **dict.fromkeys(names, "double"), RECORD: "string", RUN_RECORD: "string"}


def run_rows(run: WholeRun) -> Iterator[Row]:
    """Yield a row for each result; the first row also has the run's record, even without a result."""
    frame, results = run
    metadata = frame.run.metadata
    run_cells = {"run_id": metadata.run_id, "run_name": metadata.name, "run_began": metadata.started_at}
    run_record: str | None = codec.encode(frame).decode()
    for part in results:
        row = run_cells | _result_cells(restore_result(part.result))
        yield {**row, RECORD: codec.encode(part).decode(), RUN_RECORD: run_record}
        run_record = None
    if run_record is not None:
        yield {**run_cells, RUN_RECORD: run_record}


def parse_rows(stored_rows: Iterable[StoredRow]) -> Iterator[LocatedPart]:
    """Yield the parts of every run in the rows of a file."""
    end: EndPart | None = None
    where = ""
    for where, record, run_record in stored_rows:
        if run_record:
            frame: Frame = read_part(run_record, Frame, where)
            if end is not None:
                yield LocatedPart(where, end)
            yield LocatedPart(where, frame.run)
            end = frame.end
        if record:
            yield LocatedPart(where, read_part(record, ResultPart, where))
    if end is not None:
        yield LocatedPart(where, end)


def _result_cells(result: EvalResult) -> Row:
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
        "tokens": None if tokens is None or abs(tokens) > LARGEST_INT else tokens,
        "cost": None if usage is None else usage.cost,
        "error": result.error,
        "input": _text(trial.sample.input),
        "expected": _text(trial.sample.expected),
        "output": _text(trial.output) if result.success else None,
        **{SCORE + name: score.value for name, score in result.scores.items()},
    }


def _text(value: Any) -> str | None:
    """Return a text unchanged and any other value as JSON; None stays None."""
    if value is None or isinstance(value, str):
        return value
    return codec.encode(value).decode()


def ordered_cells(row: Row, names: Sequence[str]) -> list[Any]:
    """Return a row's cells in the order of the columns."""
    return [row.get(name) for name in names]
