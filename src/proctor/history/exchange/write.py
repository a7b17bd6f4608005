"""Export complete runs from a history as the content of a file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from proctor.errors import HistoryError, UsageError
from proctor.history.exchange import tables
from proctor.history.exchange.parts import (
    VERSION,
    EndPart,
    ExportedRun,
    Format,
    Frame,
    ResultPart,
    RunPart,
    encode_jsonl,
)
from proctor.ports import History
from proctor.records.lossless import tag_result
from proctor.records.run import RunMetadata


def export_runs(history: History, runs: Sequence[RunMetadata], file_format: Format) -> Iterator[bytes]:
    """Return the content of a file with stored runs, in chunks; results are read one at a time.

    Redacted values are not in the history, so they are not in the file either.
    """
    for run in runs:
        if history.is_claimed(run.run_id):
            raise UsageError(f"run {run.run_id} is still running", fix="export it after it has ended")
    baselines = {name: run.run_id for name, run in history.baselines().items()}
    exported_runs = (_read_run(history, run, baselines) for run in runs)
    if file_format == "jsonl":
        return encode_jsonl(exported_runs)
    encode = tables.encode_csv if file_format == "csv" else tables.encode_parquet
    return encode(exported_runs, tables.table_columns(runs))


def _read_run(history: History, run: RunMetadata, baselines: dict[str, str]) -> ExportedRun:
    report = history.report(run.run_id)
    positions = array("Q", sorted(position for position, *_ in history.finished_trials(run.run_id)))
    names = tuple(name for name, run_id in baselines.items() if run_id == run.run_id)
    labels = tuple(history.labels(run_id=run.run_id))
    end = EndPart(run.run_id, len(positions), report.metrics, report.by_configuration, labels)
    frame = Frame(RunPart(VERSION, report.metadata or run, names), end)
    return ExportedRun(frame, _read_results(history, run, positions))


def _read_results(history: History, run: RunMetadata, positions: array[int]) -> Iterator[ResultPart]:
    try:
        for position, result in zip(positions, history.results(run.run_id), strict=True):
            # Tags preserve values that JSON cannot represent, such as tuples and NaN.
            yield ResultPart(position, tag_result(result))
    except ValueError:
        raise HistoryError(
            f"the results of run {run.run_id} have changed while they were read",
            fix="export the run again when no process works on it",
        ) from None
