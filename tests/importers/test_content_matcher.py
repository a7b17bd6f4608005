"""Match the contents of spans to a session: the same texts under the same keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from proctor.records.session import CustomEvent, Event, Message, ModelCall, ToolCall
from proctor.sessions.importers.content_matcher import ContentMatcher
from tests.importers.growth import assert_linear
from tests.tables import each_row

FOUND = [{"title": "Top topics", "href": "example.org/a"}, {"title": "Trends", "href": "b"}]
SEARCH = ToolCall("search", {"query": "topics"}, FOUND, call_id="c1")


@pytest.mark.parametrize(
    "value",
    [
        FOUND,
        '[{"title": "Top topics", "href": "example.org/a"}, {"href": "b", "title": "Trends"}]',
        {"type": "tool_result", "tool_use_id": "c1", "content": FOUND},
        {"name": "search", "arguments": '{"query": "topics"}', "id": "c1"},
    ],
    ids=["result", "as text", "with its id", "call"],
)
def test_the_content_of_a_call_matches(value: Any) -> None:
    """In every form: as a value, as JSON in a text, as a part of a message."""
    matcher = ContentMatcher([SEARCH])
    assert matcher.consume(value)
    assert not matcher.consume(value), "it is used up"


@each_row(
    "value",
    [
        [{**FOUND[0], "title": "search"}, FOUND[1]],
        [{**FOUND[0], "title": "c1"}, FOUND[1]],
        [FOUND[1], FOUND[0]],
        [{"title": "example.org/a", "href": "Top topics"}, FOUND[1]],
        {"name": "topics"},
        {"id": "search"},
        {"found": FOUND},
        [{**FOUND[0], "rank": None}],
    ],
    ids=["name", "id", "order", "keys", "argument", "other id", "wrapped", "empty"],
)
def test_the_same_words_in_other_places_do_not_match(value: Any) -> None:
    """A title that reads like the tool's name, results in another order, values changed about."""
    assert not ContentMatcher([SEARCH]).consume(value)


def test_lines_match_in_order_with_the_empty_lines_between_them() -> None:
    """Parts of a message are joined by lines; an empty line is a line."""
    message = Message("user", "one\ntwo\n\nthree")
    assert ContentMatcher([message]).consume([{"text": "one"}, {"text": "two\n\nthree"}])
    assert not ContentMatcher([message]).consume("two\none\n\nthree")
    assert not ContentMatcher([message]).consume("one\ntwo\nthree\n\n")


def test_a_finish_reason_does_not_match_a_text() -> None:
    """A message that reads "stop" is another thing than a call that came to its end."""
    matcher = ContentMatcher([ModelCall("small", finish_reason="stop")])
    assert not matcher.consume("stop")
    assert matcher.consume([{"finish_reason": "stop"}])


def test_thoughts_match_in_the_order_of_spans() -> None:
    """Thoughts come before the message, as in the span."""
    result: list[Event] = [CustomEvent("thinking", "Easy."), Message("assistant", "4")]
    assert ContentMatcher(result).consume([{"type": "reasoning", "content": "Easy."}, {"content": "4"}])


def test_the_work_for_many_equal_lines_is_linear() -> None:
    """Each position is searched for once."""

    def prepare(count: int) -> Callable[[], object]:
        lines = "\n".join(["- yes"] * count)
        matcher = ContentMatcher([Message("user", lines), Message("assistant", lines)])

        def consume() -> None:
            assert [matcher.consume(lines) for _ in range(3)] == [True, True, False]

        return consume

    assert_linear(prepare, 500)
