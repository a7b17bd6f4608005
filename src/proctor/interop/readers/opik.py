"""Opik: datasets, experiments and traces, as `opik export` writes them in JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import DatasetError
from proctor.interop.files import read_json
from proctor.interop.imported import ImportedFile
from proctor.interop.run_builder import (
    Notes,
    RunBuilder,
    make_failure,
    make_id,
    make_sample,
    make_unique,
    make_usage,
    number_duplicates,
)
from proctor.interop.spans import Span, make_attributes, make_session
from proctor.interop.tables import (
    has_all,
    nest_columns,
    parse_python,
    parse_time,
    read_header,
    read_rows,
    require_object,
)
from proctor.records import codec
from proctor.records.numbers import is_number
from proctor.records.sample import TAGS, Sample
from proctor.records.score import Score
from proctor.records.trial import Failure

NAME = "opik"
_INPUT, _EXPECTED = "input", "expected_output"


def recognize(path: Path, head: bytes) -> bool:
    """Return True if a file is an export of an Opik dataset, experiment or trace."""
    if header := read_header(path, head):
        return "item_index" in header
    kinds = (["items", "tags", "description"], ["experiment", "dataset_name", "trace_count"], ["trace", "project_id"])
    return path.suffix.lower() == ".json" and any(has_all(head, keys) for keys in kinds)


def read(path: Path) -> ImportedFile:
    """Read a dataset, an experiment or a trace."""
    notes = Notes()
    if path.suffix.lower() == ".csv":
        return _read_tables(read_rows(path), notes, path)
    content = require_object(read_json(path), str(path))
    if "trace" in content:
        return _read_trace(content, notes)
    items = content.get("items")
    if not isinstance(items, list):
        raise DatasetError("the file has no items and no trace", where=str(path), fix="export it again: opik export")
    if "experiment" in content:
        return _read_experiment(content["experiment"], items, notes, path)
    return ImportedFile(NAME, samples=_number_samples(items))


def _make_sample(data: Mapping[str, Any], sample_id: Any = None) -> Sample[Any, Any]:
    """Make a sample of an item; an item without `input` is the input as a whole."""
    if _INPUT not in data:
        return Sample(str(sample_id or make_id(data)), dict(data))
    metadata = {name: value for name, value in data.items() if name not in (_INPUT, _EXPECTED, "id")}
    name = sample_id or data.get("id") or make_id(data[_INPUT], data.get(_EXPECTED))
    return make_sample(name, data[_INPUT], data.get(_EXPECTED), metadata)


def _number_samples(items: Iterable[Mapping[str, Any]]) -> tuple[Sample[Any, Any], ...]:
    samples = [_make_sample(item) for item in items]
    ids = number_duplicates(sample.id for sample in samples)
    return tuple(msgspec.structs.replace(sample, id=name) for sample, name in zip(samples, ids, strict=True))


def _read_scores(items: Iterable[Mapping[str, Any]] | None, builder: RunBuilder) -> dict[str, Score | None]:
    return {
        str(item["name"]): builder.score(
            item.get("value"),
            reason=item.get("reason"),
            details={"category": item["category_name"]} if item.get("category_name") else {},
        )
        for item in items or ()
    }


def _read_assertions(items: Iterable[Mapping[str, Any]] | None) -> dict[str, Score]:
    """Return the verdicts of assertions; one without a verdict is an error."""
    scores: dict[str, Score] = {}
    for item in items or ():
        passed, reason = item.get("passed"), str(item.get("reason") or "")
        name = make_unique(str(item.get("name") or item.get("value") or "assertion"), scores)
        if isinstance(passed, bool):
            scores[name] = Score(float(passed), passed, reason)
        else:
            scores[name] = Score.error(reason or "the assertion has no verdict")
    return scores


def _read_experiment(
    experiment: Mapping[str, Any], items: list[dict[str, Any]], notes: Notes, path: Path
) -> ImportedFile:
    builder = RunBuilder(notes)
    for item in items:
        builder.add(
            _make_sample(item.get("dataset_item_data") or {}, item.get("dataset_item_id")),
            {**_read_assertions(item.get("assertion_results")), **_read_scores(item.get("feedback_scores"), builder)},
            output=item.get("evaluation_task_output"),
            error=_read_error(item.get("error_info")),
        )
    scores = experiment.get("feedback_scores") or ()
    reported = {str(score["name"]): score["value"] for score in scores if is_number(score.get("value"))}
    details = {key: experiment[key] for key in ("dataset_name", "metadata", "usage") if experiment.get(key)}
    return builder.build_file(
        NAME,
        str(experiment.get("name") or path.stem),
        details,
        started_at=parse_time(experiment.get("created_at")),
        reported=reported,
        total=experiment.get("trace_count"),
    )


def _read_error(info: Mapping[str, Any] | None) -> Failure | None:
    if not info:
        return None
    return make_failure(info.get("message") or "", info.get("exception_type"), info.get("traceback"))


def _read_tables(rows: list[dict[str, Any]], notes: Notes, path: Path) -> ImportedFile:
    """Read the table of an experiment, or of a dataset, whose nested keys are joined with underscores."""
    if not rows or "experiment_id" not in rows[0]:
        records = []
        for row in rows:
            item = nest_columns({name: cell for name, cell in row.items() if name != "item_index"}, "item_")
            nested = {key: nest_columns(item, f"{key}_") for key in (_INPUT, _EXPECTED)}
            rest = {name: cell for name, cell in item.items() if not name.startswith(("input_", "expected_output_"))}
            records.append({**{key: value for key, value in nested.items() if value}, **rest})
        return ImportedFile(NAME, samples=_number_samples(records))
    builder = RunBuilder(notes)
    for row in rows:
        scores = parse_python(row.get("item_feedback_scores"))
        sample = make_sample(row.get("item_dataset_item_id"), parse_python(row.get("item_input")), None, None)
        scores = _read_scores(scores if isinstance(scores, list) else None, builder)
        builder.add(sample, scores, output=parse_python(row.get("item_output")))
    empty = sum(row.get("item_input") is None for row in rows)
    notes.add("without input and output", "item", "(Opik leaves them out of its CSV): import the JSON file", empty)
    return builder.build_file(NAME, str(rows[0].get("experiment_name") or path.stem))


def _read_trace(content: Mapping[str, Any], notes: Notes) -> ImportedFile:
    trace, builder = content["trace"], RunBuilder(notes)
    usage = trace.get("usage") or {}
    metadata = {**(trace.get("metadata") or {}), **({TAGS: trace["tags"]} if trace.get("tags") else {})}
    builder.add(
        make_sample(trace.get("id"), trace.get("input"), None, metadata),
        _read_scores(trace.get("feedback_scores"), builder),
        output=trace.get("output"),
        error=_read_error(trace.get("error_info")),
        started_at=parse_time(trace.get("start_time")),
        latency_ms=trace.get("duration") if is_number(trace.get("duration")) else None,
        usage=make_usage(
            usage.get("prompt_tokens"), usage.get("completion_tokens"), cost=trace.get("total_estimated_cost")
        ),
        session=make_session([_read_span(span) for span in content.get("spans") or ()]),
    )
    notes.add("left out", "attachment", "", len(content.get("attachments") or ()))
    return builder.build_file(NAME, str(content.get("project_name") or trace.get("name")))


def _read_span(span: Mapping[str, Any]) -> Span:
    usage, error = span.get("usage") or {}, span.get("error_info") or {}
    attributes = make_attributes(
        str(span.get("type") or "general").upper(),
        span.get("name"),
        codec.encode(span.get("input")).decode(),
        codec.encode(span.get("output")).decode(),
        model=span.get("model"),
        tokens=(usage.get("prompt_tokens"), usage.get("completion_tokens")),
    )
    return Span(
        str(span.get("id")),
        span.get("parent_span_id"),
        str(span.get("name")),
        attributes,
        parse_time(span.get("start_time")),
        parse_time(span.get("end_time")),
        str(error.get("message") or error.get("exception_type")) if error else None,
    )
