"""OTLP/JSON: spans of models, tools and agents, and log records with messages.

One trace is one session; a file may contain many traces. The spans of a trace may be anywhere in a file, so the whole
file is read first. Traces of one conversation stay separate sessions with the same conversation id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from proctor.records.session import CustomEvent, Session
from proctor.sessions.genai.messages import EVENTS, SpanEvent, read_call_messages
from proctor.sessions.genai.spans import (
    SpanCall,
    SpanData,
    classify_span,
    get_exception_message,
    get_operation,
    is_container_span,
    read_span,
    read_span_error,
)
from proctor.sessions.genai.values import decode_json, is_known_attribute
from proctor.sessions.importers.content_matcher import ContentMatcher, add_instructions, fold_phases, read_phase
from proctor.sessions.importers.imported_session import ImportedSession, default_session_id, wrap_raw_event
from proctor.sessions.importers.otlp_wire import Record, UnknownItem, is_document, parse_document
from proctor.sessions.importers.trace import (
    Step,
    assemble_trace,
    count_unknown_parts,
    find_input_and_output,
    list_models,
    merge_source_fields,
)

NAME = "otlp"
_SCORE = "gen_ai.evaluation.result"
# A log record whose span is not in the file.
_LOG_SPAN = "span of logs"
_KNOWN_EVENTS = ("gen_ai.", "exception", "ai.stream.")
_INPUT = ("input.value", "traceloop.entity.input", "langfuse.trace.input", "ai.prompt")
_OUTPUT = ("output.value", "traceloop.entity.output", "langfuse.trace.output")
# Recorded fields of a trace, and the attributes that contain them.
_TRACE_FIELDS = {
    "conversation_id": ("gen_ai.conversation.id",),
    "session_id": ("session.id", "langfuse.session.id", "langsmith.trace.session_id"),
    "user_id": ("user.id", "enduser.id", "langfuse.user.id"),
    "tags": ("tag.tags", "langfuse.trace.tags", "langsmith.span.tags"),
}


class Trace:
    """The records of one trace; `line` is its first line in the file."""

    def __init__(self, line: int) -> None:
        self.line = line
        self._spans: list[Record] = []
        self._logs: list[Record] = []
        self._by_id: dict[str, Record] = {}
        self._unknown_counts: Counter[str] = Counter()

    def add(self, record: Record) -> None:
        """Add a span or a log record; a span that was sent twice counts once."""
        if record.kind == "log":
            self._logs.append(record)
        elif record.id is None or record.id not in self._by_id:
            self._spans.append(record)
            if record.id is not None:
                self._by_id[record.id] = record
        elif record == self._by_id[record.id]:
            self._unknown_counts["span that was sent twice"] += 1
        else:
            # Two different spans have the same id; either could be the right one.
            self._spans.append(record._replace(id=None))
            self._unknown_counts["span whose id another has"] += 1

    def build(self, name: str, source: str, strays: Iterable[UnknownItem]) -> ImportedSession:
        """Build the session of the trace."""
        logs_by_span, other_logs = self._group_logs()
        records = [*self._spans, *other_logs]
        logs = [logs_by_span.get(record.id, ()) if record.id else () for record in records]
        steps = [_make_step(n, record, logs[n]) for n, record in enumerate(records)]
        steps = add_instructions(fold_phases(steps), (record.attributes for record in records))
        events, indexes, contents, inputs = assemble_trace(steps)
        spans = []
        for n, (record, step, index) in enumerate(zip(records, steps, indexes, strict=True)):
            entry = self._make_entry(record, logs[n], step.span_call, ContentMatcher(contents[n]))
            entry |= {"asked": inputs[n]} if inputs[n] else {}
            if isinstance(events[index], CustomEvent):
                events[index] = wrap_raw_event(step.label, entry)
                if step.span_call is None and not is_container_span(record.attributes):
                    self._unknown_counts[step.label] += 1
                entry = {key: entry[key] for key in ("id", "parent", "name") if key in entry}
            spans.append({**entry, "event": index})
        for stray in strays:
            events.append(wrap_raw_event(*stray))
            self._unknown_counts[stray.kind] += 1
        self._unknown_counts.update(count_unknown_parts(session := Session(events)))
        return self._make_session(name, source, session, spans)

    def _group_logs(self) -> tuple[dict[str | None, list[Record]], list[Record]]:
        """Return the log records by span, and the records whose span is not in the file."""
        by_span: dict[str | None, list[Record]] = {}
        other_logs: list[Record] = []
        for log in self._logs:
            if log.id in self._by_id:
                by_span.setdefault(log.id, []).append(log)
            elif log.id is not None and log.name.startswith("gen_ai."):
                if log.id not in by_span:
                    other_logs.append(log._replace(kind=_LOG_SPAN))
                by_span.setdefault(log.id, []).append(log)
            else:
                other_logs.append(log)
        return by_span, other_logs

    def _make_entry(
        self, record: Record, logs: Sequence[Record], span_call: SpanCall | None, matcher: ContentMatcher
    ) -> dict[str, Any]:
        """Return the fields of a record without the content that the session contains."""
        sources = () if span_call is None else span_call.sources
        has_events = EVENTS in sources
        self._unknown_counts["malformed field"] += len(record.malformed)
        is_call = record.kind != "log" and classify_span(record.attributes) is not None
        for name in record.attributes if is_call or is_container_span(record.attributes) else ():
            if not is_known_attribute(name):
                folded = ".".join("*" if part.isdecimal() else part for part in name.split("."))[:80]
                self._unknown_counts[f"attribute: {folded}"] += 1
        events = [*record.events, *(logs if record.kind == "span" else logs[1:])]
        for event in events:
            self._unknown_counts["malformed field"] += len(event.malformed)
            if not event.name.startswith(_KNOWN_EVENTS):
                self._unknown_counts[f"event: {event.name[:60]}"] += 1
        event_matcher = matcher if has_events else ContentMatcher(())
        fields = {
            "id": record.id,
            "parent": record.parent,
            "name": record.name,
            "began": record.start,
            "ended": record.end,
            "attributes": matcher.strip_content(record.attributes, sources),
            "body": None if has_events and matcher.consume(record.body) else record.body,
            "events": [entry for item in events if (entry := _make_event_entry(item, event_matcher))],
            "scope": record.scope,
            "odd": record.malformed,
        }
        return merge_source_fields(fields, record.rest)

    def _make_session(self, name: str, source: str, session: Session, spans: list[dict[str, Any]]) -> ImportedSession:
        records = (*self._spans, *self._logs)
        starts = [r.start for r in records if r.start is not None]
        ends = [r.end for r in self._spans if r.end is not None] or starts
        roots = [r for r in self._spans if r.parent is None or r.parent not in self._by_id]
        first = min(roots, key=lambda r: r.start or 0, default=None)
        attributes = {} if first is None else first.attributes
        trace_fields = {
            field: next((item for r in records if (item := _find_value(r.attributes, names)) is not None), None)
            for field, names in _TRACE_FIELDS.items()
        }
        recorded: dict[str, Any] = {
            "title": None if first is None else first.name,
            "started_at": _to_iso(min(starts, default=None)),
            "ended_at": _to_iso(max(ends, default=None)),
            "latency_ms": max(0, max(ends) - min(starts)) / 1e6 if starts else None,
            **trace_fields,
            **list_models(session),
            "scores": self._read_scores(),
            "resources": _deduplicate(r.resource for r in records),
            "spans": spans,
        }
        first_input, last_output = find_input_and_output(session)
        return ImportedSession(
            name,
            session,
            NAME,
            source,
            _find_value(attributes, _INPUT) if first_input is None else first_input,
            _find_value(attributes, _OUTPUT) if last_output is None else last_output,
            {key: value for key, value in recorded.items() if value not in (None, {}, [], "")},
            {kind: count for kind, count in self._unknown_counts.items() if count},
            error=_find_last_error(roots),
        )

    def _read_scores(self) -> dict[str, Any]:
        scores: dict[str, Any] = {}
        for event in (*(event for span in self._spans for event in span.events), *self._logs):
            if event.name == _SCORE:
                fields = event.attributes
                value = fields.get("gen_ai.evaluation.score.value")
                label = fields.get("gen_ai.evaluation.score.label")
                name = str(fields.get("gen_ai.evaluation.name") or "score")
                scores[name] = label if value is None else value
        return scores


def _find_last_error(roots: Sequence[Record]) -> str | None:
    """Return the error of the outermost span that ended last; errors before it, and of single tools, ended nothing."""
    spans = [span for span in roots if classify_span(span.attributes) != "tool"]
    last = max(spans, key=lambda span: span.end or span.start or 0, default=None)
    return None if last is None else read_span_error(_to_span_data(last, ()))


def _make_step(number: int, record: Record, logs: Sequence[Record]) -> Step:
    data = _to_span_data(record, logs)
    span_call = None if record.kind == "log" else read_span(data)
    if record.kind == _LOG_SPAN and span_call is None:
        span_call = _read_log_messages(data)
    label = "log record"
    if record.kind != "log":
        operation = get_operation(record.attributes) or (span_call.call_type if span_call else None)
        label = "span" if operation is None else f"span: {operation[:60]}"
    return Step(
        record.id if record.kind != "log" and record.id else number,
        record.parent,
        record.start if record.start is not None else record.end,
        label,
        span_call,
        phase=read_phase(record.name, record.attributes),
    )


def _to_span_data(record: Record, logs: Sequence[Record]) -> SpanData:
    attributes = dict(record.attributes)
    if record.kind == _LOG_SPAN:
        for log in logs:
            attributes |= {k: v for k, v in log.attributes.items() if k != "event.name"}
    events = []
    for event in (*record.events, *logs):
        body = event.body if isinstance(event.body, Mapping) else {}
        events.append(SpanEvent(event.name, {**event.attributes, **body}))
    duration = None
    if record.kind == "span" and record.start is not None and record.end is not None and record.end >= record.start:
        duration = (record.end - record.start) / 1e6
    error = record.error if record.error != "" else get_exception_message(events)
    return SpanData(record.name, attributes, tuple(events), duration, error)


def _read_log_messages(data: SpanData) -> SpanCall | None:
    """Read the messages in log records of a call whose span is not in the file."""
    messages = read_call_messages({}, data.events)
    if not (messages.inputs or messages.outputs):
        return None
    return read_span(SpanData(data.name, {**data.attributes, "gen_ai.operation.name": "chat"}, data.events))


def _make_event_entry(event: Record, matcher: ContentMatcher) -> dict[str, Any]:
    has_content = event.name.startswith("gen_ai.") and event.name != _SCORE
    attributes = {
        name: value
        for name, value in event.attributes.items()
        if not (has_content and matcher.consume_field(name, value))
    }
    fields = {
        "name": event.name,
        "at": event.start,
        "observed": event.end,
        "attributes": attributes,
        "body": None if has_content and matcher.consume(event.body) else event.body,
        "odd": event.malformed,
    }
    return merge_source_fields(fields, event.rest)


def _find_value(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    values = (decode_json(attributes.get(name)) for name in names)
    return next((value for value in values if value not in (None, "")), None)


def _deduplicate(resources: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    # The spans of a program share one resource, which may be long.
    distinct = {id(resource): resource for resource in resources if resource}.values()
    return list({repr(item): item for item in distinct}.values() if len(distinct) > 1 else distinct)


def _to_iso(nanoseconds: int | None) -> str | None:
    if nanoseconds is None:
        return None
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat()


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for OpenTelemetry exports: `resourceSpans` or `resourceLogs`."""
    return any(map(is_document, values))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file, one per trace, in order of their first record.

    Records without a trace go to the first session and are counted there.
    """
    traces: dict[str | None, Trace] = {}
    strays: list[UnknownItem] = []
    line_count = 0
    for line, document in values:
        line_count += 1
        for record in parse_document(document):
            if isinstance(record, UnknownItem):
                strays.append(record)
            elif record.trace is None and record.kind == "log":
                names = {"start": "began", "end": "ended", "malformed": "odd"}
                fields = ((names.get(name, name), value) for name, value in record._asdict().items())
                data = {name: value for name, value in fields if value not in (None, {}, (), [], "")}
                strays.append(UnknownItem("log record", data))
            else:
                traces.setdefault(record.trace, Trace(line)).add(record)
    for name, trace in traces.items():
        location = f"{source}:{trace.line}" if line_count > 1 else source
        yield trace.build(name or default_session_id(location), location, strays)
        strays = []
    if strays:
        unknown_counts = dict(Counter(stray.kind for stray in strays))
        session = Session([wrap_raw_event(*stray) for stray in strays])
        yield ImportedSession(default_session_id(source), session, NAME, source, unknown_parts=unknown_counts)
