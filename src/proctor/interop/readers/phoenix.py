"""Arize Phoenix: experiments, datasets and spans, as the server exports them in CSV, JSON and JSON Lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from proctor.errors import DatasetError
from proctor.interop.files import read_json
from proctor.interop.imported import ImportedFile
from proctor.interop.run_builder import Notes, RunBuilder, make_failure, make_sample, make_usage
from proctor.interop.spans import INPUT, KIND, OUTPUT, Span, find_root, flatten, make_session
from proctor.interop.tables import has_all, nest_columns, parse_json, parse_time, read_header, read_records
from proctor.records.numbers import is_number
from proctor.records.sample import Sample
from proctor.records.score import Score

NAME = "phoenix"
_SCORE_COLUMN = "annotation_"
_PARTS = ("label", "score", "explanation", "error")
_VALUE_KINDS = ("string_value", "int_value", "double_value", "bool_value")


def recognize(path: Path, head: bytes) -> bool:
    """Return True if a file is an export of a Phoenix experiment, dataset, or list of spans."""
    if header := read_header(path, head):
        return {"example_id", "repetition_number"} <= set(header) or header[:2] == ["id", "node_id"]
    kinds = (
        ["example_id", "repetition_number"],
        ["dataset_id", "version_id", "examples"],
        ["span_kind", "context", "trace_id"],
        ["context.span_id", "context.trace_id"],
        ["openinference.span.kind", "array_value"],
        ["annotator_kind", "result", "span_id"],
    )
    return path.suffix.lower() == ".json" and any(has_all(head, keys) for keys in kinds)


def read(path: Path) -> ImportedFile:
    """Read an experiment, a dataset, spans or annotations of spans."""
    content = read_json(path) if path.suffix.lower() == ".json" else None
    data = content.get("data") if isinstance(content, dict) else content
    notes = Notes()
    if isinstance(data, dict) and "examples" in data:
        samples = tuple(_make_sample(example, example["id"]) for example in data["examples"])
        return ImportedFile(NAME, samples=samples, warnings=notes.texts)
    records: list[dict[str, Any]] = read_records(path) if content is None else data if isinstance(data, list) else []
    first = records[0] if records else {}
    if "example_id" in first:
        return _read_experiment(records, notes, path)
    if "span_id" in first and "annotator_kind" in first:
        notes.add("left out", "annotation", "of spans, which are in another file", len(records))
        return ImportedFile(NAME, warnings=notes.texts)
    if "context" in first or "context.span_id" in first or "span_id" in first:
        return _read_spans([_read_span(record) for record in records], notes, path)
    if "node_id" in first:
        return ImportedFile(NAME, samples=tuple(_read_row(row) for row in records))
    if "messages" in first:
        return _read_chats(records, notes)
    raise DatasetError(
        "the file is no experiment, dataset or list of spans", where=str(path), fix="export it from Phoenix again"
    )


def _make_sample(example: Mapping[str, Any], sample_id: Any) -> Sample[Any, Any]:
    return make_sample(sample_id, example.get("input"), example.get("output") or None, example.get("metadata"))


def _read_row(row: Mapping[str, Any]) -> Sample[Any, Any]:
    columns = {name: nest_columns(row, f"{name}.") for name in ("input", "output", "metadata")}
    return _make_sample(columns, row["id"])


def _read_chats(records: Iterable[Mapping[str, Any]], notes: Notes) -> ImportedFile:
    """Read a dataset in OpenAI's formats; it is empty unless the inputs of the dataset have messages."""
    samples = []
    for number, record in enumerate(records, start=1):
        if record.get("messages"):
            samples.append(Sample(str(number), record["messages"], record.get("ideal") or None))
        else:
            notes.add("left out", "example", "without messages: export the dataset as CSV or JSON")
    return ImportedFile(NAME, samples=tuple(samples), warnings=notes.texts)


