"""OTLP/JSON: spans of models, tools and agents, and log records with what was said.

One trace is one session, and a file may hold many, one document a line or all in one. Spans of a
trace may stand anywhere in a file, so it is read to its end before the first session is given. What
one conversation spread over several traces stays several sessions; each says which conversation it
belongs to, and its messages repeat what came before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from proctor.records.session import CustomEvent, Session
from proctor.sessions.genai.messages import EVENTS, spoken_in
from proctor.sessions.genai.spans import (
    Reading,
    SpanData,
    SpanEvent,
    kind_of,
    operation_of,
    reading_of,
    stands_around,
)
from proctor.sessions.genai.values import decoded, is_known
from proctor.sessions.importers.otlp_wire import Odd, Record, is_document, records_in
from proctor.sessions.importers.shapes import Imported, found_in, stem
from proctor.sessions.importers.trace import (
    Step,
    assemble,
    first_asked,
    last_answer,
    models_in,
    odd_parts_in,
    with_theirs,
)
from proctor.sessions.importers.trace_steps import Held, fold_moments, moment_in, with_instructions

FORMAT = "otlp"
_SCORE = "gen_ai.evaluation.result"
# Events that spans note and that we have heard of.
_NOTED = ("gen_ai.", "exception", "ai.stream.")
_ASKED = ("input.value", "traceloop.entity.input", "langfuse.trace.input", "ai.prompt")
_ANSWERED = ("output.value", "traceloop.entity.output", "langfuse.trace.output")
# What several spans of a trace tell of the whole, under one name of ours.
_ABOUT = {
    "conversation_id": ("gen_ai.conversation.id",),
    "session_id": ("session.id", "langfuse.session.id", "langsmith.trace.session_id"),
    "user_id": ("user.id", "enduser.id", "langfuse.user.id"),
    "tags": ("tag.tags", "langfuse.trace.tags", "langsmith.span.tags"),
}


class Trace:
    """What a file holds of one trace; `line` is where it is first named."""

    def __init__(self, line: int) -> None:
        self.line = line
        self._spans: list[Record] = []
        self._logs: list[Record] = []
        self._known: dict[str, Record] = {}
        self._passed_over: Counter[str] = Counter()

    def add(self, record: Record) -> None:
        """Take a span or a log record; a span that was sent twice is one."""
        if record.kind == "log":
            self._logs.append(record)
        elif record.id is None or record.id not in self._known:
            self._spans.append(record)
            if record.id is not None:
                self._known[record.id] = record
        elif record == self._known[record.id]:
            self._passed_over["span that was sent twice"] += 1
        else:
            # Two that differ: which one is right, nobody can tell.
            self._spans.append(record._replace(id=None))
            self._passed_over["span whose id another has"] += 1

    def imported(self, name: str, source: str, strays: Iterable[Odd]) -> Imported:
        """The session, with everything that was recorded beside it."""
        told, untold = self._said_in_logs()
        records = [*self._spans, *untold]
        steps = [
            self._step(number, record, told.get(record.id, ()) if record.id else ())
            for number, record in enumerate(records)
        ]
        steps = fold_moments(steps)
        steps = with_instructions(steps, (record.attributes for record in records))
        events, places, own, asked = assemble(steps)
        spans = []
        for number, (record, step, place) in enumerate(zip(records, steps, places, strict=True)):
            logs = told.get(record.id, ()) if record.id else ()
            entry = self._entry(record, logs, step.reading, Held(own[number]))
            entry |= {"asked": asked[number]} if asked[number] else {}
            if isinstance(events[place], CustomEvent):
                events[place] = found_in(step.label, entry)
                self._count(step, record)
                entry = {key: entry[key] for key in ("id", "parent", "name") if key in entry}
            spans.append({**entry, "event": place})
        for stray in strays:
            events.append(found_in(*stray))
            self._passed_over[stray.kind] += 1
        self._passed_over.update(odd_parts_in(session := Session(events)))
        return self._sum_up(name, source, session, spans)

    def _said_in_logs(self) -> tuple[dict[str | None, list[Record]], list[Record]]:
        """Log records by the span they belong to; and those whose span is not in the file."""
        told: dict[str | None, list[Record]] = {}
        alone: list[Record] = []
        for log in self._logs:
            if log.id in self._known:
                told.setdefault(log.id, []).append(log)
            elif log.id is not None and log.name.startswith("gen_ai."):
                if log.id not in told:
                    alone.append(log._replace(kind="span of logs"))
                told.setdefault(log.id, []).append(log)
            else:
                alone.append(log)
        return told, alone

    def _step(self, number: int, record: Record, logs: Sequence[Record]) -> Step:
        data = _data(record, logs)
        reading = None if record.kind == "log" else reading_of(data)
        if record.kind == "span of logs" and reading is None:
            reading = _conversation(data)
        began = record.began if record.began is not None else record.ended
        return Step(
            record.id if record.kind != "log" and record.id else number,
            record.parent,
            began,
            _label(record, reading),
            reading,
            moment=moment_in(record.name, record.attributes),
        )

    def _entry(
        self, record: Record, logs: Sequence[Record], reading: Reading | None, held: Held
    ) -> dict[str, Any]:
        """Everything about a record but what was read from it and stands in the session."""
        sources = () if reading is None else reading.sources
        is_said = EVENTS in sources
        self._passed_over["malformed field"] += len(record.odd)
        is_call = record.kind != "log" and kind_of(record.attributes) is not None
        for name in record.attributes if is_call or stands_around(record.attributes) else ():
            if not is_known(name):
                self._passed_over[f"attribute: {_folded(name)}"] += 1
        noted = [*record.events, *(logs if record.kind == "span" else logs[1:])]
        for event in noted:
            self._passed_over["malformed field"] += len(event.odd)
            if not event.name.startswith(_NOTED):
                self._passed_over[f"event: {event.name[:60]}"] += 1
        told = {
            "id": record.id,
            "parent": record.parent,
            "name": record.name,
            "began": record.began,
            "ended": record.ended,
            "attributes": held.lean(record.attributes, sources),
            "body": None if is_said and held.takes(record.body) else record.body,
            "events": [lean for e in noted if (lean := _noted(e, held if is_said else Held(())))],
            "scope": record.scope,
            "odd": record.odd,
        }
        return with_theirs(told, record.rest)

    def _count(self, step: Step, record: Record) -> None:
        """Spans that are no calls, nor stand around any, are not understood."""
        understood = step.reading is not None or stands_around(record.attributes)
        if not understood:
            self._passed_over[step.label] += 1

    def _sum_up(self, name: str, source: str, session: Session, spans: list[dict[str, Any]]) -> Imported:
        began = [r.began for r in (*self._spans, *self._logs) if r.began is not None]
        ended = [r.ended for r in self._spans if r.ended is not None] or began
        known = self._known
        roots = [r for r in self._spans if r.parent is None or r.parent not in known]
        first = min(roots, key=lambda r: r.began or 0, default=None)
        attributes = {} if first is None else first.attributes
        recorded: dict[str, Any] = {
            "title": None if first is None else first.name,
            "started_at": _iso(min(began, default=None)),
            "ended_at": _iso(max(ended, default=None)),
            "latency_ms": max(0, max(ended) - min(began)) / 1e6 if began else None,
            **{ours: self._first_of(names) for ours, names in _ABOUT.items()},
            **models_in(session),
            "scores": self._scores(),
            "resources": _distinct(r.resource for r in (*self._spans, *self._logs)),
            "spans": spans,
        }
        asked, answer = first_asked(session), last_answer(session)
        return Imported(
            name,
            session,
            FORMAT,
            source,
            _told(attributes, _ASKED) if asked is None else asked,
            _told(attributes, _ANSWERED) if answer is None else answer,
            {key: value for key, value in recorded.items() if value not in (None, {}, [], "")},
            {kind: count for kind, count in self._passed_over.items() if count},
        )

    def _first_of(self, names: Sequence[str]) -> Any:
        values = (_told(record.attributes, names) for record in (*self._spans, *self._logs))
        return next((value for value in values if value is not None), None)

    def _scores(self) -> dict[str, Any]:
        """What evaluations said, by their names."""
        noted = [event for span in self._spans for event in span.events]
        found: dict[str, Any] = {}
        for event in (*noted, *self._logs):
            about = event.attributes
            value = about.get("gen_ai.evaluation.score.value")
            if event.name == _SCORE:
                label = about.get("gen_ai.evaluation.score.label")
                name = str(about.get("gen_ai.evaluation.name") or "score")
                found[name] = label if value is None else value
        return found


def _data(record: Record, logs: Sequence[Record]) -> SpanData:
    """A span as the conventions know it, with the log records that were written in it."""
    attributes = dict(record.attributes)
    if record.kind == "span of logs":
        for log in logs:
            attributes |= {k: v for k, v in log.attributes.items() if k != "event.name"}
    events = [_event(event) for event in (*record.events, *logs)]
    took = None
    if record.kind == "span" and record.began is not None and record.ended is not None:
        took = (record.ended - record.began) / 1e6 if record.ended >= record.began else None
    error = record.error if record.error != "" else _raised(events)
    return SpanData(record.name, attributes, tuple(events), took, error)


def _event(record: Record) -> SpanEvent:
    body = record.body if isinstance(record.body, Mapping) else {}
    return SpanEvent(record.name, {**record.attributes, **body})


def _raised(events: Iterable[SpanEvent]) -> str:
    """What the exception said that a span noted."""
    said = (e.attributes.get("exception.message") for e in events if e.name == "exception")
    return next((str(words) for words in said if words), "")


def _conversation(data: SpanData) -> Reading | None:
    """What log records tell of a call whose own span is not here."""
    spoken = spoken_in({}, [(event.name, event.attributes) for event in data.events])
    if not (spoken.asked or spoken.said):
        return None
    return reading_of(SpanData(data.name, {**data.attributes, "gen_ai.operation.name": "chat"}, data.events))


def _label(record: Record, reading: Reading | None) -> str:
    if record.kind == "log":
        return "log record"
    told = operation_of(record.attributes) or (None if reading is None else reading.kind)
    return "span" if told is None else f"span: {told[:60]}"


def _noted(event: Record, held: Held) -> dict[str, Any]:
    """An event of a span as it was, but for what the session holds."""
    is_said = event.name.startswith("gen_ai.") and event.name != _SCORE
    attributes = {
        name: value
        for name, value in event.attributes.items()
        if not (is_said and held.takes_as(name, value))
    }
    told = {
        "name": event.name,
        "at": event.began,
        "observed": event.ended,
        "attributes": attributes,
        "body": None if is_said and held.takes(event.body) else event.body,
        "odd": event.odd,
    }
    return with_theirs(told, event.rest)


def _told(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    found = (decoded(attributes.get(name)) for name in names)
    return next((value for value in found if value not in (None, "")), None)


def _folded(name: str) -> str:
    """Numbered attributes are one kind."""
    return ".".join("*" if part.isdecimal() else part for part in name.split("."))[:80]


def _distinct(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    # The spans of a program share one, which may be long.
    each = {id(one): one for one in found if one}.values()
    return list({repr(one): one for one in each}.values() if len(each) > 1 else each)


def _iso(nanoseconds: int | None) -> str | None:
    if nanoseconds is None:
        return None
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat()


NAME = FORMAT


def looks_like(values: Sequence[Any]) -> bool:
    """True for what OpenTelemetry exports: `resourceSpans`, or `resourceLogs`."""
    return any(map(is_document, values))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The sessions of a file, one for each trace, in the order in which they are first named.

    What belongs to no trace is kept with the first session, and counted there.
    """
    traces: dict[str | None, Trace] = {}
    strays: list[Odd] = []
    lines = 0
    for line, document in values:
        lines += 1
        for found in records_in(document):
            if isinstance(found, Odd):
                strays.append(found)
            elif found.trace is None and found.kind == "log":
                strays.append(Odd("log record", _shown(found)))
            else:
                traces.setdefault(found.trace, Trace(line)).add(found)
    for name, trace in traces.items():
        place = f"{source}:{trace.line}" if lines > 1 else source
        yield trace.imported(name or stem(place), place, strays)
        strays = []
    if strays:
        yield _unread(strays, source)


def _shown(record: Record) -> dict[str, Any]:
    told = record._asdict()
    return {name: value for name, value in told.items() if value not in (None, {}, (), [], "")}


def _unread(strays: Sequence[Odd], source: str) -> Imported:
    """A file in which there is no trace at all."""
    passed_over: dict[str, int] = {}
    for stray in strays:
        passed_over[stray.kind] = passed_over.get(stray.kind, 0) + 1
    events = [found_in(*stray) for stray in strays]
    return Imported(stem(source), Session([*events]), NAME, source, passed_over=passed_over)
