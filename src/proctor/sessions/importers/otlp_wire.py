"""OTLP/JSON as exporters and collectors write it becomes plain spans and log records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records.sample import kind_of
from proctor.sessions.genai.values import is_too_deep
from proctor.sessions.importers.chronicle import beside
from proctor.sessions.importers.shapes import items, mapping, without

# Each list with what it holds: resources, scopes, records. Older writers have other words.
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
_LARGEST = 2**63 - 1
_PLAIN = ("stringValue", "boolValue", "bytesValue")


class Record(NamedTuple):
    """A span, or a log record; times are in nanoseconds since 1970.

    `rest` is what else stood there, `odd` what is in no shape that OTLP has.
    """

    kind: str
    trace: str | None
    id: str | None
    parent: str | None
    name: str
    began: int | None
    ended: int | None
    attributes: dict[str, Any]
    events: tuple[Record, ...]
    error: str | None
    body: Any
    scope: dict[str, Any]
    resource: dict[str, Any]
    rest: dict[str, Any]
    odd: list[Any]


class Odd(NamedTuple):
    """Something that is no record, with what to call it."""

    kind: str
    data: Any


def is_document(value: Any) -> bool:
    """True if a JSON value is what OTLP sends: spans, log records or metrics.

    >>> is_document({"resourceSpans": []}), is_document({"spans": []})
    (True, False)
    """
    return any(isinstance(mapping(value).get(name), list) for name in (*_RESOURCES, *_METRICS))


def records_in(document: Any) -> Iterator[Record | Odd]:
    """All spans and log records of a document, and whatever else stands in it."""
    if not isinstance(document, dict) or is_too_deep(document):
        yield Odd("document", as_it_was(document))
        return
    for name, value in document.items():
        kind = _RESOURCES.get(name)
        if kind is None or not isinstance(value, list):
            yield Odd("metrics" if name in _METRICS else f"document: {name[:60]}", value)
            continue
        for resource in value:
            yield from _of_resource(resource, kind)


def as_it_was(value: Any) -> Any:
    """A value as it is, or as JSON in a text where it is nested too deep to be handled.

    >>> as_it_was([1])
    [1]
    """
    if not is_too_deep(value):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return f"({kind_of(value)}, nested too deep to be written down)"


def _of_resource(given: Any, kind: str) -> Iterator[Record | Odd]:
    found = mapping(given)
    scopes, name = _first_list(found, _SCOPES[kind])
    about = found.get("resource") or {}
    if not scopes or not isinstance(about, dict):
        yield Odd("resource", given)
        return
    attributes, odd = attributes_in(about.get("attributes"))
    around = without(found, name, "resource")
    resource = beside(beside(attributes, without(about, "attributes")), around)
    records = [record for scope in scopes for record in _of_scope(scope, kind, resource)]
    if not any(isinstance(record, Record) for record in records):
        # Nothing would bear the resource.
        yield Odd("resource", given)
        return
    if odd:
        yield Odd("resource attribute", odd)
    yield from records


def _of_scope(given: Any, kind: str, resource: dict[str, Any]) -> Iterator[Record | Odd]:
    found = mapping(given)
    records, name = _first_list(found, _RECORDS[kind])
    if not any(isinstance(record, dict) for record in records):
        yield Odd("scope", given)
        return
    about, key = next(((found[key], key) for key in _SCOPE if key in found), ({}, ""))
    own = _with_plain_attributes(about) if isinstance(about, dict) else {"scope": about}
    scope = beside(own, without(found, name, key))
    for record in records:
        if isinstance(record, dict):
            yield (_span if kind == "span" else _log)(record, scope, resource)
        else:
            yield Odd(kind, record)


def _first_list(found: Mapping[str, Any], names: Sequence[str]) -> tuple[Sequence[Any], str]:
    name = next((name for name in names if isinstance(found.get(name), list)), "")
    return items(found.get(name)), name


class _Fields:
    """The fields of one record, each taken once, under its name or the one with underscores."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.rest = dict(given)
        self.odd: list[Any] = []

    def take(self, *names: str) -> Any:
        return next((self.rest.pop(name) for name in names if name in self.rest), None)

    def id(self, *names: str) -> str | None:
        found = self.take(*names)
        if found is None or found in _NO_ID:
            return None
        return self._text(names[0], found)

    def name(self, *names: str) -> str:
        found = self.take(*names)
        return "" if found is None else self._text(names[0], found)

    def _text(self, name: str, found: Any) -> str:
        if isinstance(found, str):
            return found
        self.odd.append({name: found})
        return str(found)[:60]

    def time(self, *names: str) -> int | None:
        given = self.take(*names)
        found = _whole(given)
        if found is None and given is not None:
            self.odd.append({names[0]: given})
        # Zero is how a writer says that it has none.
        return found or None

    def attributes(self) -> dict[str, Any]:
        found, odd = attributes_in(self.take("attributes"))
        self.odd += odd
        return found


