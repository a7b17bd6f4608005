"""Add the spans that a program emits during a trial to the trial's session."""

from __future__ import annotations

import threading
import weakref
from contextvars import ContextVar
from typing import Any, Protocol

from proctor.records.session import Event, Session, ToolCall
from proctor.sessions import current as sessions
from proctor.sessions.genai.messages import SpanEvent
from proctor.sessions.genai.spans import SpanCall, SpanData, get_exception_message, read_span
from proctor.sessions.genai.transcript import Transcript
from proctor.sessions.telemetry.evaluation_events import JudgedSpan

# The scope of Proctor's own spans, which are not recorded.
SCOPE = "proctor"

Key = tuple[int, int]


class SpanCounts(Protocol):
    """Counts the spans of a run that no session contains."""

    late_spans: int
    unreadable_spans: int


class TrialRecorder:
    """Records the spans of one trial in its sessions.

    All sessions are open until the target ends; after that, only the sessions of running evaluators are open.
    """

    def __init__(self, counts: SpanCounts) -> None:
        self.counts = counts
        self._lock = threading.Lock()
        self._transcripts: dict[int, tuple[Session, Transcript]] = {}
        self._parents: dict[Key, Key | None] = {}
        # Maps an outer span and a call name to whether the inner span of the same call had messages.
        self._inner_calls: dict[tuple[Key, str], bool] = {}
        # Events by id; holding the event keeps its id from being reused.
        self._recorded_events: dict[int, Event] = {}
        self._evaluator_sessions: dict[int, Session] | None = None
        self._is_over = False
        # The target's last operation to end that is not a tool: an outer operation ends after its parts.
        self.judged_span: JudgedSpan | None = None

    def start_span(self, key: Key, parent: Key | None) -> None:
        self._parents[key] = parent

    def end_span(self, key: Key, session: Session, span: Any) -> None:
        """Record a finished span in the session in which it started."""
        try:
            if self._evaluator_sessions is None:
                self.judged_span = _read_judged_span(span) or self.judged_span
            span_call = read_span(read_sdk_span(span))
            if span_call is not None:
                with self._lock:
                    self._record(key, session, span_call)
        except Exception:
            # An error here must not reach the program that ended the span.
            self.counts.unreadable_spans += 1

    def start_evaluation(self, session: Session | None) -> None:
        """Open the session of an evaluator, if it has a separate one."""
        with self._lock:
            if self._evaluator_sessions is None:
                self._evaluator_sessions = {}
            if session is not None:
                self._evaluator_sessions[id(session)] = session

    def end_evaluation(self, session: Session | None) -> None:
        with self._lock:
            if self._evaluator_sessions is not None and session is not None:
                self._evaluator_sessions.pop(id(session), None)

    def close(self) -> None:
        with self._lock:
            self._is_over = True

    def has_recorded(self, event: Event) -> bool:
        return id(event) in self._recorded_events

    def _record(self, key: Key, session: Session, span_call: SpanCall) -> None:
        open_sessions = self._evaluator_sessions
        if self._is_over or (open_sessions is not None and id(session) not in open_sessions):
            self.counts.late_spans += 1
            return
        call, name = span_call.call, str(span_call.call_type)
        if isinstance(call, ToolCall):
            name = f"tool {call.name}"
        had_messages = self._inner_calls.get((key, name))
        if had_messages:
            return
        _, transcript = self._transcripts.setdefault(id(session), (session, Transcript()))
        events: list[Event] = [*transcript.add(span_call.inputs, span_call.outputs)]
        self._mark_parents(key, name, has_messages=bool(events) or span_call.call_type != "model")
        if had_messages is None:
            events.append(call)
        for event in events:
            self._recorded_events[id(event)] = event
            session.append(event)

    def _mark_parents(self, key: Key, name: str, *, has_messages: bool) -> None:
        """Mark outer spans: a framework's span around a client's span describes the same call."""
        parent = self._parents.get(key)
        while parent is not None:
            self._inner_calls[parent, name] = self._inner_calls.get((parent, name), False) or has_messages
            parent = self._parents.get(parent)


current_recorder: ContextVar[TrialRecorder | None] = ContextVar("proctor_recorder", default=None)


class SpanListener:
    """A span processor that passes spans to the recorder of their trial."""

    def __init__(self) -> None:
        self._open: dict[Key, tuple[TrialRecorder, Session]] = {}

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002
        """Handle the start of a span; called by the SDK."""
        recorder, session = current_recorder.get(), sessions.current_session()
        scope = span.instrumentation_scope
        if recorder is None or session is None or (scope is not None and scope.name == SCOPE):
            return
        key, parent = _get_key(span.context), span.parent
        recorder.start_span(key, None if parent is None else _get_key(parent))
        self._open[key] = recorder, session

    def on_end(self, span: Any) -> None:
        key = _get_key(span.context)
        if (entry := self._open.pop(key, None)) is not None:
            recorder, session = entry
            recorder.end_span(key, session, span)

    def drop_open_spans(self, counts: SpanCounts) -> None:
        """Drop the open spans of a run."""
        for key, (recorder, _) in tuple(self._open.items()):
            if recorder.counts is counts:
                self._open.pop(key, None)

    def _on_ending(self, span: Any) -> None:
        """Handle the end of a span; newer SDKs call it just before the span ends."""

    def shutdown(self) -> None:
        self._open = {}

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002
        """Do nothing, because the listener has no buffer; called by the SDK."""
        return True


# One listener per provider, because providers cannot remove a processor. Keyed by id, because some providers are not
# hashable.
_listeners: dict[int, SpanListener] = {}


def get_listener(provider: Any) -> SpanListener:
    """Get the listener of a tracer provider; add it on first use."""
    listener = _listeners.get(id(provider))
    if listener is None:
        listener = _listeners[id(provider)] = SpanListener()
        weakref.finalize(provider, _listeners.pop, id(provider), None).atexit = False
        provider.add_span_processor(listener)
    return listener


def read_sdk_span(span: Any) -> SpanData:
    start, end = span.start_time, span.end_time
    has_failed = span.status.status_code.name == "ERROR"
    events = [SpanEvent(event.name, dict(event.attributes or {})) for event in span.events]
    return SpanData(
        span.name,
        dict(span.attributes or {}),
        tuple(events),
        None if start is None or end is None else (end - start) / 1e6,
        (span.status.description or get_exception_message(events)) if has_failed else None,
    )


def _read_judged_span(span: Any) -> JudgedSpan | None:
    """Return the span of a GenAI operation other than a tool or an embedding; None for other spans."""
    attributes = span.attributes or {}
    if attributes.get("gen_ai.operation.name") in (None, "execute_tool", "embeddings"):
        return None
    response_id = attributes.get("gen_ai.response.id")
    context = span.context
    return JudgedSpan(
        context.trace_id,
        context.span_id,
        int(context.trace_flags),
        response_id if isinstance(response_id, str) else None,
    )


def _get_key(context: Any) -> Key:
    return context.trace_id, context.span_id
