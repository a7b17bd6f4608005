"""How calls and answers find each other, whatever ids a log gives them."""

from __future__ import annotations

import time

from proctor.records.session import CustomEvent, Message, Session, ToolCall
from proctor.records.session_events import ORPHAN_RESULT
from proctor.sessions.importers.session_builder import SessionBuilder, merge_distinct


def told(chronicle: SessionBuilder) -> Session:
    return chronicle.build("s", "openai", "f").session


def outcomes(chronicle: SessionBuilder) -> list[tuple[str, object]]:
    return [(call.name, call.result) for call in told(chronicle)[ToolCall]]


def test_calls_of_one_message_that_share_an_id_are_answered_in_order() -> None:
    """Each answer has its call; one too many is kept as an answer without a call."""
    said = SessionBuilder()
    said.add_message("assistant", "", calls=[ToolCall("a", call_id="c"), ToolCall("b", call_id="c")])
    for result in ("A", "B", "C"):
        said.add_result("c", result)
    assert outcomes(said) == [("a", "A"), ("b", "B")]
    assert said.build("s", "openai", "f").passed_over == {ORPHAN_RESULT: 1}


def test_an_id_that_is_used_again_belongs_to_the_later_message() -> None:
    """Its answer does not go to a call of before, answered or not."""
    said = SessionBuilder()
    said.add_message("assistant", "", calls=[ToolCall("a", call_id="c")])
    said.add_message("assistant", "", calls=[ToolCall("b", call_id="c")])
    said.add_result("c", "B")
    assert said.set_call_outcome("c", "it broke", 5.0)
    said.add_message("assistant", "", calls=[ToolCall("d", call_id="c")])
    said.add_result("c", "D")
    assert outcomes(said) == [("b", "B"), ("d", "D")]
    assert [call.error for call in told(said)[ToolCall]] == ["it broke", None]
    assert [call.duration_ms for call in told(said)[ToolCall]] == [5.0, None]
    assert [event.kind for event in told(said)[CustomEvent]] == ["unanswered tool call"]


def test_calls_without_an_id_are_found_by_name_or_in_order() -> None:
    """An answer that names its tool goes to the first such call, else to the first of all."""
    said = SessionBuilder()
    said.add_message("assistant", "", calls=[ToolCall("a"), ToolCall("b"), ToolCall("b"), ToolCall("a")])
    said.add_result(None, 1, name="b")
    said.add_result(None, 2)
    said.add_result(None, 3, name="a")
    said.add_result(None, 4)
    said.add_result(None, 5, name="c")
    assert outcomes(said) == [("a", 2), ("b", 1), ("b", 4), ("a", 3)]


def test_a_hundred_thousand_calls_take_no_longer_each() -> None:
    """Finding the call of an answer does not look through all that were answered before."""
    said = SessionBuilder()
    said.add_message("assistant", "", calls=[ToolCall(f"t{n % 2}") for n in range(100_000)])
    before = time.process_time()
    for n in range(100_000):
        said.add_result(None, n, name="t1" if n < 50_000 else None)
    assert time.process_time() - before < 10
    assert len(told(said)[ToolCall]) == 100_000


def test_what_was_said_earlier_stands_there() -> None:
    """Before the event of that number, in the order in which it is told."""
    said = SessionBuilder()
    said.add_event("one", {})
    said.add_event("two", {})
    said.insert_message(2, "assistant", "last")
    said.insert_message(1, "user", "first")
    said.insert_message(1, "user", "second")
    found = said.build("s", "codex", "f")
    words = [getattr(event, "kind", None) or event.content for event in found.session]  # type: ignore[union-attr]
    assert words == ["one", "first", "second", "two", "last"]
    assert (found.input, found.output) == ("first", "last")


def test_how_a_call_ended_is_not_told_of_the_one_before() -> None:
    """While a later call of the same id waits, the end is its own; a stranger has none."""
    said = SessionBuilder()
    said.add_call(ToolCall("a", call_id="c"))
    said.add_result("c", "A")
    said.add_message("assistant", "Again.")
    said.add_call(ToolCall("b", call_id="c"))
    assert not said.set_call_outcome("c", "it broke", None)
    assert not said.set_call_outcome("d", "it broke", None)
    said.add_result("c", "B")
    assert said.set_call_outcome("c", "it broke", None)
    assert said.set_call_outcome("c", "another reason", None)
    assert [call.error for call in told(said)[ToolCall]] == [None, "it broke"]


def test_a_message_goes_on_until_a_tool_answers() -> None:
    """What is said after an answer stands after it; calls belong to the message that asked."""
    said = SessionBuilder()
    picture = {"type": "image"}
    said.add_message("assistant", "A", calls=[ToolCall("a", call_id="1")], key="m")
    said.add_message("assistant", [picture], key="m")
    said.add_result("1", "one")
    said.add_message("assistant", "", calls=[ToolCall("b", call_id="2")], key="m")
    said.add_result("2", "two")
    said.add_message("assistant", "B", key="m")
    said.add_message("assistant", "C", key="m")
    first, *calls, last = told(said)
    assert isinstance(first, Message)
    assert first.content == [{"type": "text", "text": "A"}, picture]
    assert [call.call_id for call in first.tool_calls] == ["1", "2"]
    assert [call.result for call in calls if isinstance(call, ToolCall)] == ["one", "two"]
    assert last == Message("assistant", "B\nC")


def test_a_message_on_twenty_thousand_lines_takes_no_longer_each() -> None:
    """A line does not cost more because many came before it."""
    said = SessionBuilder()
    before = time.process_time()
    for n in range(20_000):
        said.add_message("assistant", "x" * 100, calls=[ToolCall("t", call_id=str(n))], key="m")
    (message,) = told(said)[Message]
    assert time.process_time() - before < 3
    assert len(message.content) == 20_000 * 101 - 1
    assert len(message.tool_calls) == 20_000


def test_no_name_of_ours_takes_the_place_of_theirs() -> None:
    """Not even if theirs is called what ours would be called then."""
    theirs = {"log": 1, "imported log": 2}
    assert merge_distinct(theirs, {"log": 3}) == theirs | {"imported imported log": 3}
