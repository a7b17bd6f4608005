"""Requests that are logged with their responses: the answer is told once, the tokens count once."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.importers import langchain_messages, openai_messages
from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from tests.importers.logs import only

ASKED = {"role": "user", "content": "Capital of France?"}
SAID = {"role": "assistant", "content": "Paris"}
RESPONSES: dict[str, tuple[Any, Usage]] = {
    "chat completions": (
        {"model": "m", "choices": [{"message": SAID}], "usage": {"prompt_tokens": 5}},
        Usage(5),
    ),
    "responses": (
        {
            "model": "m",
            "output": [
                {"type": "reasoning", "summary": []},
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Paris"}],
                },
            ],
            "usage": {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 4}},
        },
        Usage(5, cached_tokens=4),
    ),
    "anthropic": (
        {
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "Paris"}],
            "usage": {
                "input_tokens": 5,
                "output_tokens": 2,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 10,
            },
        },
        Usage(115, 2, 100, cache_write_tokens=10),
    ),
    "gemini": (
        {
            "model": "m",
            "candidates": [{"content": {"role": "model", "parts": [{"text": "Paris"}]}}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 1},
        },
        Usage(5, 1),
    ),
    "in a text": ('{"model": "m", "message": {"role": "assistant", "content": "Paris"}}', Usage()),
    "a text": ("Paris", Usage()),
}


@pytest.mark.parametrize("api", RESPONSES)
def test_the_answer_of_every_api_is_told(api: str) -> None:
    """Whichever API was asked, the answer is the last message, and its tokens are the session's."""
    response, usage = RESPONSES[api]
    logged = {"model": "m", "messages": [ASKED], "response": response}
    found = only(openai_messages, logged)
    assert [(m.role, m.content) for m in found.session[Message]] == [
        ("user", "Capital of France?"),
        ("assistant", "Paris"),
    ]
    assert [call.model for call in found.session[ModelCall]] == ["m"]
    assert found.session.usage == usage
    assert (found.output, found.passed_over) == ("Paris", {})
    again = only(openai_messages, {**logged, "messages": [ASKED, SAID]})
    assert again.session[Message] == found.session[Message]
    assert again.session.usage == usage


def test_an_answer_may_ask_for_tools_and_think() -> None:
    """Anthropic's parts are told as what they are, and why the answer ended is known."""
    parts = [
        {"type": "thinking", "thinking": "Look it up."},
        {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "France"}},
    ]
    response = {"role": "assistant", "content": parts, "model": "m", "stop_reason": "tool_use"}
    found = only(openai_messages, {"messages": [ASKED], "response": response})
    assert found.session[Message][-1].tool_calls == (
        ToolCall("search", {"q": "France"}, call_id="c1"),
    )
    assert "thinking" in [event.kind for event in found.session[CustomEvent]]
    assert found.session[ModelCall] == (ModelCall("m", finish_reason="tool_use"),)


def test_a_response_that_nobody_knows_is_counted() -> None:
    """It is passed over, so that a run warns of it; one that only tells the tokens is not."""
    odd = {"error": {"message": "overloaded"}, "model": "m"}
    found = only(openai_messages, {"messages": [ASKED], "response": odd})
    assert found.passed_over == {"response": 1}
    assert found.session[CustomEvent][0].data == {"found": odd}
    bare = {"model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    found = only(openai_messages, {"messages": [ASKED, SAID], "response": bare})
    assert (found.passed_over, found.session.usage) == ({}, Usage(5, 1))


def test_tokens_that_single_messages_tell_are_counted_once() -> None:
    """They are the session's; what stands beside the messages is their sum and not counted too."""
    used = {"prompt_tokens": 5, "completion_tokens": 2, "cost": 0.5}
    answer = {**SAID, "usage": used, "model": "m"}
    found = only(openai_messages, [ASKED, answer, ASKED, answer])
    both = Usage(10, 4, cost=1.0)
    assert found.session.usage == both
    assert [call.model for call in found.session[ModelCall]] == ["m", "m"]
    whole = {"prompt_tokens": 10, "completion_tokens": 4}
    talk = {"messages": [ASKED, answer, ASKED, answer], "usage": whole}
    assert only(openai_messages, talk).session.usage == both
    response = {"choices": [{"message": SAID}], "usage": used, "model": "m"}
    for before, usage in (([ASKED, answer], Usage(5, 2, cost=0.5)), ([answer, ASKED], both)):
        logged = {"messages": before, "response": response}
        assert only(openai_messages, logged).session.usage == usage


HUMAN = {"type": "human", "data": {"content": "Hi"}}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([[HUMAN]], ["chat"]),
        ([{"messages": [HUMAN]}], ["chat"]),
        ([{"messages": [HUMAN]}, 7], ["chat"]),
        ([[HUMAN], [HUMAN]], ["chat:1", "chat:2"]),
        ([[{"messages": [HUMAN]}, {"messages": [HUMAN], "id": "b"}]], ["chat:1", "b"]),
        ([{"messages": [HUMAN]}, HUMAN], ["chat:1", "chat"]),
    ],
)
def test_the_only_session_of_a_file_is_named_after_it(values: list[Any], names: list[str]) -> None:
    """LangChain's as OpenAI's; where there are several, each is named after its place too."""
    lines = list(enumerate(values, start=1))
    found = list(langchain_messages.read(lines, "logs/chat.jsonl"))
    assert [one.id for one in found] == names
