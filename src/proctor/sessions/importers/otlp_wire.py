"""Parse OTLP/JSON documents into plain spans and log records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records.sample import type_name
from proctor.sessions.genai.values import is_too_deep
from proctor.sessions.importers.json_values import as_list, as_mapping, omit_keys
from proctor.sessions.importers.session_builder import merge_distinct

# The list names of resources, scopes and records, including those of older exporters.
_RESOURCES = {
    **dict.fromkeys(("resourceSpans", "resource_spans", "batches"), "span"),
    **dict.fromkeys(("resourceLogs", "resource_logs"), "log"),
}
_SCOPES = {
    "span": ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
    "log": ("scopeLogs", "scope_logs", "instrumentationLibraryLogs"),
}
_RECORDS = {"span": ("spans",), "log": ("logRecords", "log_records", "logs")}
_METRICS = ("resourceMetrics", "resource_metrics")
_SCOPE = ("scope", "instrumentationLibrary", "instrumentation_library")
_FAILED = (2, "2", "STATUS_CODE_ERROR", "ERROR")
_NO_ID = ("", "0" * 16, "0" * 32)
_MAX_INT = 2**63 - 1
_SCALARS = ("stringValue", "boolValue", "bytesValue", "doubleValue")


class Record(NamedTuple):
    """A span or a log record; times are in nanoseconds since 1970.

    `rest` are the remaining fields, `malformed` the values in a form that OTLP does not define.
    """

    kind: str
    trace: str | None
    id: str | None
    parent: str | None
    name: str
    start: int | None
    end: int | None
    attributes: dict[str, Any]
    events: tuple[Record, ...]
    error: str | None
    body: Any
    scope: dict[str, Any]
    resource: dict[str, Any]
    rest: dict[str, Any]
    malformed: list[Any]


class UnknownItem(NamedTuple):
    """A value that is not a record, and its type."""

    kind: str
    data: Any


def is_document(value: Any) -> bool:
    """Return True for an OTLP document: spans, log records or metrics."""
    return any(isinstance(as_mapping(value).get(name), list) for name in (*_RESOURCES, *_METRICS))


def parse_document(document: Any) -> Iterator[Record | UnknownItem]:
    """Parse all spans and log records of a document; other values are unknown items."""
    if not isinstance(document, dict) or is_too_deep(document):
        yield UnknownItem("document", to_storable(document))
        return
    for name, value in document.items():
        kind = _RESOURCES.get(name)
        if kind is None or not isinstance(value, list):
            yield UnknownItem("metrics" if name in _METRICS else f"document: {name[:60]}", value)
            continue
        for resource in value:
            yield from _parse_resource(resource, kind)


def to_storable(value: Any) -> Any:
    """Return a value, or its JSON if it is too deeply nested to be stored."""
    if not is_too_deep(value):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return f"({type_name(value)}, too deeply nested to be stored)"


def _parse_resource(raw: Any, kind: str) -> Iterator[Record | UnknownItem]:
    fields = as_mapping(raw)
    scopes, name = _first_list(fields, _SCOPES[kind])
    resource_fields = fields.get("resource") or {}
    if not scopes or not isinstance(resource_fields, dict):
        yield UnknownItem("resource", raw)
        return
    attributes, malformed = parse_attributes(resource_fields.get("attributes"))
    extra = omit_keys(fields, name, "resource")
    resource = merge_distinct(merge_distinct(attributes, omit_keys(resource_fields, "attributes")), extra)
    records = [record for scope in scopes for record in _parse_scope(scope, kind, resource)]
    if not any(isinstance(record, Record) for record in records):
        # Without a record, the resource would be lost.
        yield UnknownItem("resource", raw)
        return
    if malformed:
        yield UnknownItem("resource attribute", malformed)
    yield from records


def _parse_scope(raw: Any, kind: str, resource: dict[str, Any]) -> Iterator[Record | UnknownItem]:
    fields = as_mapping(raw)
    records, name = _first_list(fields, _RECORDS[kind])
    if not any(isinstance(record, dict) for record in records):
        yield UnknownItem("scope", raw)
        return
    scope_fields, key = next(((fields[key], key) for key in _SCOPE if key in fields), ({}, ""))
    scope_data = _simplify_attributes(scope_fields) if isinstance(scope_fields, dict) else {"scope": scope_fields}
    scope = merge_distinct(scope_data, omit_keys(fields, name, key))
    for record in records:
        if isinstance(record, dict):
            yield (_parse_span if kind == "span" else _parse_log)(record, scope, resource)
        else:
            yield UnknownItem(kind, record)


def _first_list(fields: Mapping[str, Any], names: Sequence[str]) -> tuple[Sequence[Any], str]:
    name = next((name for name in names if isinstance(fields.get(name), list)), "")
    return as_list(fields.get(name)), name


class _Fields:
    """The fields of one record; `pop` methods remove a field by its camel-case or snake-case name."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.rest = dict(raw)
        self.malformed: list[Any] = []

    def pop(self, *names: str) -> Any:
        return next((self.rest.pop(name) for name in names if name in self.rest), None)

    def pop_id(self, *names: str) -> str | None:
        return self.pop_text(*names, empty=_NO_ID) or None

    def pop_text(self, *names: str, empty: Sequence[str] = ()) -> str:
        value = self.pop(*names)
        if value is None or value in empty:
            return ""
        if isinstance(value, str):
            return value
        self.malformed.append({names[0]: value})
        return str(value)[:60]

    def pop_time(self, *names: str) -> int | None:
        raw = self.pop(*names)
        value = _to_int(raw)
        if value is None and raw is not None:
            self.malformed.append({names[0]: raw})
        # Zero means that the time is unknown.
        return value or None

    def pop_attributes(self) -> dict[str, Any]:
        attributes, malformed = parse_attributes(self.pop("attributes"))
        self.malformed += malformed
        return attributes


