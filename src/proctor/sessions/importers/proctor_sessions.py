"""Sessions that Proctor wrote: in results, recordings and session files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import CustomEvent, Event, Message, ModelCall, Session, ToolCall
from proctor.sessions.importers.imported_session import (
    ImportedSession,
    default_session_id,
    describe_type,
    flatten_lists,
    flatten_values,
)
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text, omit_keys, remaining_fields
from proctor.sessions.importers.session_builder import SessionBuilder, find_first_text, group_items, merge_distinct

NAME = "proctor"

_TAGS = ("message", "tool_call", "model_call", "custom")
_IDS = ("id", "session_id")
_EVENT_TYPES: Any = Message | ToolCall | ModelCall | CustomEvent


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for objects that are or contain a session with events."""
    return any(_find_session(value) is not None for value in flatten_values(values))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file; other values go to the next or previous session."""
    items = (
        (value, None if _find_any_session(value) is None else f"{source}:{line}")
        for line, value in flatten_lists(values)
    )
    for pending in group_items(items, source, lambda _: False):
        yield _add_strays(_build(pending.value, pending.location), pending.strays)


def _find_any_session(value: Any) -> Mapping[str, Any] | None:
    """Return the session in an object; a session without events may lack the key `events`."""
    session = _find_session(value)
    outer = as_mapping(value)
    candidates = (outer.get("session"), as_mapping(outer.get("trial")).get("session"))
    return session if session is not None else next((item for item in candidates if item == {}), None)


def _find_session(value: Any) -> Mapping[str, Any] | None:
    """Return the session in an object: the object itself, its `session`, or the session of its trial."""
    outer = as_mapping(value)
    inner = as_mapping(outer.get("session"))
    trial_session = as_mapping(as_mapping(outer.get("trial")).get("session"))
    for session in (outer, inner, trial_session):
        if any(as_mapping(event).get("type") in _TAGS for event in as_list(session.get("events"))):
            return session
    # An empty list of events counts only under the key of a session.
    return next((session for session in (inner, trial_session) if session.get("events") == []), None)


def _build(value: Any, location: str) -> ImportedSession:
    session = _find_any_session(value)
    if session is None:
        return SessionBuilder().build(None, NAME, location)
    outer = value if session is not value else {}
    trial = as_mapping(outer.get("trial"))
    sample = as_mapping(trial.get("sample"))
    events, unknown_counts = _read_events(session)
    ids = (as_text(item.get(key)) for item in (outer, sample, session) for key in _IDS)
    recorded_id = next(filter(None, ids), None)
    name = recorded_id or default_session_id(location)
    id_fields = dict.fromkeys(_IDS, name)
    read_fields = {"output": outer.get("output"), "input": outer.get("input"), "format": NAME} | id_fields
    rest = remaining_fields(omit_keys(outer, "session", "trial", "recorded"), read_fields)
    read_session_fields = {"events": session.get("events")} | id_fields
    recorded = merge_distinct(rest, remaining_fields(session, read_session_fields)) | _get_rest(outer, session)
    previous = outer.get("recorded")
    if previous is not None:
        extra = previous if isinstance(previous, dict) else {"recorded": previous}
        recorded = merge_distinct(recorded, extra)
    first_input = outer.get("input", sample.get("input"))
    last_output = outer.get("output", trial.get("output"))
    return ImportedSession(
        name,
        Session(events),
        NAME,
        location,
        find_first_text(events, "user") if first_input is None else first_input,
        find_first_text(events[::-1], "assistant") if last_output is None else last_output,
        recorded,
        unknown_counts,
        is_named=bool(recorded_id) and not session.get("events"),
        error=_read_error(outer, trial),
    )


def _read_error(outer: Mapping[str, Any], trial: Mapping[str, Any]) -> str | None:
    """Return the error of an imported session, or of the trial that the session belongs to."""
    failure = as_mapping(trial.get("error"))
    text = ": ".join(str(failure[key]) for key in ("kind", "message") if failure.get(key))
    return as_text(outer.get("error")) or text or None


def _get_rest(outer: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    trial, outer_session = outer.get("trial"), outer.get("session")
    if as_mapping(trial).get("session") is session:
        trial = omit_keys(as_mapping(trial), "session")
    rest = {"trial": trial, "session": None if outer_session is session else outer_session}
    return {name: value for name, value in rest.items() if value not in (None, {})}


def _read_events(session: Mapping[str, Any]) -> tuple[list[Event], dict[str, int]]:
    events: list[Event] = []
    unknown_counts: Counter[str] = Counter()
    for raw in as_list(session.get("events")):
        try:
            events.append(msgspec.convert(raw, _EVENT_TYPES))
        except (msgspec.ValidationError, RecursionError):
            unknown_counts[kind := describe_type(raw)] += 1
            events.append(CustomEvent(kind, raw))
    return events, dict(unknown_counts)


def _add_strays(imported: ImportedSession, strays: Sequence[Any]) -> ImportedSession:
    if not strays:
        return imported
    unknown_counts = Counter(imported.unknown_parts) + Counter(map(describe_type, strays))
    events = [CustomEvent(describe_type(stray), stray) for stray in strays]
    session = Session([*imported.session.events, *events])
    return msgspec.structs.replace(imported, session=session, unknown_parts=dict(unknown_counts))