def _span(given: Mapping[str, Any], scope: dict[str, Any], resource: dict[str, Any]) -> Record:
    fields = _Fields(given)
    events = fields.take("events")
    for event in items(events):
        if not isinstance(event, dict):
            fields.odd.append(event)
    if events is not None and not isinstance(events, list):
        fields.odd.append(events)
    links = fields.take("links")
    if links:
        fields.rest["links"] = [_with_plain_attributes(link) for link in items(links)] or links
    status = mapping(given.get("status"))
    return Record(
        "span",
        fields.id("traceId", "trace_id"),
        fields.id("spanId", "span_id"),
        fields.id("parentSpanId", "parent_span_id"),
        fields.name("name"),
        fields.time("startTimeUnixNano", "start_time_unix_nano"),
        fields.time("endTimeUnixNano", "end_time_unix_nano"),
        fields.attributes(),
        tuple(_log(event, {}, {}) for event in items(events) if isinstance(event, dict)),
        str(status.get("message") or "") if status.get("code") in _FAILED else None,
        None,
        scope,
        resource,
        {key: value for key, value in fields.rest.items() if value != {}},
        fields.odd,
    )


def _log(given: Mapping[str, Any], scope: dict[str, Any], resource: dict[str, Any]) -> Record:
    """A log record, or an event of a span, which is the same with a name."""
    fields = _Fields(given)
    attributes = fields.attributes()
    own = fields.name("eventName", "event_name", "name")
    return Record(
        "log",
        fields.id("traceId", "trace_id"),
        fields.id("spanId", "span_id"),
        None,
        own or str(attributes.get("event.name") or ""),
        fields.time("timeUnixNano", "time_unix_nano"),
        fields.time("observedTimeUnixNano", "observed_time_unix_nano"),
        attributes,
        (),
        None,
        value_of(fields.take("body")),
        scope,
        resource,
        fields.rest,
        fields.odd,
    )


def _with_plain_attributes(given: Any) -> Any:
    if not isinstance(given, dict) or "attributes" not in given:
        return given
    attributes, odd = attributes_in(given["attributes"])
    return {**given, "attributes": attributes, **({"odd": odd} if odd else {})}


def attributes_in(given: Any) -> tuple[dict[str, Any], list[Any]]:
    """Attributes by name, and what among them is none; of two with one name the later holds.

    >>> attributes_in([{"key": "n", "value": {"intValue": "3"}}, 7])
    ({'n': 3}, [7])
    """
    if isinstance(given, dict):
        # Some tools write them as a mapping.
        return {name: value_of(value) for name, value in given.items()}, []
    found: dict[str, Any] = {}
    odd: list[Any] = [] if given is None or isinstance(given, list) else [given]
    for item in items(given):
        about = mapping(item)
        name = about.get("key")
        if not isinstance(name, str) or about.keys() - {"key", "value"}:
            odd.append(item)
            continue
        value = value_of(about.get("value"))
        if name in found and found[name] != value:
            odd.append({"key": name, "value": found[name]})
        found[name] = value
    return found, odd


def value_of(given: Any) -> Any:
    """A value of OTLP/JSON as plain data; what is none stays as it is.

    >>> value_of({"arrayValue": {"values": [{"intValue": "3"}, {"boolValue": True}]}})
    [3, True]
    >>> value_of({"kvlistValue": {"values": [{"key": "a", "value": {"doubleValue": 0.5}}]}})
    {'a': 0.5}
    """
    if not isinstance(given, dict) or len(given) != 1:
        return None if given == {} else given
    ((kind, value),) = given.items()
    head, *words = kind.split("_")
    kind = head + "".join(word.capitalize() for word in words)
    if kind in _PLAIN:
        return value
    if kind == "intValue":
        return value if (whole := _whole(value)) is None else whole
    if kind == "doubleValue":
        return value
    inner = mapping(value).get("values", [] if value == {} else None)
    if not isinstance(inner, list) or mapping(value).keys() - {"values"}:
        return given
    if kind == "arrayValue":
        return [value_of(item) for item in inner]
    if kind == "kvlistValue":
        found, odd = attributes_in(inner)
        return given if odd else found
    return given


def _whole(given: Any) -> int | None:
    """A whole number of 64 bits, which JSON may hold as text."""
    if isinstance(given, str) and given.removeprefix("-").isdecimal() and len(given) <= 20:
        given = int(given)
    if not isinstance(given, int) or isinstance(given, bool):
        return None
    return given if -_LARGEST <= given <= _LARGEST else None
