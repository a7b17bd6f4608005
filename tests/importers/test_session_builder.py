"""Match tool results to their calls, whatever ids a log has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from proctor.records.session import CustomEvent, Event, Message, Session, ToolCall
from proctor.records.session_events import ORPHAN_RESULT
from proctor.sessions.importers import session_builder
from proctor.sessions.importers.session_builder import SessionBuilder, merge_distinct
from tests.importers.growth import assert_linear


def build(builder: SessionBuilder) -> Session:
    return builder.build("s", "openai", "f").session


def outcomes(builder: SessionBuilder) -> list[tuple[str, object]]:
    return [(call.name, call.result) for call in build(builder)[ToolCall]]


def test_calls_of_one_message_with_the_same_id_get_their_results_in_order() -> None:
    """Each answer has its call; one too many is kept as an answer without a call."""
    builder = SessionBuilder()
    builder.add_message("assistant", "", calls=[ToolCall("a", call_id="c"), ToolCall("b", call_id="c")])
    for result in ("A", "B", "C"):
        builder.add_result("c", result)
    assert outcomes(builder) == [("a", "A"), ("b", "B")]
    assert builder.build("s", "openai", "f").unknown_parts == {ORPHAN_RESULT: 1}


def test_a_reused_id_belongs_to_the_later_message() -> None:
    """Its answer does not go to a call of before, answered or not."""
    builder = SessionBuilder()
    builder.add_message("assistant", "", calls=[ToolCall("a", call_id="c")])
    builder.add_message("assistant", "", calls=[ToolCall("b", call_id="c")])
    builder.add_result("c", "B")
    assert builder.set_call_outcome("c", "it broke", 5.0)
    builder.add_message("assistant", "", calls=[ToolCall("d", call_id="c")])
    builder.add_result("c", "D")
    assert outcomes(builder) == [("b", "B"), ("d", "D")]
    assert [call.error for call in build(builder)[ToolCall]] == ["it broke", None]
    assert [call.duration_ms for call in build(builder)[ToolCall]] == [5.0, None]
    assert [event.kind for event in build(builder)[CustomEvent]] == ["unanswered tool call"]


def test_calls_without_an_id_are_found_by_name_or_in_order() -> None:
    """An answer that names its tool goes to the first such call, else to the first of all."""
    builder = SessionBuilder()
    builder.add_message("assistant", "", calls=[ToolCall("a"), ToolCall("b"), ToolCall("b"), ToolCall("a")])
    builder.add_result(None, 1, name="b")
    builder.add_result(None, 2)
    builder.add_result(None, 3, name="a")
    builder.add_result(None, 4)
    builder.add_result(None, 5, name="c")
    assert outcomes(builder) == [("a", 2), ("b", 1), ("b", 4), ("a", 3)]


def test_the_work_for_many_results_is_linear() -> None:
    """Finding the call of a result does not search all finished calls."""

    def prepare(count: int) -> Callable[[], object]:
        builder = SessionBuilder()
        builder.add_message("assistant", "", calls=[ToolCall(f"t{n % 2}") for n in range(count)])

        def add_results() -> None:
            for n in range(count):
                builder.add_result(None, n, name="t1" if n < count / 2 else None)
            assert len(build(builder)[ToolCall]) == count

        return add_results

    assert_linear(prepare, 200)


def test_an_inserted_message_comes_before_its_event() -> None:
    """Several insertions at one index stay in order."""
    builder = SessionBuilder()
    builder.add_event("one", {})
    builder.add_event("two", {})
    builder.insert_message(2, "assistant", "last")
    builder.insert_message(1, "user", "first")
    builder.insert_message(1, "user", "second")
    result = builder.build("s", "codex", "f")
    words = [getattr(event, "kind", None) or event.content for event in result.session]  # type: ignore[union-attr]
    assert words == ["one", "first", "second", "two", "last"]
    assert (result.input, result.output) == ("first", "last")


def test_an_outcome_is_not_set_on_an_earlier_call() -> None:
    """While a later call of the same id waits, the end is its own; a stranger has none."""
    builder = SessionBuilder()
    builder.add_call(ToolCall("a", call_id="c"))
    builder.add_result("c", "A")
    builder.add_message("assistant", "Again.")
    builder.add_call(ToolCall("b", call_id="c"))
    assert not builder.set_call_outcome("c", "it broke", None)
    assert not builder.set_call_outcome("d", "it broke", None)
    builder.add_result("c", "B")
    assert builder.set_call_outcome("c", "it broke", None)
    assert builder.set_call_outcome("c", "another reason", None)
    assert [call.error for call in build(builder)[ToolCall]] == [None, "it broke"]


def test_a_message_continues_until_a_tool_result() -> None:
    """Text after a result starts a new message; calls belong to the message that requested them."""
    builder = SessionBuilder()
    picture = {"type": "image"}
    builder.add_message("assistant", "A", calls=[ToolCall("a", call_id="1")], key="m")
    builder.add_message("assistant", [picture], key="m")
    builder.add_result("1", "one")
    builder.add_message("assistant", "", calls=[ToolCall("b", call_id="2")], key="m")
    builder.add_result("2", "two")
    builder.add_message("assistant", "B", key="m")
    builder.add_message("assistant", "C", key="m")
    first, *calls, last = build(builder)
    assert isinstance(first, Message)
    assert first.content == [{"type": "text", "text": "A"}, picture]
    assert [call.call_id for call in first.tool_calls] == ["1", "2"]
    assert [call.result for call in calls if isinstance(call, ToolCall)] == ["one", "two"]
    assert last == Message("assistant", "B\nC")


def test_the_lines_of_a_message_are_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line does not cost more because many came before it."""
    merged: list[int] = []
    merge = session_builder._merge_message

    def count_merge(event: Event, lines: Sequence[tuple[Any, list[ToolCall]]]) -> Message:
        merged.append(len(lines))
        return merge(event, lines)

    monkeypatch.setattr(session_builder, "_merge_message", count_merge)
    builder = SessionBuilder()
    for n in range(2_000):
        builder.add_message("assistant", "x" * 100, calls=[ToolCall("t", call_id=str(n))], key="m")
    (message,) = build(builder)[Message]
    assert merged == [1_999]
    assert len(message.content) == 2_000 * 101 - 1
    assert len(message.tool_calls) == 2_000


def test_our_keys_never_replace_keys_of_the_log() -> None:
    """Not even if theirs is called what ours would be called then."""
    theirs = {"log": 1, "imported log": 2}
    assert merge_distinct(theirs, {"log": 3}) == theirs | {"imported imported log": 3}
