"""Sessions keep events in order and give them back by type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.records import codec
from proctor.records.session import CustomEvent, Message, ModelCall, Session, SessionView, ToolCall, Usage

maybe = st.none() | st.integers(0, 1000)
usages = st.builds(Usage, maybe, maybe, maybe, maybe)


@dataclass
class Retrieval:
    documents: int


class Page(pydantic.BaseModel):
    url: str


class Place(NamedTuple):
    row: int
    column: int


class Note(msgspec.Struct):
    text: str


class Plain:
    """A class that only Python knows how to make."""


def test_events_are_kept_in_order_and_found_by_type() -> None:
    """Our own events and users' own objects alike."""
    session = Session()
    said, called, found = Message("user", "hi"), ToolCall("search"), Retrieval(3)
    for event in (said, called, found):
        session.append(event)
    assert list(session) == [said, called, CustomEvent("Retrieval", found)]
    assert len(session) == 3
    assert session[Message] == (said,)
    assert session[Retrieval] == (found,)
    assert session[ModelCall] == ()
    assert session[CustomEvent] == (CustomEvent("Retrieval", found),)


def test_a_type_without_events_gives_no_events() -> None:
    """Events that carry no object of the user's do not count as None."""
    session = Session([Message("user", "hi"), CustomEvent("none", None)])
    assert session[type(None)] == (None,)
    assert session[object] == (Message("user", "hi"), CustomEvent("none", None), None)


def test_sessions_do_not_share_their_events() -> None:
    """A new session is empty, whatever was appended to another."""
    Session().append(ToolCall("search"))
    assert len(Session()) == 0


def test_a_session_may_grow_while_it_is_read() -> None:
    """Iterating goes over what was there when it began."""
    session = Session([ToolCall("a")])
    for _ in session:
        session.append(ToolCall("b"))
    assert len(session) == 2


def test_a_tool_call_succeeds_unless_it_failed() -> None:
    """An error, even an empty one, is a failure; no result is not."""
    assert ToolCall("search").success
    assert not ToolCall("search", error="").success


def test_usage_is_added_up_over_model_calls() -> None:
    """What is unknown stays unknown and is not zero."""
    session = Session([ModelCall("m", Usage(10, 5)), Message("user", ""), ModelCall("m", Usage(1))])
    assert session.usage == Usage(11, 5)
    assert Session().usage == Usage()
    assert session.known_usage() == Usage(11, 5)
    assert Session([ModelCall("m")]).known_usage() is None
    assert Usage().total_tokens is None
    assert Usage(cached_tokens=3, cost=0.5).total_tokens is None
    assert Usage(output_tokens=2).total_tokens == 2


@given(usages, usages, usages)
def test_usages_add_up_in_any_order(a: Usage, b: Usage, c: Usage) -> None:
    """Adding is associative and commutative, and unknown changes nothing."""
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Usage() == a


def test_a_session_can_only_be_added_to() -> None:
    """Its events are shown as a tuple; what is appended stays, and stays in its place."""
    session = Session([ToolCall("a")])
    session.append(ToolCall("b"))
    assert session.events == (ToolCall("a"), ToolCall("b"))
    with pytest.raises(AttributeError):
        session.events = ()  # type: ignore[misc]
    assert repr(Session([CustomEvent("n", 1)])) == "Session([CustomEvent(kind='n', data=1)])"


def test_a_session_is_written_as_its_events() -> None:
    """The file has one key, and gives the same session back."""
    session = Session([ToolCall("a")])
    data = codec.encode(session)
    assert data == b'{"events":[{"type":"tool_call","name":"a"}]}'
    assert codec.decode(data, Session) == session
    assert codec.encode(Session()) == b"{}"


def test_a_view_reads_like_the_session_and_does_not_change_with_it() -> None:
    """By type, in order, by length and usage; what comes later is not in it."""
    session = Session([Message("user", "hi"), ModelCall("m", Usage(1, 2))])
    session.append(Retrieval(3))
    view = session.view()
    assert tuple(view) == session.events
    assert (len(view), view.usage) == (3, Usage(1, 2))
    assert view[Retrieval] == (Retrieval(3),)
    session.append(ToolCall("late"))
    assert view[ToolCall] == ()
    assert session.view(Usage(7)).usage == Usage(7)
    assert SessionView().usage == Usage()


def test_a_view_offers_no_way_to_change_it() -> None:
    """Neither a method nor an assignment."""
    view = Session([ToolCall("a")]).view()
    assert not hasattr(view, "append")
    for name in ("events", "told"):
        with pytest.raises(AttributeError):
            setattr(view, name, None)
    assert isinstance(view.events, tuple)


@pytest.mark.parametrize("event", [Retrieval(3), Page(url="a"), Place(1, 2), Note("x"), {"a": [1]}, "text"])
def test_custom_objects_are_found_by_type_after_storing(event: Any) -> None:
    """An evaluator finds in a stored session what it found in the live one."""
    session = Session()
    session.append(event)
    stored = codec.decode(codec.encode(session), Session)
    kind = type(event)
    assert stored[kind] == session[kind] == stored.view()[kind] == (event,)


@pytest.mark.parametrize("kind", [Retrieval, Page, Plain, type(None), int | str])
def test_data_of_another_type_is_not_returned(kind: Any) -> None:
    """Another object of the same name, or one that data cannot make, is left out."""
    name = getattr(kind, "__name__", "other")
    session = Session([CustomEvent(name, {"other": 1}), CustomEvent("Other", {"documents": 1})])
    assert session[kind] == ()
    assert len(session[CustomEvent]) == 2
