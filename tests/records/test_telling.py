"""What a call tells already, so that the message with its result need not be shown."""

from __future__ import annotations

import time
from typing import Any

import pytest

from proctor.evaluators.judges.transcript import render_transcript
from proctor.records.session import Message, ToolCall
from proctor.records.session_events import RepeatedCalls

ROWS = {"rows": 10}


def _repeats(content: Any, **answer: Any) -> bool:
    told = RepeatedCalls([ToolCall("query", call_id="c1", **answer)])
    return told.repeats(Message("tool", content, call_id="c1"))


@pytest.mark.parametrize(
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
    """A message that says what its call has as result is not shown again."""
    assert _repeats(content, result=result)


@pytest.mark.parametrize(
    "content", ["ERROR: output truncated", {"rows": 11}, '{"rows": 11}', [{"type": "image"}], None, ""]
)
def test_what_the_model_saw_is_shown_where_it_differs_from_the_result(content: Any) -> None:
    """A text beside data, or other data, is no repetition: a judge reads both."""
    assert not _repeats(content, result=ROWS)


def test_a_judge_reads_a_message_that_its_call_does_not_tell() -> None:
    """The result as the tool gave it, and what the model was given in its place."""
    call = ToolCall("query", result=ROWS, call_id="c1")
    shown = render_transcript([call, Message("tool", "ERROR: output truncated", call_id="c1")])
    assert '{"rows":10}' in shown
    assert "ERROR: output truncated" in shown


def test_a_failed_call_tells_its_error_and_what_it_gave() -> None:
    """Either may be what the model was given."""
    for content in ("no such table", '{"rows": 10}'):
        assert _repeats(content, result=ROWS, error="no such table")
    assert not _repeats("other", result=ROWS, error="no such table")


def test_nesting_without_an_end_is_shown() -> None:
    """Data that cannot be compared is not taken for the same."""
    one: list[Any] = []
    other: list[Any] = []
    for _ in range(100_000):
        one, other = [one], [other]
    assert not _repeats(one, result=other)


def test_many_equal_answers_are_told_apart_in_time() -> None:
    """Each call stands for one message; those that are taken are not looked at again."""
    count = 20_000
    told = RepeatedCalls([ToolCall("ping", result="ok") for _ in range(count)])
    began = time.process_time()
    assert all(told.repeats(Message("tool", "ok")) for _ in range(count))
    assert not told.repeats(Message("tool", "ok"))
    assert time.process_time() - began < 5
