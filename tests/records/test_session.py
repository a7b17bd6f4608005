"""Sessions keep events in order and give them back by type."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from proctor.records.session import CustomEvent, Message, ModelCall, Session, ToolCall, Usage

maybe = st.none() | st.integers(0, 1000)
usages = st.builds(Usage, maybe, maybe, maybe, maybe)


@dataclass
class Retrieval:
    documents: int


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


def test_a_type_that_fits_nothing_finds_nothing() -> None:
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
