"""MLflow: evaluation datasets, result tables, traces with assessments, and metrics, in JSON, JSON Lines and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from proctor.errors import DatasetError
from proctor.interop.files import read_json
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.run_builder import Notes, RunBuilder, make_failure, make_id, make_sample, make_usage
from proctor.interop.spans import INPUT, OUTPUT, Span, find_root, make_attributes, make_session
from proctor.interop.tables import (
    find_column,
    has_all,
    load_columns,
    make_samples,
    parse_json,
    parse_python,
    parse_time,
    read_header,
    read_objects,
    read_rows,
)
from proctor.records.numbers import is_number
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import Failure

NAME = "mlflow"
EXPECTED = "expected_response"
_METRICS_START = re.compile(rb'\A\s*\{\s*"[^"]+/(?:mean|min|max|median|variance|p90)"\s*:')
_TABLE_START = re.compile(rb'\A\s*\{\s*"columns"\s*:\s*\[')
_KINDS = {"CHAT_MODEL": "LLM"}
# MLflow counts these words in the mean of a scorer.
_WORDS = {"yes": True, "no": False}
_DATASET_KEYS = ("tags", "source", "outputs")


def recognize(path: Path, head: bytes) -> bool:
    """Return True if a file is a dataset, a result table, a list of traces or the metrics of MLflow."""
    if header := read_header(path, head):
        return {"question", "retrieved_doc_ids"} <= set(header) or {"trace_id", "assessments"} <= set(header)
    if _METRICS_START.match(head) or (_TABLE_START.match(head) and b'"data"' in head):
        return True
    kinds = (["info", "trace_id", "trace_location"], ["dataset_record_id", "inputs"], ["inputs", "expectations"])
    is_result = b'"trace_id"' in head and re.search(rb'/value"\s*:', head) is not None
    return is_result or any(has_all(head, keys) for keys in kinds)


def read(path: Path) -> ImportedFile:
    """Read a dataset, a result table, traces or metrics."""
    notes = Notes()
    content = _load(path)
    if isinstance(content, dict) and "columns" in content and "data" in content:
        rows = [dict(zip(content["columns"], row, strict=False)) for row in content["data"]]
        return _read_table_rows(rows, notes, path)
    if isinstance(content, dict) and "records" in content:
        content = content["records"]
    if isinstance(content, dict) and "info" not in content:
        return _read_metrics(content, path)
    records = [content] if isinstance(content, dict) else content
    first = records[0] if records else {}
    if "info" in first or "assessments" in first:
        return _read_traces(records, notes, path)
    if "inputs" in first:
        return ImportedFile(NAME, samples=tuple(_read_dataset(records)), warnings=notes.texts)
    return _read_table_rows(records, notes, path)


def _load(path: Path) -> Any:
    if path.suffix.lower() == ".csv":
        return [{name: parse_python(cell) for name, cell in row.items()} for row in read_rows(path)]
    return read_objects(path) if path.suffix.lower() == ".jsonl" else read_json(path)


def _read_metrics(content: Mapping[str, Any], path: Path) -> ImportedFile:
    reported = {name: value for name, value in content.items() if is_number(value)}
    if not reported:
        raise DatasetError(
            "the file has no records, traces or metrics", where=str(path), fix="pass a dataset or results of MLflow"
        )
    warnings = ("the metrics have no rows: import the result table or the traces to get results",)
    return ImportedFile(NAME, runs=(ImportedRun(path.stem, reported=reported),), warnings=warnings)


def _read_dataset(records: Iterable[Mapping[str, Any]]) -> Iterable[Sample[Any, Any]]:
    for record in records:
        expectations = record.get("expectations") or {}
        rest = {key: record[key] for key in _DATASET_KEYS if record.get(key)}
        yield _make_sample(record["inputs"], expectations, rest, record.get("dataset_record_id"))


def _make_sample(
    value: Any, expectations: Mapping[str, Any], metadata: Mapping[str, Any], name: Any = None
) -> Sample[Any, Any]:
    """Make a sample; the expected response is the expected value, other expectations are metadata."""
    others = {key: item for key, item in expectations.items() if key != EXPECTED}
    extra = {"expectations": others} if others else {}
    sample_id = str(name or make_id(value, dict(expectations)))
    return make_sample(sample_id, value, expectations.get(EXPECTED), {**metadata, **extra})


def _read_table_rows(rows: list[dict[str, Any]], notes: Notes, path: Path) -> ImportedFile:
    """Read a table with any columns; with an output column it is a run."""
    output_column = find_column("output", [name for row in rows for name in row])
    samples = make_samples([{k: v for k, v in row.items() if k not in load_columns()["output"]} for row in rows], notes)
    if output_column is None:
        return ImportedFile(NAME, samples=tuple(samples), warnings=notes.texts)
    builder = RunBuilder(notes)
    for row, sample in zip(rows, samples, strict=True):
        scores = {
            name.removesuffix("/score"): builder.score(value) for name, value in row.items() if name.endswith("/score")
        }
        latency = parse_json(row.get("MLFLOW_latency"))
        builder.add(sample, scores, output=row.get(output_column), latency_ms=latency if is_number(latency) else None)
    return ImportedFile(NAME, samples=tuple(samples), runs=(builder.build(path.stem),), warnings=notes.texts)


def _read_traces(records: list[dict[str, Any]], notes: Notes, path: Path) -> ImportedFile:
    """Read traces, or the rows of a result table, which are flat traces."""
    builder = RunBuilder(notes)
    for record in records:
        info = record.get("info") or record
        spans = [_read_span(span) for span in (record.get("data") or record).get("spans") or ()]
        root, metadata = find_root(spans), info.get("trace_metadata") or {}
        session = make_session(spans) if spans else None
        inputs, outputs = (root and root.attributes.get(name) for name in (INPUT, OUTPUT))
        value = record["request"] if "request" in record else _read_first(inputs, metadata.get("mlflow.traceInputs"))
        output = (
            record["response"] if "response" in record else _read_first(outputs, metadata.get("mlflow.traceOutputs"))
        )
        counts = parse_json(metadata.get("mlflow.trace.tokenUsage")) or {}
        usage = make_usage(counts.get("input_tokens"), counts.get("output_tokens"))
        assessments = [item for item in info.get("assessments") or () if item.get("valid") is not False]
        notes.add(
            "left out", "assessment", "that a newer one replaces", len(info.get("assessments") or ()) - len(assessments)
        )
        # Traces of one evaluation are comparable by content, others only by their own id.
        name = None if metadata.get("mlflow.sourceRun") else info.get("trace_id")
        duration = _read_first(info.get("execution_duration_ms"), info.get("execution_duration"))
        builder.add(
            _make_sample(value, _read_expectations(assessments), {}, name),
            {str(a["assessment_name"]): _read_feedback(a, builder) for a in assessments if "feedback" in a},
            output=output,
            error=_read_error(info, root, record),
            started_at=parse_time(info.get("request_time")),
            latency_ms=float(duration) if is_number(duration) else None,
            usage=usage if usage != Usage() else session and session.known_usage(),
            session=session,
        )
    return builder.build_file(NAME, path.stem)


def _read_first(*values: Any) -> Any:
    """Return the first known value; texts with JSON are read."""
    return next((parse_json(value) for value in values if value not in (None, "")), None)


def _read_error(info: Mapping[str, Any], root: Span | None, record: Mapping[str, Any]) -> Failure | None:
    if info.get("state") != "ERROR":
        return None
    spans = (record.get("data") or record).get("spans") or ()
    events = [event for span in spans for event in span.get("events") or () if event.get("name") == "exception"]
    if not events:
        return make_failure(root.error if root and root.error else "the trace ended with an error")
    attributes = events[0].get("attributes") or {}
    return make_failure(
        attributes.get("exception.message"), attributes.get("exception.type"), attributes.get("exception.stacktrace")
    )


def _read_expectations(assessments: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the expectations by name; values that are not scalars are serialized."""
    values: dict[str, Any] = {}
    for assessment in assessments:
        expectation = assessment.get("expectation")
        if expectation:
            serialized = expectation.get("serialized_value") or {}
            values[str(assessment["assessment_name"])] = (
                expectation["value"] if "value" in expectation else parse_json(serialized.get("value"))
            )
    return values


