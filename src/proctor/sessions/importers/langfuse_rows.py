"""Read the rows of a Langfuse export: observations, and their grouping into traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import Message, ToolCall, Usage
from proctor.sessions.genai.bodies import parse_request, parse_response, parse_response_instructions
from proctor.sessions.genai.messages import CallMessages, read_call_messages, read_instructions
from proctor.sessions.genai.spans import SpanCall, SpanData, classify_span, read_span
from proctor.sessions.genai.values import CallType, decode_json, is_too_deep, parse_arguments, text_or_none, to_plain
from proctor.sessions.importers.imported_session import parse_time
from proctor.sessions.importers.json_values import as_count, as_mapping, as_number, as_text, first_count, omit_keys

_INPUT = ("input", "input_tokens", "prompt_tokens", "promptTokens")
_OUTPUT = ("output", "output_tokens", "completion_tokens", "completionTokens")
_TOTAL = ("total", "total_tokens", "totalTokens")
_CACHED = ("input_cache_read", "input_cached_tokens", "cache_read_input_tokens", "prompt_details.cache_read")
_CACHE_WRITTEN = ("input_cache_creation", "cache_creation_input_tokens")
_MAIN_COUNTS = frozenset((*_INPUT, *_OUTPUT, *_TOTAL))
# Words in the names of other counts that assign them to the input or the output.
_INPUT_WORDS = ("input", "prompt", "cache")
_OUTPUT_WORDS = ("output", "completion", "reasoning")
_CALL_TYPES: dict[str, CallType] = {"GENERATION": "model", "EMBEDDING": "embeddings", "TOOL": "tool"}
_OPERATIONS: dict[CallType, str] = {"model": "chat", "embeddings": "embeddings", "tool": "execute_tool"}
OBSERVATION_TYPES = frozenset((
    "SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING",
    "GUARDRAIL",
))  # fmt: skip
# Lists of observations contain these placeholders instead of long values.
_EMPTY: tuple[Any, ...] = (None, "", [], {}, "{}", "[]", "null")
# File exports use underscores.
_API_NAMES = {
    "trace_id": "traceId", "parent_observation_id": "parentObservationId",
    "observation_id": "observationId", "session_id": "sessionId", "user_id": "userId",
    "start_time": "startTime", "end_time": "endTime", "completion_start_time": "completionStartTime",
    "status_message": "statusMessage", "model_parameters": "modelParameters",
    "provided_model_name": "model", "usage_details": "usageDetails", "cost_details": "costDetails",
    "total_cost": "totalCost", "string_value": "stringValue", "data_type": "dataType",
}  # fmt: skip
# A session without traces has only these fields.
_SESSION_FIELDS = frozenset(
    ("id", "traces", "createdAt", "updatedAt", "projectId", "environment", "public", "bookmarked")
)
_TRACE_FIELDS = ("timestamp", "userId", "sessionId", "tags", "htmlPath", "scores")


def read_usage(observation: Mapping[str, Any]) -> Usage | None:
    """Return the usage of an observation, or None if it has no counts."""
    details = as_mapping(decode_json(observation.get("usageDetails")))
    legacy = as_mapping(decode_json(observation.get("usage")))
    if not details and legacy.get("unit") in (None, "TOKENS"):
        details = legacy
    inputs, outputs = _read_tokens(details)
    cached, cache_written = first_count(details, *_CACHED), first_count(details, *_CACHE_WRITTEN)
    usage = Usage(inputs, outputs, cached, _read_cost(observation), cache_written)
    return None if usage == Usage() else usage


def _read_tokens(details: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the sums of the input and output tokens.

    Some programs also list counts that the input or output already includes; the total shows which. Tokens that only
    the total includes are thoughts, as with Gemini.
    """
    inputs, outputs = first_count(details, *_INPUT), first_count(details, *_OUTPUT)
    other_inputs, other_outputs = _sum_other_counts(details)
    total = first_count(details, *_TOTAL)
    if total is not None:
        if inputs is None and outputs is None and not (other_inputs or other_outputs):
            return None, None  # They may belong to the input or to the output.
        remaining = max(total - (inputs or 0) - (outputs or 0), 0)
        if remaining == other_outputs:
            other_inputs = 0
        elif inputs is None and not other_inputs:
            other_inputs = max(remaining - other_outputs, 0)
        else:
            other_inputs = min(remaining, other_inputs)
        other_outputs = remaining - other_inputs
    return _add_count(inputs, other_inputs), _add_count(outputs, other_outputs)


