"""`Session([...])` takes what `append` takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from proctor.errors import ProctorError
from proctor.records.session import CustomEvent, Message, Session, ToolCall


@dataclass
class Retrieval:
    documents: int


EVENTS: list[Any] = [
    Message("user", "hi"),
    ToolCall("search"),
    {"tool": "open", "success": True},
    Retrieval(3),
    "a text",
    None,
]


def test_a_session_made_of_objects_is_the_same_as_one_they_were_appended_to() -> None:
    """Mappings and objects are wrapped either way, and found by their type."""
    made, appended = Session(EVENTS), Session()
    for event in EVENTS:
        appended.append(event)
    assert made == appended
    assert made[Retrieval] == (Retrieval(3),)
    assert made.events[2] == CustomEvent("dict", {"tool": "open", "success": True})
    assert Session(iter(EVENTS)) == Session(tuple(EVENTS)) == made  # type: ignore[arg-type]


def test_the_list_of_the_caller_is_not_shared() -> None:
    """What is appended later is in the session only."""
    events: list[Any] = [ToolCall("search")]
    session = Session(events)
    session.append(ToolCall("open"))
    assert len(events) == 1


def test_a_stored_session_comes_back_as_it_was() -> None:
    """Reading a session wraps nothing twice."""
    session = Session([ToolCall("search"), CustomEvent("dict", {"a": 1})])
    assert msgspec.json.decode(msgspec.json.encode(session), type=Session) == session


@pytest.mark.parametrize("given", ["text", b"bytes", {"role": "user"}, 7, None])
def test_anything_but_a_list_of_events_is_refused(given: Any) -> None:
    """A mapping or a text would become a session of its keys or letters."""
    with pytest.raises(ProctorError, match=r"(?s)takes a list of events.*Fix: pass a list"):
        Session(given)