def _read_feedback(assessment: Mapping[str, Any], builder: RunBuilder) -> Score | None:
    feedback = assessment["feedback"]
    value, error = feedback.get("value"), feedback.get("error")
    if isinstance(value, str):
        value = _WORDS.get(value.lower(), value)
    if error:
        error = error.get("error_message") or error.get("error_code") or "the scorer failed"
    return builder.score(value, reason=assessment.get("rationale"), error=error)


def _read_span(span: Mapping[str, Any]) -> Span:
    attributes = span.get("attributes") or {}
    kind = str(parse_json(attributes.get("mlflow.spanType")) or "UNKNOWN")
    usage = parse_json(attributes.get("mlflow.chat.tokenUsage")) or {}
    status = span.get("status") or {}
    values = make_attributes(
        _KINDS.get(kind, kind),
        span.get("name"),
        attributes.get("mlflow.spanInputs"),
        attributes.get("mlflow.spanOutputs"),
        model=parse_json(attributes.get("mlflow.llm.model")),
        tokens=(usage.get("input_tokens"), usage.get("output_tokens")),
    )
    return Span(
        str(span.get("span_id")),
        span.get("parent_span_id"),
        str(span.get("name")),
        values,
        parse_time(span.get("start_time_unix_nano")),
        parse_time(span.get("end_time_unix_nano")),
        str(status.get("message") or "error") if status.get("code") in ("STATUS_CODE_ERROR", "ERROR") else None,
    )
