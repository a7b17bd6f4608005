"""Tool messages that repeat the result of a call event are recognised."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.evaluators.judges.transcript import render_transcript
from proctor.records import session_events
from proctor.records.session import Message, ToolCall
from proctor.records.session_events import RepeatedCalls
from tests.tables import each_row

ROWS = {"rows": 10}


def _repeats(content: Any, **answer: Any) -> bool:
    calls = RepeatedCalls([ToolCall("query", call_id="c1", **answer)])
    return calls.repeats(Message("tool", content, call_id="c1"))


@each_row(
    ("content", "result"),
    [
        ("ten", "ten"),
        (ROWS, ROWS),
        ('{"rows": 10}', ROWS),
        (ROWS, '{"rows":10}'),
        ('{"rows": 10}', '{"rows":10}'),
        ([{"type": "text", "text": "ten"}], "ten"),
        ("ten", ["ten"]),
        ([{"type": "text", "text": '{"rows": 10}'}], ROWS),
    ],
)
def test_a_result_is_the_same_in_text_and_as_data(content: Any, result: Any) -> None:
    """A message that repeats the result of its call is not shown again."""
    assert _repeats(content, result=result)


@pytest.mark.parametrize(
    "content", ["ERROR: output truncated", {"rows": 11}, '{"rows": 11}', [{"type": "image"}], None, ""]
)
def test_what_the_model_saw_is_shown_where_it_differs_from_the_result(content: Any) -> None:
    """Text next to data, or other data, is not a repetition: a judge sees both."""
    assert not _repeats(content, result=ROWS)


def test_a_judge_sees_a_message_whose_content_its_call_lacks() -> None:
    """The result as the tool gave it, and what the model was given in its place."""
    call = ToolCall("query", result=ROWS, call_id="c1")
    shown = render_transcript([call, Message("tool", "ERROR: output truncated", call_id="c1")])
    assert '{"rows":10}' in shown
    assert "ERROR: output truncated" in shown


def test_a_failed_call_shows_its_error_and_its_result() -> None:
    """Either may be what the model was given."""
    for content in ("no such table", '{"rows": 10}'):
        assert _repeats(content, result=ROWS, error="no such table")
    assert not _repeats("other", result=ROWS, error="no such table")


def test_deeply_nested_content_is_shown() -> None:
    """Data that cannot be compared is not taken for the same."""
    one: list[Any] = []
    other: list[Any] = []
    for _ in range(20_000):
        one, other = [one], [other]
    assert not _repeats(one, result=other)


def test_each_of_many_equal_answers_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call matches one message, and a matched call is not compared again."""
    compared: list[ToolCall] = []
    compare = session_events._has_result

    def count_comparison(call: ToolCall, content: Any) -> bool:
        compared.append(call)
        return compare(call, content)

    monkeypatch.setattr(session_events, "_has_result", count_comparison)
    count = 2_000
    calls = RepeatedCalls([ToolCall("ping", result="ok") for _ in range(count)])
    assert all(calls.repeats(Message("tool", "ok")) for _ in range(count))
    assert not calls.repeats(Message("tool", "ok"))
    assert len(compared) == count