def _read_experiment(records: list[dict[str, Any]], notes: Notes, path: Path) -> ImportedFile:
    builder = RunBuilder(notes)
    for record in records:
        annotations = record["annotations"] if "annotations" in record else _read_annotation_columns(record)
        # In a table, a value that is no string is JSON.
        row = record if "annotations" in record else {name: parse_json(cell) for name, cell in record.items()}
        sample = {"input": row.get("input"), "output": row.get("reference_output"), "metadata": row.get("metadata")}
        builder.add(
            _make_sample(sample, record["example_id"]),
            {str(item["name"]): _read_annotation(item, builder) for item in annotations},
            output=row.get("output"),
            error=make_failure(record["error"]) if record.get("error") else None,
            latency_ms=_parse_number(record.get("latency_ms")),
            started_at=parse_time(record.get("start_time")),
            usage=make_usage(
                _parse_number(record.get("prompt_token_count")), _parse_number(record.get("completion_token_count"))
            ),
        )
    return builder.build_file(NAME, path.stem)


def _read_annotation_columns(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the annotations of a table row: the columns annotation_<name>_score, _label, _explanation and _error."""
    names = [
        name.removeprefix(_SCORE_COLUMN).removesuffix("_score")
        for name in row
        if name.startswith(_SCORE_COLUMN) and name.endswith("_score")
    ]
    return [{"name": name, **{part: row.get(f"{_SCORE_COLUMN}{name}_{part}") for part in _PARTS}} for name in names]


def _read_annotation(item: Mapping[str, Any], builder: RunBuilder) -> Score | None:
    value, label = _parse_number(item.get("score")), item.get("label")
    details = {"label": label} if label and value is not None else {}
    value = label if value is None else value
    return builder.score(value, reason=item.get("explanation"), error=item.get("error"), details=details)


def _parse_number(cell: Any) -> Any:
    """Return the number of a cell, or None."""
    try:
        return cell if cell is None or is_number(cell) else float(cell)
    except (TypeError, ValueError):
        return None


def _read_span(record: Mapping[str, Any]) -> tuple[str, Span]:
    """Return the trace and the span of one of three shapes: the REST API, its OTLP form, and a data frame."""
    status = record.get("status") or {}
    if isinstance(record.get("attributes"), list):
        attributes = {item["key"]: _read_value(item["value"]) for item in record["attributes"]}
    elif "attributes" in record:
        attributes = dict(record["attributes"])
    else:
        attributes = dict(flatten("attributes", nest_columns(record, "attributes.")))
        attributes = {name.removeprefix("attributes."): value for name, value in attributes.items()}
    if record.get("span_kind"):
        attributes.setdefault(KIND, record["span_kind"])
    context = record.get("context") or {name: record.get(f"context.{name}") for name in ("trace_id", "span_id")}
    is_error = record.get("status_code") == "ERROR" or status.get("code") == 2
    span = Span(
        str(record.get("span_id") or context.get("span_id")),
        record.get("parent_id") or record.get("parent_span_id"),
        str(record.get("name")),
        attributes,
        parse_time(record.get("start_time") or record.get("start_time_unix_nano")),
        parse_time(record.get("end_time") or record.get("end_time_unix_nano")),
        str(record.get("status_message") or status.get("message") or "error") if is_error else None,
    )
    return str(record.get("trace_id") or context.get("trace_id")), span


def _read_value(value: Mapping[str, Any]) -> Any:
    return next((value[kind] for kind in _VALUE_KINDS if value.get(kind) is not None), None)


def _read_spans(spans: Iterable[tuple[str, Span]], notes: Notes, path: Path) -> ImportedFile:
    """Make one result of each trace: its root has the input and output, and its spans are the session."""
    traces: dict[str, list[Span]] = {}
    for trace_id, span in spans:
        traces.setdefault(trace_id, []).append(span)
    builder = RunBuilder(notes)
    for trace_id, trace in traces.items():
        root, session = find_root(trace) or trace[0], make_session(trace)
        builder.add(
            make_sample(trace_id, root.attributes.get(INPUT), None, None),
            {},
            output=root.attributes.get(OUTPUT),
            error=make_failure(root.error) if root.error else None,
            started_at=root.start,
            latency_ms=1000 * (root.end - root.start).total_seconds() if root.start and root.end else None,
            usage=session.known_usage(),
            session=session,
        )
    return builder.build_file(NAME, path.stem)