def _add_count(count: int | None, other: int) -> int | None:
    return as_count((count or 0) + other) if other else count


def _sum_other_counts(details: Mapping[str, Any]) -> tuple[int, int]:
    inputs = outputs = 0
    for name, value in details.items():
        number = as_count(value)
        if number is None or name in _MAIN_COUNTS or "cost" in name.casefold():
            continue
        if any(word in name for word in _OUTPUT_WORDS):
            outputs += number
        elif any(word in name for word in _INPUT_WORDS):
            inputs += number
    return inputs, outputs


def _read_cost(observation: Mapping[str, Any]) -> float | None:
    cost = as_number(as_mapping(decode_json(observation.get("costDetails"))).get("total"))
    for name in ("totalCost", "calculatedTotalCost"):
        # Zero may mean that no price is known.
        cost = cost or as_number(observation.get(name)) or cost
    return cost


def read_observation(observation: Mapping[str, Any]) -> tuple[SpanCall | None, bool]:
    """Return the model or tool call of an observation, and whether its messages consist of a single text."""
    attributes = get_attributes(observation)
    call_type = _CALL_TYPES.get(str(observation.get("type")).upper()) or classify_span(attributes)
    if call_type is None and _has_tool_message(observation):
        call_type = "tool"
    if call_type is None:
        return None, False
    message = observation.get("statusMessage")
    error = ("" if message is None else str(message)) if observation.get("level") == "ERROR" else None
    span = SpanData(
        as_text(observation.get("name")) or "",
        {**attributes, "gen_ai.operation.name": _OPERATIONS[call_type]},
        duration_ms=get_duration_ms(observation),
        error=error,
    )
    span_call = read_span(span)
    assert span_call is not None
    if isinstance(span_call.call, ToolCall):
        call = _read_tool_call(span_call.call, observation, attributes)
        return SpanCall("tool", call, sources=("input", "output", *span_call.sources)), False
    model, usage = as_text(observation.get("model")) or span_call.call.model, read_usage(observation)
    model_call = msgspec.structs.replace(span_call.call, model=model, usage=usage or span_call.call.usage)
    if call_type == "embeddings":
        return SpanCall(call_type, model_call), False
    messages, is_text_only = read_observation_messages(observation, attributes)
    if messages.finish_reason is not None and model_call.finish_reason is None:
        model_call = msgspec.structs.replace(model_call, finish_reason=messages.finish_reason)
    inputs, outputs = tuple(messages.inputs), tuple(messages.outputs)
    sources = (*messages.input_sources, *messages.output_sources)
    return SpanCall(call_type, model_call, inputs, outputs, messages.thoughts, sources), is_text_only


def read_observation_messages(
    observation: Mapping[str, Any], attributes: Mapping[str, Any]
) -> tuple[CallMessages, bool]:
    """Return the messages of an observation, from its input and output or its span attributes."""
    raw_input, raw_output = observation.get("input"), observation.get("output")
    request, response = parse_request(raw_input), parse_response(raw_output)
    is_complete = request is not None and response is not None
    other = CallMessages([], []) if is_complete else read_call_messages(attributes)
    inputs = other.inputs if request is None else request.messages
    outputs = other.outputs if response is None else response.messages
    is_text_only = not (inputs or outputs)
    if not inputs:
        inputs = _read_text(raw_input, "user")
    input_sources = other.input_sources if request is None and other.inputs else ("input",)
    if not any(message.role == "system" for message in inputs):
        instructions = read_instructions(attributes)
        inputs = [*(instructions or parse_response_instructions(raw_output)), *inputs]
        if instructions:
            input_sources = (*input_sources, "gen_ai.system_instructions")
    reasons = [] if response is None else response.finish_reasons
    thoughts = [thought for parsed in (request, response) if parsed for thought in parsed.thoughts]
    messages = CallMessages(
        inputs,
        outputs or _read_text(raw_output, "assistant"),
        next(iter(reasons), other.finish_reason),
        thoughts=tuple(thoughts) or other.thoughts,
        input_sources=input_sources,
        output_sources=other.output_sources if response is None and other.outputs else ("output",),
    )
    return messages, is_text_only


def _read_text(value: Any, role: Any) -> list[Message]:
    text = decode_json(value)
    return [Message(role, text)] if isinstance(text, str) and text else []


