"""Asking with tools: calls before the answer, the position of instructions, and recorded messages."""

from __future__ import annotations

from typing import Any

import pytest

from proctor import Message, ModelRequest, ModelResponse, Session, ToolCall, ToolSpec, Usage, ask
from proctor.errors import Unreadable
from proctor.sessions import current as sessions

TOOL = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
CALL = ToolCall("add", {"a": 1}, call_id="c")
ROUND = (Message("assistant", "", tool_calls=(CALL,)), Message("tool", "3", call_id="c"))


class Scripted:
    """A model with structured output that answers from a list and records its requests."""

    model, supports_json_schema = "test:scripted", True

    def __init__(self, *answers: str | ModelResponse) -> None:
        self.answers = list(answers)
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        self.asked.append(request)
        text = self.answers.pop(0)
        return ModelResponse(text) if isinstance(text, str) else text


def test_an_answer_that_calls_a_tool_is_not_parsed() -> None:
    """It is returned unchanged to the caller, also after a reminder."""
    calling = ModelResponse(tool_calls=(CALL,), usage=Usage(1, 1))
    assert ask(Scripted(calling), "?", list[int], tools=[TOOL]).tool_calls == (CALL,)
    model = Scripted(ModelResponse("no JSON", usage=Usage(5, 5)), calling)
    response = ask(model, "?", list[int], tools=[TOOL])
    assert (response.tool_calls, response.output, response.usage) == ((CALL,), None, Usage(6, 6))


def test_calls_of_unknown_tools_are_not_an_answer() -> None:
    """A model that makes tools up is reminded of the format, and then it is an error."""
    calling = ModelResponse(tool_calls=(CALL,))
    assert ask(Scripted(calling, "[1]"), "?", list[int]).output == [1]
    with pytest.raises(Unreadable):
        ask(Scripted(calling, calling), "?", list[int])


def test_with_tools_the_format_is_described_in_words() -> None:
    """Not every server takes both, so none is sent both."""
    model = Scripted("[1, 2]")
    assert ask(model, "?", list[int], tools=[TOOL]).output == [1, 2]
    assert model.asked[0].schema is None
    assert "JSON Schema" in model.asked[0].messages[0].content


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ((Message("user", "?"),), 0),
        ((Message("system", "Be brief."), Message("user", "?"), *ROUND, *ROUND), 1),
        ((Message("user", "?"), Message("assistant", "Which?"), Message("user", "This.")), 2),
        ((Message("user", "?"), Message("assistant", "Well:")), 2),
        (ROUND, 2),
    ],
)
def test_instructions_are_part_of_the_question(messages: Any, place: int) -> None:
    """Tool rounds stay last and complete; without a question they are a separate message."""
    model = Scripted("[1]")
    ask(model, messages, list[int], tools=[TOOL])
    output = ["JSON Schema" in str(each.content) for each in model.asked[0].messages]
    assert [index for index, result in enumerate(output) if result] == [place]
    assert len(output) == max(len(messages), place + 1)


def test_known_messages_are_not_recorded_again() -> None:
    """Only the new messages of a conversation are added to the session."""
    session = Session()
    before = sessions.current.set(session)
    try:
        ask(Scripted("3"), (Message("user", "1 + 2?"), *ROUND), tools=[TOOL], recorded_count=2)
    finally:
        sessions.current.reset(before)
    assert [each.role for each in session[Message]] == ["tool", "assistant"]
