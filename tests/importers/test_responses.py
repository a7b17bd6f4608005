"""Requests that are logged with their responses: the answer and its tokens count once."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.evaluators.judges.transcript import render_transcript
from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.sessions.importers import langchain_messages, openai_messages
from proctor.sessions.importers.session_files import detect_format
from tests.importers.examples import EXCHANGES
from tests.importers.logs import kinds, only, read, written

ASKED = {"role": "user", "content": "Capital of France?"}
SAID = {"role": "assistant", "content": "Paris"}
RESPONSES: dict[str, tuple[Any, Usage]] = {
    "chat completions": ({"model": "m", "choices": [{"message": SAID}], "usage": {"prompt_tokens": 5}}, Usage(5)),
    "responses": (
        {
            "model": "m",
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Paris"}]},
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
def test_the_answer_of_every_api_is_read(api: str) -> None:
    """For every API, the answer is the last message, and its tokens are those of the session."""
    response, usage = RESPONSES[api]
    logged = {"model": "m", "messages": [ASKED], "response": response}
    imported = only(openai_messages, logged)
    assert [(m.role, m.content) for m in imported.session[Message]] == [
        ("user", "Capital of France?"),
        ("assistant", "Paris"),
    ]
    assert [call.model for call in imported.session[ModelCall]] == ["m"]
    assert imported.session.usage == usage
    assert (imported.output, imported.unknown_parts) == ("Paris", {})
    again = only(openai_messages, {**logged, "messages": [ASKED, SAID]})
    assert again.session[Message] == imported.session[Message]
    assert again.session.usage == usage


def test_an_answer_may_ask_for_tools_and_think() -> None:
    """Anthropic's parts are read by type, and the finish reason is known."""
    parts = [
        {"type": "thinking", "thinking": "Look it up."},
        {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "France"}},
    ]
    response = {"role": "assistant", "content": parts, "model": "m", "stop_reason": "tool_use"}
    imported = only(openai_messages, {"messages": [ASKED], "response": response})
    assert imported.session[Message][-1].tool_calls == (ToolCall("search", {"q": "France"}, call_id="c1"),)
    assert "thinking" in [event.kind for event in imported.session[CustomEvent]]
    assert imported.session[ModelCall] == (ModelCall("m", finish_reason="tool_use"),)


def test_an_unknown_response_is_counted() -> None:
    """It is counted as unknown so that a run warns; a response with only a usage is not."""
    odd = {"error": {"message": "overloaded"}, "model": "m"}
    imported = only(openai_messages, {"messages": [ASKED], "response": odd})
    assert imported.unknown_parts == {"response": 1}
    assert imported.session[CustomEvent][0].data == {"found": odd}
    bare = {"model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    imported = only(openai_messages, {"messages": [ASKED, SAID], "response": bare})
    assert (imported.unknown_parts, imported.session.usage) == ({}, Usage(5, 1))


def test_the_usage_of_single_messages_is_counted_once() -> None:
    """They are the usage of the session; a sum next to the messages is not added."""
    used = {"prompt_tokens": 5, "completion_tokens": 2, "cost": 0.5}
    answer = {**SAID, "usage": used, "model": "m"}
    imported = only(openai_messages, [ASKED, answer, ASKED, answer])
    both = Usage(10, 4, cost=1.0)
    assert imported.session.usage == both
    assert [call.model for call in imported.session[ModelCall]] == ["m", "m"]
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
    imported = list(langchain_messages.read(lines, "logs/chat.jsonl"))
    assert [session.id for session in imported] == names


def test_a_response_logged_with_its_input_is_a_session() -> None:
    """The input items come first, then the answer; the format is detected by its content."""
    response = EXCHANGES["openai"][0]
    assert detect_format([response]) is openai_messages
    imported = only(openai_messages, response)
    assert kinds(imported) == [
        "system", "user", "CustomEvent message: mcp_list_tools", "CustomEvent thinking",
        "assistant", "ToolCall web_search", "assistant", "ModelCall m",
    ]  # fmt: skip
    assert (imported.id, imported.input, imported.output) == ("r1", "Weather in Rome?", "Sunny.")
    assert imported.session.usage == Usage(5, 3)
    assert imported.unknown_parts == {"message: mcp_list_tools": 1}


@pytest.mark.parametrize(
    ("asked", "before"), [("Weather in Rome?", ["user"]), ([ASKED, SAID], ["user", "assistant"]), (None, [])]
)
def test_the_input_of_a_response_may_be_a_text_or_missing(asked: Any, before: list[str]) -> None:
    """A text is a user message; a response alone is an assistant message."""
    output = [{"type": "message", "role": "assistant", "content": "Sunny."}]
    given = {"object": "response", "output": output}
    imported = only(openai_messages, given if asked is None else {"input": asked, "output": output})
    assert kinds(imported) == [*before, "assistant"]


def test_an_object_with_an_input_but_no_items_is_no_response() -> None:
    """Dataset rows are not detected as logs."""
    for row in ({"input": "2 + 2", "output": "4"}, {"input": [ASKED]}, {"output": [4], "input": ""}):
        assert detect_format([row]) is None


def test_each_line_of_a_batch_is_a_session() -> None:
    """Each has its request id; a failed request is counted with its error."""
    first, second = read(openai_messages, EXCHANGES["openai"][1:3])
    assert detect_format(EXCHANGES["openai"][1:2]) is detect_format(EXCHANGES["openai"][2:3]) is openai_messages
    assert (first.id, first.output, first.session.usage) == ("q-1", "Paris", Usage(3, 1))
    assert (second.id, second.unknown_parts) == ("q-2", {"error": 1})
    assert "expired" in written(second)
    body = {**EXCHANGES["openai"][0], "input": None}
    line = {"custom_id": "q-3", "response": {"status_code": 200, "body": body}, "error": None}
    third = only(openai_messages, line)
    assert (third.id, third.output) == ("q-3", "Sunny.")
    assert third.session[Message][0] == Message("system", "Be brief.")


def test_other_choices_are_counted_but_are_no_answers() -> None:
    """The first is the answer; a judge does not read a model that speaks twice."""
    choices = [{"index": n, "message": {**SAID, "content": it}} for n, it in enumerate("ab")]
    for given in ({"choices": choices}, {"response": {"choices": choices}}):
        imported = only(openai_messages, {"messages": [ASKED], **given})
        assert (imported.output, imported.unknown_parts) == ("a", {"alternative answer": 1})
        assert render_transcript(imported.session).count("assistant") == 1
        assert imported.session[CustomEvent][0].kind == "alternative answer"


def test_a_judge_reads_a_refusal() -> None:
    """It is the answer, and the record says that it is a refusal."""
    no = {"role": "assistant", "content": None, "refusal": "I cannot."}
    imported = only(openai_messages, [ASKED, no])
    assert (imported.output, imported.unknown_parts) == ("I cannot.", {})
    assert "I cannot." in render_transcript(imported.session)
    assert imported.recorded["log"] == [{"line": 2, "refusal": "I cannot."}]