def get_attributes(observation: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes of the original span, if the observation was a span."""
    return as_mapping(decode_json(as_mapping(decode_json(observation.get("metadata"))).get("attributes")))


def _has_tool_message(observation: Mapping[str, Any]) -> bool:
    output = as_mapping(decode_json(observation.get("output")))
    return output.get("type") == "tool" and as_text(output.get("tool_call_id")) is not None


def _read_tool_call(call: ToolCall, observation: Mapping[str, Any], attributes: Mapping[str, Any]) -> ToolCall:
    arguments, output = decode_json(observation.get("input")), decode_json(observation.get("output"))
    inner = as_mapping(arguments).get("input")
    if "langsmith.span.kind" in attributes and isinstance(inner, dict) and len(arguments) == 1:
        # LangSmith puts the arguments of a tool under this name.
        arguments = inner
    if not isinstance(arguments, dict):
        # LangChain writes the input as a Python repr, and the arguments in the metadata.
        arguments = as_mapping(decode_json(observation.get("metadata"))).get("inputs") or arguments
    call_id, error = call.call_id, call.error
    if _has_tool_message(observation):
        message = as_mapping(output)
        output = message.get("content")
        call_id = call_id or text_or_none(message.get("tool_call_id"))
        if message.get("status") == "error" and error is None:
            error = str(output)
    return ToolCall(
        call.name,
        call.arguments or parse_arguments(arguments),
        to_plain(output) if call.result is None else call.result,
        error,
        call.duration_ms,
        call_id,
    )


def get_duration_ms(row: Mapping[str, Any]) -> float | None:
    """Return the duration of a row, from its times or its latency in seconds."""
    start, end = parse_time(row.get("startTime")), parse_time(row.get("endTime"))
    if start is not None and end is not None and end >= start:
        return (end - start).total_seconds() * 1e3
    latency = as_number(row.get("latency"))
    return None if latency is None else latency * 1e3


def is_blank(value: Any) -> bool:
    """Return True for None and for empty strings, lists and mappings."""
    return value is None or (isinstance(value, str | Sequence | Mapping) and not value)


class TraceRows:
    """The rows of one trace; `line` is its first line in the file.

    `session` is the id of the session that lists the trace, if any.
    """

    def __init__(self, name: str, line: int) -> None:
        self.id = name
        self.line = line
        self.session: str | None = None
        self.trace: dict[str, Any] = {}
        # Keyed by id, or by number for a row without an id.
        self.observations: dict[str | int, dict[str, Any]] = {}
        self.scores: dict[str | int, dict[str, Any]] = {}
        self.unknown_values: list[Any] = []

    def add_trace(self, row: Mapping[str, Any]) -> None:
        """Add the row of the trace with its observations and scores."""
        self.trace = _merge_rows(self.trace, omit_keys(row, "observations", "scores"))
        self._add_rows(row, "observations", self.observations)
        self._add_rows(row, "scores", self.scores)

    def _add_rows(self, row: Mapping[str, Any], name: str, rows: dict[str | int, dict[str, Any]]) -> None:
        value = row.get(name)
        items = value if isinstance(value, list) else [value] if value else []
        # Lists of traces contain only the ids of their observations.
        ids = [item for item in items if isinstance(item, str) and items is value]
        if ids:
            self.trace = _merge_rows(self.trace, {name: ids})
        for item in items:
            if isinstance(item, dict):
                _add_row(rows, normalize_keys(item))
            elif item not in ids:
                self.unknown_values.append({name: item})


def _add_row(rows: dict[str | int, dict[str, Any]], row: Mapping[str, Any]) -> None:
    """Add an observation or a score; rows with the same id are merged."""
    key = as_text(row.get("id")) or len(rows)
    rows[key] = _merge_rows(rows.get(key, {}), row)


class GroupedRows(NamedTuple):
    """The rows of a file by trace, and its session rows by id.

    `empty` are the sessions without traces, with their lines, and `lines` is the number of lines.
    """

    traces: dict[str, TraceRows]
    sessions: dict[str, dict[str, Any]]
    empty: dict[str, int]
    lines: int = 0


def _merge_rows(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    conflicts: list[Any] = list(merged.pop("also", []))
    for key, value in second.items():
        if merged.get(key) in _EMPTY:
            merged[key] = value
        elif value not in _EMPTY and value != merged[key]:
            conflicts.append({key: value})
    return {**merged, "also": conflicts} if conflicts else merged


def normalize_keys(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the key names of the API."""
    return {key if (name := _API_NAMES.get(key, key)) in row else name: value for key, value in row.items()}


def classify_row(value: Any) -> str | None:
    """Return the type of a row: "export", "page", "session", "trace", "observation", "score" or None."""
    if not isinstance(value, dict):
        return None
    row = normalize_keys(value)
    if isinstance(row.get("trace"), dict) and isinstance(row.get("observations"), list):
        return "export"
    if isinstance(row.get("data"), list) and isinstance(row.get("meta"), dict):
        return "page"
    has_trace_id, has_id = as_text(row.get("traceId")) is not None, as_text(row.get("id")) is not None
    if has_trace_id and "startTime" in row and isinstance(row.get("type"), str):
        return "observation"
    if has_trace_id and "name" in row and ("value" in row or "stringValue" in row):
        return "score"
    if has_id and _has_traces(row):
        return "session"
    trace_fields = sum(key in row for key in _TRACE_FIELDS)
    if has_id and isinstance(row.get("observations"), list) and trace_fields >= 1:
        return "trace"
    return "trace" if has_id and not has_trace_id and trace_fields >= 4 else None


def _has_traces(row: Mapping[str, Any]) -> bool:
    traces = row.get("traces")
    if traces == []:
        return row.keys() <= _SESSION_FIELDS
    first = normalize_keys(as_mapping(traces[0])) if isinstance(traces, list) and traces else {}
    has_content = any(key in first for key in ("input", "output", "observations"))
    return as_text(first.get("id")) is not None and "timestamp" in first and has_content


def group_rows(values: Iterable[tuple[int, Any]], stray_values: list[tuple[str, Any]]) -> GroupedRows:
    """Group the rows of a file by trace; append everything else to `stray_values`."""
    grouped = GroupedRows({}, {}, {})
    lines = 0
    for line, value in values:
        lines += 1
        for row in _flatten_rows(value):
            _add_to_group(row, line, grouped, stray_values)
    return grouped._replace(lines=lines)


def _flatten_rows(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _flatten_rows(item) if classify_row(item) == "page" else [item]
    elif classify_row(value) == "page":
        yield from value["data"]
        if rest := omit_keys(value, "data", "meta"):
            yield rest
    else:
        yield value


def _add_to_group(value: Any, line: int, grouped: GroupedRows, stray_values: list[tuple[str, Any]]) -> None:
    row_type = None if is_too_deep(value) else classify_row(value)
    row = normalize_keys(value) if row_type not in (None, "page") else {}
    trace = normalize_keys(row["trace"]) if row_type == "export" else row
    name = as_text(trace.get("traceId" if row_type in ("observation", "score") else "id"))
    if name is None:
        stray_values.append(("row", value))
        return
    if row_type == "session":
        _add_session(name, row, line, grouped, stray_values)
        return
    rows = grouped.traces.setdefault(name, TraceRows(name, line))
    if row_type == "export":
        rows.add_trace(trace)
        rows.add_trace(omit_keys(row, "trace"))
    elif row_type == "trace":
        rows.add_trace(row)
    else:
        _add_row(rows.observations if row_type == "observation" else rows.scores, row)


def _add_session(
    name: str, row: Mapping[str, Any], line: int, grouped: GroupedRows, stray_values: list[tuple[str, Any]]
) -> None:
    """Add the traces of a session; a trace belongs to the first session that lists it."""
    session = omit_keys(row, "id", "traces")
    grouped.sessions[name] = _merge_rows(grouped.sessions.get(name, {}), session)
    if not row["traces"]:
        grouped.empty.setdefault(name, line)
    for item in row["traces"]:
        trace = normalize_keys(as_mapping(item))
        trace_id = as_text(trace.get("id"))
        if trace_id is None:
            stray_values.append(("row", item))
            continue
        rows = grouped.traces.setdefault(trace_id, TraceRows(trace_id, line))
        rows.session = rows.session or name
        if rows.session != name:
            rows.unknown_values.append({"session": omit_keys(row, "traces")})
        rows.add_trace(trace)


def is_langfuse_rows(value: Any) -> bool:
    """Return True if a JSON value is, or starts with, a Langfuse row."""
    first = next(iter(_flatten_rows(value)), None)
    row_type = classify_row(first)
    if row_type == "observation":
        return as_mapping(first)["type"] in OBSERVATION_TYPES
    return row_type is not None