def _parse_span(raw: Mapping[str, Any], scope: dict[str, Any], resource: dict[str, Any]) -> Record:
    fields = _Fields(raw)
    events = fields.pop("events")
    if isinstance(events, list):
        fields.malformed += [event for event in events if not isinstance(event, dict)]
    elif events is not None:
        fields.malformed.append(events)
    links = fields.pop("links")
    if links:
        fields.rest["links"] = [_simplify_attributes(link) for link in as_list(links)] or links
    status = as_mapping(raw.get("status"))
    return Record(
        "span",
        fields.pop_id("traceId", "trace_id"),
        fields.pop_id("spanId", "span_id"),
        fields.pop_id("parentSpanId", "parent_span_id"),
        fields.pop_text("name"),
        fields.pop_time("startTimeUnixNano", "start_time_unix_nano"),
        fields.pop_time("endTimeUnixNano", "end_time_unix_nano"),
        fields.pop_attributes(),
        tuple(_parse_log(event, {}, {}) for event in as_list(events) if isinstance(event, dict)),
        str(status.get("message") or "") if status.get("code") in _FAILED else None,
        None,
        scope,
        resource,
        {key: value for key, value in fields.rest.items() if value != {}},
        fields.malformed,
    )


def _parse_log(raw: Mapping[str, Any], scope: dict[str, Any], resource: dict[str, Any]) -> Record:
    """Parse a log record, or an event of a span."""
    fields = _Fields(raw)
    attributes = fields.pop_attributes()
    name = fields.pop_text("eventName", "event_name", "name")
    return Record(
        "log",
        fields.pop_id("traceId", "trace_id"),
        fields.pop_id("spanId", "span_id"),
        None,
        name or str(attributes.get("event.name") or ""),
        fields.pop_time("timeUnixNano", "time_unix_nano"),
        fields.pop_time("observedTimeUnixNano", "observed_time_unix_nano"),
        attributes,
        (),
        None,
        parse_value(fields.pop("body")),
        scope,
        resource,
        fields.rest,
        fields.malformed,
    )


def _simplify_attributes(raw: Any) -> Any:
    if not isinstance(raw, dict) or "attributes" not in raw:
        return raw
    attributes, malformed = parse_attributes(raw["attributes"])
    return {**raw, "attributes": attributes, **({"odd": malformed} if malformed else {})}


def parse_attributes(raw: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return attributes by name, and malformed attributes; if a name is repeated, the last value wins."""
    if isinstance(raw, dict):
        # Some exporters write a mapping.
        return {name: parse_value(value) for name, value in raw.items()}, []
    parsed: dict[str, Any] = {}
    malformed: list[Any] = [] if raw is None or isinstance(raw, list) else [raw]
    for item in as_list(raw):
        entry = as_mapping(item)
        name = entry.get("key")
        if not isinstance(name, str) or entry.keys() - {"key", "value"}:
            malformed.append(item)
            continue
        value = parse_value(entry.get("value"))
        if name in parsed and parsed[name] != value:
            malformed.append({"key": name, "value": parsed[name]})
        parsed[name] = value
    return parsed, malformed


def parse_value(raw: Any) -> Any:
    """Return an OTLP/JSON value as plain data, and any other value unchanged."""
    if not isinstance(raw, dict) or len(raw) != 1:
        return None if raw == {} else raw
    ((kind, value),) = raw.items()
    head, *parts = kind.split("_")
    kind = head + "".join(part.capitalize() for part in parts)
    if kind in _SCALARS:
        return value
    if kind == "intValue":
        return value if (number := _to_int(value)) is None else number
    items = as_mapping(value).get("values", [] if value == {} else None)
    if not isinstance(items, list) or as_mapping(value).keys() - {"values"}:
        return raw
    if kind == "arrayValue":
        return [parse_value(item) for item in items]
    if kind == "kvlistValue":
        parsed, malformed = parse_attributes(items)
        return raw if malformed else parsed
    return raw


def _to_int(raw: Any) -> int | None:
    """Return a 64-bit integer, which JSON may contain as a string."""
    if isinstance(raw, str) and raw.removeprefix("-").isdecimal() and len(raw) <= 20:
        raw = int(raw)
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    return raw if -_MAX_INT <= raw <= _MAX_INT else None
