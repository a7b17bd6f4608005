"""Sessions of our own: as they stand in results, recordings and files that Proctor wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import CustomEvent, Event, Message, ModelCall, Session, ToolCall
from proctor.sessions.importers.chronicle import Chronicle, beside
from proctor.sessions.importers.shapes import (
    Imported,
    items,
    left,
    mapping,
    named,
    plain,
    stem,
    text,
    unrolled,
    without,
)

NAME = "proctor"

_TAGS = ("message", "tool_call", "model_call", "custom")
_IDS = ("id", "session_id")
_KINDS: Any = Message | ToolCall | ModelCall | CustomEvent


def looks_like(values: Sequence[Any]) -> bool:
    """True for objects with `events` of ours, be they the session or something around it."""
    return any(_found(value) is not None for _, value in unrolled((0, it) for it in values))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The sessions of a file, one an object; what is none stays with the one before or after."""
    strays: list[Any] = []
    held: tuple[Any, Mapping[str, Any], int, list[Any]] | None = None
    is_only = True
    for line, value in unrolled(values):
        found = _found(value)
        found = _empty(value) if found is None else found
        if found is None:
            strays.append(value)
            continue
        if held is not None:
            is_only = False
            yield _told(held, f"{source}:{held[2]}")
        held, strays = (value, found, line, strays), []
    if held is not None:
        # The only one of a file is named after it.
        yield _with(_told(held, source if is_only else f"{source}:{held[2]}"), strays)
    elif strays:
        yield _with(Chronicle().imported(stem(source), NAME, source), strays)


def _told(held: tuple[Any, Mapping[str, Any], int, list[Any]], place: str) -> Imported:
    value, found, _, strays = held
    return _with(_imported(value, found, place), strays)


def _found(value: Any) -> Mapping[str, Any] | None:
    """The session in an object: itself, its `session`, or that of the trial in a result."""
    outer = mapping(value)
    inner = mapping(outer.get("session"))
    deeper = mapping(mapping(outer.get("trial")).get("session"))
    for place in (outer, inner, deeper):
        if any(mapping(event).get("type") in _TAGS for event in items(place.get("events"))):
            return place
    # A session in which nothing happened is a session too, where its key says that it is one.
    return next((place for place in (inner, deeper) if place.get("events") == []), None)


def _empty(value: Any) -> Mapping[str, Any] | None:
    """The session of an object that was written without any event, which leaves `events` out."""
    outer = mapping(value)
    places = (outer.get("session"), mapping(outer.get("trial")).get("session"))
    return next((place for place in places if place == {}), None)


def _imported(value: Mapping[str, Any], found: Mapping[str, Any], place: str) -> Imported:
    about = value if found is not value else {}
    trial = mapping(about.get("trial"))
    sample = mapping(trial.get("sample"))
    events, over = _events(found)
    own = [text(it.get(key)) for it in (about, sample, found) for key in _IDS]
    own_id = next((id_ for id_ in own if id_ is not None), None)
    name = own_id or stem(place)
    known = {"output": about.get("output"), "input": about.get("input"), "format": NAME}
    ids = dict.fromkeys(_IDS, name)
    outside = left(without(about, "session", "trial", "recorded"), known | ids)
    recorded = beside(outside, left(found, {"events": found.get("events")} | ids))
    recorded |= _around(about, found)
    kept = about.get("recorded")
    if isinstance(kept, dict):
        recorded = beside(recorded, kept)
    elif kept is not None:
        recorded["recorded"] = kept
    asked = about.get("input", sample.get("input"))
    said = about.get("output", trial.get("output"))
    return Imported(
        name,
        Session(events),
        NAME,
        place,
        _first(events, "user") if asked is None else asked,
        _first(events[::-1], "assistant") if said is None else said,
        recorded,
        over,
        is_named=bool(own_id) and not found.get("events"),
    )


def _around(about: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The trial and the session of a result, but for the session that was found there."""
    trial, session = about.get("trial"), about.get("session")
    if mapping(trial).get("session") is found:
        trial = without(mapping(trial), "session")
    told = {"trial": trial, "session": None if session is found else session}
    return {name: it for name, it in told.items() if it not in (None, {})}


def _events(found: Mapping[str, Any]) -> tuple[list[Event], dict[str, int]]:
    """The events, and how many of which kind are not ours."""
    events: list[Event] = []
    over: Counter[str] = Counter()
    for raw in items(found.get("events")):
        try:
            events.append(msgspec.convert(raw, _KINDS))
        except (msgspec.ValidationError, RecursionError):
            kind = named(raw)
            over[kind] += 1
            events.append(CustomEvent(kind, raw))
    return events, dict(over)


def _first(events: Sequence[Event], role: str) -> str | None:
    said = (plain(e.content, role) for e in events if isinstance(e, Message) and e.role == role)
    return next((words for words in said if words), None)


def _with(held: Imported, strays: Sequence[Any]) -> Imported:
    """The session with what stood beside it and is none."""
    if not strays:
        return held
    over = Counter(held.passed_over)
    over.update(map(named, strays))
    more = [CustomEvent(named(stray), stray) for stray in strays]
    session = Session([*held.session.events, *more])
    return msgspec.structs.replace(held, session=session, passed_over=dict(over))
