"""Spans that the program emits while a trial runs become events of the trial's session."""

from __future__ import annotations

import threading
import weakref
from contextvars import ContextVar
from typing import Any, Protocol

from proctor.records.session import Event, Session
from proctor.sessions import current as sessions
from proctor.sessions.genai.spans import SpanCall, SpanData, SpanEvent, read_span
from proctor.sessions.genai.transcript import Transcript

# The name under which our own spans are emitted; they are never heard.
SCOPE = "proctor"

Key = tuple[int, int]


class SpanCounts(Protocol):
    """What a run counts of the spans it hears."""

    late: int
    unreadable: int


class TrialRecorder:
    """What is heard during one trial: its spans, and the sessions that they go into.

    Until the target is done every session is open; from then on those of evaluators at work.
    """

    def __init__(self, tally: SpanCounts) -> None:
        self.tally = tally
        self._lock = threading.Lock()
        self._transcripts: dict[int, tuple[Session, Transcript]] = {}
        self._parents: dict[Key, Key | None] = {}
        self._told: dict[tuple[Key, str], bool] = {}
        self._put: dict[int, Event] = {}
        self._judges: dict[int, Session] | None = None
        self._is_over = False

    def begin(self, key: Key, parent: Key | None) -> None:
        """A span has begun."""
        self._parents[key] = parent

    def end(self, key: Key, session: Session, span: Any) -> None:
        """A span has ended: what it tells goes into the session in which it began."""
        try:
            reading = read_span(read_sdk_span(span))
            if reading is not None:
                with self._lock:
                    self._take(key, session, reading)
        except Exception:
            # The span is somebody else's, and so is the call that ended it.
            self.tally.unreadable += 1

    def begin_judging(self, session: Session | None) -> None:
        """An evaluator begins, with a session of its own if it may ask models."""
        with self._lock:
            if self._judges is None:
                self._judges = {}
            if session is not None:
                self._judges[id(session)] = session

    def end_judging(self, session: Session | None) -> None:
        """The evaluator has spoken."""
        with self._lock:
            if self._judges is not None and session is not None:
                self._judges.pop(id(session), None)

    def over(self) -> None:
        """The trial is over: nothing goes into its sessions any more."""
        with self._lock:
            self._is_over = True

    def came_in(self, event: Event) -> bool:
        """True if the event was put into a session from here."""
        return id(event) in self._put

    def _take(self, key: Key, session: Session, reading: SpanCall) -> None:
        judges = self._judges
        if self._is_over or (judges is not None and id(session) not in judges):
            self.tally.late += 1
            return
        what = f"tool {reading.call.name}" if reading.call_type == "tool" else reading.call_type  # type: ignore[union-attr]
        inner = self._told.get((key, what))
        if inner:
            return
        _, transcript = self._transcripts.setdefault(id(session), (session, Transcript()))
        events: list[Event] = [*transcript.add(reading.inputs, reading.outputs)]
        self._tell_parents(key, what, had_messages=bool(events) or reading.call_type != "model")
        if inner is None:
            events.append(reading.call)
        for event in events:
            self._put[id(event)] = event
            session.append(event)

    def _tell_parents(self, key: Key, what: str, *, had_messages: bool) -> None:
        """A framework's span around a client's tells of the same call, and must not count twice."""
        parent = self._parents.get(key)
        while parent is not None:
            self._told[parent, what] = self._told.get((parent, what), False) or had_messages
            parent = self._parents.get(parent)


current_recorder: ContextVar[TrialRecorder | None] = ContextVar("proctor_hearing", default=None)


class SpanListener:
    """A span processor: hears what begins inside a trial, in any task or thread of it."""

    def __init__(self) -> None:
        self._begun: dict[Key, tuple[TrialRecorder, Session]] = {}

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002
        """Called by the SDK when a span begins."""
        heard, session = current_recorder.get(), sessions.current.get()
        if heard is None or session is None or _scope(span) == SCOPE:
            return
        key, parent = _key(span.context), span.parent
        heard.begin(key, None if parent is None else _key(parent))
        self._begun[key] = heard, session

    def on_end(self, span: Any) -> None:
        """Called by the SDK when a span has ended."""
        begun = self._begun.pop(_key(span.context), None)
        if begun is not None:
            heard, session = begun
            heard.end(_key(span.context), session, span)

    def forget(self, tally: SpanCounts) -> None:
        """Spans of a run that have not ended by now are not waited for."""
        for key, (heard, _) in tuple(self._begun.items()):
            if heard.tally is tally:
                self._begun.pop(key, None)

    def _on_ending(self, span: Any) -> None:
        """Called by newer SDKs just before a span ends."""

    def shutdown(self) -> None:
        """Called by the SDK when its provider is shut down."""
        self._begun = {}

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002
        """Nothing is held back."""
        return True


# A provider cannot be rid of a processor, so each has one of ours for as long as it lives, which
# does nothing where no trial runs. By identity, for some providers have no hash.
_listeners: dict[int, SpanListener] = {}


def get_listener(provider: Any) -> SpanListener:
    """The listener of a tracer provider; it is added when it is first asked for."""
    listener = _listeners.get(id(provider))
    if listener is None:
        listener = _listeners[id(provider)] = SpanListener()
        weakref.finalize(provider, _listeners.pop, id(provider), None).atexit = False
        provider.add_span_processor(listener)
    return listener


def read_sdk_span(span: Any) -> SpanData:
    """A span of the SDK as plain data."""
    began, ended = span.start_time, span.end_time
    failed = span.status.status_code.name == "ERROR"
    events = [SpanEvent(event.name, dict(event.attributes or {})) for event in span.events]
    return SpanData(
        span.name,
        dict(span.attributes or {}),
        tuple(events),
        None if began is None or ended is None else (ended - began) / 1e6,
        (span.status.description or _raised(events)) if failed else None,
    )


def _raised(events: list[SpanEvent]) -> str:
    """What the exception said that a span noted."""
    said = (e.attributes.get("exception.message") for e in events if e.name == "exception")
    return next((str(words) for words in said if words), "")


def _key(context: Any) -> Key:
    return context.trace_id, context.span_id


def _scope(span: Any) -> str | None:
    scope = span.instrumentation_scope
    return None if scope is None else scope.name
