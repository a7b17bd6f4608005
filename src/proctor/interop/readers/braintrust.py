"""Braintrust: the rows of an experiment as JSON Lines, JSON or CSV, and the summary of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.errors import DatasetError
from proctor.interop.files import read_json
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.run_builder import (
    Notes,
    RunBuilder,
    make_failure,
    make_id,
    make_sample,
    make_usage,
    to_milliseconds,
)
from proctor.interop.tables import has_all, parse_json, parse_time, read_header, read_records
from proctor.records.numbers import is_number
from proctor.records.sample import TAGS
from proctor.records.score import Score

NAME = "braintrust"
_ROW_KEYS = ("input", "output", "scores", "expected")
# The key of a row's metadata that is not about the sample.
_SCORER_ERRORS = "scorer_errors"


def recognize(path: Path, head: bytes) -> bool:
    """Return True if a file has the rows or the summary of a Braintrust experiment."""
    if header := read_header(path, head):
        return set(_ROW_KEYS) <= set(header)
    return has_all(head, _ROW_KEYS) or has_all(head, ["project_name", "experiment_name", "scores"])


def read(path: Path) -> ImportedFile:
    """Read the rows of an experiment, or its summary."""
    content = read_json(path) if path.suffix.lower() == ".json" else None
    if isinstance(content, dict):
        return _read_summary(content, path)
    records = [_parse_cells(record) for record in read_records(path)]
    if records and not set(records[0]) >= {"input", "scores"}:
        raise DatasetError(
            "the rows have no input and scores", where=str(path), fix="export the rows of a Braintrust experiment"
        )
    # The other rows of a trace are its spans.
    rows = [record for record in records if not record.get("span_parents") and record.get("is_root") is not False]
    notes = Notes()
    notes.add("left out", "span", "inside a trace", len(records) - len(rows))
    builder = RunBuilder(notes)
    names = {name.lower(): name for row in rows for name in row.get("scores") or {}}
    for row in rows:
        _add_row(row, names, builder)
    repeats = len(rows) - len(builder.samples)
    notes.add("read as repeats", "row", "with the input and expected value of another row", repeats)
    return builder.build_file(NAME, path.stem)


def _parse_cells(record: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the values of JSON cells, which a table has."""
    if isinstance(record.get("scores"), dict | None):
        return record
    return {name: parse_json(cell) for name, cell in record.items()}


def _add_row(row: Mapping[str, Any], names: Mapping[str, str], builder: RunBuilder) -> None:
    metadata = dict(row.get("metadata") or {})
    scorer_errors = metadata.pop(_SCORER_ERRORS, None) or {}
    if row.get("tags"):
        metadata[TAGS] = [str(tag) for tag in row["tags"]]
    # A row's own id names the trial, not the case: equal content is the same sample.
    sample = make_sample(
        make_id(row.get("input"), row.get("expected")), row.get("input"), row.get("expected"), metadata
    )
    scores = {name: builder.score(value) for name, value in (row.get("scores") or {}).items()}
    for scorer, trace in scorer_errors.items():
        # The function `overlap` gives the score `Overlap`.
        scores[names.get(scorer.lower(), scorer)] = _make_error(str(trace))
    metrics = row.get("metrics") or {}
    start, end = metrics.get("start"), metrics.get("end")
    builder.add(
        sample,
        scores,
        output=row.get("output"),
        error=make_failure(row["error"]) if row.get("error") else None,
        started_at=parse_time(start or row.get("created")),
        latency_ms=to_milliseconds(end - start) if start is not None and end is not None else None,
        usage=make_usage(
            metrics.get("prompt_tokens"), metrics.get("completion_tokens"), cost=metrics.get("estimated_cost")
        ),
    )


def _make_error(trace: str) -> Score:
    return Score.error(trace.strip().rpartition("\n")[2], {"traceback": trace})


def _read_summary(content: Mapping[str, Any], path: Path) -> ImportedFile:
    scores = content.get("scores") or {}
    reported = {str(name): item["score"] for name, item in scores.items() if is_number(item.get("score"))}
    name = str(content.get("experiment_name") or path.stem)
    details = {"project": content["project_name"]} if content.get("project_name") else {}
    warnings = ("the summary has no rows: import the rows of the experiment to get its results",)
    return ImportedFile(NAME, runs=(ImportedRun(name, reported=reported, details=details),), warnings=warnings)
