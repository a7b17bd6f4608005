"""Out of a history: runs with everything that belongs to them, as the bytes of a file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from proctor.errors import HistoryError, UsageError
from proctor.history.exchange import jsonl, parquet, rows, table_csv
from proctor.history.exchange.parts import VERSION, EndPart, Format, Frame, ResultPart, RunPart, WholeRun
from proctor.ports import History
from proctor.records.lossless import tag_result
from proctor.records.run import RunMetadata


def exported(history: History, runs: Sequence[RunMetadata], as_: Format) -> Iterator[bytes]:
    """Stored runs as a file, in pieces; its results are read and written one by one.

    What was redacted before it was stored is not in the history, and so not in the file.
    """
    for run in runs:
        if history.is_held(run.run_id):
            raise UsageError(f"run {run.run_id} is being worked on", fix="export it when it has ended")
    baselines = {name: run.run_id for name, run in history.baselines().items()}
    whole = (_whole(history, run, baselines) for run in runs)
    if as_ == "jsonl":
        return jsonl.written(whole)
    columns = rows.columns(runs)
    return table_csv.written(whole, columns) if as_ == "csv" else parquet.written(whole, columns)


def _whole(history: History, run: RunMetadata, baselines: dict[str, str]) -> WholeRun:
    report = history.report(run.run_id)
    places = array("Q", sorted(place for place, *_ in history.done(run.run_id)))
    names = tuple(name for name, run_id in baselines.items() if run_id == run.run_id)
    end = EndPart(run.run_id, len(places), report.metrics, report.by_configuration)
    frame = Frame(RunPart(VERSION, report.metadata or run, names), end)
    return WholeRun(frame, _results(history, run, places))


def _results(history: History, run: RunMetadata, places: array[int]) -> Iterator[ResultPart]:
    try:
        for place, result in zip(places, history.results(run.run_id), strict=True):
            # Tagged: JSON would make a list of a tuple, and null of NaN.
            yield ResultPart(place, tag_result(result))
    except ValueError:
        raise HistoryError(
            f"the results of run {run.run_id} have changed while they were read",
            fix="export it again when nobody works on it",
        ) from None
