"""LangSmith: experiments as CSV or JSON Lines, and the examples of datasets as JSON Lines, JSON or CSV."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.errors import DatasetError
from proctor.interop.imported import ImportedFile
from proctor.interop.run_builder import (
    Notes,
    RunBuilder,
    make_failure,
    make_id,
    make_sample,
    make_usage,
    to_milliseconds,
)
from proctor.interop.tables import has_all, nest_columns, parse_number, parse_time, read_header, read_records
from proctor.records.sample import Sample
from proctor.records.score import Score

NAME = "langsmith"
_CELL_VALUES = {"true": True, "false": False}


def recognize(path: Path, head: bytes) -> bool:
    """Return True if a file has the results of an experiment or the examples of a dataset of LangSmith."""
    if header := read_header(path, head):
        starts = {name.partition(".")[0] for name in header if "." in name}
        return "inputs" in starts and bool(starts & {"outputs", "reference", "feedback"})
    return has_all(head, ["run", "example", "inputs"]) or has_all(
        head, ["dataset_id", "inputs", "outputs", "source_run_id"]
    )


def read(path: Path) -> ImportedFile:
    """Read an experiment or the examples of a dataset."""
    records = read_records(path)
    first = records[0] if records else {}
    notes = Notes()
    if "run" in first:
        return _read_rows(records, notes, path)
    if any(name.startswith(("inputs.", "feedback.")) for name in first):
        return _read_table(records, notes, path)
    if "inputs" not in first:
        raise DatasetError(
            "the file has neither runs nor inputs", where=str(path), fix="export the experiment or dataset of LangSmith"
        )
    samples = tuple(_make_sample(record, record["id"]) for record in records)
    notes.add("left out", "example", "with attachments, without them", sum(bool(r.get("attachments")) for r in records))
    return ImportedFile(NAME, samples=samples, warnings=notes.texts)


def _make_sample(example: Mapping[str, Any], sample_id: Any) -> Sample[Any, Any]:
    return make_sample(sample_id, example.get("inputs"), example.get("outputs"), example.get("metadata"))


def _read_rows(records: list[dict[str, Any]], notes: Notes, path: Path) -> ImportedFile:
    """Read rows of `run`, `example` and `evaluation_results`."""
    builder = RunBuilder(notes)
    times, names = [], []
    for record in records:
        run, example = record["run"], record.get("example") or {}
        start, end = parse_time(run.get("start_time")), parse_time(run.get("end_time"))
        times += [time for time in (start, end) if time]
        names.append(run.get("session_name"))
        results = record.get("evaluation_results") or []
        builder.add(
            _make_sample(
                {"inputs": run.get("inputs"), **example},
                example.get("id") or run.get("reference_example_id") or make_id(run.get("inputs")),
            ),
            {str(item["key"]): _read_feedback(item, builder) for item in _list_feedback(results)},
            output=run.get("outputs"),
            error=make_failure(run["error"]) if run.get("error") else None,
            started_at=start,
            latency_ms=1000 * (end - start).total_seconds() if start and end else None,
            usage=make_usage(run.get("prompt_tokens"), run.get("completion_tokens"), cost=run.get("total_cost")),
        )
    name = next((str(name) for name in names if name), path.stem)
    first, last = min(times, default=None), max(times, default=None)
    return builder.build_file(NAME, name, started_at=first, finished_at=last)


def _list_feedback(results: Any) -> list[Any]:
    """Return the feedback of a row: a list, or a mapping with the list `results`, as the SDK has it."""
    return list(results.get("results") or ()) if isinstance(results, dict) else results


def _read_feedback(item: Mapping[str, Any], builder: RunBuilder) -> Score | None:
    value = item.get("value") if item.get("score") is None else item["score"]
    extra = item.get("extra") or {}
    error = item.get("comment") or "the evaluator failed" if isinstance(extra, dict) and extra.get("error") else None
    return builder.score(value, reason=item.get("comment"), error=error)


def _read_table(rows: list[dict[str, Any]], notes: Notes, path: Path) -> ImportedFile:
    """Read a table with the columns inputs.*, outputs.*, reference.*, feedback.* and error."""
    builder = RunBuilder(notes)
    for row in rows:
        inputs, reference = nest_columns(row, "inputs."), nest_columns(row, "reference.") or None
        builder.add(
            Sample(str(row.get("example_id") or make_id(inputs, reference)), inputs, reference),
            {name: builder.score(_read_cell(cell)) for name, cell in nest_columns(row, "feedback.").items()},
            output=nest_columns(row, "outputs.") or None,
            error=make_failure(row["error"]) if row.get("error") else None,
            latency_ms=to_milliseconds(_read_cell(row.get("execution_time"))),
        )
    if rows and not any(name.startswith(("outputs.", "feedback.")) for name in rows[0]):
        return ImportedFile(NAME, samples=tuple(builder.samples.values()), warnings=notes.texts)
    return builder.build_file(NAME, path.stem)


def _read_cell(cell: Any) -> Any:
    """Return the boolean or number of a cell, or its text."""
    return _CELL_VALUES.get(cell.lower(), parse_number(cell)) if isinstance(cell, str) else cell
